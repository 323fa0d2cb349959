"""The binding contract on the driver test double: real data, real checks, no GPU. tests/gpu has it on a GPU."""

import pytest
from double import MORE, check, script


def test_bound():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14))
    k = chain(x, o); assert k.is_bound and len(compiled) == 1
    assert k() is o and same(o, want(a))
    b = image(); x.copy_from_host(b); assert k() is o and same(o, want(b))
    q = chain(x, fkl.empty((3, 9, 14)), 3.5); assert len(compiled) == 1 and same(q(), want(b, 3.5)) and same(k(), want(b))
    assert k.signature == q.signature and k.signature
    assert "bound" in repr(k) and "Mul(2.0)" in repr(k)
    """)


def test_partly_bound_and_unbound():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14))
    k = chain(x); r1, r2 = k(), k(); assert r1 is not r2 and r1.ptr != r2.ptr and same(r1, want(a)) and same(r2, want(a))
    w = chain(None, o); assert not w.is_bound and w(x) is o and same(o, want(a))
    u = chain(); z = fkl.empty((3, 9, 14)); assert u(x, out=z) is z and same(z, want(a)) and same(u(x), want(a))
    raises(TypeError, "bind", u); raises(TypeError, "bind", w)
    c = image(4, 5); assert same(u(dev(c)), want(c))
    f = image(dtype="float16"); assert same(u(dev(f)), want(f))
    n = len(compiled); u.compile("uint8x3", (9, 14, 3)); assert len(compiled) == n
    u.compile("int16x3", (9, 14)); assert len(compiled) == n + 1
    """)


def test_overrides():
    script("""
    a, b = image(), image(); x, y, o, z = dev(a), dev(b), fkl.empty((3, 9, 14)), fkl.empty((3, 9, 14))
    k = chain(x, o)
    assert k(y) is o and same(o, want(b)); assert k(out=z) is z and same(z, want(a)); assert k(y, out=z) is z and same(z, want(b))
    z.fill(-1.0); assert k() is o and same(o, want(a)) and same(z, -1)
    for _ in range(5):
        c = image(); zz = fkl.empty((3, 9, 14)); assert k(dev(c), out=zz) is zz and same(zz, want(c)); assert k(dev(c), zz) is zz
    n = len(compiled)
    raises(ValueError, "(9, 14, 3)&(9, 9, 3)", k, dev(image(9, 9)))
    raises(ValueError, "uint8&float32", k, dev(image(dtype="float32")))
    raises(ValueError, "CPU memory", k, a)
    raises(ValueError, "list", k, [x, x])
    raises(ValueError, "float32 of shape (3, 9, 14)&float16", k, out=fkl.empty((3, 9, 14), "float16"))
    raises(ValueError, "(3, 9, 14)&(3, 9, 13)", k, out=fkl.empty((3, 9, 13)))
    raises(TypeError, "unexpected&foo", k, foo=1); raises(TypeError, "at most", k, x, o, None, 1); raises(TypeError, "twice", k, x, x=x)
    assert len(compiled) == n and k() is o and same(o, want(a))
    """)


def test_refusals_at_compose():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14))
    raises(ValueError, "(3, 9, 14)", chain, x, fkl.empty((3, 9, 15)))
    raises(ValueError, "float32", chain, x, fkl.empty((3, 9, 14), "float64"))
    raises(TypeError, "list", fkl.TensorRead, [x, x]); raises(TypeError, "list", fkl.TensorWrite, [o])
    raises(ValueError, "cpu", chain, x, target="cpu"); raises(ValueError, "cpu", chain, None, o, target="cpu")
    raises(ValueError, "starts with a read", fkl.compose, fkl.Add(1), fkl.TensorWrite())
    raises(ValueError, "ends with a write", fkl.compose, fkl.TensorRead(), fkl.Add(1))
    raises(ValueError, "is empty", fkl.compose)
    raises(ValueError, "inside", fkl.compose, fkl.TensorRead(), fkl.TensorRead(), fkl.TensorWrite())
    raises(TypeError, "no operation", fkl.compose, fkl.TensorRead(), 3, fkl.TensorWrite())
    raises(TypeError, "write fkl.Sqr()", fkl.compose, fkl.TensorRead(), fkl.Sqr, fkl.TensorWrite())
    raises(ValueError, "target", fkl.compose, fkl.TensorRead(), fkl.TensorWrite(), target="tpu")
    raises(TypeError, "fast_math", fkl.compose, fkl.TensorRead(), fkl.TensorWrite(), fast_math=1)
    run = lambda *ops: fkl.compose(fkl.TensorRead(x), *ops, fkl.TensorWrite())
    raises(ValueError, "Add&uint8&0.5&Cast", run, fkl.Add(0.5)); raises(ValueError, "300&0 to 255", run, fkl.Mul(300))
    raises(ValueError, "-1", run, fkl.Sub(-1)); run(fkl.Add(255.0))
    raises(TypeError, "Sqrt&Cast", run, fkl.Sqrt()); raises(TypeError, "BwAnd&float32", run, fkl.Cast("float32"), fkl.BwAnd(1))
    raises(ValueError, "2 numbers&3 channels", run, fkl.Add((1, 2))); raises(ValueError, "zero", fkl.Div, 0)
    raises(ValueError, "exceed", fkl.Saturate, 6, 3); raises(ValueError, "outside", run, fkl.ShiftLeft(8))
    raises(ValueError, "range", run, fkl.Cast("float16"), fkl.Add(1e6)); raises(TypeError, "1 to 4", fkl.Cast, "uint8x5")
    raises(ValueError, "index 3", fkl.VectorReorder, 0, 1, 3)
    big = fkl.empty((20, 14, 3), "uint8")
    shift = lambda n: fkl.DeviceBuffer.from_ptr(big.ptr + n, (9, 14, 3), "uint8")
    raises(ValueError, "overlaps", lambda: fkl.compose(fkl.TensorRead(shift(0)), fkl.Add(1), fkl.TensorWrite(shift(3))))
    fkl.compose(fkl.TensorRead(shift(0)), fkl.Add(1), fkl.TensorWrite(shift(9 * 14 * 3)))()
    fkl.compose(fkl.TensorRead(shift(0)), fkl.Add(1), fkl.TensorWrite(shift(0)))()
    raises(ValueError, "overlaps", lambda: fkl.compose(fkl.TensorRead(shift(0)), fkl.Add(1), fkl.TensorSplit(
        fkl.DeviceBuffer.from_ptr(big.ptr, (3, 9, 14), "uint8"))))
    strided = fkl.DeviceBuffer.from_ptr(big.ptr, (3, 4, 3), "uint8", strides=(14, 3, 2))
    raises(ValueError, "contiguous&TensorPack", fkl.compose, fkl.TensorRead(strided), fkl.TensorWrite())
    raises(ValueError, "overlap", fkl.compose, fkl.TensorRead(fkl.DeviceBuffer.from_ptr(big.ptr, (3, 4, 3), "uint8", strides=(2, 3, 1))), fkl.TensorWrite())
    """)


def test_source_is_the_same_bound_or_not():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14))
    pitched = fkl.DeviceBuffer.from_ptr(D.double_alloc(1 << 12, 0, 0), (5, 6, 3), "uint8", pitch=64)
    texts = {k.source_for("uint8x3", (14, 9, 1)) for k in (chain(), chain(x), chain(x, o), chain(None, o), chain(x, o, 77.25), chain(pitched))}
    assert len(texts) == 1
    text = texts.pop(); assert "77" not in text and str(x.ptr) not in text and hex(x.ptr)[2:] not in text and "64" not in text.replace("i64", "")
    raises(ValueError, "negative", chain().source_for, "uint8x3", (-1, 4))
    """)


def test_layouts_planes_and_lists():
    script("""
    p = np.stack([image(), image(), image()]); want3 = p.astype(np.float32).transpose(0, 3, 1, 2)
    C = fkl.Cast("float32"); run = lambda w, v=p: fkl.compose(fkl.TensorRead(), C, w)(v if isinstance(v, list) else dev(v))
    assert same(run(fkl.TensorSplit()), want3) and same(run(fkl.TensorTSplit()), want3.transpose(1, 0, 2, 3)) and same(run(fkl.SplitWrite()), want3)
    assert same(run(fkl.TensorSplit(), [dev(a) for a in p]), want3)
    many = [image(2, 3) for _ in range(400)]
    assert same(run(fkl.TensorWrite(), [dev(a) for a in many]), np.stack(many).astype(np.float32))
    assert same(fkl.compose(fkl.TensorPack(3), fkl.TensorWrite())(dev(want3)), p.astype(np.float32))
    assert same(fkl.compose(fkl.TensorPack(3, dev(want3.reshape(9, 9, 14))), fkl.TensorWrite())(), p.astype(np.float32))
    merged = fkl.empty((9, 9, 14)); fkl.compose(fkl.TensorRead(dev(p)), C, fkl.TensorSplit(merged))(); assert same(merged, want3.reshape(9, 9, 14))
    parts = [fkl.empty((9, 14)) for _ in range(3)]; k = fkl.compose(fkl.TensorRead(dev(p[0])), C, fkl.SplitWrite(parts))
    assert all(u is v for u, v in zip(k(), parts)) and all(same(parts[c], want3[0, c]) for c in range(3))
    raises(ValueError, "share memory", fkl.compose, fkl.TensorRead(dev(p[0])), C, fkl.SplitWrite([parts[0], parts[0], parts[1]]))
    raises(ValueError, "one buffer per channel", fkl.compose, fkl.TensorRead(dev(p[0])), C, fkl.SplitWrite(parts[:2]))
    raises(ValueError, "no images", lambda: run(fkl.TensorWrite(), [])); raises(ValueError, "image 1", lambda: run(fkl.TensorWrite(), [dev(image()), dev(image(3, 3))]))
    assert same(fkl.compose(fkl.ReadSet((1, 2, 3), 5, 4, "uint8"), fkl.Add(1), fkl.TensorWrite())(), np.broadcast_to(np.array([2, 3, 4], np.uint8), (4, 5, 3)))
    for shape in ((0,), (0, 8), (5, 0), (0, 4, 3), (2, 0, 3)):
        n = D.double_launches(); r = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())(fkl.empty(shape)); assert r.shape == shape and D.double_launches() == n
    five = {"shape": (1,) * 5, "typestr": "|u1", "data": (parts[0].ptr, False), "version": 3}
    raises(ValueError, "at most 4", run, fkl.TensorWrite(), [type("X", (), {"__cuda_array_interface__": five})()])
    """)


def test_pickle_clone_close_threads():
    script("""
    import copy, pickle
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14))
    u = pickle.loads(pickle.dumps(chain())); assert same(u(x), want(a)) and same(copy.copy(u)(x), want(a))
    raises(TypeError, "pickled", pickle.dumps, chain(x)); raises(TypeError, "pickled", pickle.dumps, chain(None, o))
    k = chain(x, o); c = k.clone(); k.close(); k.close(); raises(ValueError, "closed", k); raises(ValueError, "closed", k, x)
    raises(ValueError, "closed", k.clone); assert "closed" in repr(k) and not k.is_bound and same(c(), want(a))
    with chain(x, o) as k: assert same(k(), want(a))
    o2 = fkl.empty((3, 9, 14)); k = chain(x, o2); o2.close(); raises(ValueError, "closed", k)
    bad = []
    k = chain()
    def work(n):
        for i in range(40):
            b = np.full((3 + n, 5, 3), i, np.uint8)
            if not same(k(dev(b), out=fkl.empty((3, 3 + n, 5))), want(b)): bad.append((n, i))
    ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]; [t.start() for t in ts]; [t.join() for t in ts]; assert not bad
    """)


def test_modules_are_bounded_and_shared():
    script("""
    from fkl.variant import loaded_modules
    x, o = fkl.asarray(np.ones((3, 5), np.float32)), fkl.empty((3, 5))
    for i in range(20): fkl.compose(fkl.TensorRead(x), fkl.Mul(float(i)), fkl.TensorWrite(o))()
    assert loaded_modules() == 1 and calls("LibraryLoadData") == 1
    os.environ["FKL_MODULE_CACHE"] = "3"
    for i in range(8): fkl.compose(fkl.TensorRead(x), *[fkl.Add(1.0)] * (i + 2), fkl.TensorWrite(o))()
    gc.collect(); assert loaded_modules() == 3 and calls("LibraryUnload") == 6, (loaded_modules(), calls("LibraryUnload"))
    assert "bad" not in log() and "unloaded" not in log()
    """)


def test_cold_call_inside_a_capture_is_harmless():
    script("""
    s = fkl.Stream(blocking=True); x, o = fkl.asarray(np.ones((3, 5), np.float32)), fkl.empty((3, 5))
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(3.0), fkl.TensorWrite())
    D.double_capture(s.handle, 1); r = k(x, stream=s); images = k([x] * 300, stream=s); assert not D.double_spoiled()
    D.double_capture(s.handle, 0); assert same(r, 3) and images.shape == (300, 3, 5)
    """)


def test_unloading_waits_for_the_end_of_a_capture():
    script("""
    os.environ["FKL_MODULE_CACHE"] = "2"
    s = fkl.Stream(blocking=True); x, o = fkl.asarray(np.ones((3, 5), np.float32)), fkl.empty((3, 5))
    kernels = [fkl.compose(fkl.TensorRead(x), *[fkl.Add(1.0)] * n, fkl.TensorWrite(o)) for n in range(1, 7)]
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(3.0), fkl.TensorWrite())
    D.double_capture(s.handle, 1)
    del kernels; gc.collect(); k(x, stream=s)
    assert not D.double_spoiled() and calls("LibraryUnload") == 0
    D.double_capture(s.handle, 0)
    k(fkl.asarray(np.ones((4, 5), np.float32))); assert calls("LibraryUnload") >= 4, log()
    """)


def test_bound_launches_go_through_a_graph():
    script("""
    from fkl.runtime.launch import graph_count
    a, b = image(), image(); x, o = dev(a), fkl.empty((3, 9, 14)); mul = fkl.Mul(2.0)
    k = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), mul, fkl.TensorSplit(o))
    assert graph_count() == 1 and calls("GraphInstantiate") == calls("GraphUpload") == 1
    k(); k(); assert calls("GraphLaunch") == 2 and calls("GraphSetParams") == 0 and same(o, want(a))
    k.update(mul, 3.0); k(); assert calls("GraphInstantiate") == 1 and calls("GraphSetParams") == 1 and same(o, want(a, 3.0))
    u = chain(); zs = [fkl.empty((3, 9, 14)) for _ in range(4)]
    for z in zs: u(x, out=z)
    assert calls("GraphInstantiate") == 2 and all(same(z, want(a)) for z in zs)
    s = fkl.Stream(); D.double_capture(s.handle, 1); n = calls("GraphLaunch"); k(stream=s); u(x, out=zs[0], stream=s)
    assert calls("GraphLaunch") == n and not D.double_spoiled(); D.double_capture(s.handle, 0)
    D.double_capture(s.handle, 1); q = chain(dev(b), fkl.empty((3, 9, 14))); q(stream=s); assert not D.double_spoiled(); D.double_capture(s.handle, 0)
    del k, u, q; gc.collect(); assert graph_count() <= 1
    """)


def test_calls_allocate_nothing_and_run_no_python():
    script("""
    x, o = dev(image()), fkl.empty((3, 9, 14)); k, u, s, mul = chain(x, o), chain(), fkl.Stream(), fkl.Mul(2.0)
    y, z = dev(image()), fkl.empty((3, 9, 14)); D.double_idle(1)
    def bound():
        for _ in range(1000): k()
    def streamed():
        for _ in range(1000): k(stream=s)
    def unbound():
        for _ in range(500): u(x, out=z); u(y, out=z)
    entered = []
    def watch(frame, event, arg):
        if event == "call" and frame.f_code.co_filename != "<string>": entered.append(frame.f_code)
    for run in (bound, streamed, unbound):
        run(); run(); before = sys.getallocatedblocks(); run(); assert abs(sys.getallocatedblocks() - before) < 20, run
        sys.setprofile(watch); run(); sys.setprofile(None); assert not entered, (run, entered[:3])
    """)


def test_launches_without_graphs():
    check(MORE + """
x, o = dev(image()), fkl.empty((3, 9, 14))
k = chain(x, o); k(); assert calls("GraphInstantiate") == calls("GraphLaunch") == 0 and calls("LaunchKernel") == 1
""", FKL_LAUNCH="kernel")
    check(MORE + """
raises(ValueError, "FKL_LAUNCH", chain, dev(image()), fkl.empty((3, 9, 14)))
""", FKL_LAUNCH="fast")
    check(MORE + """
a = image(); x, o = dev(a), fkl.empty((3, 9, 14))
k = chain(x, o); k(); assert calls("GraphLaunch") == 0 and same(o, want(a))
""", FKL_DOUBLE_WITHHOLD="cuGraphLaunch")


def test_update_of_a_bound_read():
    script("""
    a, b = image(), image(); o = fkl.empty((3, 9, 14)); k = chain(dev(a), o); n = len(compiled)
    k.update(0, dev(b)); assert k() is o and same(o, want(b)) and len(compiled) == n
    raises(ValueError, "uint8x3&float32x3&compose anew", k.update, 0, dev(image(dtype="float32")))
    raises(ValueError, "CPU memory", k.update, 0, a)
    assert k() is o and same(o, want(b)) and len(compiled) == n
    z = fkl.empty((3, 9, 14)); k.update(-1, z); assert k() is z and same(z, want(b))
    k.update(0, dev(image(5, 6))); raises(ValueError, "(3, 5, 6)&(3, 9, 14)", k); small = fkl.empty((3, 5, 6)); assert k(out=small) is small
    raises(ValueError, "(3, 5, 6)&(3, 9, 14)", k.run); raises(ValueError, "(3, 5, 6)&(3, 9, 14)", fkl.sequence, k)
    raises(ValueError, "(3, 5, 6)&(3, 9, 14)", k.update, -1, fkl.empty((3, 9, 14))); k.update(-1, small); assert k() is small and k.run() is small
    """)


def test_update_of_a_bound_write_that_cannot_be():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14)); k = chain(x, o); s = fkl.sequence(k); n = len(compiled)
    wide, memory = fkl.empty((3, 9, 14), "float64"), fkl.empty((3, 9, 14))
    loose = fkl.DeviceBuffer.from_ptr(memory.ptr, (3, 9, 14), "float32", strides=(504, 4, 36), owner=memory)
    for bad, what in ((wide, "must be float32&float64"), (fkl.empty((3, 9, 13)), "(3, 9, 14)&(3, 9, 13)"), (loose, "make it contiguous"), (a, "CPU memory")):
        raises(ValueError, what, k.update, -1, bad)
        assert k() is o and k.run() is o and s() is o and same(o, want(a)) and len(compiled) == n
    memory = fkl.empty((10, 14, 3), "uint8"); y, over = (fkl.DeviceBuffer.from_ptr(memory.ptr + i, (9, 14, 3), "uint8", owner=memory) for i in (0, 42))
    c = fkl.compose(fkl.TensorRead(y), fkl.VectorReorder(2, 1, 0), fkl.TensorWrite(y)); assert c() is y
    raises(ValueError, "overlaps", c.update, -1, over); assert c() is y
    """)


def test_what_was_only_looked_at_or_refused_binds_no_update():
    script("""
    a = image(); x = dev(a)
    k = fkl.compose(fkl.TensorRead(), fkl.Max(3), fkl.TensorWrite()); m = k.ops[1]
    k.source_for("uint8x3"); k.output_for("int16", (4, 5)); raises(ValueError, "must have shape", k, dev(a.astype("float32")), out=fkl.empty((1, 2)))
    k.update(m, 2.5); f = dev(a.astype("float32")); assert same(k(f), np.maximum(a.astype("float32"), 2.5))
    raises(TypeError, "Max", k.update, m, "a"); k.update(m, 4); assert same(k(f), np.maximum(a.astype("float32"), 4))
    k(x); k.compile("int8", (3, 4)); raises(ValueError, "2.5", k.update, m, 2.5); raises(ValueError, "200", k.update, m, 200)
    raises(TypeError, "Max: missing 1 required", k.update, m)
    """)


def test_update_of_the_write_of_an_unbound_kernel():
    script("""
    a, b = image(), image(); k = chain(); assert k(dev(a)) is not k(dev(a))
    o = fkl.empty((3, 9, 14)); k.update(-1, o)
    for _ in range(3): assert k(dev(b)) is o
    assert same(o, want(b)); k.update(-1); assert k(dev(a)) is not o and k(dev(a)) is not o and same(o, want(b))
    """)


@pytest.mark.parametrize("signature", ["intptr_t (int)", "intptr_t (int, int)"])
def test_the_current_stream_of_cupy(signature):
    """By the C function of cupy's own modules if it has the signature that is known, else by the public one."""
    check(MORE + f"SIGNATURE = {signature!r}" + """
import types
s = fkl.Stream()
cupy = types.ModuleType("cupy"); cupy.cuda = types.SimpleNamespace(); asked = []
class ndarray:
    dtype, shape, strides, data = np.dtype("f4"), (3, 5), (20, 4), None
    def __init__(self): self.keep = fkl.empty((3, 5)); self.data = types.SimpleNamespace(ptr=self.keep.ptr, device_id=0)
ndarray.__module__ = "cupy"; sys.modules["cupy"] = cupy
def public(device=None): asked.append("public"); return types.SimpleNamespace(ptr=s.handle)
cupy.cuda.get_current_stream = public
back = types.ModuleType("cupy_backends.cuda.stream"); sys.modules["cupy_backends.cuda.stream"] = back
signature, capsule = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int), ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
def by_pointer(device): asked.append(("pointer", device)); return s.handle
function, name = signature(by_pointer), ctypes.create_string_buffer(SIGNATURE.encode())
back.__pyx_capi__ = {"get_stream_ptr": capsule(ctypes.cast(function, ctypes.c_void_p), ctypes.cast(name, ctypes.c_char_p), None)}
x, y = ndarray(), ndarray()
k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(y)); D.double_clear_log(); asked.clear(); k()
assert f"on 0x{s.handle:x}," in log(), log()
assert asked == [("pointer", 0) if SIGNATURE == "intptr_t (int)" else "public"], asked
""")


def test_producers_of_operands_and_of_divergent_images_are_waited_for():
    script("""
    s = fkl.Stream(); a, b = dev(image()), dev(image())
    def produced(buffer):
        interface = {**buffer.__cuda_array_interface__, "stream": s.handle}
        return type("P", (), {"__cuda_array_interface__": interface, "keep": buffer})()
    k = fkl.compose(fkl.TensorRead(), fkl.Sub(fkl.TensorRead(produced(b))), fkl.TensorWrite())
    D.double_clear_log(); kept = [k(a)]; assert calls("StreamWaitEvent") == 1 and log().index("StreamWaitEvent") < log().index("LaunchKernel")
    D.double_clear_log(); kept.append(k(a)); assert calls("StreamWaitEvent") == 0
    one = [fkl.TensorRead(), fkl.Cast("float32"), fkl.TensorWrite()]
    d = fkl.compose_divergent([1, 1], one)
    D.double_clear_log(); kept.append(d([produced(a), b])); assert calls("StreamWaitEvent") == 1 and calls("CtxSynchronize") == 0
    assert log().index("StreamWaitEvent") < log().index("LaunchKernel")
    c = fkl.Stream(); k = chain(produced(a), fkl.empty((3, 9, 14)))
    D.double_capture(c.handle, 1); k(stream=c); assert not D.double_spoiled(); D.double_capture(c.handle, 0)
    """)


def test_blocks_too_large_for_a_launch():
    script("""
    n = 1100; x = fkl.asarray(np.ones((3, 5, 4))); o = fkl.empty((3, 5, 4), "float64"); last = fkl.Mul((1.0, 2.0, 3.0, 4.0))
    k = fkl.compose(fkl.TensorRead(x), *[fkl.Add((1.0, 2.0, 3.0, 4.0))] * n, last, fkl.TensorWrite(o))
    row = (1.0 + n * np.arange(1.0, 5.0)) * np.arange(1.0, 5.0)
    allocated = calls("MemAllocAsync"); k(); assert calls("MemAllocAsync") == allocated + 1 and calls("GraphLaunch") == 0
    assert same(o, row); z = fkl.empty((3, 5, 4), "float64"); assert k(out=z) is z and same(z, row)
    k.update(last, (0.0, 0.0, 0.0, 1.0)); k(); assert same(o, row * (0, 0, 0, 0.25))
    s = fkl.Stream(); D.double_capture(s.handle, 1); k(out=z, stream=s); D.double_capture(s.handle, 0)
    assert not D.double_spoiled() and same(z, row * (0, 0, 0, 0.25))
    D.double_fault(b"MemcpyHtoDAsync", 1, 2); free = calls("MemFreeAsync")
    raises(fkl.CudaError, "cuMemcpyHtoDAsync", k); assert calls("MemFreeAsync") == free + 1
    k(); assert same(o, row * (0, 0, 0, 0.25))
    k = fkl.compose(fkl.TensorRead(), *[fkl.Add((1.0, 2.0, 3.0, 4.0))] * n, fkl.TensorWrite())  # records of planes in it, and behind it
    for count in (3, 300):
        got = k([fkl.asarray(np.full((3, 5, 4), float(i))) for i in range(count)]).to_numpy()
        assert (got == np.arange(float(count)).reshape(-1, 1, 1, 1) + n * np.arange(1.0, 5.0)).all()
    """)
