"""`Stream`, `Event`, and `decode_stream`, which turns any library's stream object into a handle."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uintptr_t

from fkl.runtime.context cimport enter, leave
from fkl.runtime.driver cimport check, drv, fkl_CUcontext, fkl_CUstream, quiet

from fkl.runtime.context import current_device_index

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int nanosleep(const timespec*, timespec*)

cdef enum:
    NOT_READY = 600          # CUDA_ERROR_NOT_READY
    STREAM_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
    EVENT_NO_TIMING = 2      # CU_EVENT_DISABLE_TIMING


@cython.final
cdef class Stream:
    """A stream of a device.

    Parameters
    ----------
    device : int, optional
        None: the current device.
    blocking : bool
        Whether it waits for the legacy default stream and that stream for it. False, the default, is what overlaps.

    Raises
    ------
    fkl.CudaError
        There is no driver, or the device has no room for a stream.
    ValueError
        The device does not exist.
    """

    def __cinit__(self):
        self._handle = NULL

    def __init__(self, device=None, *, bint blocking=False):
        cdef fkl_CUcontext saved
        self.close()
        self.device = current_device_index() if device is None else device
        enter(self.device, &saved)
        try:
            check(drv.StreamCreateWithPriority(&self._handle, 0 if blocking else STREAM_NON_BLOCKING, 0),
                  b"cuStreamCreateWithPriority")
        finally:
            leave(saved)

    def __dealloc__(self):
        if self._handle != NULL and not quiet():
            drv.StreamDestroy(self._handle)

    @property
    def handle(self):
        """The ``CUstream`` as an integer.

        Raises
        ------
        ValueError
            The stream is closed.
        """
        if self._handle == NULL:
            raise ValueError("this stream is closed")
        return <uintptr_t>self._handle

    def __cuda_stream__(self):
        """``(0, handle)``, the protocol by which other libraries take this stream."""
        return 0, self.handle

    def synchronize(self):
        """Wait until all work of the stream is done; Ctrl-C interrupts the wait."""
        event = Event(device=self.device)
        event.record(self)
        event.synchronize()

    def query(self):
        """Whether all work of the stream is done."""
        cdef int status
        cdef fkl_CUcontext saved
        cdef fkl_CUstream stream = <fkl_CUstream><uintptr_t>self.handle
        enter(self.device, &saved)
        status = drv.StreamQuery(stream)
        leave(saved)
        if status == NOT_READY:
            return False
        check(status, b"cuStreamQuery")
        return True

    def record(self, *, bint timing=False):
        """An `Event` recorded on this stream now."""
        event = Event(device=self.device, timing=timing)
        event.record(self)
        return event

    def wait(self, Event event not None):
        """Let later work of this stream wait for an event, without holding up the host."""
        event.make_wait(<fkl_CUstream><uintptr_t>self.handle)

    def close(self):
        """Give the stream back; its work still ends. Closing twice is allowed."""
        cdef fkl_CUstream handle = self._handle
        self._handle = NULL
        if handle != NULL and not quiet():
            check(drv.StreamDestroy(handle), b"cuStreamDestroy")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __reduce__(self):
        raise TypeError("a stream belongs to its process and cannot be pickled")

    def __repr__(self):
        state = "closed" if self._handle == NULL else f"0x{<uintptr_t>self._handle:x}"
        return f"<fkl.Stream {state} on cuda:{self.device}>"


@cython.final
cdef class Event:
    """A point in the work of a stream.

    Parameters
    ----------
    device : int, optional
        None: the current device.
    timing : bool
        Whether `elapsed` works; costs a little.
    """

    def __cinit__(self):
        self._handle = NULL

    def __init__(self, device=None, *, bint timing=False):
        cdef fkl_CUcontext saved
        if self._handle != NULL:
            raise TypeError("an event is made once")
        self.device = current_device_index() if device is None else device
        self.timing = timing
        enter(self.device, &saved)
        try:
            check(drv.EventCreate(&self._handle, 0 if timing else EVENT_NO_TIMING), b"cuEventCreate")
        finally:
            leave(saved)

    def __dealloc__(self):
        if self._handle != NULL and not quiet():
            drv.EventDestroy(self._handle)

    cdef int record_on(self, fkl_CUstream stream) except -1:
        cdef fkl_CUcontext saved
        # The NULL stream is that of the current context.
        enter(self.device, &saved)
        try:
            check(drv.EventRecord(self._handle, stream), b"cuEventRecord")
        finally:
            leave(saved)
        return 0

    cdef int make_wait(self, fkl_CUstream stream) except -1:
        cdef fkl_CUcontext saved
        enter(self.device, &saved)
        try:
            check(drv.StreamWaitEvent(stream, self._handle, 0), b"cuStreamWaitEvent")
        finally:
            leave(saved)
        return 0

    def record(self, stream=None):
        """Mark the point that a stream's work has reached.

        Parameters
        ----------
        stream : stream or int, optional
            Any stream object or handle; None is the legacy default stream.
        """
        cdef uintptr_t handle = 0
        decode_stream(stream, &handle)
        self.record_on(<fkl_CUstream>handle)

    def wait_on(self, stream):
        """Let later work of a stream wait for this event, without holding up the host."""
        cdef uintptr_t handle = 0
        decode_stream(stream, &handle)
        self.make_wait(<fkl_CUstream>handle)

    def query(self):
        """Whether the event has happened (also if it was never recorded)."""
        cdef int status
        cdef fkl_CUcontext saved
        enter(self.device, &saved)
        status = drv.EventQuery(self._handle)
        leave(saved)
        if status == NOT_READY:
            return False
        check(status, b"cuEventQuery")
        return True

    def synchronize(self):
        """Wait for the event; Ctrl-C interrupts the wait."""
        cdef int status = NOT_READY
        cdef int turn = 0
        cdef timespec nap
        cdef fkl_CUcontext saved
        enter(self.device, &saved)
        try:
            while status == NOT_READY:
                with nogil:
                    status = drv.EventQuery(self._handle)
                    if status == NOT_READY and turn >= 64:
                        # 20 us at first, 1 ms at most: a short wait stays short, a long one costs nothing.
                        nap.tv_sec = 0
                        nap.tv_nsec = min(20_000 + (turn - 64) * 5_000, 1_000_000)
                        nanosleep(&nap, NULL)
                turn += 1
                PyErr_CheckSignals()
        finally:
            leave(saved)
        check(status, b"cuEventQuery")

    def elapsed(self, Event since not None):
        """Milliseconds from another event to this one; both with ``timing=True`` and both past."""
        cdef float milliseconds = 0
        if not (self.timing and since.timing):
            raise ValueError("elapsed needs two events made with timing=True")
        check(drv.EventElapsedTime(&milliseconds, since._handle, self._handle), b"cuEventElapsedTime")
        return milliseconds

    def __reduce__(self):
        raise TypeError("an event belongs to its process and cannot be pickled")

    def __repr__(self):
        return f"<fkl.Event 0x{<uintptr_t>self._handle:x} on cuda:{self.device}>"


# How to read a stream type, found out at its first sight: type -> attribute ("" for the __cuda_stream__ protocol).
cdef dict _readers = {}


@cython.final
cdef class Seen:
    """A stream and its handle."""

    cdef object stream
    cdef uintptr_t handle


cdef Seen _seen = None


cdef int decode_stream(object obj, uintptr_t* handle) except -1:
    """The handle of a stream: None (legacy default), an integer, or a stream object of any library.

    Raises
    ------
    TypeError
        Something that is no stream.
    ValueError
        A handle that is no address.
    """
    if obj is None:
        handle[0] = 0
        return 0
    cls = type(obj)
    if cls is Stream:
        if (<Stream>obj)._handle == NULL:
            raise ValueError("this stream is closed")
        handle[0] = <uintptr_t>(<Stream>obj)._handle
        return 0
    if cls is int:
        handle[0] = _address(obj)
        return 0
    if _seen is not None and obj is _seen.stream:
        handle[0] = _seen.handle
        return 0
    reader = _readers.get(cls)
    if reader is None:
        reader = _classify(obj, cls)
        _readers[cls] = reader
    if reader:
        value = getattr(obj, reader)
    else:
        value = _protocol(obj)
    handle[0] = _address(value if type(value) is int else value.__index__())
    if reader == "cuda_stream":
        _remember(obj, handle[0])
    return 0


cdef uintptr_t _address(object handle) except? 0:
    try:
        return handle
    except OverflowError:
        raise ValueError(f"a stream handle is an address of 64 bits and not negative, got {handle}") from None


cdef int _remember(object stream, uintptr_t handle) except -1:
    """Keep the torch stream that was decoded last: its handle never changes, and asking takes longer than launching."""
    global _seen
    cdef Seen made = Seen.__new__(Seen)
    made.stream, made.handle = stream, handle
    _seen = made
    return 0


cdef str _classify(object obj, object cls):
    """The attribute that holds a stream's handle, "" for the protocol; TypeError for anything that is no stream."""
    for base in cls.__mro__:
        module = getattr(base, "__module__", None) or ""
        name = base.__name__
        root = module.partition(".")[0]
        if root == "torch" and name in ("Stream", "ExternalStream") and hasattr(cls, "cuda_stream"):
            return "cuda_stream"
        if root == "cupy" and name in ("Stream", "ExternalStream", "_BaseStream", "BaseStream"):
            return "ptr"
        if root == "numba" and name == "Stream":
            return "handle"
    if isinstance(obj, bool) or not hasattr(cls, "__cuda_stream__"):
        raise TypeError(
            "a stream is None, an integer handle, fkl.Stream, torch.cuda.Stream, a cupy or numba stream, or an object "
            f"with __cuda_stream__; got {cls.__module__}.{cls.__qualname__}"
        )
    return ""


cdef object _protocol(object obj):
    """The handle by ``__cuda_stream__``, a method or (in older libraries) an attribute."""
    answer = obj.__cuda_stream__
    if callable(answer):
        answer = answer()
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"__cuda_stream__ of {type(obj).__qualname__} gives (0, handle), got {answer!r:.80}")
    if answer[0] != 0:
        raise TypeError(f"__cuda_stream__ of {type(obj).__qualname__} has version {answer[0]!r}, fkl knows 0")
    if isinstance(answer[1], bool) or not hasattr(answer[1], "__index__"):
        raise TypeError(f"__cuda_stream__ of {type(obj).__qualname__} gives an integer handle, got {answer[1]!r:.80}")
    return answer[1]


def stream_handle(stream):
    """The handle of any stream object, as an integer; see `decode_stream`."""
    cdef uintptr_t handle = 0
    decode_stream(stream, &handle)
    return handle
