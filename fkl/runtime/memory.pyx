"""`Memory`: device memory that fkl owns, and the rule by which it is freed.

It is freed once, when its last owner (a `DeviceBuffer`, an exported capsule) has gone and every launch that used it has
ended. Each launch tells the memory which stream it went to; freeing waits for those streams, because ``cuMemFree``
alone does not wait for work on non-blocking ones. Memory that a stream capture has seen is never freed: the graph may
be replayed at any time. A free that meets a capture it must not disturb waits in a list for a better moment.
"""

cimport cython
from libc.stdint cimport uintptr_t

from fkl.runtime.context cimport enter, leave
from fkl.runtime.driver cimport (
    check, drv, fkl_CUcontext, fkl_CUevent, fkl_CUstream, quiet, relax, restore,
)
from fkl.runtime.stream cimport Event, decode_stream

cdef enum:
    CAPTURE_NONE = 0
    EVENT_NO_TIMING = 2
    #: Streams remembered by object before those whose work has ended are forgotten.
    MANY = 32

# Memory whose free met a capture.
cdef list _deferred = []


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
        heir.ptr, heir.nbytes, heir.device = self.ptr, self.nbytes, self.device
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
        cdef Event event
        kept = {}
        for handle, use in self.uses.items():
            event = _event_of(self.device, use)
            if event is not None and not event.query():
                kept[handle] = event
        self.uses = kept
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
        if not _wait(memory):
            return False
        drv.MemFree(memory.ptr)
        return True
    finally:
        if relaxed:
            restore(&mode)
        leave(saved)


cdef bint _wait(Memory memory) noexcept:
    """Wait for all launches that used the memory, on the host; False if one of the streams is capturing."""
    cdef uintptr_t handle
    cdef int capturing
    cdef fkl_CUevent event
    cdef int status
    cdef bint unknown = False
    handles = [0] if memory.legacy else []
    for use in memory.uses.values():
        if type(use) is Event:
            event = (<Event>use)._handle
            with nogil:
                drv.EventSynchronize(event)
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
                status = drv.EventSynchronize(event)
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
    finally:
        leave(saved)
    return memory


def drain():
    """Free what a capture had kept from being freed."""
    global _deferred
    if _deferred:
        waiting, _deferred = _deferred, []
        waiting.clear()
