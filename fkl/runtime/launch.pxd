"""Loaded code and prepared launches; see launch.pyx."""

from libc.stdint cimport int64_t, uint64_t
from fkl.runtime.driver cimport fkl_CUcontext, fkl_CUfunction, fkl_CUlibrary, fkl_CUstream


cdef class Library:
    cdef fkl_CUlibrary handle
    cdef dict functions          # device -> address of the kernel in its primary context
    cdef bint pinned             # a captured graph may use the code: never unloaded
    cdef object __weakref__
    cdef fkl_CUfunction load_for(self, int device) except NULL


cdef bint is_capturing(fkl_CUstream stream, int device) except -1


cdef class Launch:
    cdef readonly Library library
    cdef readonly int device
    cdef fkl_CUcontext context
    cdef fkl_CUfunction function
    cdef unsigned char* block
    cdef size_t size
    cdef void* arguments[1]
    cdef unsigned int grid[5]
    cdef bint empty
    cdef bint wide               # whether strides allow the widest words; addresses are looked at each time
    cdef Py_ssize_t wide_offset
    cdef Py_ssize_t source_offset
    cdef Py_ssize_t target_offset
    cdef uint64_t source_mask
    cdef uint64_t target_mask
    cdef uint64_t source
    cdef uint64_t target
    cdef bytes table
    cdef Py_ssize_t table_offset
    cdef int run(self, uint64_t source, uint64_t target, fkl_CUstream stream) except -1
    cdef int _launch(self, fkl_CUstream stream) except -1
    cdef int _with_table(self, fkl_CUstream stream) except -1
