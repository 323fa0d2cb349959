"""Primary contexts; see context.pyx."""

from fkl.runtime.driver cimport fkl_CUcontext

cdef fkl_CUcontext primary(int device) except NULL
cdef int enter(int device, fkl_CUcontext* saved) except -1
cdef void leave(fkl_CUcontext saved) noexcept nogil
cdef int device_of(fkl_CUcontext context) except -2
