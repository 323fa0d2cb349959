"""`Patch`: where an operation's numbers lie in a parameter block, so that `update` may write them there and do no more.

Only for operations whose one value is a number or one number a channel, and only for numbers whose bytes are plain here;
whatever else comes goes the long way, which also says what is wrong with it. Used by `fkl.kernel`.
"""

cimport cython
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsDouble, PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.math cimport fabsf, isfinite, signbit
from libc.string cimport memcpy

from fkl.bounds import LEAST, MOST
from fkl.plan import MODERATE_OFFSET
from fkl.runtime.launch cimport Launch

cdef float _least = 2.0 ** LEAST
cdef float _most = 2.0 ** MOST
cdef Py_ssize_t _moderate_offset = MODERATE_OFFSET

# Indices of fkl.dtypes.BASES; a test holds them together.
cdef enum:
    UINT8 = 1
    INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64


@cython.final
cdef class Place:
    """One field of the block: a number for each channel of a type."""

    cdef Py_ssize_t offset
    #: Where their reciprocals lie, -1 if they have none.
    cdef Py_ssize_t reciprocals
    cdef int base
    cdef int channels
    #: Whether the kernel takes values for moderate ones.
    cdef bint bounded


@cython.final
cdef class Patch:
    """The places of one operation, which may stand in a chain several times."""

    cdef bint write(self, Launch launch, object value) except -1:
        """Write a number, or a tuple of one number a channel, at every place; False: nothing was written."""
        cdef Place place
        cdef unsigned char data[32]
        cdef int size
        for place in self.places:
            if place.bounded and (<int*>(launch.block + _moderate_offset))[0] == 0:
                return False
            if _pack(place, value, self.nonzero, data) == 0:
                return False
        with cython.critical_section(launch):
            for place in self.places:
                size = _pack(place, value, self.nonzero, data)
                memcpy(launch.block + place.offset, data, size)
                if place.reciprocals >= 0:
                    _reciprocals(data, place.channels, launch.block + place.reciprocals)
            launch.stale = True
            launch.version += 1
        return True


cdef void _reciprocals(const unsigned char* data, int channels, unsigned char* out) noexcept:
    """As fkl.operations.arithmetic.reciprocals: the conversion of an out of range double gives an infinity."""
    cdef float single
    cdef int i
    for i in range(channels):
        memcpy(&single, data + 4 * i, 4)
        single = <float>(1.0 / <double>single)
        memcpy(out + 4 * i, &single, 4)


cdef int _pack(Place place, object value, bint nonzero, unsigned char* data) except -1:
    """The bytes of a value in a type, for every channel; how many, 0 if that takes more thought."""
    cdef int i
    cdef int size
    if type(value) is tuple:
        if len(<tuple>value) != place.channels:
            return 0
        for i in range(place.channels):
            size = _scalar((<tuple>value)[i], place.base, nonzero, place.bounded, data + 8 * i)
            if size == 0:
                return 0
            memcpy(data + size * i, data + 8 * i, size)
    else:
        size = _scalar(value, place.base, nonzero, place.bounded, data)
        if size == 0:
            return 0
        for i in range(1, place.channels):
            memcpy(data + size * i, data, size)
    return size * place.channels


cdef int _scalar(object value, int base, bint nonzero, bint bounded, unsigned char* data) except -1:
    """One number in a type: bytes, or 0."""
    cdef double wide
    cdef float single
    cdef long long whole
    cdef int overflow = 0
    if base == FLOAT32 or base == FLOAT64:
        if PyFloat_CheckExact(value):
            wide = PyFloat_AS_DOUBLE(value)
        elif PyLong_CheckExact(value):
            whole = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow:
                return 0
            wide = PyLong_AsDouble(value)
        else:
            return 0
        if nonzero and wide == 0:
            return 0
        if base == FLOAT64:
            memcpy(data, &wide, 8)
            return 8
        single = <float>wide
        if isfinite(wide) and not isfinite(single):
            return 0
        # As fkl.bounds.moderate: +0, or within its limits, and divisors positive.
        if bounded:
            if single == 0:
                if signbit(single):
                    return 0
            elif not _least <= (single if nonzero else fabsf(single)) <= _most:
                return 0
        memcpy(data, &single, 4)
        return 4
    if not PyLong_CheckExact(value):
        return 0
    whole = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or (nonzero and whole == 0):
        return 0
    if base == UINT8 and 0 <= whole <= 0xFF or base == INT8 and -0x80 <= whole <= 0x7F:
        memcpy(data, &whole, 1)
        return 1
    if base == UINT16 and 0 <= whole <= 0xFFFF or base == INT16 and -0x8000 <= whole <= 0x7FFF:
        memcpy(data, &whole, 2)
        return 2
    if base == UINT32 and 0 <= whole <= 0xFFFFFFFF or base == INT32 and -0x80000000LL <= whole <= 0x7FFFFFFF:
        memcpy(data, &whole, 4)
        return 4
    if base == UINT64 and whole >= 0 or base == INT64:
        memcpy(data, &whole, 8)
        return 8
    return 0


cdef dict find_patches(object chain, tuple names):
    """Operation -> its patch, for the operations of a bound GPU chain that have one.

    ``names`` are the objects by which the user knows the operations.
    """
    cdef Place place
    cdef Patch patch
    found = {}
    others = set()
    plan = chain.variant(chain.read.dtype if chain.generates else chain.source.surface.dtype).plan
    slots = {(slot.op, slot.number): slot for slot in plan.slots}
    for i, (name, op) in enumerate(zip(names, plan.ops)):
        if not getattr(op, "plain", False) or op.operand is not None:
            others.add(name)
            continue
        place = Place.__new__(Place)
        place.offset, place.base, place.channels = slots[i, 0].offset, plan.dtypes[i].code, plan.dtypes[i].channels
        place.bounded = plan.bounded
        place.reciprocals = slots[i, 1].offset if (i, 1) in slots else -1
        if name not in found:
            patch = Patch.__new__(Patch)
            patch.places, patch.nonzero = [], op.nonzero
            found[name] = patch
        patch = found[name]
        patch.places.append(place)
    return {name: patch for name, patch in found.items() if name not in others}
