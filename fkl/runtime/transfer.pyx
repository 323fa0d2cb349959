"""Copies between a strided device array and tight memory, and fills. The caller has made the device's context current."""

from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy, memset

from fkl.runtime.driver cimport check, drv, fkl_CUdeviceptr, fkl_CUstream, fkl_copy2d
from fkl.runtime.view cimport Array, itemsize_of

cdef enum:
    HOST_MEMORY = 1      # CU_MEMORYTYPE_HOST
    DEVICE_MEMORY = 2    # CU_MEMORYTYPE_DEVICE


cdef int _solid(const Array* a) noexcept nogil:
    """How many of the last dimensions lie in memory without gaps."""
    cdef int64_t step = itemsize_of(a.base)
    cdef int i
    for i in range(a.ndim - 1, -1, -1):
        if a.shape[i] != 1 and a.strides[i] != step:
            return a.ndim - 1 - i
        step *= a.shape[i]
    return a.ndim


cdef int transfer(const Array* a, char* other, Direction direction, fkl_CUstream stream) except -1:
    """Copy the whole array to or from tight memory at ``other``, in the order of a stream."""
    cdef int solid = _solid(a)
    cdef size_t run = itemsize_of(a.base)
    cdef int i
    for i in range(a.ndim - solid, a.ndim):
        run *= a.shape[i]
    for i in range(a.ndim):
        if a.shape[i] == 0:
            return 0
    return _copy(a, 0, a.ndim - solid, <uintptr_t>a.ptr, <uintptr_t>other, run, direction, stream)


cdef int _copy(const Array* a, int dimension, int outer, uintptr_t at, uintptr_t other, size_t run,
               Direction direction, fkl_CUstream stream) except -1:
    cdef int64_t i
    cdef int k
    cdef size_t step = run
    if dimension == outer:
        return _rows(at, run, other, run, run, 1, direction, stream)
    if dimension == outer - 1:
        return _rows(at, a.strides[dimension], other, run, run, a.shape[dimension], direction, stream)
    for k in range(dimension + 1, outer):
        step *= a.shape[k]
    for i in range(a.shape[dimension]):
        _copy(a, dimension + 1, outer, at + <uintptr_t>(i * a.strides[dimension]), other + i * step, run, direction, stream)
    return 0


cdef int _rows(uintptr_t at, size_t pitch, uintptr_t other, size_t other_pitch, size_t width, size_t height,
               Direction direction, fkl_CUstream stream) except -1:
    """One block of rows."""
    cdef fkl_copy2d copy
    cdef int status
    if height == 1 or pitch == width == other_pitch:
        width *= height
        with nogil:
            if direction == TO_DEVICE:
                status = drv.MemcpyHtoDAsync(at, <const void*>other, width, stream)
            elif direction == TO_HOST:
                status = drv.MemcpyDtoHAsync(<void*>other, at, width, stream)
            else:
                status = drv.MemcpyDtoDAsync(other, at, width, stream)
        return check(status, b"cuMemcpyAsync")
    memset(&copy, 0, sizeof(copy))
    copy.WidthInBytes, copy.Height = width, height
    if direction == TO_DEVICE:
        copy.srcMemoryType, copy.srcHost, copy.srcPitch = HOST_MEMORY, <const void*>other, other_pitch
        copy.dstMemoryType, copy.dstDevice, copy.dstPitch = DEVICE_MEMORY, at, pitch
    else:
        copy.srcMemoryType, copy.srcDevice, copy.srcPitch = DEVICE_MEMORY, at, pitch
        copy.dstPitch = other_pitch
        if direction == TO_HOST:
            copy.dstMemoryType, copy.dstHost = HOST_MEMORY, <void*>other
        else:
            copy.dstMemoryType, copy.dstDevice = DEVICE_MEMORY, other
    with nogil:
        status = drv.Memcpy2DAsync(&copy, stream)
    return check(status, b"cuMemcpy2DAsync")


cdef int fill_array(const Array* a, const unsigned char* item, fkl_CUstream stream) except -1:
    """Set every element to one item, in the order of a stream."""
    cdef int solid = _solid(a)
    cdef size_t count = 1
    cdef int i
    for i in range(a.ndim):
        if a.shape[i] == 0:
            return 0
    for i in range(a.ndim - solid, a.ndim):
        count *= a.shape[i]
    return _fill(a, 0, a.ndim - solid, <uintptr_t>a.ptr, count, item, stream)


cdef int _fill(const Array* a, int dimension, int outer, uintptr_t at, size_t count, const unsigned char* item,
               fkl_CUstream stream) except -1:
    cdef int64_t i
    if dimension == outer:
        return _run(at, itemsize_of(a.base), count, item, stream)
    for i in range(a.shape[dimension]):
        _fill(a, dimension + 1, outer, at + <uintptr_t>(i * a.strides[dimension]), count, item, stream)
    return 0


cdef int _run(fkl_CUdeviceptr at, int size, size_t count, const unsigned char* item, fkl_CUstream stream) except -1:
    cdef unsigned short half
    cdef unsigned int word
    cdef unsigned int words[2]
    cdef size_t done
    cdef size_t more
    if size == 1:
        return check(drv.MemsetD8Async(at, item[0], count, stream), b"cuMemsetD8Async")
    if size == 2:
        memcpy(&half, item, 2)
        return check(drv.MemsetD16Async(at, half, count, stream), b"cuMemsetD16Async")
    if size == 4:
        memcpy(&word, item, 4)
        return check(drv.MemsetD32Async(at, word, count, stream), b"cuMemsetD32Async")
    memcpy(words, item, 8)
    if words[0] == words[1]:
        return check(drv.MemsetD32Async(at, words[0], 2 * count, stream), b"cuMemsetD32Async")
    # The driver sets no 64-bit values: the first item is copied over the rest, doubling each time.
    check(drv.MemsetD32Async(at, words[0], 1, stream), b"cuMemsetD32Async")
    check(drv.MemsetD32Async(at + 4, words[1], 1, stream), b"cuMemsetD32Async")
    done = 1
    while done < count:
        more = min(done, count - done)
        check(drv.MemcpyDtoDAsync(at + 8 * done, at, 8 * more, stream), b"cuMemcpyDtoDAsync")
        done += more
    return 0
