"""`FusedKernel`; see kernel.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t
from fkl.patch cimport Patch
from fkl.repeat cimport Repeat
from fkl.runtime.launch cimport Launch
from fkl.runtime.view cimport ArrayView

ctypedef PyObject* (*fkl_vectorcall)(PyObject*, PyObject* const*, size_t, PyObject*) noexcept


cdef class FusedKernel:
    cdef fkl_vectorcall vectorcall
    cdef object chain
    cdef dict options
    # The operations; `ops` is what asks for them, after `_settle`.
    cdef tuple chained
    # The objects that the chain was composed with: they keep naming the operations when `update` replaces them.
    cdef tuple names
    cdef readonly str target
    cdef bint closed
    # The bound launch, the object it returns, and the array whose framework tells the current stream.
    cdef Launch bound
    cdef object bound_out
    cdef ArrayView origin
    # The bound arrays that are fkl's own: they learn of every stream that uses them (None: there are none).
    cdef list users
    cdef uintptr_t noted
    cdef bint note_again
    cdef Repeat last
    # Whether calls without ``out=`` allocate their output.
    cdef bint unwritten
    # Events to wait for before the first launch: producers of bound inputs and operands may still be writing.
    cdef object pending
    # What `update` may write into the bound launch by itself, found at its first call: operation -> Patch; and what it
    # has written that `chain` and `chained` do not know yet: operation -> value.
    cdef dict patches
    cdef dict written
    cdef object __weakref__
    cdef int _settle(self) except -1
    cdef bint _write(self, object op, object value) except -1
    cdef int _graph(self, Launch launch, Launch replaced) except -1
    cdef object _run(self, object x, object out, object stream)
    cdef object _run_bound(self, object stream, uintptr_t* handle)
    cdef object _again_fresh(self, object x, object stream)
    cdef int _check_users(self) except -1
    cdef int _note_users(self, object stream, uintptr_t handle) except -1
    cdef bint _again(self, object x, object out, object stream) except -1
    cdef int _bound_stream(self, object stream, uintptr_t* handle) except -1
    cdef int _wait_pending(self, uintptr_t handle) except -1
    cdef int _check_waiting(self) except -1
    cdef int _open(self) except -1
