"""DLPack capsules out; see export.pyx."""

from fkl.runtime.view cimport Array

cdef object make_capsule(const Array* a, object owner, bint versioned, bint copied)
