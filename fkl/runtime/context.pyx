"""Devices and their primary contexts: retained once, made current around cold calls, the caller's restored.

Primary contexts are what torch, cupy and the CUDA runtime use. fkl retains them for the life of the process (to
release the last reference would reset the device for everybody) and never makes a context of its own.
"""

import threading

from libc.stdint cimport uint64_t

from fkl.runtime.driver cimport check, drv, ensure, fkl_CUcontext, fkl_CUdevice

from fkl.runtime.errors import CudaError

cdef enum:
    MAX_DEVICES = 64
    CAPABILITY_MAJOR = 75    # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    CAPABILITY_MINOR = 76

cdef fkl_CUcontext contexts[MAX_DEVICES]
cdef object _lock = threading.Lock()
cdef dict _capabilities = {}


cdef fkl_CUcontext primary(int device) except NULL:
    """The device's primary context, retained at its first use."""
    cdef fkl_CUcontext context = NULL
    cdef fkl_CUdevice handle
    ensure()
    if 0 <= device < MAX_DEVICES and contexts[device] != NULL:
        return contexts[device]
    _check_device(device)
    with _lock:
        if contexts[device] == NULL:
            check(drv.DeviceGet(&handle, device), b"cuDeviceGet")
            check(drv.DevicePrimaryCtxRetain(&context, handle), b"cuDevicePrimaryCtxRetain")
            contexts[device] = context
    return contexts[device]


cdef int enter(int device, fkl_CUcontext* saved) except -1:
    """Make the device's primary context current; `leave(saved)` restores the caller's, also if that was none."""
    cdef fkl_CUcontext wanted = primary(device)
    saved[0] = NULL
    check(drv.CtxGetCurrent(saved), b"cuCtxGetCurrent")
    if saved[0] != wanted:
        check(drv.CtxSetCurrent(wanted), b"cuCtxSetCurrent")
    return 0


cdef void leave(fkl_CUcontext saved) noexcept nogil:
    cdef fkl_CUcontext current = NULL
    drv.CtxGetCurrent(&current)
    if current != saved:
        drv.CtxSetCurrent(saved)


cdef int device_of(fkl_CUcontext context) except -2:
    """The ordinal of the device whose primary context this is; -1 if it is another context."""
    cdef int i
    for i in range(MAX_DEVICES):
        if contexts[i] == context and context != NULL:
            return i
    return -1


cdef int _check_device(int device) except -1:
    cdef int count = device_count()
    if count == 0:
        raise CudaError(100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected", "cuDeviceGetCount")
    if not 0 <= device < min(count, MAX_DEVICES):
        known = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise ValueError(f"device {device} does not exist; this machine has {known}")
    return 0


def device_count():
    """Number of CUDA devices.

    Raises
    ------
    fkl.CudaError
        There is no driver.
    """
    cdef int count = 0
    ensure()
    check(drv.DeviceGetCount(&count), b"cuDeviceGetCount")
    return count


def current_device_index():
    """Ordinal of the thread's current device, as torch and cupy see it; 0 if the thread has no context.

    Raises
    ------
    fkl.CudaError
        There is no driver, or no device.
    """
    cdef fkl_CUcontext current = NULL
    cdef fkl_CUdevice handle = 0
    cdef fkl_CUdevice other
    cdef int i
    ensure()
    check(drv.CtxGetCurrent(&current), b"cuCtxGetCurrent")
    if current == NULL:
        _check_device(0)
        return 0
    i = device_of(current)
    if i >= 0:
        return i
    check(drv.CtxGetDevice(&handle), b"cuCtxGetDevice")
    for i in range(device_count()):
        check(drv.DeviceGet(&other, i), b"cuDeviceGet")
        if other == handle:
            return i
    return 0


def compute_capability(int device):
    """Compute capability of a device.

    Returns
    -------
    (int, int)
        Major and minor, such as ``(9, 0)``.
    """
    found = _capabilities.get(device)
    if found is not None:
        return found
    cdef fkl_CUdevice handle
    cdef int major = 0
    cdef int minor = 0
    ensure()
    _check_device(device)
    check(drv.DeviceGet(&handle, device), b"cuDeviceGet")
    check(drv.DeviceGetAttribute(&major, CAPABILITY_MAJOR, handle), b"cuDeviceGetAttribute")
    check(drv.DeviceGetAttribute(&minor, CAPABILITY_MINOR, handle), b"cuDeviceGetAttribute")
    _capabilities[device] = (major, minor)
    return major, minor


def device_name(int device):
    """The product name of a device."""
    cdef fkl_CUdevice handle
    cdef char name[256]
    ensure()
    _check_device(device)
    check(drv.DeviceGet(&handle, device), b"cuDeviceGet")
    check(drv.DeviceGetName(name, 256, handle), b"cuDeviceGetName")
    return (<bytes>name).decode("utf-8", "replace")


def memory_info(int device):
    """Free and total bytes of a device's memory."""
    cdef size_t available = 0
    cdef size_t total = 0
    cdef fkl_CUcontext saved
    enter(device, &saved)
    try:
        check(drv.MemGetInfo(&available, &total), b"cuMemGetInfo")
    finally:
        leave(saved)
    return available, total


def available():
    """Whether there is a driver with at least one device; never raises."""
    try:
        return device_count() > 0
    except CudaError:
        return False


def primary_context(int device):
    """Address of a device's primary context, for code that talks to the driver itself."""
    return <uint64_t>primary(device)
