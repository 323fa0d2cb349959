"""The CUDA driver: opened at its first use, checked at every call, left alone after a fork and at exit.

`drv` is the table of entry points, `ensure()` opens it, `check()` turns an answer into a `CudaError`. Everything else
of `fkl.runtime` stands on these three.
"""

import atexit
import os
import threading

from libc.string cimport memset

from fkl.runtime.errors import STICKY, CudaError

cdef extern from "<dlfcn.h>" nogil:
    void* dlopen(const char*, int)
    void* dlsym(void*, const char*)
    const char* dlerror()
    int RTLD_NOW
    int RTLD_LOCAL

cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(void (*)() noexcept nogil, void (*)() noexcept nogil, void (*)() noexcept nogil)

ctypedef int (*get_proc_address)(const char*, void**, int, uint64_t, int*) noexcept nogil

# The newest driver ABI that this table needs: libraries, context-independent loading.
cdef enum:
    NEEDED_VERSION = 12000
    LEGACY_STREAM = 1        # CU_GET_PROC_ADDRESS_LEGACY_STREAM: the NULL stream is the legacy default stream
    CAPTURE_RELAXED = 2      # CU_STREAM_CAPTURE_MODE_RELAXED

cdef int state = 0
cdef bint exiting = False
cdef bint forked = False
cdef int version = 0
# The first sticky error, which every later call repeats: (code, name, text, call).
cdef object broken = None
cdef object _lock = threading.Lock()


cdef void _in_child() noexcept nogil:
    """Runs in a forked child: a driver that the parent had opened is unusable here."""
    global state, forked
    if state != 0:
        forked = True
        state = 2


pthread_atfork(NULL, NULL, _in_child)


def _at_exit():
    global exiting
    exiting = True


atexit.register(_at_exit)


cdef bint quiet() noexcept nogil:
    """Whether destructors must leave the driver alone: at exit, after a fork, or if it was never opened.

    The driver frees everything itself when the process ends.
    """
    return exiting or state != 1


cdef bint relax(int* mode) noexcept nogil:
    """Let this thread allocate and load although a stream may be capturing; undone by `restore`."""
    mode[0] = CAPTURE_RELAXED
    return drv.ThreadExchangeStreamCaptureMode(mode) == 0


cdef void restore(int* mode) noexcept nogil:
    drv.ThreadExchangeStreamCaptureMode(mode)


cdef int _open() except -1:
    global state, version
    if forked:
        raise CudaError(-1, "FKL_FORKED", "this process was forked after CUDA had been used, and CUDA does not survive "
                        "a fork", "fork", 'start workers with multiprocessing.get_context("spawn"), or use CUDA in the '
                        "children only")
    if broken is not None:
        raise _sticky()
    with _lock:
        if state == 1:
            return 0
        _load_table()
        check(drv.Init(0), b"cuInit")
        check(drv.DriverGetVersion(&version), b"cuDriverGetVersion")
        state = 1
    return 0


cdef int _load_table() except -1:
    """Open libcuda and look up every entry point by the version of its ABI."""
    cdef bytes path = os.fsencode(os.environ.get("FKL_CUDA_DRIVER") or "libcuda.so.1")
    cdef void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        reason = dlerror().decode("utf-8", "replace")
        raise CudaError(-1, "FKL_NO_DRIVER", f"no CUDA driver: {path.decode('utf-8', 'replace')} could not be opened "
                        f"({reason})", "dlopen", 'install the NVIDIA driver, or use target="cpu", which needs none')
    cdef get_proc_address find = <get_proc_address>dlsym(library, b"cuGetProcAddress_v2")
    cdef int (*driver_version)(int*) noexcept nogil
    cdef int have = 0
    driver_version = <int (*)(int*) noexcept nogil>dlsym(library, b"cuDriverGetVersion")
    if driver_version != NULL:
        driver_version(&have)
    if find == NULL or have < NEEDED_VERSION:
        raise _too_old(have)
    memset(&drv, 0, sizeof(drv))
    cdef const fkl_driver_entry* entry = fkl_driver_entries
    cdef void* address
    cdef int symbol
    while entry.name != NULL:
        address = NULL
        symbol = 0
        find(entry.name, &address, entry.version, LEGACY_STREAM, &symbol)
        if address == NULL and entry.required:
            raise _too_old(have, entry.name.decode())
        (<void**>(<char*>&drv + entry.offset))[0] = address
        entry += 1
    return 0


def _too_old(have, missing=""):
    lacks = f" and lacks {missing}" if missing else ""
    return CudaError(-1, "FKL_OLD_DRIVER", f"the CUDA driver is too old: fkl needs CUDA {NEEDED_VERSION // 1000}."
                     f"{NEEDED_VERSION % 1000 // 10} or newer, this one is {have // 1000}.{have % 1000 // 10}{lacks}",
                     "cuGetProcAddress", 'update the NVIDIA driver, or use target="cpu"')


cdef int _fail(int status, const char* call) except -1:
    global broken, state
    cdef const char* name = NULL
    cdef const char* text = NULL
    if drv.GetErrorName != NULL:
        drv.GetErrorName(status, &name)
        drv.GetErrorString(status, &text)
    error = CudaError(status, name.decode() if name != NULL else "CUDA_ERROR", text.decode() if text != NULL else "",
                      call.decode())
    if status in STICKY:
        if broken is None:
            broken = (error.code, error.name, error.text, error.call)
        state = 2
        raise _sticky()
    raise error


def _sticky():
    code, name, text, call = broken
    return CudaError(code, name, text, call, "a kernel failed before or during this call, which was the first to report "
                     "it; the device context is lost and the process must restart. compute-sanitizer finds the kernel")


def driver_version():
    """CUDA version the driver supports, as 1000 * major + 10 * minor.

    Raises
    ------
    fkl.CudaError
        There is no driver.
    """
    ensure()
    return version


def is_loaded():
    """Whether this process has opened the driver."""
    return state == 1
