"""Numbers written into a prepared launch; see patch.pyx."""

from fkl.runtime.launch cimport Launch


cdef class Patch:
    cdef list places
    cdef bint nonzero
    cdef bint write(self, Launch launch, object value) except -1


cdef dict find_patches(object chain, tuple names)
