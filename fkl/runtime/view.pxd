"""Arrays of any library as one C struct; see view.pyx."""

from libc.stdint cimport int64_t, uint8_t, uintptr_t
from fkl.runtime.dlpack cimport fkl_DLExchange
from fkl.runtime.driver cimport fkl_CUstream

cdef enum:
    MAX_DIMENSIONS = 8
    HOST = -1

cdef enum Framework:
    OTHER = 0
    TORCH = 1
    CUPY = 2
    FKL = 3
    NUMPY = 4

cdef struct Array:
    void* ptr
    int base                          # index in fkl.dtypes.BASES
    int ndim
    int channels                      # of a pixel, if the array knows (fkl's buffers do); 0: guessed from the shape
    int64_t shape[MAX_DIMENSIONS]
    int64_t strides[MAX_DIMENSIONS]   # bytes
    int device                        # CUDA ordinal, HOST for memory of the CPU
    bint readonly
    bint has_stream                   # whether its producer named the stream that its content is ordered on
    uintptr_t stream
    int framework
    fkl_DLExchange* exchange          # of the producer's type; NULL if it has none


cdef class Exporter:
    """Base of fkl's own buffers, so that they are read without a protocol."""
    cdef Array a
    cdef int check_open(self) except -1
    cdef int note_use(self, object stream, uintptr_t handle) except -1   # 1: say so at the next launch again


cdef class ArrayView:
    cdef Array a
    cdef readonly object obj
    cdef object holder
    cdef int note_use(self, object stream, uintptr_t handle) except -1


cdef int read_array(object obj, Array* a, bint writable, bint again) except -1
cdef int wait_producer(const Array* a, fkl_CUstream stream) except -1
cdef int itemsize_of(int base) noexcept nogil
cdef uint8_t dlpack_code(int base) noexcept nogil
cdef int locate(uintptr_t pointer, int* device) except -1
