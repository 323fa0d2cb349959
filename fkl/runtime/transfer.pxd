"""Copies between strided device memory and the host; see transfer.pyx."""

from fkl.runtime.driver cimport fkl_CUdeviceptr, fkl_CUstream
from fkl.runtime.view cimport Array

cdef enum Direction:
    TO_DEVICE = 1
    TO_HOST = 2
    ON_DEVICE = 3

cdef int transfer(const Array* a, char* other, Direction direction, fkl_CUstream stream) except -1
cdef int fill_array(const Array* a, const unsigned char* item, fkl_CUstream stream) except -1
