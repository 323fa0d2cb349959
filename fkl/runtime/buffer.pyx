"""`DeviceBuffer`: device memory that fkl owns, or borrows from a raw pointer, as an array of every library."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

from fkl.runtime.context cimport enter, leave, primary
from fkl.runtime.dlpack cimport DL_CPU, DL_CUDA
from fkl.runtime.driver cimport check as check_status, drv, fkl_CUcontext, fkl_CUstream
from fkl.runtime.export cimport make_capsule
from fkl.runtime.memory cimport allocate_memory, allocate_pooled
from fkl.runtime.stream cimport Event, decode_stream
from fkl.runtime.transfer cimport ON_DEVICE, TO_DEVICE, TO_HOST, fill_array, transfer
from fkl.runtime.view cimport FKL, Array, ArrayView, Exporter, itemsize_of, locate, wait_producer

from fkl.dtypes import BASES, DType, fold_shape, parse_dtype
from fkl.runtime.arguments import (
    address_of, check_consumer, item_of, ordinal_of, shape_of, size_of, strides_of,
)
from fkl.runtime.context import current_device_index
from fkl.runtime.view import view

cdef enum:
    CAPTURE_NONE = 0
    PINNED = 1           # what `locate` says of page-locked host memory

cdef object _LARGEST = 2**63 - 1
cdef tuple _TYPESTRS = ("|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", None, "<f4", "<f8")


@cython.final
cdef class DeviceBuffer(Exporter):
    """Device memory as an array.

    ``DeviceBuffer(...)`` and `fkl.empty` own their memory, `from_ptr` borrows. Owned memory starts at a multiple of 256
    bytes, holds nothing in particular, and is freed once, after the last export of it and after every launch that
    used it.

    Parameters
    ----------
    width, height : int
        In pixels.
    dtype : dtype
        Of a channel; a pixel type such as "uint8x3" gives ``channels`` as well.
    channels : int
        1 to 4.
    planes : int
        Number of images.
    device : int, optional
        None: the current device.

    Raises
    ------
    TypeError
        An unknown dtype.
    ValueError
        A negative size, or one whose bytes nothing can hold; a device that does not exist.
    fkl.CudaError
        No driver, or no room.

    Attributes
    ----------
    owner : object
        What `from_ptr` keeps alive.
    stream : object
        The stream given to `from_ptr`, on which the content is ordered.
    """

    def __init__(self, width, height=1, dtype="float32", channels=1, planes=1, device=None):
        parsed = parse_dtype(dtype)
        if parsed.channels > 1 and channels not in (1, parsed.channels):
            raise TypeError(f"dtype {parsed} and channels={channels} contradict each other")
        pixel = DType(parsed.base, parsed.channels if parsed.channels > 1 else channels)
        sizes = [("width", width), ("height", height), ("planes", planes)]
        w, h, p = [size_of(value, name) for name, value in sizes]
        shape = (p, h, w) if p != 1 else (h, w) if h != 1 else (w,)
        self._own(shape if pixel.channels == 1 else (*shape, pixel.channels), pixel, device)
        self.a.channels = pixel.channels

    def _own(self, shape, dtype, device):
        cdef int index
        self._describe(shape, dtype, None)
        index = current_device_index() if device is None else ordinal_of(device)
        primary(index)
        self.memory = allocate_memory(self.nbytes, index)
        self.a.device = index
        self.a.ptr = <void*><uintptr_t>self.memory.ptr

    cdef int _describe(self, tuple shape, object dtype, strides) except -1:
        """Fill in shape, type and strides; they fit each other and can be addressed."""
        cdef int i
        total = dtype.itemsize
        memset(&self.a, 0, sizeof(Array))
        self.a.framework = FKL
        self.a.base = dtype.code
        self.a.channels = dtype.channels if dtype.channels > 1 else 0
        self.a.ndim = len(shape)
        if not 1 <= self.a.ndim <= 4:
            raise ValueError(f"a buffer has 1 to 4 dimensions (planes, height, width, channels), got shape {shape}")
        for i in range(self.a.ndim - 1, -1, -1):
            if strides is None:
                self.a.strides[i] = total if total <= _LARGEST else 0
            else:
                self.a.strides[i] = strides[i]
            total *= max(shape[i], 1) if strides is None else 1
            if shape[i] > _LARGEST or (total > _LARGEST and 0 not in shape):
                raise ValueError(f"a buffer of shape {shape} and {dtype.itemsize} bytes an item has more bytes than can "
                                 "be addressed")
            self.a.shape[i] = shape[i]
        return 0

    @staticmethod
    def from_ptr(ptr, shape, dtype, stream=None, device=None, pitch=None, strides=None, readonly=False, owner=None,
                 check=True):
        """Borrow device memory by its address; it is never freed here, also not through DLPack.

        Parameters
        ----------
        ptr : int
            Address of the first element; a multiple of the item size.
        shape : int or tuple of int
            1 to 4 dimensions.
        dtype : dtype
            ``((H, W, 3), "uint8")`` and ``((H, W), "uint8x3")`` say the same.
        stream : stream or int, optional
            Orders the content, and is what launches use that are given no other. An object is kept alive; a bare
            handle must stay alive by the caller's promise.
        device : int, optional
            None: the device that the driver reports for the address.
        pitch : int, optional
            Bytes from row to row.
        strides : tuple of int, optional
            Bytes from element to element of every dimension, instead of ``pitch``.
        readonly : bool
            Refuse this memory as a destination.
        owner : object, optional
            Kept alive as long as this buffer and its exports.
        check : bool
            Ask the driver what the address is. False for memory that it cannot know.

        Raises
        ------
        TypeError
            An ambiguous or unknown dtype, or something that is no address or no stream.
        ValueError
            A null or misaligned address, sizes or strides that cannot be, memory of another device or of the host.
        """
        cdef DeviceBuffer self = DeviceBuffer.__new__(DeviceBuffer)
        cdef uintptr_t handle = 0
        parsed = parse_dtype(dtype)
        sizes = shape_of(shape)
        if parsed.channels > 1:
            if len(sizes) > 1 and sizes[-1] == parsed.channels:
                lead = ", ".join(map(str, sizes[:-1]))
                raise TypeError(
                    f"shape {sizes} with dtype {parsed} is ambiguous: are the last {parsed.channels} the channels, or "
                    f'pixels of their own? Write (({lead}, {parsed.channels}), "{parsed.base}") or '
                    f'(({lead}{"," if len(sizes) == 2 else ""}), "{parsed}")')
            sizes = (*sizes, parsed.channels)
        address = address_of(ptr, 0 not in sizes)
        self._describe(sizes, parsed, strides_of(sizes, parsed, pitch, strides))
        if address % parsed.itemsize:
            raise ValueError(f"the pointer 0x{address:x} is not aligned to items of {parsed.itemsize} bytes ({parsed.base})")
        self.a.ptr = <void*><uintptr_t>address
        self.a.readonly = bool(readonly)
        self.owner = owner
        if stream is not None:
            decode_stream(stream, &handle)
            self.stream = stream
            self.a.has_stream = True
            self.a.stream = handle
        self.a.device = _device_for(address, device, bool(check) and 0 not in sizes)
        return self

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def shape(self):
        """Sizes of its dimensions."""
        return tuple([self.a.shape[i] for i in range(self.a.ndim)])

    @property
    def strides(self):
        """Bytes from element to element of every dimension."""
        return tuple([self.a.strides[i] for i in range(self.a.ndim)])

    @property
    def dtype(self):
        """`fkl.DType` of its elements, of one channel; equal to its name, such as "uint8"."""
        return DType(BASES[self.a.base])

    @property
    def nbytes(self):
        """Bytes of its elements, gaps of a pitch not counted."""
        total = itemsize_of(self.a.base)
        for i in range(self.a.ndim):
            total *= self.a.shape[i]
        return total

    @property
    def ptr(self):
        """Address of the first element; 0 if there is none."""
        self.check_open()
        return <uintptr_t>self.a.ptr

    @property
    def device(self):
        """CUDA ordinal."""
        return self.a.device

    @property
    def owns(self):
        """Whether the memory is fkl's own."""
        return self.memory is not None

    @property
    def readonly(self):
        """Whether it is refused as a destination."""
        return self.a.readonly

    @property
    def width(self):
        """Pixels of a row."""
        return self._folded().width

    @property
    def height(self):
        """Rows of an image."""
        return self._folded().height

    @property
    def planes(self):
        """Number of images."""
        return self._folded().planes

    @property
    def channels(self):
        """Channels of a pixel."""
        return self._folded().channels

    def _folded(self):
        return fold_shape(self.shape, self.a.channels or None)

    cdef int check_open(self) except -1:
        if self.closed:
            raise ValueError("this buffer is closed")
        return 0

    cdef int note_use(self, object stream, uintptr_t handle) except -1:
        return 0 if self.memory is None else self.memory.note_use(stream, handle)

    cdef object _keeper(self):
        """What an export keeps alive: the memory, not this object, so that closing it does not free too early."""
        return self.memory if self.memory is not None else self.owner

    cdef bint _is_tight(self):
        cdef int64_t step = itemsize_of(self.a.base)
        cdef int i
        for i in range(self.a.ndim - 1, -1, -1):
            if self.a.shape[i] != 1 and self.a.strides[i] != step:
                return False
            step *= self.a.shape[i]
        return True

    def close(self):
        """Let go of the memory: owned memory is freed once nothing else uses it. Closing twice is allowed."""
        self.closed = True
        self.memory = None
        self.owner = None
        self.stream = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def used_on(self, stream=None):
        """Say that code outside of fkl uses this memory on a stream, so that it is not freed before that work has ended.

        Parameters
        ----------
        stream : stream or int, optional
            None: the buffer's own stream, else the legacy default stream. Call it after the work was queued.
        """
        cdef uintptr_t handle = self.a.stream if self.a.has_stream else 0
        self.check_open()
        if stream is not None:
            decode_stream(stream, &handle)
        self.note_use(stream, handle)

    # -- copies ---------------------------------------------------------------------------------------------------

    cdef int _settle(self) except -1:
        """Wait for the device, so that whatever was launched before is done."""
        cdef int capturing = CAPTURE_NONE
        cdef int status
        # Asked first: to synchronise while a stream captures would spoil the capture, the question does not.
        check_status(drv.StreamIsCapturing(NULL, &capturing), b"cuStreamIsCapturing")
        with nogil:
            status = drv.CtxSynchronize()
        return check_status(status, b"cuCtxSynchronize")

    def copy_from_host(self, data, stream=None):
        """Copy from host memory.

        Parameters
        ----------
        data : bytes-like or array
            Tight memory of exactly `nbytes` bytes; an array must have this buffer's item type.
        stream : stream or int, optional
            Order the copy on this stream alone. Without it the copy waits for the device before and is done after.

        Raises
        ------
        TypeError
            An array of another item type.
        ValueError
            Another number of bytes, or memory with gaps; a read-only buffer.
        """
        cdef uintptr_t handle = 0
        cdef fkl_CUcontext saved
        cdef Py_buffer raw
        self.check_open()
        if self.a.readonly:
            raise ValueError("this buffer is read-only")
        if stream is not None:
            decode_stream(stream, &handle)
        name = getattr(getattr(data, "dtype", None), "name", None)
        if name is not None and name != str(self.dtype) and not (name == "uint16" and self.dtype == "bfloat16"):
            raise TypeError(f"this buffer holds {self.dtype}, the array {name}; convert it first")
        if name == "bfloat16":
            data = data.view("uint16")  # the buffer protocol has no name for it
        PyObject_GetBuffer(data, &raw, PyBUF_C_CONTIGUOUS)
        try:
            if raw.len != self.nbytes:
                raise ValueError(f"this buffer of shape {self.shape} and {self.dtype} has {self.nbytes} bytes, "
                                 f"got {raw.len}")
            enter(self.a.device, &saved)
            try:
                if stream is None:
                    self._settle()
                transfer(&self.a, <char*>raw.buf, TO_DEVICE, <fkl_CUstream>handle)
                # Also on a stream: the caller may reuse its memory at once, page-locked memory too.
                self._wait(stream, handle)
            finally:
                leave(saved)
        finally:
            PyBuffer_Release(&raw)

    def _wait(self, stream, uintptr_t handle):
        cdef Event event = Event(self.a.device)
        event.record_on(<fkl_CUstream>handle)
        event.synchronize()

    def copy_to_host(self, stream=None):
        """The content as tight bytes.

        Parameters
        ----------
        stream : stream or int, optional
            Order the copy on this stream alone. Without it everything launched on the device before is waited for.
        """
        cdef uintptr_t handle = 0
        cdef fkl_CUcontext saved
        cdef bytes out
        self.check_open()
        if stream is not None:
            decode_stream(stream, &handle)
        out = PyBytes_FromStringAndSize(NULL, self.nbytes)
        if len(out) == 0:
            return out
        enter(self.a.device, &saved)
        try:
            if stream is None:
                self._settle()
            transfer(&self.a, PyBytes_AS_STRING(out), TO_HOST, <fkl_CUstream>handle)
            self._wait(stream, handle)
        finally:
            leave(saved)
        return out

    def to_numpy(self):
        """The content as a new NumPy array; waits for the device. bfloat16 needs ml_dtypes."""
        import numpy

        dtype = str(self.dtype)
        if dtype == "bfloat16":
            try:
                from ml_dtypes import bfloat16 as dtype
            except ImportError:
                raise TypeError("NumPy has no bfloat16 of its own: install ml_dtypes, or take the bytes with "
                                "copy_to_host()") from None
        return numpy.frombuffer(bytearray(self.copy_to_host()), dtype).reshape(self.shape)

    def fill(self, value, stream=None):
        """Set every element.

        Parameters
        ----------
        value : number
            One that the type can hold.
        stream : stream or int, optional
            Where to do it; the buffer's own stream, else the legacy default stream. Does not wait.

        Raises
        ------
        ValueError
            A value outside the type's range, or a read-only buffer.
        """
        cdef uintptr_t handle = self.a.stream if self.a.has_stream else 0
        cdef fkl_CUcontext saved
        cdef bytes item
        self.check_open()
        if self.a.readonly:
            raise ValueError("this buffer is read-only")
        if stream is not None:
            decode_stream(stream, &handle)
        item = item_of(self.dtype, value)
        enter(self.a.device, &saved)
        try:
            fill_array(&self.a, <const unsigned char*><const char*>item, <fkl_CUstream>handle)
        finally:
            leave(saved)
        self.note_use(stream, handle)

    def __deepcopy__(self, memo):
        return self._copied()

    def __copy__(self):
        raise TypeError("a shallow copy of a buffer would be the buffer itself; copy.deepcopy copies its memory")

    def _copied(self):
        """A tight copy in memory of its own, on the same device."""
        cdef DeviceBuffer made = DeviceBuffer.__new__(DeviceBuffer)
        cdef fkl_CUcontext saved
        self.check_open()
        dtype = DType(BASES[self.a.base], self.a.channels or 1)
        made._own(self.shape, dtype, self.a.device)
        enter(self.a.device, &saved)
        try:
            self._settle()
            transfer(&self.a, <char*>made.a.ptr, ON_DEVICE, NULL)
            self._wait(None, 0)
        finally:
            leave(saved)
        return made

    def __reduce__(self):
        raise TypeError("device memory belongs to its process: a DeviceBuffer cannot be pickled, and CUDA IPC is not "
                        "supported. Send copy_to_host(), or deep-copy on the device")

    # -- other libraries ------------------------------------------------------------------------------------------

    @property
    def __cuda_array_interface__(self):
        """The CUDA Array Interface, version 3."""
        self.check_open()
        typestr = _TYPESTRS[self.a.base]
        if typestr is None:
            raise AttributeError("the array interface has no name for bfloat16; use DLPack (torch.from_dlpack(buffer))")
        interface = {
            "shape": self.shape,
            "typestr": typestr,
            "data": (<uintptr_t>self.a.ptr if self.nbytes else 0, bool(self.a.readonly)),
            "strides": None if self._is_tight() else self.strides,
            "version": 3,
        }
        if self.a.has_stream:
            # 0 would not say whether the legacy or the per-thread default stream is meant.
            interface["stream"] = self.a.stream or 1
        return interface

    def __dlpack_device__(self):
        """``(2, ordinal)``: CUDA memory of this device."""
        return DL_CUDA, self.a.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule; the memory lives as long as it does.

        Parameters
        ----------
        stream : int, optional
            The consumer's stream, which waits for the launches that used this buffer: None and 1 the legacy default
            stream, 2 the per-thread default stream, greater numbers handles, -1 none.
        max_version : (int, int), optional
            The newest DLPack the consumer reads; from (1, 0) on the capsule is a versioned one.
        dl_device : (int, int), optional
            Where the consumer wants it: this device, or (1, 0) for a copy on the host.
        copy : bool, optional
            True: always a copy; False: never; None: if need be.

        Raises
        ------
        BufferError
            A device it cannot go to, a copy that ``copy=False`` forbids, read-only memory in the old form.
        TypeError, ValueError
            Something that is no DLPack stream.
        """
        cdef bint versioned = max_version is not None and max_version[0] >= 1
        self.check_open()
        check_consumer(stream)
        target = (DL_CUDA, self.a.device) if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if target == (DL_CPU, 0):
            if copy is False:
                raise BufferError("a host export of device memory is a copy, which copy=False forbids")
            return self._host_capsule(versioned)
        if target != (DL_CUDA, self.a.device):
            raise BufferError(f"this buffer lies on cuda:{self.a.device} and exports to it, or to the host; "
                              f"not to DLPack device {target}")
        if copy:
            made = self._copied()
            return make_capsule(&(<DeviceBuffer>made).a, (<DeviceBuffer>made)._keeper(), versioned, True)
        self._order_after(stream)
        return make_capsule(&self.a, self._keeper(), versioned, False)

    def _order_after(self, stream):
        """Let the consumer's stream wait for what was done to this buffer."""
        cdef uintptr_t consumer
        cdef fkl_CUcontext saved
        cdef Event event
        if stream is not None and stream == -1:
            return
        consumer = 1 if stream is None else stream
        enter(self.a.device, &saved)
        try:
            if self.memory is not None:
                self.memory.order_after(<fkl_CUstream>consumer)
            elif self.a.has_stream and self.a.stream != consumer:
                event = Event(self.a.device)
                event.record_on(<fkl_CUstream>self.a.stream)
                event.make_wait(<fkl_CUstream>consumer)
        finally:
            leave(saved)

    def _host_capsule(self, bint versioned):
        """A capsule of a copy in host memory."""
        cdef Array a = self.a
        cdef int64_t step = itemsize_of(a.base)
        cdef int i
        cdef bytes copied = self.copy_to_host()
        a.device = -1
        a.ptr = <void*>PyBytes_AS_STRING(copied)
        a.readonly = False
        for i in range(a.ndim - 1, -1, -1):
            a.strides[i] = step
            step *= max(a.shape[i], 1)
        return make_capsule(&a, copied, versioned, True)

    def __repr__(self):
        if self.closed:
            return "<fkl.DeviceBuffer closed>"
        kind = "owned" if self.memory is not None else "borrowed"
        more = ", read-only" if self.a.readonly else ""
        at = f"0x{<uintptr_t>self.a.ptr:x} on cuda:{self.a.device}"
        return f"<fkl.DeviceBuffer {self.dtype} {self.shape} at {at}, {kind}{more}>"


def _device_for(address, device, bint ask):
    """The device of a pointer: the one that is named, and that the driver agrees with if it is asked."""
    cdef int found = 0
    cdef int kind
    wanted = None if device is None else ordinal_of(device)
    if wanted is not None:
        primary(wanted)
    if not ask:
        return current_device_index() if wanted is None else wanted
    kind = locate(address, &found)
    if kind == 0:
        raise ValueError(
            f"the pointer 0x{address:x} is pageable host memory (or no allocation at all), not device memory"
            f"{'' if wanted is None else f' of cuda:{wanted}'}; copy host data with fkl.asarray. check=False takes the "
            "pointer as it is, where the GPU can read such memory")
    if kind == PINNED:
        return found if wanted is None else wanted
    if wanted is not None and found != wanted:
        raise ValueError(f"the pointer 0x{address:x} is memory of cuda:{found}, not of cuda:{wanted}")
    return found


# -- constructors ---------------------------------------------------------------------------------------------------


def empty(shape, dtype="float32", device=None):
    """A `DeviceBuffer` of its own memory, holding nothing in particular.

    Parameters
    ----------
    shape : int or tuple of int
        1 to 4 dimensions. A pixel type adds the channels: ``empty((H, W), "uint8x3")`` has shape (H, W, 3).
    dtype : dtype
    device : int, optional
        None: the current device.

    Raises
    ------
    TypeError, ValueError
        As `DeviceBuffer`.
    fkl.CudaError
        No driver, or no room.
    """
    cdef DeviceBuffer made = DeviceBuffer.__new__(DeviceBuffer)
    parsed = parse_dtype(dtype)
    sizes = shape_of(shape)
    made._own(sizes if parsed.channels == 1 else (*sizes, parsed.channels), parsed, device)
    return made


def fresh(tuple shape, str base, int device, uintptr_t stream):
    """A buffer for the output of a launch on a stream, from the device's pool. For `fkl.runtime.frameworks`."""
    cdef DeviceBuffer made = DeviceBuffer.__new__(DeviceBuffer)
    made._describe(shape, parse_dtype(base), None)
    made.memory = allocate_pooled(made.nbytes, device, <fkl_CUstream>stream)
    made.a.device = device
    made.a.ptr = <void*><uintptr_t>made.memory.ptr
    return made


def asarray(obj, device=None):
    """A `DeviceBuffer` of any array: device memory is borrowed, host data is copied.

    Parameters
    ----------
    obj : array or nested sequence of numbers
    device : int, optional
        Where host data goes, None: the current device. Device memory must lie there already.

    Raises
    ------
    ValueError
        Device memory of another device.
    """
    if isinstance(obj, DeviceBuffer):
        source = view(obj)
    elif isinstance(obj, (list, tuple, int, float)):
        import numpy

        source = view(numpy.asarray(obj))
    else:
        source = view(obj)
    if source.device >= 0:
        if device is not None and source.device != ordinal_of(device):
            raise ValueError(f"the array lies on cuda:{source.device}, not on cuda:{device}; copy it there first")
        return obj if isinstance(obj, DeviceBuffer) else _borrow(source)
    shape = source.shape or (1,)
    made = empty(shape, source.dtype, device)
    if made.nbytes:
        made.copy_from_host(_host_bytes(source))
    return made


def from_dlpack(obj):
    """A `DeviceBuffer` that borrows another library's device array, by DLPack or the array interface.

    Raises
    ------
    BufferError
        The array lies in host memory.
    """
    source = view(obj)
    if source.device < 0:
        raise BufferError("this array lies in host memory; fkl.asarray copies it to the device")
    return _borrow(source)


def _borrow(ArrayView source):
    cdef DeviceBuffer self = DeviceBuffer.__new__(DeviceBuffer)
    cdef fkl_CUcontext saved
    if source.a.ndim == 0:
        raise ValueError("a 0-d array has no pixels to index; use reshape(1)")
    self.a = source.a
    self.a.framework = FKL
    self.a.exchange = NULL
    self.owner = source
    if source.a.has_stream:
        # The number may be dead tomorrow: the legacy default stream waits for it now, and it is forgotten.
        enter(source.a.device, &saved)
        try:
            wait_producer(&source.a, NULL)
        finally:
            leave(saved)
        self.a.has_stream = False
        self.a.stream = 0
    return self


def _host_bytes(ArrayView source):
    """A host array's memory as a tight buffer."""
    import numpy

    class _Memory:
        __array_interface__ = {
            "version": 3, "shape": source.shape or (1,), "strides": source.strides or None,
            "typestr": f"|V{source.itemsize}", "data": (source.ptr, True),
        }

    return numpy.ascontiguousarray(numpy.asarray(_Memory())).tobytes()
