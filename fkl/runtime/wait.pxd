"""Waiting for a stream with the least latency; see wait.pyx."""

from fkl.runtime.driver cimport fkl_CUstream


cdef int wait_for(int device, fkl_CUstream stream) except -1
