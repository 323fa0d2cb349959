"""Loaded code (`Library`) and prepared launches (`Launch`): everything `k()` needs, fixed beforehand.

Knows blobs, offsets and grids; knows nothing of operations. Made by `fkl.gpu`, run by `fkl.kernel`.
"""

import os

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fkl.runtime.context cimport enter, leave, primary
from fkl.runtime.driver cimport (
    check, drv, ensure, fkl_CUcontext, fkl_CUdeviceptr, fkl_CUfunction, fkl_CUgraph, fkl_CUgraphExec,
    fkl_CUkernel, fkl_CUlibrary, fkl_CUstream, fkl_kernel_node, quiet, relax, restore,
)

# Code to unload: (handle, devices).
cdef list _retired = []
# Graphs to destroy.
cdef list _spent = []
# Graphs alive. Each holds some 100 KB of device memory, so there is a bound; launches beyond it go directly.
cdef int _graphs = 0
MOST_GRAPHS = 1024

# Whether graphs are cheaper is measured over the first launches of a process, by turns with direct ones: launches left to
# measure, the least nanoseconds of each kind, and the verdict.
cdef enum:
    TRIALS = 64
cdef int _untried = TRIALS
cdef int64_t[2] _least
_least[0] = _least[1] = 1 << 62
cdef bint _graphs_cost_more = False

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int, timespec*)
    int CLOCK_MONOTONIC

# CUstreamCaptureMode and CUstreamCaptureStatus values of the driver's ABI.
cdef enum:
    CAPTURE_RELAXED = 2
    CAPTURE_NONE = 0


@cython.final
cdef class Library:
    """Code loaded into the driver, usable on every device of its architecture.

    Parameters
    ----------
    image : bytes
        A cubin, or PTX with a trailing NUL.

    Raises
    ------
    fkl.CudaError
        The driver refuses the image.
    """

    def __cinit__(self):
        self.handle = NULL
        self.functions = {}
        self.pinned = False

    def __init__(self, bytes image not None):
        ensure()
        cdef int mode = CAPTURE_RELAXED
        cdef const char* text = image
        cdef int status
        # Loading is forbidden while a stream of this thread captures, unless the thread says it knows better.
        check(drv.ThreadExchangeStreamCaptureMode(&mode), b"cuThreadExchangeStreamCaptureMode")
        with nogil:
            status = drv.LibraryLoadData(&self.handle, text, NULL, NULL, 0, NULL, NULL, 0)
        drv.ThreadExchangeStreamCaptureMode(&mode)
        check(status, b"cuLibraryLoadData")

    def __dealloc__(self):
        # Code may go only when no launch of it is in flight, and waiting for that would spoil a capture: `unload_retired`
        # does it at a better moment.
        if self.handle != NULL and not self.pinned and not quiet():
            _retired.append((<uintptr_t>self.handle, tuple(self.functions)))

    cdef fkl_CUfunction load_for(self, int device) except NULL:
        """The kernel in a device's primary context, its code loaded there."""
        found = self.functions.get(device)
        if found is not None:
            return <fkl_CUfunction><uintptr_t>found
        cdef fkl_CUcontext saved
        cdef fkl_CUfunction function = NULL
        cdef int mode = CAPTURE_RELAXED
        enter(device, &saved)
        try:
            check(drv.ThreadExchangeStreamCaptureMode(&mode), b"cuThreadExchangeStreamCaptureMode")
            try:
                resolve(self.handle, b"fkl_kernel", &function)
            finally:
                drv.ThreadExchangeStreamCaptureMode(&mode)
        finally:
            leave(saved)
        self.functions[device] = <uintptr_t>function
        return function

    def load(self, int device):
        """Load the kernels into a device's context now, so that no launch has to."""
        self.load_for(device)

    def __repr__(self):
        return f"<fkl Library 0x{<uint64_t>self.handle:x}>"


cdef bint is_capturing(fkl_CUstream stream, int device) except -1:
    """Whether work on a stream goes into a graph, or (legacy stream) would end a capture elsewhere."""
    cdef int capturing = CAPTURE_NONE
    cdef int status
    cdef fkl_CUcontext saved
    enter(device, &saved)
    status = drv.StreamIsCapturing(stream, &capturing)
    leave(saved)
    return status != 0 or capturing != CAPTURE_NONE


def unload_retired():
    """Unload what no kernel uses any more, after the devices it ran on are done. Not while a stream captures."""
    cdef fkl_CUcontext saved
    cdef int status
    spent = _spent[:]
    del _spent[:len(spent)]
    for executable, template in spent:
        drv.GraphExecDestroy(<fkl_CUgraphExec><uintptr_t>executable)
        drv.GraphDestroy(<fkl_CUgraph><uintptr_t>template)
    waiting = _retired[:]
    del _retired[:len(waiting)]
    for device in {d for _, devices in waiting for d in devices}:
        enter(device, &saved)
        try:
            with nogil:
                status = drv.CtxSynchronize()
            check(status, b"cuCtxSynchronize")
        finally:
            leave(saved)
    for handle, _ in waiting:
        check(drv.LibraryUnload(<fkl_CUlibrary><uintptr_t>handle), b"cuLibraryUnload")


def retired():
    """How many unloads are due."""
    return len(_retired) + (len(_spent) if len(_spent) >= 16 else 0)


def graph_count():
    """How many graphs of launches exist."""
    return _graphs


def graphs_wanted():
    """Whether repeated launches may go through graphs (``FKL_LAUNCH``: "graph", "kernel", or "auto", the default)."""
    global _untried
    choice = os.environ.get("FKL_LAUNCH", "").strip() or "auto"
    if choice not in ("auto", "graph", "kernel"):
        raise ValueError(f'FKL_LAUNCH is "auto", "graph" or "kernel", got {choice!r}')
    if choice == "graph":
        _untried = 0
    return choice != "kernel" and not _graphs_cost_more


def launch_trial():
    """What measuring the first launches found: (launches left to measure, least ns by graph, least ns direct, verdict)."""
    return _untried, _least[0], _least[1], "kernel" if _graphs_cost_more else "graph"


cdef int resolve(fkl_CUlibrary library, const char* name, fkl_CUfunction* out) except -1:
    """Find a kernel and force its code into the current context, so that no launch has to."""
    cdef fkl_CUkernel kernel = NULL
    check(drv.LibraryGetKernel(&kernel, library, name), b"cuLibraryGetKernel")
    check(drv.KernelGetFunction(out, kernel), b"cuKernelGetFunction")
    if drv.FuncLoad != NULL:
        check(drv.FuncLoad(out[0]), b"cuFuncLoad")
    return 0


@cython.final
cdef class Launch:
    """A kernel with its parameter block and grid, ready to run on any stream.

    Parameters
    ----------
    library : Library
    device : int
    block : bytes-like
        The parameter block.
    table : bytes
        Plane records that outgrew the block; empty if they fit.
    table_offset : int
        Where the block holds the table's address.
    large : bool
        Whether the kernel takes the block's address in device memory instead of the block.
    grid : (grid x, y, z, block x, block y, cells, longest)
        With one pixel a thread.
    wide : the same, or None
        With runs of pixels in wide words, if strides allow them; taken where addresses do too.
    grid_offset : int
        Where the block holds the last two numbers of the grid (64 and 32 bits).
    source_offset, target_offset : int
        Where the block holds the addresses that a run may replace; -1 if it may not.
    source_align, target_align : int
        Alignment that the widest words need of these addresses.
    source, target : int
        The addresses the block was made with.
    """

    def __cinit__(self):
        self.block = NULL
        self.graph = NULL

    def __init__(self, Library library not None, int device, block, bytes table not None, Py_ssize_t table_offset,
                 bint large, grid, wide, Py_ssize_t grid_offset,
                 Py_ssize_t source_offset, uint64_t source_align, uint64_t source,
                 Py_ssize_t target_offset, uint64_t target_align, uint64_t target):
        cdef bytes data = bytes(block)
        cdef int i
        self.library = library
        self.device = device
        self.context = primary(device)
        self.function = library.load_for(device)
        self.size = len(data)
        self.block = <unsigned char*>malloc(self.size)
        if self.block == NULL:
            raise MemoryError
        memcpy(self.block, <const char*>data, self.size)
        self.large = large
        self.arguments[0] = <void*>&self.address if large else <void*>self.block
        self.empty = grid[0] == 0
        self.wide = wide is not None
        self.grid_offset = grid_offset
        for i in range(7):
            self.grids[0][i] = grid[i]
            self.grids[1][i] = grid[i] if wide is None else wide[i]
        self.source_offset, self.target_offset = source_offset, target_offset
        self.source_mask, self.target_mask = source_align - 1, target_align - 1
        self.source, self.target = source, target
        self.table, self.table_offset = table, table_offset
        self._readdress(source, target)

    def __dealloc__(self):
        global _graphs
        free(self.block)
        if self.graph != NULL and not quiet():
            # It may be in flight, and a capture may be under way: `unload_retired` destroys it.
            _graphs -= 1
            _spent.append((<uintptr_t>self.graph, <uintptr_t>self.template))

    cdef int make_graph(self) except -1:
        """Prepare to be repeated: through a graph of one node a launch costs the host half. Not while a stream captures."""
        global _graphs
        cdef fkl_kernel_node node
        cdef fkl_CUcontext saved
        cdef int mode = 0
        cdef int capturing = CAPTURE_NONE
        cdef bint relaxed
        if self.tried or self.empty or self.table or self.large:
            return 0
        self.tried = True
        if drv.GraphExecKernelNodeSetParams == NULL or drv.GraphInstantiateWithFlags == NULL or drv.GraphLaunch == NULL:
            return 0
        if _graphs >= MOST_GRAPHS or not graphs_wanted():
            return 0
        enter(self.device, &saved)
        relaxed = relax(&mode)
        try:
            check(drv.GraphCreate(&self.template, 0), b"cuGraphCreate")
            self._describe(&node)
            check(drv.GraphAddKernelNode(&self.node, self.template, NULL, 0, &node), b"cuGraphAddKernelNode")
            check(drv.GraphInstantiateWithFlags(&self.graph, self.template, 0), b"cuGraphInstantiate")
            _graphs += 1
            self.stale = False
            # Uploaded now, so that the first launch is as fast as the next; the first launch would do it as well.
            if drv.GraphUpload != NULL and drv.StreamIsCapturing(NULL, &capturing) == 0 and capturing == CAPTURE_NONE:
                check(drv.GraphUpload(self.graph, NULL), b"cuGraphUpload")
        finally:
            if self.graph == NULL and self.template != NULL:
                drv.GraphDestroy(self.template)
                self.template = NULL
            if relaxed:
                restore(&mode)
            leave(saved)
        return 0

    cdef void _describe(self, fkl_kernel_node* node) noexcept:
        memset(node, 0, sizeof(node[0]))
        node.func = self.function
        cdef int64_t* grid = self.grid
        node.gridDimX, node.gridDimY, node.gridDimZ = <unsigned int>grid[0], <unsigned int>grid[1], <unsigned int>grid[2]
        node.blockDimX, node.blockDimY, node.blockDimZ = <unsigned int>grid[3], <unsigned int>grid[4], 1
        node.kernelParams = self.arguments

    cdef int adopt(self, Launch other) except -1:
        """Take over another launch's graph, if it is one of the same code."""
        if other is None or other.graph == NULL or other.function != self.function:
            return 0
        if self.tried or self.empty or self.table or self.large:
            return 0
        self.graph, self.template, self.node = other.graph, other.template, other.node
        self.tried = self.stale = True
        other.graph = other.template = NULL
        return 0

    cdef int _patch(self) except -1:
        """Tell the graph what the block and the grid are now."""
        cdef fkl_kernel_node node
        self._describe(&node)
        check(drv.GraphExecKernelNodeSetParams(self.graph, self.node, &node), b"cuGraphExecKernelNodeSetParams")
        self.stale = False
        return 0

    cdef int run(self, uint64_t source, uint64_t target, fkl_CUstream stream) except -1:
        """Launch with these addresses. The block keeps them; callers pass the right ones each time."""
        cdef fkl_CUcontext current = NULL
        cdef fkl_CUcontext saved
        if self.empty:
            return 0
        ensure()
        # One launch at a time writes the block; the driver has copied it when the call returns.
        with cython.critical_section(self):
            if source != self.last_source or target != self.last_target:
                self._readdress(source, target)
            drv.CtxGetCurrent(&current)
            if current == self.context:
                self._launch(stream)
            else:
                enter(self.device, &saved)
                try:
                    self._launch(stream)
                finally:
                    leave(saved)
        return 0

    cdef void _readdress(self, uint64_t source, uint64_t target) noexcept:
        """Write other addresses into the block."""
        if self.source_offset >= 0:
            (<uint64_t*>(self.block + self.source_offset))[0] = source
        if self.target_offset >= 0:
            (<uint64_t*>(self.block + self.target_offset))[0] = target
        cdef int wide = self.wide and not (source & self.source_mask) and not (target & self.target_mask)
        self.grid = self.grids[wide]
        (<int64_t*>(self.block + self.grid_offset))[0] = self.grid[5]
        (<int32_t*>(self.block + self.grid_offset + 8))[0] = <int32_t>self.grid[6]
        self.last_source, self.last_target = source, target
        self.stale = True

    cdef int _direct(self, fkl_CUstream stream) except -1:
        cdef int64_t* grid = self.grid
        return check(drv.LaunchKernel(self.function, <unsigned int>grid[0], <unsigned int>grid[1], <unsigned int>grid[2],
                                      <unsigned int>grid[3], <unsigned int>grid[4], 1, 0, stream, self.arguments, NULL),
                     b"cuLaunchKernel")

    cdef int _launch(self, fkl_CUstream stream) except -1:
        cdef int capturing = CAPTURE_NONE
        # Asked first, in the stream's own context: a launch on the legacy stream would spoil a capture elsewhere, the
        # question does not.
        check(drv.StreamIsCapturing(stream, &capturing), b"cuStreamIsCapturing")
        if capturing != CAPTURE_NONE:
            self.library.pinned = True
        elif self.graph != NULL and not _graphs_cost_more:
            if self.stale:
                self._patch()
            if _untried > 0:
                return self._trial(stream)
            return check(drv.GraphLaunch(self.graph, stream), b"cuGraphLaunch")
        if self.table or self.large:
            return self._with_memory(stream)
        return self._direct(stream)

    cdef int _trial(self, fkl_CUstream stream) except -1:
        """One of the first launches: by turns through the graph and directly, timed; the last one decides."""
        global _untried, _graphs_cost_more
        cdef timespec begin, end
        cdef int way = _untried & 1
        cdef int64_t took
        cdef int left = _untried - 1
        _untried = left
        clock_gettime(CLOCK_MONOTONIC, &begin)
        if way == 0:
            check(drv.GraphLaunch(self.graph, stream), b"cuGraphLaunch")
        else:
            self._direct(stream)
        clock_gettime(CLOCK_MONOTONIC, &end)
        took = (end.tv_sec - begin.tv_sec) * 1_000_000_000 + end.tv_nsec - begin.tv_nsec
        _least[way] = min(_least[way], took)
        if left == 0:
            _graphs_cost_more = _least[0] > _least[1]
        return 0

    cdef int _with_memory(self, fkl_CUstream stream) except -1:
        """Launch with a large block, a plane table or both in device memory that lives as long as the launch, in stream
        order."""
        cdef fkl_CUdeviceptr memory = 0
        cdef int capturing = CAPTURE_NONE
        cdef int mode = CAPTURE_RELAXED
        cdef size_t table = len(self.table)
        cdef size_t head = (self.size + 15) // 16 * 16 if self.large else 0
        check(drv.StreamIsCapturing(stream, &capturing), b"cuStreamIsCapturing")
        if capturing != CAPTURE_NONE:
            # The graph may replay for as long as the process lives, so its memory is never changed and never freed.
            check(drv.ThreadExchangeStreamCaptureMode(&mode), b"cuThreadExchangeStreamCaptureMode")
            try:
                check(drv.MemAlloc(&memory, head + table), b"cuMemAlloc")
                self._upload(memory, head, table, NULL, False)
            finally:
                drv.ThreadExchangeStreamCaptureMode(&mode)
            return self._direct(stream)
        check(drv.MemAllocAsync(&memory, head + table, stream), b"cuMemAllocAsync")
        try:
            self._upload(memory, head, table, stream, True)
            self._direct(stream)
        finally:
            drv.MemFreeAsync(memory, stream)
        return 0

    cdef int _upload(self, uint64_t memory, size_t head, size_t table, fkl_CUstream stream, bint ordered) except -1:
        """Copy what does not travel with the launch. From pageable memory: the driver has taken the bytes on return."""
        cdef const char* records = self.table
        if table:
            (<uint64_t*>(self.block + self.table_offset))[0] = memory + head
            self._copy(memory + head, records, table, stream, ordered)
        if head:
            self.address = memory
            self._copy(memory, <const char*>self.block, self.size, stream, ordered)
        return 0

    cdef int _copy(self, uint64_t to, const char* data, size_t size, fkl_CUstream stream, bint ordered) except -1:
        if ordered:
            return check(drv.MemcpyHtoDAsync(to, data, size, stream), b"cuMemcpyHtoDAsync")
        return check(drv.MemcpyHtoD(to, data, size), b"cuMemcpyHtoD")

    def launch(self, uint64_t stream=0):
        """Run on a stream with the addresses the block was made with."""
        self.run(self.source, self.target, <fkl_CUstream>stream)

    @property
    def uses_wide(self):
        """Whether the addresses the block was made with allow the widest words."""
        return self.wide and not (self.source & self.source_mask) and not (self.target & self.target_mask)

    def __repr__(self):
        kind = "empty" if self.empty else "wide" if self.uses_wide else "scalar"
        if self.graph != NULL:
            kind += ", graph"
        return f"<fkl Launch on cuda:{self.device}, {kind}, {self.size} bytes of parameters>"


@cython.final
cdef class LaunchGraph:
    """Launches of one device in order, as one graph."""

    def __cinit__(self):
        self.graph = NULL
        self.template = NULL
        self.nodes = NULL

    def __dealloc__(self):
        global _graphs
        free(self.nodes)
        if self.graph != NULL and not quiet():
            _graphs -= 1
            _spent.append((<uintptr_t>self.graph, <uintptr_t>self.template))

    @staticmethod
    cdef LaunchGraph make(list launches):
        """A graph of these launches; None where one cannot be: no graphs, nothing to do, blocks that travel by memory."""
        global _graphs
        cdef LaunchGraph made
        cdef Launch launch
        cdef fkl_kernel_node node
        cdef fkl_CUcontext saved
        cdef int mode = 0
        cdef int i
        cdef bint relaxed
        for found in launches:
            launch = found
            if launch.empty or launch.table or launch.large:
                return None
        if drv.GraphExecKernelNodeSetParams == NULL or drv.GraphInstantiateWithFlags == NULL or drv.GraphLaunch == NULL:
            return None
        if _graphs >= MOST_GRAPHS or not graphs_wanted():
            return None
        made = LaunchGraph.__new__(LaunchGraph)
        launch = launches[0]
        made.device, made.context, made.count = launch.device, launch.context, len(launches)
        made.libraries = [(<Launch>one).library for one in launches]
        made.nodes = <fkl_CUgraphNode*>malloc(made.count * sizeof(fkl_CUgraphNode))
        if made.nodes == NULL:
            raise MemoryError
        enter(made.device, &saved)
        relaxed = relax(&mode)
        try:
            check(drv.GraphCreate(&made.template, 0), b"cuGraphCreate")
            for i in range(made.count):
                (<Launch>launches[i])._describe(&node)
                check(
                    drv.GraphAddKernelNode(
                        &made.nodes[i], made.template, &made.nodes[i - 1] if i else NULL, 1 if i else 0, &node),
                    b"cuGraphAddKernelNode",
                )
            check(drv.GraphInstantiateWithFlags(&made.graph, made.template, 0), b"cuGraphInstantiate")
            _graphs += 1
        finally:
            if made.graph == NULL and made.template != NULL:
                drv.GraphDestroy(made.template)
            if relaxed:
                restore(&mode)
            leave(saved)
        return made

    cdef bint replace(self, list launches) except -1:
        """Describe every node anew; False if the launches need another graph. The caller holds a lock."""
        cdef Launch launch
        cdef fkl_kernel_node node
        cdef fkl_CUcontext saved
        cdef int i
        if len(launches) != self.count:
            return False
        for i in range(self.count):
            launch = launches[i]
            if launch.empty or launch.table or launch.large or launch.library is not self.libraries[i]:
                return False
        # A thread without a context crashes the driver here.
        enter(self.device, &saved)
        try:
            for i in range(self.count):
                (<Launch>launches[i])._describe(&node)
                check(drv.GraphExecKernelNodeSetParams(self.graph, self.nodes[i], &node), b"cuGraphExecKernelNodeSetParams")
        finally:
            leave(saved)
        return True

    cdef int run(self, fkl_CUstream stream) except -1:
        """Launch on a stream that is not being captured. The caller holds a lock."""
        cdef fkl_CUcontext saved
        ensure()
        enter(self.device, &saved)
        try:
            check(drv.GraphLaunch(self.graph, stream), b"cuGraphLaunch")
        finally:
            leave(saved)
        return 0
