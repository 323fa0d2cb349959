"""`compose` and `FusedKernel`: what a user calls. Everything a bound launch needs was fixed before; see `_call`."""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE, PyTuple_GET_ITEM
from libc.stdint cimport uint64_t, uintptr_t

from fkl.patch cimport Patch, find_patches
from fkl.repeat cimport Repeat, make_repeat, same_array
from fkl.runtime.driver cimport fkl_CUstream
from fkl.runtime.frameworks cimport current_stream, order_after
from fkl.runtime.launch cimport Launch, is_capturing
from fkl.runtime.stream cimport decode_stream
from fkl.runtime.view cimport CUPY, FKL, TORCH, Array, ArrayView, Exporter, read_array
from fkl.runtime.wait cimport wait_for

from fkl.checks import index_of, one_of
from fkl.dtypes import parse_dtype
from fkl.gpu import GpuChain
from fkl.host import HostChain
from fkl.layout import ShapeError
from fkl.operations.base import Extents, Operation
from fkl.plan import check_chain
from fkl.runtime.frameworks import allocate
from fkl.variant import tidy, tidy_is_due

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>

    /* Give a static extension type a vectorcall slot: Cython 3 still calls __call__ with a tuple and a dictionary. */
    static int fkl_set_vectorcall(PyTypeObject *type, Py_ssize_t offset) {
        if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return 0;
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(type);
        return 1;
    }
    """
    int fkl_set_vectorcall(type cls, Py_ssize_t offset)
    Py_ssize_t PyVectorcall_NARGS(size_t)


@cython.final
cdef class FusedKernel:
    """A chain of operations as one kernel. Made by `compose`; see there for what a call means.

    Attributes
    ----------
    ops : tuple of Operation
        The chain.
    target : str
        "gpu" or "cpu".
    is_bound : bool
        Whether `k()` needs no argument.
    signature : str or None
        Digest of what would cause a compile, once the input's type is known.
    """

    def __cinit__(self):
        self.vectorcall = <fkl_vectorcall>_vectorcall
        self.closed = False

    def __init__(self, chain, dict options):
        self.chain = chain
        self.options = options
        self.chained = self.names = chain.ops
        self.target = chain.target
        self.unwritten = chain.dest is None
        if self.target == "gpu":
            self._bind()

    def _bind(self, Launch replaced=None):
        made = self.chain.bind()
        bound = (*self.chain.sources, *self.chain.operands.values())
        self.pending = [e for e in (_producer_event(array.view) for array in bound) if e is not None] or None
        if made is None:
            self._tidy(None)
            return
        launch, request = made
        views = [array.view for array in (*request.sources, *request.dests, *request.operands.values())]
        self.origin = _leader(views)
        self.users = [view for view in views if (<ArrayView>view).a.framework == FKL] or None
        self.note_again = True
        self.bound_out = request.out
        self._graph(launch, replaced)
        self.bound = launch
        self._tidy(self.origin)

    cdef int _graph(self, Launch launch, Launch replaced) except -1:
        """Let a bound launch go through a graph: that of the launch it replaces, or one of its own."""
        cdef uintptr_t handle = 0
        current_stream(&self.origin.a, &handle)
        launch.adopt(replaced)
        if not is_capturing(<fkl_CUstream>handle, launch.device):
            launch.make_graph()
        return 0

    def _tidy(self, leader):
        """Unload modules nobody needs, unless the stream this thread works on is being captured."""
        cdef uintptr_t handle = 0
        cdef ArrayView view
        if not tidy_is_due():
            return
        if leader is None and self.chain.source is not None:
            leader = self.chain.source.view
        if leader is not None:
            view = leader
            current_stream(&view.a, &handle)
        if not is_capturing(<fkl_CUstream>handle, 0 if leader is None else leader.device):
            tidy()

    # -- calls ----------------------------------------------------------------------------------------------------

    cdef object _run(self, object x, object out, object stream):
        """One call: the bound launch as it is, the last launch with new addresses, or the long way."""
        cdef uintptr_t handle = 0
        if self.bound is not None and x is None and out is None:
            self._bound_stream(stream, &handle)
            return self._run_bound(stream, &handle)
        if self.last is not None:
            if x is not None and out is not None:
                if self._again(x, out, stream):
                    return out
            elif x is not None and self.unwritten:
                fresh = self._again_fresh(x, stream)
                if fresh is not None:
                    return fresh
        return self._call(x, out, stream)

    cdef int _bound_stream(self, object stream, uintptr_t* handle) except -1:
        """The stream of a bound call, after the producers of what is bound if nobody named it."""
        if stream is not None:
            return decode_stream(stream, handle)
        current_stream(&self.origin.a, handle)
        if self.pending is not None:
            self._wait_pending(handle[0])
        return 0

    cdef object _run_bound(self, object stream, uintptr_t* handle):
        if self.users is None:
            self.bound.run(self.bound.source, self.bound.target, <fkl_CUstream>handle[0])
        else:
            self._check_users()
            self.bound.run(self.bound.source, self.bound.target, <fkl_CUstream>handle[0])
            self._note_users(stream, handle[0])
        return self.bound_out

    cdef object _again_fresh(self, object x, object stream):
        """Repeat the last launch with an output of its own; None: go the long way."""
        cdef Array a
        cdef uintptr_t handle = 0
        cdef Repeat last = self.last
        if isinstance(x, (list, tuple)) or not read_array(x, &a, False, True) or not same_array(&a, &last.source):
            return None
        if stream is None:
            current_stream(&a, &handle)
        else:
            decode_stream(stream, &handle)
        out = allocate(last.like, last.shape, last.base, a.device, handle)
        return out if self._again(x, out, stream) else None

    cdef int _check_users(self) except -1:
        """Refuse bound buffers of fkl's own that were closed."""
        if self.users is None:
            return 0
        for user in self.users:
            (<Exporter>(<ArrayView>user).obj).check_open()
        return 0

    cdef int _note_users(self, object stream, uintptr_t handle) except -1:
        """Tell bound buffers of fkl's own what stream uses them."""
        if self.users is None or not (self.note_again or self.noted != handle):
            return 0
        self.note_again = False
        self.noted = handle
        for user in self.users:
            if (<ArrayView>user).note_use(stream, handle):
                self.note_again = True
        return 0

    cdef bint _again(self, object x, object out, object stream) except -1:
        """Repeat the last launch if only addresses changed; False: go the long way."""
        cdef Array a
        cdef Array b
        cdef uintptr_t handle = 0
        cdef uint64_t pa, pb
        cdef Repeat last = self.last
        if isinstance(x, (list, tuple)) or isinstance(out, (list, tuple)):
            return False
        if not read_array(x, &a, False, True) or not same_array(&a, &last.source):
            return False
        if not read_array(out, &b, True, True) or not same_array(&b, &last.target) or b.readonly:
            return False
        pa, pb = <uint64_t>a.ptr, <uint64_t>b.ptr
        if pa < pb + last.target_span and pb < pa + last.source_span and not (last.in_place and pa == pb):
            return False
        if stream is None:
            current_stream(&a if a.exchange != NULL or a.framework == CUPY else &b, &handle)
            if handle == 0 and a.framework == FKL and a.has_stream:
                handle = a.stream
        else:
            decode_stream(stream, &handle)
        order_after(&a, stream is not None, handle)
        order_after(&b, stream is not None, handle)
        if not last.launch.tried and not is_capturing(<fkl_CUstream>handle, a.device):
            last.launch.make_graph()
        last.launch.run(pa, pb, <fkl_CUstream>handle)
        if a.framework == FKL:
            (<Exporter>x).note_use(stream, handle)
        if b.framework == FKL:
            (<Exporter>out).note_use(stream, handle)
        return True

    def _call(self, x, out, stream):
        """The long way: every check, a fresh block, and a launch that the next call may repeat."""
        cdef uintptr_t handle = 0
        cdef Launch launch
        cdef ArrayView view
        if self.closed:
            raise ValueError("this kernel is closed")
        self._settle()
        if self.target == "cpu":
            return self.chain.call(x, out, stream)
        if stream is not None:
            decode_stream(stream, &handle)
        else:
            leader = self._leader_of(x, out)
            if leader is not None:
                current_stream(&(<ArrayView>leader).a, &handle)
        request = self.chain.request(x, out, handle)
        launch = self.chain.prepare(request)
        if stream is None and self.pending is not None and (x is None or request.operands):
            self._wait_pending(handle)
        # Arrays handed over here come with their own order; for bound ones an explicit stream is ordered by the caller.
        for array in (*(request.sources if x is not None else ()), *(request.dests if out is not None else ())):
            view = array.view
            order_after(&view.a, stream is not None, handle)
        everything = [*request.sources, *request.dests, *request.operands.values()]
        for array in everything:
            view = array.view
            if view.a.framework == FKL:
                (<Exporter>view.obj).check_open()
        launch.run(launch.source, launch.target, <fkl_CUstream>handle)
        for array in everything:
            view = array.view
            view.note_use(stream, handle)
        # An operand's memory is the kernel's own business; its overlap with another output is checked the long way.
        if (len(request.sources) == len(request.dests) == 1 and not request.operands and launch.source_offset >= 0
                and launch.target_offset >= 0):
            self.last = make_repeat(launch, request.sources[0].view, request.dests[0].view)
        if tidy_is_due() and not is_capturing(<fkl_CUstream>handle, request.device):
            tidy()
        return request.out

    def _leader_of(self, x, out):
        """The array of a call whose framework names the stream."""
        chain = self.chain
        views = []
        for given, bound, role in ((x, chain.source, "input"), (out, chain.dest, "output")):
            if given is None and role == "input" and bound is not None:
                views.append(bound.view)
                continue
            given = bound if given is None else given
            while isinstance(given, (list, tuple)):
                given = given[0] if given else None
            if given is not None:
                views.append(chain.view(given, role))
        views.extend(array.view for array in chain.operands.values())
        return _leader(views) if views else None

    cdef int _wait_pending(self, uintptr_t handle) except -1:
        # A capture sees its own work only; what went before it is the business of whoever captures.
        if is_capturing(<fkl_CUstream>handle, self.pending[0].device):
            return 0
        events, self.pending = self.pending, None
        for event in events or ():
            event.wait_on(handle)
        return 0

    def run(self, stream=None):
        """Launch a fully bound kernel and wait for it, for the shortest time until the host may use the result.

        Parameters
        ----------
        stream : stream or int, optional
            As for a call.

        Returns
        -------
        array
            The bound output.

        Raises
        ------
        TypeError
            Read and write are not both bound.
        ValueError
            The stream is being captured: its work is not done before the graph runs.
        fkl.CudaError
            The launch, or earlier work of the stream, has failed.
        """
        cdef uintptr_t handle = 0
        self._open()
        if self.bound is None:
            self._check_waiting()
            raise TypeError("k.run() needs a kernel whose read and write are bound; call k(x, out=y) and wait for its stream")
        self._bound_stream(stream, &handle)
        if is_capturing(<fkl_CUstream>handle, self.bound.device):
            raise ValueError("the stream is being captured, and what is captured cannot be waited for; call k(stream=s)")
        out = self._run_bound(stream, &handle)
        wait_for(self.bound.device, <fkl_CUstream>handle)
        return out

    # -- the rest -------------------------------------------------------------------------------------------------

    def compile(self, dtype, shape):
        """Compile for inputs of this type, so that the first call is as fast as the next.

        Parameters
        ----------
        dtype : dtype
            Scalar or pixel type of the input.
        shape : tuple of int
            The input's shape; checked against the chain's values, never compiled in.

        Raises
        ------
        TypeError, ValueError
            The chain does not take such an input.
        """
        self._open()
        if self.chain.generates:
            self.chain.compile(self.chain.read.dtype)
            return
        surface = self._tight(dtype, shape)
        variant = self.chain.variant(surface.dtype)
        variant.plan.out_extents(surface.extents)
        variant.plan.values(surface.extents)
        self.chain.compile(surface.dtype)

    def output_for(self, dtype, shape):
        """Shape and scalar type of the output for an input of this type, to allocate it beforehand. Compiles nothing.

        Parameters
        ----------
        dtype : dtype
            Scalar or pixel type of the input.
        shape : tuple of int
            The input's shape. Neither counts for a chain that starts with `ReadSet`.

        Returns
        -------
        (tuple of int, str)
            Such as ``((3, 224, 224), "float32")``.

        Raises
        ------
        TypeError, ValueError
            The chain does not take such an input.
        """
        self._open()
        plan, result = self._result_for(dtype, shape)
        return tuple(plan.write.shape(result, plan.out_dtype)), plan.out_dtype.base

    def _result_for(self, dtype, shape):
        """The plan for such an input, and the size of its output."""
        if self.chain.generates:
            read = self.chain.read
            variant, extents = self.chain.variant(read.dtype), Extents(read.width, read.height, 1, 2)
        else:
            surface = self._tight(dtype, shape)
            variant, extents = self.chain.variant(surface.dtype), surface.extents
        plan = variant.plan
        plan.values(extents)
        result = plan.out_extents(extents)
        size = result.planes * result.height * result.width * plan.out_dtype.pixelsize
        if size >= 2**63:
            raise ValueError(f"the output would take {size} bytes; an array has fewer than 2^63")
        return plan, result

    def _tight(self, dtype, shape):
        """The surface that a tight input of this type would be."""
        from fkl.layout import packed_surface, planar_surface, tight_strides
        from fkl.runtime.arguments import sizes_of

        parsed = parse_dtype(dtype)
        read = self.chain.read
        scalar = parsed.with_channels(1)
        sizes = sizes_of(shape)
        strides = tight_strides(sizes, scalar.itemsize)
        size = scalar.itemsize
        for n in sizes:
            size *= n
        if size >= 2**63:
            raise ValueError(f"an input of shape {sizes} would take {size} bytes; an array has fewer than 2^63")
        if read.layout == "yuv":
            return _blank_video(read, sizes, strides, scalar)
        if read.layout == "planar":
            return planar_surface(sizes, strides, scalar, read.channels)
        if parsed.channels > 1 and (len(sizes) < 3 or sizes[-1] != parsed.channels):
            sizes, strides = (*sizes, parsed.channels), tight_strides((*sizes, parsed.channels), scalar.itemsize)
        return packed_surface(sizes, strides, scalar, parsed.channels if parsed.channels > 1 else read.channels)

    def source_for(self, dtype, size=None):
        """The generated source for an input of this type.

        Parameters
        ----------
        dtype : dtype
            Pixel type of the input, such as "uint8x3".
        size : (width, height, planes), optional
            Checked against the chain's values; it never changes the text.

        Returns
        -------
        str
        """
        from fkl.runtime.arguments import sizes_of

        variant = self.chain.variant(parse_dtype(dtype))
        if size is not None:
            sizes = sizes_of(size, "size")
            if not 1 <= len(sizes) <= 3:
                raise ValueError(f"size is (width, height, planes), got {size!r}")
            width, height, planes = (list(sizes) + [1, 1])[:3]
            extents = Extents(width, height, planes, 3 if planes > 1 else 2)
            variant.plan.out_extents(extents)
            variant.plan.values(extents)
        return variant.source

    @property
    def ops(self):
        """The operations as they are now, after updates."""
        self._settle()
        return self.chained

    @property
    def signature(self):
        """Digest of everything that would cause a compile; None until the input's type is known."""
        if self.chain.source is not None:
            return self.chain.variant(self.chain.source.surface.dtype).signature
        if self.chain.generates:
            return self.chain.variant(self.chain.read.dtype).signature
        found = list(self.chain.variants.values())
        return found[-1].signature if found else None

    @property
    def is_bound(self):
        """Whether `k()` needs no argument: the read is bound, or generates its input."""
        return not self.closed and (self.chain.source is not None or self.chain.generates)

    def update(self, op, *args, **kwargs):
        """Give an operation new constructor arguments. It compiles nothing.

        Parameters
        ----------
        op : Operation or int
            The operation object (wherever it stands in the chain), or its index.
        *args, **kwargs
            As the constructor takes them; a read or a write takes the buffer to bind. A bound output that has another
            shape than the chain then writes makes `k()` a `ValueError` until an update of another operation, or of the
            write, mends that; update the write last.

        Raises
        ------
        TypeError, ValueError
            No such operation, arguments that do not fit, an output that cannot be written, or a change that would need
            another kernel; nothing has changed then.
        """
        if len(args) == 1 and not kwargs and self.bound is not None and self._write(op, args[0]):
            return
        self._open()
        self._settle()
        index = index_of(op)
        if index is not None:
            if not -len(self.chained) <= index < len(self.chained):
                raise ValueError(f"the chain has {len(self.chained)} operations, there is no index {index}")
            places = {index % len(self.chained)}
        else:
            places = {i for i, names in enumerate(zip(self.names, self.chained)) if op is names[0] or op is names[1]}
            if not places:
                raise ValueError(f"{op!r:.80} is no operation of this chain; name it by the object composed with, or by index")
        old = self.chained[min(places)]
        made = _anew(type(old), args, kwargs)
        ops = list(self.chained)
        for i in places:
            ops[i] = made
        chain = self.chain.replaced(check_chain(ops))
        kept = (self.bound, self.bound_out, self.origin, self.users, self.pending)
        current = self.chain
        try:
            self.chain = chain
            self.bound = None
            if self.target == "gpu":
                self._rebind(kept[0], len(ops) - 1 in places)
        except BaseException:
            self.chain = current
            self.bound, self.bound_out, self.origin, self.users, self.pending = kept
            raise
        self.chained = chain.ops
        self.unwritten = chain.dest is None
        self.last = self.patches = None

    cdef bint _write(self, object op, object value) except -1:
        """Write a number into the bound launch and do no more; False: it takes the long way."""
        cdef Patch patch
        if not isinstance(op, Operation):
            return False
        if self.patches is None:
            self.patches = find_patches(self.chain, self.names) if isinstance(self.chain, GpuChain) else {}
        found = self.patches.get(op)
        if found is None:
            return False
        patch = found
        if not patch.write(self.bound, value):
            return False
        if self.written is None:
            self.written = {}
        self.written[op] = value
        self.last = None
        return True

    cdef int _settle(self) except -1:
        """Tell the chain what `update` has written into the bound launch."""
        if self.written is None:
            return 0
        written, self.written = self.written, None
        ops = [type(op)(written[name]) if name in written else op for name, op in zip(self.names, self.chained)]
        self.chain = self.chain.replaced(check_chain(ops))
        self.chained = self.chain.ops
        return 0

    cdef int _check_waiting(self) except -1:
        """Raise what is wrong if all is bound, but the output has had another shape since an update."""
        chain = self.chain
        if chain.dest is not None and (chain.source is not None or chain.generates):
            chain.request(None, None)
        return 0

    def _rebind(self, replaced, written):
        """Bind after an update; unless it was the write's, an output of another shape than the chain now writes may wait for
        an update that mends it."""
        try:
            self._bind(replaced)
        except ShapeError:
            if written:
                raise
            self.bound = None

    def clone(self):
        """A kernel of the same chain and bindings with a launch of its own, to overlap on another stream."""
        self._open()
        return compose(*self.ops, **self.options)

    def close(self):
        """Drop bindings and launches. Further calls raise `ValueError`; closing twice is allowed."""
        self.closed = True
        self.bound = self.last = self.patches = None
        self.bound_out = self.origin = self.users = self.pending = None
        if self.chain is not None:
            self.chain.sources, self.chain.dest, self.chain.operands = [], None, {}

    cdef int _open(self) except -1:
        if self.closed:
            raise ValueError("this kernel is closed")
        return 0

    def __call__(self, x=None, out=None, stream=None):
        return self._run(x, out, stream)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __reduce__(self):
        if self.chain.source is not None or self.chain.dest is not None or self.chain.operands:
            raise TypeError(
                "a bound kernel holds device pointers and cannot be pickled; compose without binding, pickle that, and "
                "bind where it is used"
            )
        return _rebuild, (self.ops, self.options)

    def __repr__(self):
        state = "closed" if self.closed else "bound" if self.bound is not None else (
            "read bound" if self.chain.source is not None else "unbound")
        chain = " -> ".join(repr(op) for op in self.ops[:12])
        if len(self.chained) > 12:
            chain += f" -> ... ({len(self.chained)} operations)"
        return f"<fkl.FusedKernel {self.target}, {state}: {chain}>"


def _blank_video(read, sizes, strides, scalar):
    """The surface that a tight video array of this shape would be."""
    from types import SimpleNamespace

    from fkl.video import video_surface

    blank = SimpleNamespace(shape=sizes, strides=strides, itemsize=scalar.itemsize, dtype=scalar, ptr=0)
    return video_surface(read.name, read.video, [blank])


def _rebuild(ops, options):
    return compose(*ops, **options)


def _anew(cls, args, kwargs):
    """An operation with other arguments."""
    try:
        return cls(*args, **kwargs)
    except TypeError as error:
        # Python names the function that lacks an argument by the class that defines it.
        _, found, reason = str(error).partition("__init__() ")
        if not found:
            raise
        raise TypeError(f"{cls.__name__}: {reason}; update takes the arguments of its constructor") from None


def _producer_event(ArrayView view):
    """An event on the stream that fills a bound input, if its producer named one that may not be asked later."""
    if not view.a.has_stream or view.a.framework == FKL:
        return None
    from fkl.runtime.stream import Event

    event = Event(device=view.device)
    event.record(view.stream)
    return event


cdef ArrayView _leader(list views):
    """The array that names the stream: of a framework with a current stream, else one with a stream, else the first."""
    cdef ArrayView view
    for view in views:
        if view.a.exchange != NULL or view.a.framework == TORCH or view.a.framework == CUPY:
            return view
    for view in views:
        if view.a.framework == FKL and view.a.has_stream:
            return view
    return views[0]


cdef object _vectorcall(object callable, PyObject* const* args, size_t nargsf, PyObject* kwnames):
    """The call's entry: sorts x, out and stream out of the C argument vector, without building tuple or dictionary."""
    cdef FusedKernel self = <FusedKernel>callable
    cdef Py_ssize_t given = PyVectorcall_NARGS(nargsf)
    cdef Py_ssize_t named = 0 if kwnames == NULL else PyTuple_GET_SIZE(<object>kwnames)
    cdef Py_ssize_t i
    cdef PyObject* values[3]
    if given == 0 and named == 0:
        return self._run(None, None, None)
    if given > 3:
        raise TypeError(f"a kernel takes at most x, out and stream, got {given} arguments")
    values[0] = values[1] = values[2] = <PyObject*>None
    for i in range(given):
        values[i] = args[i]
    for i in range(named):
        slot = _slot_of(<object>PyTuple_GET_ITEM(<object>kwnames, i), given)
        values[slot] = args[given + i]
    return self._run(<object>values[0], <object>values[1], <object>values[2])


cdef str _STREAM = "stream"
cdef str _OUT = "out"
cdef str _X = "x"


cdef inline Py_ssize_t _slot_of(object name, Py_ssize_t given) except -1:
    cdef Py_ssize_t slot
    # Keyword names are interned, so identity nearly always decides.
    if name is _STREAM:
        slot = 2
    elif name is _OUT:
        slot = 1
    elif name is _X:
        slot = 0
    else:
        slot = 2 if name == "stream" else 1 if name == "out" else 0 if name == "x" else 3
        if slot == 3:
            raise TypeError(f"a kernel takes x, out and stream, got an unexpected argument {name!r}")
    if slot < given:
        raise TypeError(f"argument {name!r} was given twice")
    return slot


def _install_vectorcall():
    """Set the slot once, at import; if the type cannot take it, `__call__` serves as usual."""
    probe = FusedKernel.__new__(FusedKernel)
    cdef FusedKernel instance = probe
    fkl_set_vectorcall(FusedKernel, <char*>&instance.vectorcall - <char*><PyObject*>instance)


_install_vectorcall()


def compose(*ops, target="gpu", fast_math=False, thread_fusion=None):
    """Fuse a chain of operations into one kernel.

    Parameters
    ----------
    *ops : Operation
        A read, any operations, a write.
    target : {"gpu", "cpu"}
        Where it runs. The CPU target takes and gives NumPy arrays and binds no read or write.
    fast_math : bool
        Allow multiply-add contraction and approximate division; results may then differ in the last bits.
    thread_fusion : bool, optional
        None (the default) lets a thread move several pixels where that is possible, False never; results are the same.

    Returns
    -------
    FusedKernel
        ``k(x=None, out=None, stream=None)`` returns the array written. With the read bound, the chain is compiled
        here and ``k()`` needs no argument; else it compiles at the first call of each input type.

    Raises
    ------
    TypeError, ValueError
        Something that is no operation, a chain without a read or a write, a value its type cannot hold, an array that
        does not fit.
    """
    one_of(target, ("gpu", "cpu"), "target")
    for name, value in (("fast_math", fast_math), ("thread_fusion", thread_fusion)):
        if not isinstance(value, bool) and not (name == "thread_fusion" and value is None):
            raise TypeError(f"{name} is a bool, got {value!r}")
    chain = check_chain(ops)
    options = {"target": target, "fast_math": fast_math, "thread_fusion": thread_fusion}
    made = GpuChain(chain, fast_math, thread_fusion) if target == "gpu" else HostChain(chain, fast_math)
    return FusedKernel(made, options)
