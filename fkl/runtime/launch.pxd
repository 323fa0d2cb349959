"""Loaded code and prepared launches; see launch.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from fkl.runtime.driver cimport (
    fkl_CUcontext, fkl_CUfunction, fkl_CUgraph, fkl_CUgraphExec, fkl_CUgraphNode, fkl_CUlibrary, fkl_CUstream,
    fkl_kernel_node,
)


cdef class Library:
    cdef fkl_CUlibrary handle
    cdef dict functions          # device -> address of the kernel in its primary context
    cdef bint pinned             # a captured graph may use the code: never unloaded
    cdef object __weakref__
    cdef fkl_CUfunction load_for(self, int device) except NULL


@cython.final
cdef class LaunchGraph:
    cdef fkl_CUgraphExec graph
    cdef fkl_CUgraph template
    cdef fkl_CUgraphNode* nodes
    cdef int count
    cdef fkl_CUcontext context
    cdef int device
    cdef list libraries          # the code of the nodes stays loaded
    cdef bint replace(self, list launches) except -1
    cdef int run(self, fkl_CUstream stream) except -1

    @staticmethod
    cdef LaunchGraph make(list launches)


cdef bint is_capturing(fkl_CUstream stream, int device) except -1


cdef class Launch:
    cdef readonly Library library
    cdef readonly int device
    cdef fkl_CUcontext context
    cdef fkl_CUfunction function
    cdef unsigned char* block
    cdef size_t size
    cdef void* arguments[1]
    # Blocks in x, y, z, threads in x, y, then what the block says of them: with one pixel a thread, and with wide words.
    cdef int64_t grids[2][7]
    cdef int64_t* grid           # the one for the addresses in the block
    # A graph of this one launch, made when it is going to be repeated; NULL: launched directly.
    cdef fkl_CUgraphExec graph
    cdef fkl_CUgraph template    # the graph it was instantiated from, which owns the node
    cdef fkl_CUgraphNode node
    cdef bint stale              # whether the graph has yet to learn what the block holds
    cdef unsigned int version    # how often its numbers were written anew
    cdef bint tried              # whether making a graph was decided, one way or the other
    cdef bint empty
    cdef bint wide               # whether strides allow the widest words; addresses are looked at each time
    cdef Py_ssize_t grid_offset
    cdef Py_ssize_t source_offset
    cdef Py_ssize_t target_offset
    cdef uint64_t source_mask
    cdef uint64_t target_mask
    cdef uint64_t source
    cdef uint64_t target
    cdef uint64_t last_source
    cdef uint64_t last_target
    cdef bytes table
    cdef Py_ssize_t table_offset
    cdef bint large              # the kernel takes the address of its block, not the block
    cdef uint64_t address        # that address, while a launch is being made
    cdef int make_graph(self) except -1
    cdef int adopt(self, Launch other) except -1
    cdef int _patch(self) except -1
    cdef void _describe(self, fkl_kernel_node* node) noexcept
    cdef void _readdress(self, uint64_t source, uint64_t target) noexcept
    cdef int run(self, uint64_t source, uint64_t target, fkl_CUstream stream) except -1
    cdef int _direct(self, fkl_CUstream stream) except -1
    cdef int _launch(self, fkl_CUstream stream) except -1
    cdef int _trial(self, fkl_CUstream stream) except -1
    cdef int _with_memory(self, fkl_CUstream stream) except -1
    cdef int _upload(self, uint64_t memory, size_t head, size_t table, fkl_CUstream stream, bint ordered) except -1
    cdef int _copy(self, uint64_t to, const char* data, size_t size, fkl_CUstream stream, bint ordered) except -1
