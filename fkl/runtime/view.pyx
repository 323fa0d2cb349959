"""Arrays in: any library's array as one C struct, through the fastest protocol its type offers.

Order: fkl's own buffers, DLPack's C exchange table (torch), NumPy, cupy's array interface, ``__dlpack__``,
``__cuda_array_interface__``. How a type is read is found out once and remembered by type.
"""

cimport cython
from cpython.number cimport PyIndex_Check
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName
from libc.stdint cimport int64_t, uint8_t, uint16_t, uintptr_t
from libc.string cimport memset

from fkl.runtime.dlpack cimport (
    DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED, DL_MAJOR, DL_MINOR, DL_READ_ONLY, fkl_DLExchange,
    fkl_DLManagedTensor, fkl_DLManagedTensorVersioned, fkl_DLTensor,
)
from fkl.runtime.context cimport enter, leave
from fkl.runtime.driver cimport check, drv, ensure, fkl_CUcontext, fkl_CUdeviceptr, fkl_CUstream
from fkl.runtime.stream cimport Event, Stream

from fkl.dtypes import BASES, DType
from fkl.runtime.context import current_device_index

# How the arrays of a type are read.
cdef enum Kind:
    BY_EXPORTER = 1
    BY_EXCHANGE = 2
    BY_NUMPY = 3
    BY_INTERFACE = 4
    BY_DLPACK = 5
    BY_CUPY = 6

cdef enum:
    MEMORY_TYPE = 2          # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    DEVICE_ORDINAL = 9       # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    CAPTURE_NONE = 0

# Indices into fkl.dtypes.BASES; a test holds them together.
cdef enum Base:
    BOOL = 0
    UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64

cdef int _itemsizes[13]
for _i, _name in enumerate(BASES):
    _itemsizes[_i] = DType(_name).itemsize

# fkl.dtypes.BASES -> DLPack type codes.
cdef uint8_t[13] _dlpack_codes = [6, 1, 0, 1, 0, 1, 0, 1, 0, 2, 4, 2, 2]

cdef tuple _dtypes = tuple(DType(name) for name in BASES)
cdef dict _codes = {name: i for i, name in enumerate(BASES)}
# NumPy's type numbers -> indices of BASES, -1 for others; a test holds them together.
cdef int[24] _numbers = [
    BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, INT64, UINT64, FLOAT32, FLOAT64,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, FLOAT16,
]
cdef dict _typestrs = {
    "b1": BOOL, "u1": UINT8, "i1": INT8, "u2": UINT16, "i2": INT16, "u4": UINT32, "i4": INT32, "u8": UINT64,
    "i8": INT64, "f2": FLOAT16, "f4": FLOAT32, "f8": FLOAT64,
}
# type -> Reader, for the types that decide alone how their arrays are read.
cdef dict _readers = {}
# device -> the stream on which foreign producers say when their content is ready.
cdef dict _relays = {}

cdef int64_t MOST_BYTES = 0x7FFFFFFFFFFFFFFF

cdef int itemsize_of(int base) noexcept nogil:
    return _itemsizes[base]


cdef uint8_t dlpack_code(int base) noexcept nogil:
    """The DLPack type code of an index of BASES."""
    return _dlpack_codes[base]


@cython.final
cdef class Reader:
    """How the arrays of one type are read."""

    cdef int kind
    cdef int framework
    cdef fkl_DLExchange* exchange


cdef class Exporter:

    cdef int check_open(self) except -1:
        return 0

    cdef int note_use(self, object stream, uintptr_t handle) except -1:
        return 0


@cython.final
cdef class ArrayView:
    """An array of any library, seen as memory; keeps the array alive.

    Attributes
    ----------
    obj : object
        The array.
    ptr : int
        Address of its first element.
    dtype : DType
        Of its elements, always of one channel.
    channels : int or None
        Of a pixel, if the array itself knows.
    shape, strides : tuple of int
        Strides are in bytes.
    device : int
        CUDA ordinal, -1 for memory of the CPU.
    readonly : bool
    stream : int or None
        The stream that its content is ordered on, if its producer named one.
    """

    @property
    def ptr(self):
        return <uintptr_t>self.a.ptr

    @property
    def dtype(self):
        return _dtypes[self.a.base]

    @property
    def channels(self):
        return self.a.channels or None

    @property
    def itemsize(self):
        return _itemsizes[self.a.base]

    @property
    def shape(self):
        return tuple([self.a.shape[i] for i in range(self.a.ndim)])

    @property
    def strides(self):
        return tuple([self.a.strides[i] for i in range(self.a.ndim)])

    @property
    def device(self):
        return self.a.device

    @property
    def readonly(self):
        return self.a.readonly

    @property
    def stream(self):
        return self.a.stream if self.a.has_stream else None

    @property
    def framework(self):
        return ("other", "torch", "cupy", "fkl", "numpy")[self.a.framework]

    cdef int note_use(self, object stream, uintptr_t handle) except -1:
        if self.a.framework == FKL:
            return (<Exporter>self.obj).note_use(stream, handle)
        return 0

    def __repr__(self):
        where = "host" if self.a.device < 0 else f"cuda:{self.a.device}"
        return f"<fkl ArrayView {self.dtype} {self.shape} at 0x{self.ptr:x} on {where}>"


@cython.final
cdef class _Managed:
    """A tensor that a producer lent by DLPack; given back when the last view of it goes."""

    cdef fkl_DLManagedTensor* old
    cdef fkl_DLManagedTensorVersioned* new

    def __dealloc__(self):
        if self.old != NULL and self.old.deleter != NULL:
            self.old.deleter(self.old)
        if self.new != NULL and self.new.deleter != NULL:
            self.new.deleter(self.new)


# -- reading --------------------------------------------------------------------------------------------------------


cdef int read_array(object obj, Array* a, bint writable, bint again) except -1:
    """Read an array into a struct, if its type allows that without holding anything: 1, else 0.

    The struct is valid as long as the object is. ``again``: for a launch that is repeated; see `_read_exchange`.
    """
    cdef Reader reader = _reader_of(obj)
    if reader.kind == BY_EXCHANGE:
        _read_exchange(obj, reader.exchange, reader.framework, a, writable, again)
        return 1
    if reader.kind == BY_CUPY:
        _read_cupy(obj, a)
        return 1
    if reader.kind == BY_EXPORTER:
        (<Exporter>obj).check_open()
        a[0] = (<Exporter>obj).a
        return 1
    if reader.kind == BY_INTERFACE:
        _read_interface(obj, a, reader.framework)
        return 1
    return 0


def view(obj, *, bint writable=False):
    """An `ArrayView` of any library's array.

    Parameters
    ----------
    obj : array
        A `DeviceBuffer`, a torch, NumPy or cupy array, or any object with ``__dlpack__`` or
        ``__cuda_array_interface__``.
    writable : bool
        Whether it is going to be written.

    Raises
    ------
    TypeError
        No array, or one whose elements fkl does not know.
    ValueError
        Memory that must not be used as it is: a tensor that requires grad as a destination, a negated view.
    BufferError
        A DLPack version that fkl does not know.
    """
    cdef ArrayView self = ArrayView.__new__(ArrayView)
    cdef Reader reader
    if type(obj) is ArrayView:
        return obj
    reader = _reader_of(obj)
    self.obj = obj
    if reader.kind == BY_NUMPY:
        _read_numpy(obj, &self.a)
    elif reader.kind == BY_DLPACK:
        self.holder = _read_dlpack(obj, &self.a)
    else:
        read_array(obj, &self.a, writable, False)
    return self


cdef Reader _reader_of(object obj):
    """The reader of an object's type, found out at its first sight."""
    found = _readers.get(type(obj))
    if found is not None:
        return <Reader>found
    return _classify(obj, type(obj))


cdef Reader _classify(object obj, object cls):
    if isinstance(obj, Exporter):
        return _keep(cls, BY_EXPORTER, FKL)
    for base in cls.__mro__:
        if base.__name__ == "MaskedArray" and base.__module__.startswith("numpy"):
            raise TypeError("masked arrays are not supported; give x.filled(value), or x.data to use what the mask hides")
        if base.__name__ == "ndarray" and base.__module__ == "numpy":
            return _keep(cls, BY_NUMPY, NUMPY)
        if base.__name__ == "ndarray" and (base.__module__ or "").startswith("cupy"):
            return _keep(cls, BY_CUPY if hasattr(cls, "data") else BY_INTERFACE, CUPY)
    table = _exchange_of(cls)
    root = (cls.__module__ or "").partition(".")[0]
    if table:
        torch = any(b.__name__ == "Tensor" and b.__module__ == "torch" for b in cls.__mro__)
        return _keep(cls, BY_EXCHANGE, TORCH if torch else OTHER, table)
    # NumPy scalars have interfaces of arrays, but are none.
    if root != "numpy":
        if hasattr(cls, "__dlpack__") and hasattr(cls, "__dlpack_device__"):
            return _keep(cls, BY_DLPACK, TORCH if root == "torch" else OTHER)
        if hasattr(cls, "__cuda_array_interface__"):
            return _keep(cls, BY_INTERFACE, OTHER)
        # What an instance has by itself says nothing about the next one.
        if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
            return _keep(None, BY_DLPACK, OTHER)
        if hasattr(obj, "__cuda_array_interface__"):
            return _keep(None, BY_INTERFACE, OTHER)
    raise TypeError(
        "an array is a torch, cupy or NumPy array, a fkl.DeviceBuffer, or an object with __dlpack__ or "
        f"__cuda_array_interface__; got {cls.__module__}.{cls.__qualname__}"
    )


cdef Reader _keep(object cls, int kind, int framework, uintptr_t exchange=0):
    cdef Reader reader = Reader.__new__(Reader)
    reader.kind, reader.framework, reader.exchange = kind, framework, <fkl_DLExchange*>exchange
    if cls is not None:
        _readers[cls] = reader
    return reader


cdef uintptr_t _exchange_of(object cls) except? 0:
    """The address of a type's DLPack exchange table of our major version; 0 if it has none."""
    cdef fkl_DLExchange* table
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if capsule is None or not PyCapsule_IsValid(capsule, b"dlpack_exchange_api"):
        return 0
    table = <fkl_DLExchange*>PyCapsule_GetPointer(capsule, b"dlpack_exchange_api")
    while table != NULL and table.version.major != DL_MAJOR:
        table = table.previous
    if table == NULL or table.tensor_from_object == NULL:
        return 0
    return <uintptr_t>table


cdef int _read_exchange(object obj, fkl_DLExchange* table, int framework, Array* a, bint writable, bint again) except -1:
    """Through the exchange table. It skips the producer's own checks, so ours stand here.

    To ask torch whether a tensor is a negated view takes as long as all the rest. Such views are the imaginary parts of
    conjugates and views of these, all of whose strides are even; where a launch is repeated, only tensors of such strides
    are asked.
    """
    cdef fkl_DLTensor tensor
    try:
        table.tensor_from_object(<void*>obj, &tensor)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        raise TypeError(f"this {type(obj).__qualname__} cannot be read as memory: {reason:.200}") from None
    _from_tensor(&tensor, a, obj)
    a.framework = framework
    a.exchange = table
    if framework == TORCH:
        if a.base >= FLOAT16 and not (again and _has_odd_stride(a)) and obj.is_neg():
            raise ValueError("this tensor is a negated view, whose memory holds the opposite; use x.resolve_neg()")
        if writable and obj.requires_grad:
            raise ValueError(
                "the output requires grad, and fkl records no gradients; give a tensor without, or x.detach()")
    return 0


cdef bint _has_odd_stride(const Array* a) noexcept nogil:
    """Whether neighbours in some dimension are an odd number of elements apart."""
    cdef int i
    for i in range(a.ndim):
        if a.shape[i] > 1 and (a.strides[i] // _itemsizes[a.base]) & 1:
            return True
    return False


cdef int _from_tensor(const fkl_DLTensor* tensor, Array* a, object obj) except -1:
    """A DLPack tensor as our struct."""
    cdef int i
    cdef int64_t step
    cdef bint some = True
    memset(a, 0, sizeof(Array))
    a.base = _base_of(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    if tensor.device.device_type == DL_CPU or tensor.device.device_type == DL_CUDA_HOST:
        a.device = HOST
    elif tensor.device.device_type == DL_CUDA or tensor.device.device_type == DL_CUDA_MANAGED:
        a.device = tensor.device.device_id
    else:
        raise TypeError(f"fkl reads memory of the CPU and of CUDA devices, this {type(obj).__qualname__} lies on DLPack "
                        f"device type {tensor.device.device_type}")
    if tensor.ndim < 0 or tensor.ndim > MAX_DIMENSIONS:
        raise ValueError(f"an array has at most 4 dimensions (P, H, W, C), got {tensor.ndim}")
    a.ndim = tensor.ndim
    for i in range(a.ndim):
        a.shape[i] = tensor.shape[i]
        if a.shape[i] == 0:
            some = False
    step = _itemsizes[a.base]
    for i in range(a.ndim - 1, -1, -1):
        a.strides[i] = step if tensor.strides == NULL else tensor.strides[i] * _itemsizes[a.base]
        step *= max(a.shape[i], 1)
    if some and tensor.data == NULL:
        raise TypeError(f"this {type(obj).__qualname__} has no memory behind it (a fake, meta or functional tensor)")
    a.ptr = <char*>tensor.data + tensor.byte_offset if tensor.data != NULL else NULL
    # DLPack's strides are in items.
    if <uintptr_t>a.ptr & (_itemsizes[a.base] - 1):
        _check_aligned(a, obj)
    return 0


cdef int _base_of(uint8_t code, uint8_t bits, uint16_t lanes) except -1:
    """The base of a DLPack type."""
    cdef int base
    if lanes == 1:
        for base in range(13):
            if _dlpack_codes[base] == code and 8 * _itemsizes[base] == bits:
                return base
    kind = {5: "complex numbers are", 3: "opaque handles are"}.get(code, "fp8 and narrower floats are" if code > 6 else
                                                                   "this type is")
    raise TypeError(f"{kind} not supported: DLPack type code {code}, {bits} bits, {lanes} lanes; the bases are "
                    f"{', '.join(BASES)}, one lane each")


cdef int _read_numpy(object obj, Array* a) except -1:
    """A NumPy array, read-only or not; ml_dtypes' bfloat16 too."""
    cdef int i
    memset(a, 0, sizeof(Array))
    dtype = obj.dtype
    code = _codes.get(dtype.name)
    if code is None or not dtype.isnative or dtype.names is not None:
        from fkl.dtypes import parse_dtype

        code = parse_dtype(dtype).code  # raises, with the reason
    a.base = code
    a.ndim = obj.ndim
    if a.ndim > MAX_DIMENSIONS:
        raise ValueError(f"an array has at most 4 dimensions (P, H, W, C), got {a.ndim}")
    shape, strides = obj.shape, obj.strides
    for i in range(a.ndim):
        a.shape[i] = shape[i]
        a.strides[i] = strides[i]
    a.ptr = <void*><uintptr_t>obj.__array_interface__["data"][0]
    _check_aligned(a, obj)
    a.device = HOST
    a.readonly = not obj.flags.writeable
    a.framework = NUMPY
    return 0


cdef int _read_cupy(object obj, Array* a) except -1:
    """A cupy array by its attributes: its interface builds a dictionary each time. Its content is ordered on cupy's current
    stream, as the interface would say."""
    cdef int i
    cdef int number
    cdef bint some = True
    memset(a, 0, sizeof(Array))
    dtype = obj.dtype
    number = dtype.num
    a.base = _numbers[number] if 0 <= number < 24 else -1
    if a.base < 0:
        code = _codes.get(dtype.name)
        if code is None:
            from fkl.dtypes import parse_dtype

            code = parse_dtype(dtype).code  # raises, with the reason
        a.base = code
    shape, strides, memory = obj.shape, obj.strides, obj.data
    a.ndim = len(shape)
    if a.ndim > MAX_DIMENSIONS:
        raise ValueError(f"an array has at most 4 dimensions (P, H, W, C), got {a.ndim}")
    for i in range(a.ndim):
        a.shape[i] = shape[i]
        a.strides[i] = strides[i]
        if a.shape[i] == 0:
            some = False
    a.ptr = <void*><uintptr_t>memory.ptr
    if some and a.ptr == NULL:
        raise ValueError(f"this {type(obj).__qualname__} has a null pointer for shape {tuple(shape)}")
    a.device = memory.device_id
    a.framework = CUPY
    return 0


cdef int _read_interface(object obj, Array* a, int framework) except -1:
    """``__cuda_array_interface__``, versions 0 to 3."""
    cdef int i
    cdef int64_t step
    cdef bint some = True
    cdef uintptr_t pointer
    memset(a, 0, sizeof(Array))
    name = type(obj).__qualname__
    interface = obj.__cuda_array_interface__
    if not isinstance(interface, dict):
        raise TypeError(f"__cuda_array_interface__ of {name} is no dictionary but {type(interface).__name__}")
    missing = [key for key in ("shape", "typestr", "data") if key not in interface]
    if missing:
        raise TypeError(f"__cuda_array_interface__ of {name} lacks {', '.join(missing)}")
    if interface.get("mask") is not None:
        raise TypeError(f"masked arrays are not supported, and {name} has a mask; fill it first")
    a.base = _base_of_typestr(interface["typestr"])
    shape = interface["shape"]
    a.ndim = _take_numbers(shape, a.shape, "shape", name)
    for i in range(a.ndim):
        if a.shape[i] < 0:
            raise ValueError(f"__cuda_array_interface__ of {name} has a negative size in its shape {shape}")
        if a.shape[i] == 0:
            some = False
    strides = interface.get("strides")
    if strides is None:
        step = _itemsizes[a.base]
        for i in range(a.ndim - 1, -1, -1):
            a.strides[i] = step
            if a.shape[i] > MOST_BYTES // step:
                raise ValueError(f"__cuda_array_interface__ of {name} has shape {shape}, more than 2^63 bytes")
            step *= max(a.shape[i], 1)
    elif _take_numbers(strides, a.strides, "strides", name) != a.ndim:
        raise ValueError(f"__cuda_array_interface__ of {name} has {len(strides)} strides for {a.ndim} dimensions")
    data = interface["data"]
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"data in __cuda_array_interface__ of {name} is (pointer, read-only), got {data!r:.80}")
    try:
        pointer = 0 if data[0] is None else _counted(data[0])
    except (TypeError, OverflowError) as error:
        raise (ValueError if isinstance(error, OverflowError) else TypeError)(
            f"the pointer in __cuda_array_interface__ of {name} is an address of 64 bits, got {data[0]!r:.80}") from None
    if some and pointer == 0:
        raise ValueError(f"__cuda_array_interface__ of {name} has a null pointer for shape {shape}")
    a.ptr = <void*>pointer
    _check_aligned(a, obj)
    a.readonly = bool(data[1])
    a.framework = framework
    stream = interface.get("stream")
    if stream is not None:
        if isinstance(stream, bool) or not isinstance(stream, int):
            raise TypeError(f"stream in __cuda_array_interface__ of {name} is an integer or None, got {stream!r:.80}")
        if not 0 < stream < 2**64:
            raise ValueError(
                f"stream in __cuda_array_interface__ of {name} is {stream}, which the protocol forbids: 1 is the legacy "
                "default stream, 2 the per-thread one, greater numbers are handles")
        a.has_stream = True
        a.stream = stream
    if not some:
        a.device = current_device_index()
    elif locate(pointer, &a.device) == 0:
        raise ValueError(f"the pointer 0x{pointer:x} of {name} is not memory that CUDA knows")
    return 0


cdef inline object _counted(object value):
    """Floats would be truncated."""
    if not PyIndex_Check(value):
        raise TypeError
    return value


cdef int _take_numbers(object values, int64_t* numbers, str what, str name) except -1:
    """The sizes or strides of ``__cuda_array_interface__``; how many there are."""
    cdef int i
    cdef int count
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{what} in __cuda_array_interface__ of {name} is a tuple of integers, got {values!r:.80}")
    if len(values) > MAX_DIMENSIONS:
        raise ValueError(f"an array has at most 4 dimensions (P, H, W, C), got {len(values)}")
    count = len(values)
    try:
        for i in range(count):
            numbers[i] = _counted(values[i])
    except (TypeError, OverflowError) as error:
        raise (ValueError if isinstance(error, OverflowError) else TypeError)(
            f"{what} in __cuda_array_interface__ of {name} is a tuple of integers of 64 bits, got {values!r:.120}") from None
    return count


cdef int _check_aligned(const Array* a, object obj) except -1:
    """Refuse items that do not lie at multiples of their size."""
    cdef int64_t mask = _itemsizes[a.base] - 1
    cdef int64_t steps = <int64_t>a.ptr
    cdef int i
    for i in range(a.ndim):
        if a.shape[i] == 0:
            return 0
        if a.shape[i] > 1:
            steps |= a.strides[i]
    if steps & mask:
        raise ValueError(
            f"the items of this {type(obj).__qualname__} are not aligned to their {_itemsizes[a.base]} bytes: address "
            f"0x{<uintptr_t>a.ptr:x}, strides {tuple([a.strides[i] for i in range(a.ndim)])}; make a copy")
    return 0


cdef int _base_of_typestr(object typestr) except -1:
    text = str(typestr)
    code = _typestrs.get(text[1:])
    if code is None or text[0] not in "<|=" or len(text) != 3:
        if text[:1] == ">":
            raise TypeError(f"foreign byte order is not supported, got typestr {text!r}")
        raise TypeError(f"typestr {text!r} is not supported; it is one of {', '.join(sorted(_typestrs))} in native order")
    return code


cdef object _read_dlpack(object obj, Array* a):
    """``__dlpack__``, new capsules first; returns what keeps the memory alive."""
    cdef _Managed held = _Managed.__new__(_Managed)
    cdef int kind
    cdef uintptr_t relay = 0
    kind, device = obj.__dlpack_device__()
    keywords = {}
    if kind == DL_CUDA or kind == DL_CUDA_MANAGED:
        # The producer makes this stream wait for the content, launches then wait for this stream.
        relay = _relay(device)
        keywords["stream"] = relay
    try:
        capsule = obj.__dlpack__(max_version=(DL_MAJOR, DL_MINOR), **keywords)
    except TypeError:
        capsule = obj.__dlpack__(**keywords)
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        held.new = <fkl_DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        if held.new.version.major != DL_MAJOR:
            version = held.new.version.major
            raise BufferError(f"{type(obj).__qualname__} exports DLPack {version}.x, fkl reads {DL_MAJOR}.x")
        _from_tensor(&held.new.dl_tensor, a, obj)
        a.readonly = (held.new.flags & DL_READ_ONLY) != 0
    elif PyCapsule_IsValid(capsule, b"dltensor"):
        held.old = <fkl_DLManagedTensor*>PyCapsule_GetPointer(capsule, b"dltensor")
        PyCapsule_SetName(capsule, b"used_dltensor")
        _from_tensor(&held.old.dl_tensor, a, obj)
    else:
        raise BufferError(f"__dlpack__ of {type(obj).__qualname__} gave no unused DLPack capsule but {capsule!r:.80}")
    if relay and a.device >= 0:
        a.has_stream = True
        a.stream = relay
    return held


cdef uintptr_t _relay(int device) except 0:
    """A stream of ours on which foreign producers say when their content is ready."""
    stream = _relays.get(device)
    if stream is None:
        stream = _relays.setdefault(device, Stream(device))
    return (<Stream>stream).handle


cdef int wait_producer(const Array* a, fkl_CUstream stream) except -1:
    """Let a stream wait for what an array's producer has queued on the stream it named; the host waits for nothing."""
    cdef Event event
    cdef fkl_CUcontext saved
    cdef int capturing = CAPTURE_NONE
    # 1 is the legacy default stream by its other name.
    if a.stream == <uintptr_t>stream or (a.stream == 1 and stream == NULL):
        return 0
    enter(a.device, &saved)
    try:
        # A capture sees its own work only; what went before it is the business of whoever captures.
        check(drv.StreamIsCapturing(stream, &capturing), b"cuStreamIsCapturing")
        if capturing == CAPTURE_NONE:
            event = Event(a.device)
            event.record_on(<fkl_CUstream>a.stream)
            event.make_wait(stream)
    finally:
        leave(saved)
    return 0


cdef int locate(uintptr_t pointer, int* device) except -1:
    """What the driver knows of an address: 0 nothing (pageable host memory), 1 host memory, 2 device memory."""
    cdef int kind = 0
    cdef int status
    ensure()
    status = drv.PointerGetAttribute(&kind, MEMORY_TYPE, <fkl_CUdeviceptr>pointer)
    if status == 1:  # CUDA_ERROR_INVALID_VALUE: an address it has never seen
        return 0
    check(status, b"cuPointerGetAttribute")
    check(drv.PointerGetAttribute(device, DEVICE_ORDINAL, <fkl_CUdeviceptr>pointer), b"cuPointerGetAttribute")
    return kind
