"""`Memory`: device memory that fkl owns, and the rule by which it is freed.

It is freed once, when its last owner (a `DeviceBuffer`, an exported capsule) has gone and every launch that used it has
ended. Each launch tells the memory which stream it went to; freeing waits for those streams, because ``cuMemFree``
alone does not wait for work on non-blocking ones. Outputs that calls allocate come from a pool and are freed in stream
order instead: a stream of fkl's own waits for those launches, the host does not. Memory that a stream capture has seen is
never freed: the graph may be replayed at any time. A free that meets a capture it must not disturb waits in a list for a
better moment.
"""

cimport cython
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from fkl.runtime.context cimport enter, leave
from fkl.runtime.driver cimport (
    check, drv, fkl_CUcontext, fkl_CUevent, fkl_CUmemoryPool, fkl_CUstream, fkl_pool_properties, quiet, relax, restore,
)
from fkl.runtime.stream cimport Event, Stream, decode_stream

cdef enum:
    CAPTURE_NONE = 0
    EVENT_NO_TIMING = 2
    #: Streams remembered by object before those whose work has ended are forgotten.
    MANY = 32
    POOL_RELEASE_THRESHOLD = 4
    POOL_RESERVED = 5
    POOL_USED = 7

#: Bytes that a pool keeps for the next allocations instead of giving them back to the device.
POOL_KEEPS = 1 << 28

# device -> its Pool, None if the driver has no pools there.
cdef dict _pools = {}
# device -> bytes of the memory that `allocate_memory` gave and nobody freed.
cdef dict _owned = {}
# Memory whose free met a capture.
cdef list _deferred = []
# Grows whenever memory drops streams whose work has ended: whoever relies on having noted a stream must note it again.
cdef unsigned long forgotten = 0


@cython.final
@cython.no_gc
cdef class Memory:
    """Bytes on a device, allocated by `allocate_memory`."""

    def __cinit__(self):
        self.ptr = 0
        self.uses = {}

    def __dealloc__(self):
        cdef Memory heir
        if self.ptr == 0 or self.captured or quiet():
            return
        if _release(self):
            self.ptr = 0
            return
        heir = Memory.__new__(Memory)
        heir.ptr, heir.nbytes, heir.device, heir.pooled = self.ptr, self.nbytes, self.device, self.pooled
        heir.uses, heir.legacy = self.uses, self.legacy
        _deferred.append(heir)

    cdef int note_use(self, object stream, uintptr_t handle) except -1:
        """A launch used this memory on a stream.

        Returns 1 if the next launch on that stream must say so again: a bare handle may be dead by the time the memory
        is freed, so what is kept is an event.
        """
        cdef int capturing = CAPTURE_NONE
        cdef fkl_CUcontext saved
        cdef Event event
        if handle <= 1:
            self.legacy = True
            return 0
        enter(self.device, &saved)
        try:
            check(drv.StreamIsCapturing(<fkl_CUstream>handle, &capturing), b"cuStreamIsCapturing")
        finally:
            leave(saved)
        if capturing != CAPTURE_NONE:
            self.captured = True
            return 0
        if stream is not None and type(stream) is not int:
            if handle not in self.uses:
                if len(self.uses) >= MANY:
                    self._forget()
                self.uses[handle] = stream
            return 0
        found = self.uses.get(handle)
        if type(found) is not Event:
            if len(self.uses) >= MANY:
                self._forget()
            found = self.uses[handle] = Event(self.device)
        event = <Event>found
        event.record_on(<fkl_CUstream>handle)
        return 1

    cdef int _forget(self) except -1:
        """Drop the streams whose work has ended."""
        global forgotten
        cdef Event event
        kept = {}
        for handle, use in list(self.uses.items()):
            event = _event_of(self.device, use)
            if event is not None and not event.query():
                kept[handle] = event
        self.uses = kept
        forgotten += 1
        return 0

    cdef int order_after(self, fkl_CUstream stream) except -1:
        """Let a stream wait for every launch that used this memory."""
        cdef Event event
        for handle, use in list(self.uses.items()):
            if <uintptr_t>handle != <uintptr_t>stream:
                event = _event_of(self.device, use)
                if event is not None:
                    event.make_wait(stream)
        if self.legacy and <uintptr_t>stream > 1:
            event = Event(self.device)
            event.record_on(NULL)
            event.make_wait(stream)
        return 0


@cython.final
cdef class Pool:
    """A device's pool, and the stream on which its memory is freed."""

    cdef fkl_CUmemoryPool handle
    cdef Stream stream


cdef Pool _pool_of(int device):
    """The pool of a device, made at its first use; None if there cannot be one. The device's context is current."""
    cdef fkl_pool_properties properties
    cdef unsigned long long keeps = POOL_KEEPS
    cdef Pool pool
    if device in _pools:
        return _pools[device]
    if drv.MemPoolCreate == NULL or drv.MemPoolSetAttribute == NULL or drv.MemAllocFromPoolAsync == NULL:
        return _pools.setdefault(device, None)
    memset(&properties, 0, sizeof(properties))
    properties.allocType, properties.locationType, properties.locationId = 1, 1, device
    pool = Pool()
    if drv.MemPoolCreate(&pool.handle, &properties) != 0:
        return _pools.setdefault(device, None)
    check(drv.MemPoolSetAttribute(pool.handle, POOL_RELEASE_THRESHOLD, &keeps), b"cuMemPoolSetAttribute")
    pool.stream = Stream(device)
    return _pools.setdefault(device, pool)


cdef Event _event_of(int device, object use):
    """An event after what a stream holds now; None if the stream is closed, and then its work cannot be told."""
    cdef uintptr_t handle = 0
    cdef Event event
    if type(use) is Event:
        return <Event>use
    try:
        decode_stream(use, &handle)
    except ValueError:  # a closed fkl.Stream
        return None
    event = Event(device)
    event.record_on(<fkl_CUstream>handle)
    return event


cdef bint _release(Memory memory) noexcept:
    """Free after the last launch; False if a capture is in the way."""
    cdef fkl_CUcontext saved
    cdef int mode = 0
    cdef bint relaxed
    try:
        enter(memory.device, &saved)
    except Exception:  # noqa: BLE001 - a destructor has nobody to tell; the driver frees at exit
        return True
    relaxed = relax(&mode)
    try:
        if memory.pooled:
            ended = _free_in_order(memory)
            if ended >= 0:
                return ended
        if not _wait(memory):
            return False
        if memory.pooled:
            drv.MemFreeAsync(memory.ptr, (<Pool>_pools[memory.device]).stream._handle)
        else:
            drv.MemFree(memory.ptr)
            _owned[memory.device] = _owned.get(memory.device, 0) - memory.nbytes
        return True
    finally:
        if relaxed:
            restore(&mode)
        leave(saved)


cdef int _free_in_order(Memory memory) noexcept:
    """Free pooled memory on the one stream that used it, if there is one and it is known to live: 1, or 0 if it captures,
    -1 if there is no such stream. The next output on that stream takes the same memory."""
    cdef uintptr_t handle = 0
    cdef int capturing = CAPTURE_NONE
    cdef int status
    if memory.legacy:
        if memory.uses:
            return -1
    else:
        if len(memory.uses) != 1:
            return -1
        for use in memory.uses.values():
            if type(use) is Event:
                return -1
            try:
                decode_stream(use, &handle)
            except Exception:  # noqa: BLE001 - a closed stream; the long way knows what to do
                return -1
    status = drv.StreamIsCapturing(<fkl_CUstream>handle, &capturing)
    if status >= 900 and status <= 908 or capturing != CAPTURE_NONE:
        return 0
    return 1 if status == 0 and drv.MemFreeAsync(memory.ptr, <fkl_CUstream>handle) == 0 else -1


cdef inline int _await(fkl_CUevent event, fkl_CUstream waiting) noexcept nogil:
    return drv.EventSynchronize(event) if waiting == NULL else drv.StreamWaitEvent(waiting, event, 0)


cdef bint _wait(Memory memory) noexcept:
    """Wait for all launches that used the memory, on the host or, for pooled memory, on the stream that frees it.

    False if one of the streams is capturing.
    """
    cdef uintptr_t handle
    cdef fkl_CUstream waiting = (<Pool>_pools[memory.device]).stream._handle if memory.pooled else NULL
    cdef int capturing
    cdef fkl_CUevent event
    cdef int status
    cdef bint unknown = False
    handles = [0] if memory.legacy else []
    for use in memory.uses.values():
        if type(use) is Event:
            event = (<Event>use)._handle
            with nogil:
                _await(event, waiting)
            continue
        handle = 0
        try:
            decode_stream(use, &handle)
        except Exception:  # noqa: BLE001 - a closed stream: wait for the whole device
            unknown = True
            continue
        handles.append(handle)
    for listed in handles:
        handle = listed
        capturing = CAPTURE_NONE
        status = drv.StreamIsCapturing(<fkl_CUstream>handle, &capturing)
        if status >= 900 and status <= 908 or capturing != CAPTURE_NONE:
            return False
        if status != 0 or drv.EventCreate(&event, EVENT_NO_TIMING) != 0:
            unknown = True
            continue
        with nogil:
            status = drv.EventRecord(event, <fkl_CUstream>handle)
            if status == 0:
                status = _await(event, waiting)
            drv.EventDestroy(event)
        if status >= 900 and status <= 908:
            return False
    if unknown:
        with nogil:
            status = drv.CtxSynchronize()
        return not (status >= 900 and status <= 908)
    return True


cdef Memory allocate_memory(size_t nbytes, int device):
    """Allocate; address and length are multiples of 256, zero bytes take no memory.

    Raises
    ------
    fkl.CudaError
        The device has no room.
    """
    cdef Memory memory = Memory.__new__(Memory)
    cdef fkl_CUcontext saved
    cdef int mode = 0
    cdef bint relaxed
    cdef int status
    memory.device = device
    memory.nbytes = nbytes
    enter(device, &saved)
    try:
        if nbytes == 0:
            return memory
        drain()
        relaxed = relax(&mode)
        status = drv.MemAlloc(&memory.ptr, (nbytes + 255) & ~<size_t>255)
        if relaxed:
            restore(&mode)
        if status != 0:
            memory.ptr = 0
        check(status, b"cuMemAlloc")
        _owned[device] = _owned.get(device, 0) + nbytes
    finally:
        leave(saved)
    return memory


cdef Memory allocate_pooled(size_t nbytes, int device, fkl_CUstream stream):
    """Allocate in the order of a stream, from the device's pool; as `allocate_memory` where that cannot be.

    Memory allocated while the stream is being captured would belong to the graph, so that is taken the other way too.
    """
    cdef Memory memory
    cdef Pool pool
    cdef fkl_CUcontext saved
    cdef int capturing = CAPTURE_NONE
    cdef int mode = 0
    cdef bint relaxed
    cdef int status = 1
    if nbytes == 0:
        return allocate_memory(nbytes, device)
    enter(device, &saved)
    try:
        pool = _pool_of(device)
        if pool is not None and drv.StreamIsCapturing(stream, &capturing) == 0 and capturing == CAPTURE_NONE:
            drain()
            memory = Memory.__new__(Memory)
            memory.device, memory.nbytes, memory.pooled = device, nbytes, True
            relaxed = relax(&mode)
            status = drv.MemAllocFromPoolAsync(&memory.ptr, (nbytes + 255) & ~<size_t>255, pool.handle, stream)
            if relaxed:
                restore(&mode)
            if status != 0:
                memory.ptr = 0
    finally:
        leave(saved)
    return memory if status == 0 else allocate_memory(nbytes, device)


def statistics(int device):
    """Bytes of a device held by fkl: (owned buffers, pool in use, pool reserved, frees that wait)."""
    cdef unsigned long long used = 0
    cdef unsigned long long reserved = 0
    cdef Pool pool = _pools.get(device)
    if pool is not None and drv.MemPoolGetAttribute != NULL:
        check(drv.MemPoolGetAttribute(pool.handle, POOL_USED, &used), b"cuMemPoolGetAttribute")
        check(drv.MemPoolGetAttribute(pool.handle, POOL_RESERVED, &reserved), b"cuMemPoolGetAttribute")
    return _owned.get(device, 0), used, reserved, len(_deferred)


def drain():
    """Free what a capture had kept from being freed."""
    global _deferred
    if _deferred:
        waiting, _deferred = _deferred, []
        waiting.clear()
