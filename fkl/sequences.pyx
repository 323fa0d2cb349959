"""`sequence`: several bound kernels in order, launched at once as one graph."""

cimport cython
from libc.stdint cimport uintptr_t

from fkl.kernel cimport FusedKernel
from fkl.runtime.driver cimport fkl_CUstream
from fkl.runtime.launch cimport Launch, LaunchGraph, is_capturing
from fkl.runtime.wait cimport wait_for


@cython.final
cdef class Sequence:
    """Bound kernels that run in order, as one launch. Made by `sequence`.

    Attributes
    ----------
    kernels : tuple of FusedKernel
        In the order they run.
    """

    cdef readonly tuple kernels
    # What the graph was made of; compared with what the kernels hold now, since `update` replaces that.
    cdef list launches
    cdef unsigned int version
    cdef LaunchGraph graph
    cdef object __weakref__

    def __init__(self, tuple kernels not None):
        cdef FusedKernel kernel
        if not kernels:
            raise ValueError("a sequence needs at least one kernel")
        for i, given in enumerate(kernels):
            if not isinstance(given, FusedKernel):
                raise TypeError(f"a sequence is made of kernels from fkl.compose, argument {i} is {type(given).__name__}")
            kernel = given
            kernel._open()
            if kernel.bound is None:
                kernel._check_waiting()
                raise TypeError(f"kernel {i} of the sequence has no bound read or no bound write; bind both at compose")
            if kernel.bound.device != (<FusedKernel>kernels[0]).bound.device:
                raise ValueError(
                    f"the kernels of a sequence run on one device; kernel 0 on cuda:{(<FusedKernel>kernels[0]).bound.device}, "
                    f"kernel {i} on cuda:{kernel.bound.device}"
                )
        self.kernels = kernels
        self.graph = None
        self.launches = None
        cdef uintptr_t handle = 0
        (<FusedKernel>kernels[0])._bound_stream(None, &handle)
        if not is_capturing(<fkl_CUstream>handle, (<FusedKernel>kernels[0]).bound.device):
            self._refresh(self._now())

    cdef list _now(self):
        """What the kernels would launch."""
        cdef FusedKernel kernel
        found = []
        for i, given in enumerate(self.kernels):
            kernel = given
            kernel._open()
            if kernel.bound is None:
                raise ValueError(
                    f"kernel {i} of the sequence has a bound output that no longer fits since an update; bind one that does"
                )
            found.append(kernel.bound)
        return found

    cdef int _refresh(self, list now) except -1:
        """Make the graph, or tell it what has changed. Not while the stream is captured."""
        if self.graph is None or not self.graph.replace(now):
            self.graph = LaunchGraph.make(now)
        self.launches = now
        self.version = _version(now)
        return 0

    cdef uintptr_t _launch(self, object stream) except? 0:
        cdef FusedKernel kernel
        cdef Launch launch
        cdef uintptr_t handle = 0
        cdef uintptr_t first = 0
        cdef bint capturing
        for given in self.kernels:
            kernel = given
            kernel._bound_stream(stream if stream is not None else (None if given is self.kernels[0] else first), &handle)
            if given is self.kernels[0]:
                first = handle
            elif stream is None and kernel.pending is not None:
                kernel._wait_pending(first)
            kernel._check_users()
        now = self._now()
        capturing = is_capturing(<fkl_CUstream>first, (<Launch>now[0]).device)
        with cython.critical_section(self):
            if not capturing and not (_same(now, self.launches) and self.version == _version(now)):
                self._refresh(now)
            if capturing or self.graph is None:
                for found in now:
                    launch = found
                    launch.run(launch.source, launch.target, <fkl_CUstream>first)
            else:
                self.graph.run(<fkl_CUstream>first)
        for given in self.kernels:
            (<FusedKernel>given)._note_users(stream, first)
        return first

    def __call__(self, stream=None):
        """Launch all kernels, asynchronously, in order.

        Parameters
        ----------
        stream : stream or int, optional
            None: the current stream of the first kernel's arrays.

        Returns
        -------
        array
            The output of the last kernel.
        """
        self._launch(stream)
        return (<FusedKernel>self.kernels[len(self.kernels) - 1]).bound_out

    def run(self, stream=None):
        """Launch all kernels and wait for the last, as `FusedKernel.run`.

        Raises
        ------
        ValueError
            The stream is being captured.
        """
        cdef FusedKernel kernel = self.kernels[0]
        cdef uintptr_t handle = 0
        cdef int device = (<Launch>self._now()[0]).device
        kernel._bound_stream(stream, &handle)
        if is_capturing(<fkl_CUstream>handle, device):
            raise ValueError("the stream is being captured, and what is captured cannot be waited for; call it instead")
        handle = self._launch(stream)
        wait_for(device, <fkl_CUstream>handle)
        return (<FusedKernel>self.kernels[len(self.kernels) - 1]).bound_out

    def __len__(self):
        return len(self.kernels)

    def __reduce__(self):
        raise TypeError("a sequence holds bound kernels, and those hold device pointers: it cannot be pickled")

    def __repr__(self):
        how = "launch by launch" if self.graph is None else "one graph"
        return f"<fkl.Sequence of {len(self.kernels)} kernels, {how}>"


cdef bint _same(list a, list b):
    cdef Py_ssize_t i
    if b is None or len(a) != len(b):
        return False
    for i in range(len(a)):
        if a[i] is not b[i]:
            return False
    return True


cdef unsigned int _version(list launches):
    """Grows with every number that is written anew into any of these launches."""
    cdef unsigned int total = 0
    for launch in launches:
        total += (<Launch>launch).version
    return total


def sequence(*kernels):
    """Several bound kernels in order, launched at once: one graph where the driver has graphs.

    `FusedKernel.update` on each keeps working and reaches the next call. A kernel may stand in several sequences, and be
    called by itself.

    Parameters
    ----------
    *kernels : FusedKernel
        With read and write bound, on one device.

    Returns
    -------
    Sequence
        ``s(stream=None)`` launches, ``s.run(stream=None)`` launches and waits.

    Raises
    ------
    TypeError
        Something that is no kernel, or one that is not fully bound.
    ValueError
        No kernels, a closed one, or kernels of several devices.
    """
    return Sequence(kernels)
