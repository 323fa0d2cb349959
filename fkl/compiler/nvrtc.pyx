"""NVRTC's C API: a library opened by path, and one call that turns source and headers into a binary.

Several versions may be open side by side. Compiles run without the GIL; NVRTC has no global lock.
"""

cimport cython
from libc.stdlib cimport free, malloc

cdef extern from "<dlfcn.h>" nogil:
    void* dlopen(const char*, int)
    void* dlsym(void*, const char*)
    const char* dlerror()
    int RTLD_NOW
    int RTLD_LOCAL

ctypedef void* program_t
ctypedef int (*version_t)(int*, int*) noexcept nogil
ctypedef const char* (*error_text_t)(int) noexcept nogil
ctypedef int (*count_t)(int*) noexcept nogil
ctypedef int (*create_t)(program_t*, const char*, const char*, int, const char* const*, const char* const*) noexcept nogil
ctypedef int (*destroy_t)(program_t*) noexcept nogil
ctypedef int (*compile_t)(program_t, int, const char* const*) noexcept nogil
ctypedef int (*size_t_of)(program_t, size_t*) noexcept nogil
ctypedef int (*text_of)(program_t, char*) noexcept nogil


@cython.final
cdef class Nvrtc:
    """One NVRTC library.

    Parameters
    ----------
    path : str
        Of ``libnvrtc.so.<major>``.
    builtins : str or None
        Of its companion ``libnvrtc-builtins.so.<major>.<minor>``. Opened first, by path: some wheels carry no run path
        and NVRTC would look for it in vain.

    Raises
    ------
    OSError
        A library that cannot be opened, or is no NVRTC.
    """

    cdef readonly str path
    cdef readonly tuple version
    cdef error_text_t error_text
    cdef count_t arch_count
    cdef count_t archs
    cdef create_t create
    cdef destroy_t destroy
    cdef compile_t compile_program
    cdef size_t_of log_size
    cdef text_of log_text
    cdef size_t_of cubin_size
    cdef text_of cubin
    cdef size_t_of ptx_size
    cdef text_of ptx

    def __init__(self, str path not None, builtins=None):
        cdef void* library
        cdef version_t version
        cdef int major = 0
        cdef int minor = 0
        self.path = path
        if builtins is not None:
            _open(builtins)
        library = _open(path)
        version = <version_t>_symbol(library, path, b"nvrtcVersion")
        self.error_text = <error_text_t>_symbol(library, path, b"nvrtcGetErrorString")
        self.arch_count = <count_t>_symbol(library, path, b"nvrtcGetNumSupportedArchs")
        self.archs = <count_t>_symbol(library, path, b"nvrtcGetSupportedArchs")
        self.create = <create_t>_symbol(library, path, b"nvrtcCreateProgram")
        self.destroy = <destroy_t>_symbol(library, path, b"nvrtcDestroyProgram")
        self.compile_program = <compile_t>_symbol(library, path, b"nvrtcCompileProgram")
        self.log_size = <size_t_of>_symbol(library, path, b"nvrtcGetProgramLogSize")
        self.log_text = <text_of>_symbol(library, path, b"nvrtcGetProgramLog")
        self.cubin_size = <size_t_of>_symbol(library, path, b"nvrtcGetCUBINSize")
        self.cubin = <text_of>_symbol(library, path, b"nvrtcGetCUBIN")
        self.ptx_size = <size_t_of>_symbol(library, path, b"nvrtcGetPTXSize")
        self.ptx = <text_of>_symbol(library, path, b"nvrtcGetPTX")
        version(&major, &minor)
        self.version = (major, minor)

    def supported_archs(self):
        """Architectures it compiles for, such as ``[75, 80, 90]``, ascending."""
        cdef int count = 0
        cdef int* values
        if self.arch_count(&count) != 0 or count <= 0:
            return []
        values = <int*>malloc(count * sizeof(int))
        if values == NULL:
            raise MemoryError
        try:
            if self.archs(values) != 0:
                return []
            return sorted(values[i] for i in range(count))
        finally:
            free(values)

    def compile(self, bytes source not None, dict headers not None, list options not None, bint ptx=False):
        """Compile one program.

        Parameters
        ----------
        source : bytes
            C++ text.
        headers : dict of str to bytes
            Include name -> text; nothing is read from disk.
        options : list of str
        ptx : bool
            Give PTX (with its trailing NUL) instead of a cubin.

        Returns
        -------
        (int, bytes, str)
            NVRTC's status (0: success), the binary, the log.
        """
        cdef program_t program = NULL
        cdef list names = [name.encode() for name in headers]
        cdef list texts = list(headers.values())
        cdef list flags = [option.encode() for option in options]
        cdef int header_count = len(names)
        cdef int flag_count = len(flags)
        cdef const char** pointers = <const char**>malloc((2 * header_count + flag_count + 1) * sizeof(char*))
        cdef const char* text = source
        cdef const char* label = b"fkl.cu"
        cdef int status
        cdef int i
        if pointers == NULL:
            raise MemoryError
        for i in range(header_count):
            pointers[i] = <bytes>texts[i]
            pointers[header_count + i] = <bytes>names[i]
        for i in range(flag_count):
            pointers[2 * header_count + i] = <bytes>flags[i]
        try:
            with nogil:
                status = self.create(&program, text, label, header_count, pointers, pointers + header_count)
                if status == 0:
                    status = self.compile_program(program, flag_count, pointers + 2 * header_count)
            log = "" if program == NULL else self._text(program, self.log_size, self.log_text).rstrip(b"\0").decode(
                "utf-8", "replace")
            if status != 0:
                return status, b"", log or self.error_text(status).decode()
            if ptx:
                return 0, self._text(program, self.ptx_size, self.ptx), log
            return 0, self._text(program, self.cubin_size, self.cubin), log
        finally:
            free(pointers)
            if program != NULL:
                self.destroy(&program)

    cdef bytes _text(self, program_t program, size_t_of size_of, text_of text):
        cdef size_t size = 0
        cdef char* data
        if size_of(program, &size) != 0 or size == 0:
            return b""
        data = <char*>malloc(size)
        if data == NULL:
            raise MemoryError
        try:
            if text(program, data) != 0:
                return b""
            return data[:size]
        finally:
            free(data)


cdef void* _open(str path) except NULL:
    cdef void* library = dlopen(path.encode(), RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        raise OSError(dlerror().decode("utf-8", "replace"))
    return library


cdef void* _symbol(void* library, str path, const char* name) except NULL:
    cdef void* address = dlsym(library, name)
    if address == NULL:
        raise OSError(f"{path} has no {name.decode()}: it is no NVRTC, or too old a one (11.2 and newer will do)")
    return address
