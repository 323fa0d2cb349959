"""`wait_for`: wait until a stream has done its work, for the shortest latency.

The stream writes a number to mapped host memory, which the host watches: that takes less than asking the driver. The GIL is
kept for the first 20 us or so and given up for longer waits, which Ctrl-C interrupts.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals

from fkl.runtime.context cimport enter, leave
from fkl.runtime.driver cimport check, drv, fkl_CUcontext, fkl_CUdeviceptr, fkl_CUstream
from fkl.runtime.stream cimport Event

cdef extern from *:
    """
    static inline int fkl_watch(const unsigned int *at, unsigned int value, int turns) {
        for (int i = 0; i < turns; ++i) {
            if (__atomic_load_n(at, __ATOMIC_ACQUIRE) == value) return 1;
    #if defined(__x86_64__)
            __builtin_ia32_pause();
    #elif defined(__aarch64__)
            __asm__ __volatile__("yield");
    #endif
        }
        return 0;
    }
    """
    int fkl_watch(const unsigned int* at, unsigned int value, int turns) nogil

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int nanosleep(const timespec*, timespec*)

cdef enum:
    NOT_READY = 600
    NOT_SUPPORTED = 801
    PORTABLE_AND_MAPPED = 3
    #: Flags to a page of host memory, each on a cache line of its own.
    FLAGS = 64
    LINE = 64
    #: Looks at a flag while the GIL is kept, and at each turn without it.
    SHORT = 400
    LONG = 2000

# Flags that nobody waits for. A list, whose pop and append are atomic.
cdef list _free = []
# Whether the driver cannot write flags.
cdef bint _missing = False


@cython.final
cdef class Flag:
    """A number in host memory that streams of every device can write."""

    cdef unsigned int* host
    cdef fkl_CUdeviceptr address
    cdef unsigned int turn


cdef Flag _take():
    """A flag of its own for one wait; None if the driver cannot write flags. A context is current."""
    global _missing
    cdef void* page = NULL
    cdef fkl_CUdeviceptr address = 0
    cdef Flag flag
    cdef int i
    if _missing:
        return None
    try:
        return _free.pop()
    except IndexError:
        pass  # all are in use: a page more
    if drv.MemHostAlloc == NULL or drv.MemHostGetDevicePointer == NULL or drv.StreamWriteValue32 == NULL:
        return None
    check(drv.MemHostAlloc(&page, FLAGS * LINE, PORTABLE_AND_MAPPED), b"cuMemHostAlloc")
    check(drv.MemHostGetDevicePointer(&address, page, 0), b"cuMemHostGetDevicePointer")
    for i in range(FLAGS):
        flag = Flag.__new__(Flag)
        flag.host = <unsigned int*>(<char*>page + i * LINE)
        flag.host[0] = flag.turn = 0
        flag.address = address + i * LINE
        if i:
            _free.append(flag)
    flag = Flag.__new__(Flag)
    flag.host, flag.address, flag.turn = <unsigned int*>page, address, 0
    return flag


cdef int wait_for(int device, fkl_CUstream stream) except -1:
    """Wait until everything queued on a stream so far is done.

    Raises
    ------
    fkl.CudaError
        What the stream was doing has failed.
    """
    global _missing
    cdef fkl_CUcontext saved
    cdef Flag flag
    cdef int status
    enter(device, &saved)
    try:
        flag = _take()
        if flag is not None:
            flag.turn += 1
            status = drv.StreamWriteValue32(stream, flag.address, flag.turn, 0)
            if status == 0:
                if not fkl_watch(flag.host, flag.turn, SHORT):
                    _wait_longer(flag, stream)
                # Only now: an interrupted wait leaves a write behind, so its flag is never used again.
                _free.append(flag)
                return 0
            if status != NOT_SUPPORTED:
                check(status, b"cuStreamWriteValue32")
            _missing = True
        event = Event(device)
        event.record_on(stream)
        event.synchronize()
    finally:
        leave(saved)
    return 0


cdef int _wait_longer(Flag flag, fkl_CUstream stream) except -1:
    cdef int status = NOT_READY
    cdef int done = 0
    cdef int turn = 0
    cdef timespec nap
    nap.tv_sec = 0
    while not done and status == NOT_READY:
        with nogil:
            done = fkl_watch(flag.host, flag.turn, LONG)
            if not done:
                # The stream is asked too: a failed one never writes.
                status = drv.StreamQuery(stream)
                if status == NOT_READY and turn >= 20:
                    nap.tv_nsec = min(20_000 + (turn - 20) * 5_000, 1_000_000)
                    nanosleep(&nap, NULL)
        turn += 1
        PyErr_CheckSignals()
    return check(status, b"cuStreamQuery") if not done else 0
