"""`DeviceBuffer` against the driver test double."""

import os
from pathlib import Path

import pytest
from double import check

os.environ["FKL_TESTS"] = str(Path(__file__).parents[1])
MORE = """
sys.path.insert(0, os.environ["FKL_TESTS"])
from capsules import Producer, name_of, take
def raises(kind, words, f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except kind as e:
        assert type(e) is kind, (type(e), e)
        for word in words.split("&"):
            assert word in str(e), (word, str(e))
    else:
        raise SystemExit(f"no {kind.__name__} ({words})")
from_ptr = fkl.DeviceBuffer.from_ptr
P = D.double_alloc(1 << 16, 0, 0)
"""


def script(text: str, **environment: str) -> None:
    import textwrap

    check(MORE + textwrap.dedent(text), **environment)


def test_constructors_shapes_and_attributes():
    script("""
    for b, shape, dtype, folded in [
        (fkl.DeviceBuffer(64), (64,), "float32", (64, 1, 1, 1)),
        (fkl.DeviceBuffer(64, 48, "uint8", 3), (48, 64, 3), "uint8", (64, 48, 1, 3)),
        (fkl.DeviceBuffer(64, 48, "uint8x3", planes=2), (2, 48, 64, 3), "uint8", (64, 48, 2, 3)),
        (fkl.DeviceBuffer(3, 480), (480, 3), "float32", (3, 480, 1, 1)),
        (fkl.empty((5, 6), "int64"), (5, 6), "int64", (6, 5, 1, 1)),
        (fkl.empty((5, 6), "bfloat16x2"), (5, 6, 2), "bfloat16", (6, 5, 1, 2)),
        (fkl.empty(7), (7,), "float32", (7, 1, 1, 1)),
    ]:
        assert b.shape == shape and b.dtype == dtype and b.owns and not b.readonly and b.stream is None, b
        assert (b.width, b.height, b.planes, b.channels) == folded, b
        assert b.ptr % 256 == 0 and type(b.ptr) is int and b.device == 0
        assert b.nbytes == int(np.prod(shape)) * b.dtype.itemsize
    e = fkl.empty((0, 8))
    assert e.ptr == 0 and e.nbytes == 0 and e.copy_to_host() == b"" and e.__cuda_array_interface__["data"][0] == 0
    raises(ValueError, "negative", fkl.empty, (-1, 3))
    raises(ValueError, "addressed", fkl.empty, (2**40, 2**40))
    raises(ValueError, "addressed", fkl.DeviceBuffer, 2**63)
    raises(TypeError, "unknown dtype", fkl.empty, (3,), "float3")
    raises(TypeError, "fp8", fkl.empty, (3,), "float8_e4m3fn")
    raises(TypeError, "1 to 4 channels", fkl.empty, (3,), "uint8x5")
    raises(TypeError, "contradict", fkl.DeviceBuffer, 3, 3, "uint8x3", 2)
    raises(TypeError, "integer", fkl.DeviceBuffer, 3.5)
    raises(ValueError, "1 to 4 dimensions", fkl.empty, ())
    """)


def test_copies_and_fill():
    script("""
    x = np.arange(60, dtype=np.int16).reshape(4, 5, 3)
    b = fkl.empty(x.shape, "int16")
    b.copy_from_host(x); assert (b.to_numpy() == x).all() and b.copy_to_host() == x.tobytes()
    b.copy_from_host((x + 1).tobytes()); assert (b.to_numpy() == x + 1).all()
    s = fkl.Stream()
    b.copy_from_host(x, stream=s); assert b.copy_to_host(stream=s) == x.tobytes()
    raises(ValueError, "bytes", b.copy_from_host, x[:2])
    raises(TypeError, "int16&float32", b.copy_from_host, x.astype(np.float32))
    raises(ValueError, "contiguous", b.copy_from_host, np.zeros((4, 5, 6), np.int16)[..., ::2])
    for dtype, value in (("uint8", 7), ("int16", -3), ("float32", 1.5), ("float64", 0.1), ("int64", 2**40), ("bool", True), ("float16", 2.5)):
        c = fkl.empty((5, 7), dtype); c.fill(value); assert (c.to_numpy() == np.array(value, dtype)).all(), dtype
    raises(ValueError, "holds", fkl.empty((3,), "uint8").fill, 300)
    raises(ValueError, "holds", fkl.empty((3,), "uint8").fill, 0.5)
    raises(TypeError, "number", fkl.empty((3,), "uint8").fill, "x")
    pitched = from_ptr(P, (2, 3, 5), "float64", pitch=64); pitched.fill(0.25)
    assert (pitched.to_numpy() == 0.25).all()
    v = np.random.default_rng(0).normal(size=(2, 3, 5)); pitched.copy_from_host(v); assert (pitched.to_numpy() == v).all()
    raises(ValueError, "read-only", from_ptr(P, (4,), "float32", readonly=True).fill, 1)
    import copy, pickle
    d = copy.deepcopy(pitched); pitched.fill(1); assert (d.to_numpy() == v).all() and d.owns and d.ptr != P
    raises(TypeError, "IPC", pickle.dumps, b)
    raises(TypeError, "deepcopy", copy.copy, b)
    b.close(); b.close()
    raises(ValueError, "closed", b.copy_to_host)
    raises(ValueError, "closed", lambda: fkl.compose(fkl.TensorRead(b), fkl.TensorWrite()))
    with fkl.empty((4,)) as c: pass
    raises(ValueError, "closed", lambda: c.ptr)
    """)


def test_bfloat16():
    script("""
    import ml_dtypes
    x = np.array([1.0, -2.5, 3e38, 0.1, np.nan], ml_dtypes.bfloat16)
    b = fkl.asarray(x)
    assert b.dtype == "bfloat16" and b.to_numpy().dtype == x.dtype and b.copy_to_host() == x.tobytes()
    b.copy_from_host(x); b.copy_from_host(x.view(np.uint16)); assert b.copy_to_host() == x.tobytes()
    assert not hasattr(b, "__cuda_array_interface__")
    b.fill(1.00390625); assert b.copy_to_host() == np.full(5, 1.00390625, ml_dtypes.bfloat16).tobytes()
    t, done = take(b.__dlpack__()); assert (t.tensor.code, t.tensor.bits, t.tensor.lanes) == (4, 16, 1); done()
    """)


def test_from_ptr_checks():
    script("""
    b = from_ptr(P, (4, 5, 3), "uint8")
    assert not b.owns and b.ptr == P and b.device == 0 and b.strides == (15, 3, 1)
    c = from_ptr(P, (4, 5), "uint8x3"); assert c.shape == (4, 5, 3) and c.channels == 3
    raises(ValueError, "non-null", from_ptr, None, (4,), "float32")
    raises(ValueError, "non-null", from_ptr, 0, (4,), "float32")
    assert from_ptr(0, (0, 4), "float32").nbytes == 0
    raises(TypeError, "ambiguous&(4, 5, 3)&uint8&(4, 5)&uint8x3", from_ptr, P, (4, 5, 3), "uint8x3")
    raises(TypeError, "address as an integer", from_ptr, b, (4,), "float32")
    raises(TypeError, "address as an integer", from_ptr, True, (4,), "float32")
    raises(ValueError, "negative", from_ptr, P, (4, -1), "float32")
    raises(TypeError, "unknown dtype", from_ptr, P, (4,), "f32")
    raises(ValueError, "aligned", from_ptr, P + 2, (4,), "float32")
    raises(ValueError, "aligned", from_ptr, P + 1, (4,), "float16")
    assert from_ptr(P + 1, (4,), "uint8").ptr == P + 1
    raises(ValueError, "at least", from_ptr, P, (4, 5, 3), "uint8", pitch=14)
    raises(ValueError, "multiple", from_ptr, P, (4, 5), "float32", pitch=22)
    raises(ValueError, "leave it out", from_ptr, P, (4,), "float32", pitch=64)
    assert from_ptr(P, (2, 4, 5, 3), "uint8", pitch=32).strides == (128, 32, 3, 1)
    assert from_ptr(P, (4, 5), "float32", strides=(64, 4)).strides == (64, 4)
    raises(TypeError, "not both", from_ptr, P, (4, 5), "float32", strides=(64, 4), pitch=64)
    raises(ValueError, "2 dimensions", from_ptr, P, (4, 5), "float32", strides=(64,))
    raises(ValueError, "negative", from_ptr, P, (4, 5), "float32", strides=(-64, 4))
    raises(ValueError, "cuda:0 to cuda:1", from_ptr, P, (4,), "float32", device=5)
    raises(ValueError, "cuda:0&cuda:1", from_ptr, P, (4,), "float32", device=1)
    host = np.zeros(4, np.float32)
    raises(ValueError, "pageable host memory&fkl.asarray", from_ptr, host.ctypes.data, (4,), "float32")
    raises(ValueError, "pageable host memory&cuda:1", from_ptr, host.ctypes.data, (4,), "float32", device=1)
    assert from_ptr(host.ctypes.data, (4,), "float32", check=False).device == 0
    other = D.double_alloc(64, 1, 0); assert from_ptr(other, (4,), "float32").device == 1
    pinned = D.double_alloc(64, 0, 1); assert from_ptr(pinned, (4,), "float32").device == 0
    raises(TypeError, "a stream is", from_ptr, P, (4,), "float32", stream="s")
    raises(ValueError, "negative", from_ptr, P, (4,), "float32", stream=-4)
    """)


def test_array_interface():
    script("""
    cai = lambda b: b.__cuda_array_interface__
    b = from_ptr(P, (4, 5), "float32")
    assert cai(b) == {"shape": (4, 5), "typestr": "<f4", "data": (P, False), "strides": None, "version": 3}
    assert cai(from_ptr(P, (4, 5), "float32", stream=0))["stream"] == 1
    s = fkl.Stream()
    assert cai(from_ptr(P, (4, 5), "float32", stream=s))["stream"] == s.handle
    assert cai(from_ptr(P, (4, 5), "float32", stream=2))["stream"] == 2
    assert cai(from_ptr(P, (4, 5), "uint8", pitch=8, readonly=True))["strides"] == (8, 1)
    assert cai(from_ptr(P, (4, 5), "uint8", readonly=True))["data"] == (P, True)

    class A:
        def __init__(self, **kw):
            self.__cuda_array_interface__ = {"shape": (4, 5), "typestr": "<f4", "data": (P, False), "strides": None, "version": 3, **kw}
    run = lambda a, **kw: fkl.compose(fkl.TensorRead(a), fkl.Add(1.0), fkl.TensorWrite(), **kw)
    b.fill(2.0)
    for kw in ({}, {"stream": None}, {"stream": 1}, {"stream": 2}, {"stream": s.handle}, {"mask": None}, {"descr": []}, {"version": 2}):
        assert (run(A(**kw))().to_numpy() == 3).all(), kw
    D.double_clear_log(); kept = [run(A(stream=s.handle))()]; assert calls("StreamWaitEvent") == 1 and calls("CtxSynchronize") == 0
    D.double_clear_log(); kept += [run(A())(), run(A(stream=None))()]; assert calls("StreamWaitEvent") == 0
    raises(ValueError, "forbids", run, A(stream=0))
    raises(ValueError, "forbids", run, A(stream=-3))
    raises(TypeError, "integer or None", run, A(stream="x"))
    raises(TypeError, "mask", run, A(mask=b))
    raises(TypeError, "byte order", run, A(typestr=">f4"))
    raises(TypeError, "typestr", run, A(typestr="|V8"))
    raises(TypeError, "typestr", run, A(typestr="<c8"))
    raises(ValueError, "null pointer", run, A(data=(0, False)))
    raises(ValueError, "aligned", run, A(data=(P + 2, False)))
    raises(ValueError, "not memory that CUDA knows", run, A(data=(4096, False)))
    raises(ValueError, "aligned&(22, 4)", run, A(strides=(22, 4)))
    for kw in ({"shape": (2**70, 5)}, {"strides": (2**70, 4)}, {"data": (-4, False)}, {"data": (2**64, False)}):
        raises(ValueError, next(iter(kw)).replace("data", "pointer") + "&64 bits", run, A(**kw))
    raises(ValueError, "2^63", run, A(shape=(2**40, 2**40))); raises(ValueError, "forbids", run, A(stream=2**64))
    for kw in ({"shape": (4.0, 5)}, {"shape": "ab"}, {"shape": 4}, {"strides": (20, None)}, {"strides": (20.0, 4)}, {"data": ("x", False)}, {"data": (4.0, False)}):
        raises(TypeError, next(iter(kw)).replace("data", "pointer"), run, A(**kw))
    assert (run(A(shape=(np.int64(4), np.int32(5)), strides=[20, 4], data=(np.uint64(P), False)))().to_numpy() == 3).all()
    raises(TypeError, "lacks", run, type("B", (), {"__cuda_array_interface__": {"shape": (3,)}})())
    raises(ValueError, "read-only", lambda: fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite(A(data=(P, True)))))
    assert (run(A(data=(P, True)))().to_numpy() == 3).all()
    for shape, ptr in (((0,), 0), ((0, 8), 0), ((3, 0, 5), 4096)):
        n = D.double_launches()
        assert run(A(shape=shape, data=(ptr, False)))().shape == shape and D.double_launches() == n
    """)


def test_dlpack_out():
    script("""
    b = fkl.asarray(np.arange(20, dtype=np.float32).reshape(4, 5))
    assert b.__dlpack_device__() == (2, 0)
    names = [name_of(b.__dlpack__()), name_of(b.__dlpack__(max_version=(1, 0))), name_of(b.__dlpack__(max_version=(0, 8))),
             name_of(b.__dlpack__(max_version=(9, 9)))]
    assert names == ["dltensor", "dltensor_versioned", "dltensor", "dltensor_versioned"], names
    t, done = take(b.__dlpack__(max_version=(1, 3)))
    assert t.major == 1 and t.flags == 0 and t.tensor.data == b.ptr and list(t.tensor.shape[:2]) == [4, 5]
    assert list(t.tensor.strides[:2]) == [5, 1] and t.tensor.byte_offset == 0
    # Two exports share one memory, freed once, after the last.
    u, undo = take(b.__dlpack__())
    live = D.double_live_blocks(); del b; gc.collect(); done(); gc.collect()
    assert D.double_live_blocks() == live
    t2 = threading.Thread(target=undo); t2.start(); t2.join(); gc.collect()
    assert D.double_live_blocks() == live - 1 and calls("MemFree") == 1
    # Never consumed.
    for kind in (None, (1, 0)):
        live = D.double_live_blocks()
        for _ in range(50):
            c = fkl.empty((100,)); x = c.__dlpack__(max_version=kind); del c, x
        assert D.double_live_blocks() == live
    # Borrowed memory is never freed.
    c = from_ptr(P, (8,), "float32", owner=(token := [1])); x = c.__dlpack__(); y, done = take(c.__dlpack__())
    import weakref
    frees = calls("MemFree"); del c, x; done(); gc.collect(); assert calls("MemFree") == frees
    r = from_ptr(P, (8,), "float32", readonly=True)
    raises(BufferError, "read-only", r.__dlpack__)
    t, done = take(r.__dlpack__(max_version=(1, 0))); assert t.flags == 1; done()
    b = fkl.asarray(np.arange(20, dtype=np.float32).reshape(4, 5))
    raises(BufferError, "copy=False", lambda: b.__dlpack__(copy=False, dl_device=(1, 0)))
    raises(BufferError, "cuda:0", lambda: b.__dlpack__(dl_device=(2, 5)))
    t, done = take(b.__dlpack__(copy=True, max_version=(1, 0))); assert t.flags == 2 and t.tensor.data != b.ptr; done()
    t, done = take(b.__dlpack__(dl_device=(1, 0), max_version=(1, 0))); assert t.flags == 2 and t.tensor.device_type == 1
    import ctypes as c; assert list(c.cast(t.tensor.data, c.POINTER(c.c_float))[:20]) == list(range(20)); done()
    raises(ValueError, "ambiguous", lambda: b.__dlpack__(stream=0))
    raises(ValueError, "handle", lambda: b.__dlpack__(stream=-2))
    for bad in ("x", 1.5, True): raises(TypeError, "integer or None", lambda: b.__dlpack__(stream=bad))
    s = fkl.Stream(); k = fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite(o := fkl.empty((4, 5))))
    k(stream=s); D.double_clear_log()
    o.__dlpack__(stream=-1); assert calls("StreamWaitEvent") == 0
    o.__dlpack__(stream=1); assert calls("StreamWaitEvent") == 1 and calls("CtxSynchronize") == calls("EventSynchronize") == 0
    o.__dlpack__(); o.__dlpack__(stream=2); assert calls("StreamWaitEvent") == 3
    other = fkl.Stream(); assert other.handle > 2; o.__dlpack__(stream=other.handle); assert calls("StreamWaitEvent") == 4
    assert calls("CtxSynchronize") == calls("EventSynchronize") == calls("StreamSynchronize") == 0
    """)


def test_dlpack_in():
    script("""
    b = fkl.asarray(np.arange(20, dtype=np.float32).reshape(4, 5)); keep = b
    run = lambda a: fkl.compose(fkl.TensorRead(a), fkl.Add(1.0), fkl.TensorWrite())().to_numpy()
    want = np.arange(20, dtype=np.float32).reshape(4, 5) + 1
    for kw in ({}, {"strides": (5, 1)}, {"versioned": True}, {"deleter": False}, {"old_signature": True}, {"versioned": True, "flags": 1}):
        p = Producer(b.ptr, (4, 5), **kw); assert (run(p) == want).all(), kw
        gc.collect(); assert p.deleted == (0 if "deleter" in kw else 1), (kw, p.deleted)
        assert p.stream > 2
    p = Producer(b.ptr, (3, 5), strides=(5, 1), offset=20); assert (run(p) == want[1:]).all()
    assert (run(Producer(b.ptr, (3, 5), device=(13, 0))) == want[:3]).all()
    p = Producer(b.ptr, (4, 5), versioned=True, major=2); raises(BufferError, "2.x", run, p); gc.collect(); assert p.deleted == 1
    for dtype, words in (((10, 8, 1), "fp8&code 10&8 bits"), ((4, 32, 1), "code 4&32 bits"), ((2, 32, 4), "4 lanes"), ((5, 64, 1), "complex")):
        raises(TypeError, words, run, Producer(b.ptr, (4, 5), dtype=dtype))
    raises(TypeError, "device type 10", run, Producer(b.ptr, (4, 5), device=(10, 0)))
    raises(TypeError, "no memory", run, Producer(None, (4, 5)))
    assert run(Producer(None, (0, 5), strides=(0, 0))).shape == (0, 5)
    raises(ValueError, "0-d&reshape(1)", run, Producer(b.ptr, ()))
    raises(ValueError, "read-only", lambda: fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite(Producer(b.ptr + 0, (4, 5), versioned=True, flags=1))))
    raises(ValueError, "CPU memory&fkl.asarray", run, np.zeros((4, 5), np.float32))
    for nothing in (3.5, "x", [1, 2], object(), np.float32(3)):
        raises(TypeError, "__dlpack__" if not isinstance(nothing, list) else "list", lambda: fkl.compose(fkl.TensorRead(nothing), fkl.TensorWrite()))
    c = fkl.from_dlpack(Producer(b.ptr, (4, 5))); assert c.ptr == b.ptr and not c.owns and (c.to_numpy() == want - 1).all()
    raises(BufferError, "host", fkl.from_dlpack, np.zeros(3))
    assert fkl.asarray(b) is b
    assert (fkl.asarray([[1, 2], [3, 4]]).to_numpy() == [[1, 2], [3, 4]]).all()
    a = np.zeros((6, 8), np.uint8)[::2, ::2]; a += 5; assert (fkl.asarray(a).to_numpy() == 5).all()
    x = fkl.asarray(np.array([[True, False, True, True, False]]))
    assert fkl.compose(fkl.TensorRead(x), fkl.Cast("uint8"), fkl.TensorWrite())().to_numpy().tolist() == [[1, 0, 1, 1, 0]]
    ro = np.zeros(4, np.float32); ro.flags.writeable = False
    assert (fkl.asarray(ro).to_numpy() == 0).all()
    """)


@pytest.mark.parametrize("how", ["k(stream=s)", "k(stream=s.handle)", "k()", "q(x, out=o, stream=s)", "o.fill(1.0, stream=s)"])
def test_a_free_waits_for_the_launch_that_used_it(how):
    script(f"""
    x, o, s = fkl.asarray(np.ones((3, 5), np.float32)), fkl.empty((3, 5)), fkl.Stream()
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o)); q = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite())
    q(x, out=fkl.empty((3, 5)))
    {how}
    D.double_clear_log(); at = hex(o.ptr); del k, q, x, o; gc.collect()
    lines = log().splitlines()
    free = next(i for i, line in enumerate(lines) if line.startswith("MemFree " + at))
    assert any(line.startswith("EventSynchronize") for line in lines[:free]), lines
    assert "bad" not in log()
    """)


def test_a_free_during_a_capture_waits_for_its_end():
    script("""
    s = fkl.Stream(blocking=True); o = fkl.empty((3, 5)); o.fill(0.0); at = hex(o.ptr)
    D.double_capture(s.handle, 1)
    del o; gc.collect()
    assert not D.double_spoiled() and ("MemFree " + at) not in log()
    D.double_capture(s.handle, 0)
    fkl.empty((1,)); assert ("MemFree " + at) in log()
    """)


def test_memory_in_a_captured_launch_is_never_freed():
    script("""
    x, o, s = fkl.asarray(np.ones((3, 5), np.float32)), fkl.empty((3, 5)), fkl.Stream()
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o))
    D.double_capture(s.handle, 1); k(stream=s); D.double_capture(s.handle, 0)
    assert not D.double_spoiled()
    at = hex(o.ptr); del k, x, o; gc.collect()
    assert ("MemFree " + at) not in log() and calls("LibraryUnload") == 0
    """)


def test_a_launch_on_the_legacy_stream_leaves_a_capture_unharmed():
    script("""
    x, o, s = fkl.asarray(np.ones((3, 5), np.float32)), fkl.empty((3, 5)), fkl.Stream(blocking=True)
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o))
    D.double_capture(s.handle, 1)
    raises(fkl.CudaError, "906&stream=", k)
    assert not D.double_spoiled()
    k(stream=s); assert not D.double_spoiled()
    D.double_capture(s.handle, 0); k()
    """)
