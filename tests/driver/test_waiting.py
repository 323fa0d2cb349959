"""`k.run`, `fkl.sequence`, pooled outputs and `fkl.memory_info` on the driver test double."""

from double import MORE, check, script


def test_run_launches_and_waits():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14)); k = chain(x, o)
    assert k.run() is o and same(o, want(a)) and calls("StreamWriteValue32") == 1 and calls("MemHostAlloc") == 1
    s = fkl.Stream(); b = image(); x.copy_from_host(b); assert k.run(stream=s) is o and same(o, want(b)) and calls("MemHostAlloc") == 1
    raises(TypeError, "read and write are bound", chain().run); raises(TypeError, "bound", chain(x).run)
    D.double_capture(s.handle, 1); n = calls("GraphLaunch")
    raises(ValueError, "being captured", k.run, s); assert calls("GraphLaunch") == n; D.double_capture(s.handle, 0)
    k.close(); raises(ValueError, "closed", k.run)
    """)


def test_run_without_flags_synchronises():
    script("""
    a = image(); x, o = dev(a), fkl.empty((3, 9, 14)); k = chain(x, o)
    D.double_fault(b"StreamWriteValue32", 1, 801)
    assert k.run() is o and same(o, want(a)); n = calls("StreamWriteValue32")
    assert k.run() is o and calls("StreamWriteValue32") == n == 1, "asked again"
    """)
    check(MORE + """
D.double_withhold(b"cuStreamWriteValue32"); a = image(); x, o = dev(a), fkl.empty((3, 9, 14)); k = chain(x, o)
assert k.run() is o and same(o, want(a)) and calls("StreamWriteValue32") == 0
""")


def test_a_failure_ends_the_wait_and_so_does_ctrl_c():
    script("""
    import signal
    x, o = dev(image()), fkl.empty((3, 9, 14)); k = chain(x, o)
    D.double_never_ready(1); signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    try: k.run(); raise SystemExit("not interrupted")
    except KeyboardInterrupt: pass
    D.double_fault(b"StreamQuery", 1, 700)
    try: k.run(); raise SystemExit("no error")
    except fkl.CudaError as e: assert e.code == 700 and "cuStreamQuery" in str(e)
    """)


def test_threads_run_at_once():
    script("""
    kernels = []
    for i in range(8):
        a = image(); x, o = dev(a), fkl.empty((3, 9, 14)); kernels.append((a, o, chain(x, o), fkl.Stream()))
    wrong = []
    def work(a, o, k, s):
        for _ in range(200):
            if k.run(stream=s) is not o or not same(o, want(a)): wrong.append(1)
    threads = [threading.Thread(target=work, args=one) for one in kernels]
    [t.start() for t in threads]; [t.join() for t in threads]; assert not wrong
    """)


def test_a_sequence_is_one_graph_launch():
    script("""
    a = image(); x, mid, o = dev(a), fkl.empty((9, 14, 3)), fkl.empty((3, 9, 14)); mul, add = fkl.Mul(2.0), fkl.Add(1.0)
    k1 = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), mul, fkl.TensorWrite(mid))
    k2 = fkl.compose(fkl.TensorRead(mid), add, fkl.TensorSplit(o))
    s = fkl.sequence(k1, k2); assert len(s) == 2 and "one graph" in repr(s)
    def expect(m, p): return np.moveaxis(a.astype(np.float32) * np.float32(m) + np.float32(p), -1, 0)
    n = calls("GraphLaunch"); assert s() is o and same(o, expect(2, 1)) and calls("GraphLaunch") == n + 1
    made = calls("GraphInstantiate"); k1.update(mul, 3.0); k2.update(add, 5.0); s(); assert same(o, expect(3, 5))
    assert calls("GraphInstantiate") == made and s.run() is o
    k1.update(mul, 4.0); s(); assert same(o, expect(4, 5)); k2.update(add, 6.0); s.run(); assert same(o, expect(4, 6))
    k1.update(mul, 3.0); k1(); k2.update(add, 5.0); s(); assert same(o, expect(3, 5))
    stream = fkl.Stream(); s(stream=stream); s(stream)
    D.double_capture(stream.handle, 1); n = calls("GraphLaunch"); s(stream); assert calls("GraphLaunch") == n and not D.double_spoiled()
    raises(ValueError, "being captured", s.run, stream); D.double_capture(stream.handle, 0)
    x.copy_from_host(a); k1.close(); raises(ValueError, "closed", s); raises(TypeError, "pickle", __import__("pickle").dumps, s)
    """)


def test_threads_without_a_context():
    """A fresh thread has no current context, which the real driver does not survive where graphs are patched."""
    script("""
    a = image(); x, mid, o = dev(a), fkl.empty((9, 14, 3)), fkl.empty((3, 9, 14)); mul, crop = fkl.Mul(2.0), fkl.Crop(0, 0, 14, 9)
    k1 = fkl.compose(fkl.TensorRead(x), crop, fkl.Cast("float32"), mul, fkl.TensorWrite(mid)); k2 = fkl.compose(fkl.TensorRead(mid), fkl.TensorSplit(o))
    s = fkl.sequence(k1, k2); u = chain(); other = fkl.empty((3, 9, 14)); failed = []
    def work(f, *args):
        def safely():
            D.double_set_current(-1)
            try: f(*args); assert D.double_current() == -1
            except BaseException as e: failed.append((f, e))
        t = threading.Thread(target=safely); t.start(); t.join()
    for v in (3.0, 4.0, 5.0):
        for f, args in ((k1.update, (mul, v)), (s, ()), (k1.update, (mul, v + 1)), (s.run, ()), (k1.update, (crop, 0, 0, 14, 9)), (k1, ()), (k2.run, ()),
                        (u, (x, other)), (u, (x,)), (k1.clone, ()), (fkl.sequence, (k1, k2)), (fkl.memory_info, ()), (o.to_numpy, ())): work(f, *args)
        assert same(o, np.moveaxis(a.astype(np.float32) * np.float32(v + 1), -1, 0)) and not failed, failed
    """)


def test_sequences_that_cannot_be_graphs():
    script("""
    a = image(); x, o, e = dev(a), fkl.empty((3, 9, 14)), fkl.empty((0, 14, 3), "uint8"); k = chain(x, o)
    empty = fkl.compose(fkl.TensorRead(e), fkl.TensorWrite(fkl.empty((0, 14, 3), "uint8")))
    s = fkl.sequence(empty, k); assert "launch by launch" in repr(s) and s() is o and same(o, want(a))
    many = fkl.compose(fkl.TensorRead(x), fkl.Crop([(0, 0, 2, 2)] * 3000), fkl.TensorWrite(fkl.empty((3000, 2, 2, 3), "uint8")))
    s = fkl.sequence(k, many, k); assert s() is o and same(o, want(a))
    raises(ValueError, "at least one", fkl.sequence); raises(TypeError, "argument 1", fkl.sequence, k, 3)
    raises(TypeError, "kernel 1", fkl.sequence, k, chain()); k.close(); raises(ValueError, "closed", fkl.sequence, k)
    """)
    check(MORE + """
a = image(); k = chain(dev(a), fkl.empty((3, 9, 14))); s = fkl.sequence(k, k); n = calls("LaunchKernel")
s(); assert "launch by launch" in repr(s) and calls("LaunchKernel") == n + 2
""", FKL_LAUNCH="kernel")


def test_an_output_that_no_longer_fits():
    script("""
    x, o = dev(image()), fkl.empty((4, 5, 3), "uint8"); crop = fkl.Crop(0, 0, 5, 4)
    k = fkl.compose(fkl.TensorRead(x), crop, fkl.TensorWrite(o)); s = fkl.sequence(k)
    k.update(crop, 0, 0, 6, 4); raises(ValueError, "no longer fits", s)
    k.update(crop, 1, 1, 5, 4); assert s() is o
    """)


def test_outputs_of_calls_come_from_a_pool_and_are_freed_in_stream_order():
    script("""
    a = image(); x = dev(a); k = chain(); s = fkl.Stream()
    n = calls("MemAlloc"); o = k(x, stream=s); assert same(o, want(a)) and calls("MemAllocFromPoolAsync") == 1 and calls("MemAlloc") == n
    info = fkl.memory_info(); assert info.pool_used >= 3 * 9 * 14 * 4 and info.buffers >= 9 * 14 * 3 and info.device == 0
    waits, host = calls("StreamWaitEvent"), calls("EventSynchronize")
    del o; gc.collect(); assert calls("MemFreeAsync") == 1 and calls("StreamWaitEvent") == waits and calls("EventSynchronize") == host
    # Used on a second stream, or on one that may be gone: the pool's own stream waits for them.
    o = k(x, stream=s); u = fkl.Stream(); fkl.compose(fkl.TensorRead(), fkl.TensorWrite())(o, stream=u); waits = calls("StreamWaitEvent")
    del o; gc.collect(); assert calls("MemFreeAsync") >= 2 and calls("StreamWaitEvent") >= waits + 2 and calls("EventSynchronize") == host
    o = k(x, stream=s.handle); waits = calls("StreamWaitEvent"); del o; gc.collect()
    assert calls("StreamWaitEvent") > waits and calls("EventSynchronize") == host and calls("MemAllocFromPoolAsync") == calls("MemFreeAsync")
    D.double_clear_log(); host = 0; s2 = fkl.Stream(); o = k(x, stream=s2); s2.close(); del o; gc.collect(); assert calls("MemFreeAsync") == 1
    for _ in range(50): k(x)
    gc.collect(); assert calls("MemAllocFromPoolAsync") == calls("MemFreeAsync") == 51
    kept = k(x); capsule = kept.__dlpack__(); free = calls("MemFreeAsync"); kept.close(); del kept; gc.collect()
    assert calls("MemFreeAsync") == free; del capsule; gc.collect(); assert calls("MemFreeAsync") == free + 1
    D.double_capture(s.handle, 1); n = calls("MemAlloc"); o = k(x, stream=s); assert calls("MemAlloc") == n + 1 and not D.double_spoiled()
    D.double_capture(s.handle, 0)
    D.double_fault(b"MemAllocFromPoolAsync", 1, 2); n = calls("MemAlloc"); assert same(k(x), want(a)) and calls("MemAlloc") == n + 1
    """)
    check(MORE + """
D.double_withhold(b"cuMemPoolCreate"); a = image(); x = dev(a); k = chain(); o = k(x); assert same(o, want(a)); del o; gc.collect()
assert calls("MemAllocFromPoolAsync") == 0 and fkl.memory_info().pool_used == 0
""")


def test_memory_info_counts():
    script("""
    before = fkl.memory_info(); b = fkl.empty((1000,), "uint8"); after = fkl.memory_info()
    assert after.buffers - before.buffers == 1000; b.close(); assert fkl.memory_info().buffers == before.buffers
    k = chain(dev(image()), fkl.empty((3, 9, 14))); info = fkl.memory_info(); assert info.graphs == 1 and info.modules == 1
    assert info.most_graphs == 1024 and info.waiting == 0 and 0 < info.free <= info.total
    raises(ValueError, "device", fkl.memory_info, 9)
    """)


def test_the_first_launches_decide_between_graphs_and_kernels():
    check(MORE + """
from fkl.runtime.launch import launch_trial
a = image(); o = fkl.empty((3, 9, 14)); k = chain(dev(a), o); assert launch_trial()[0] == 64
for i in range(64):
    assert launch_trial()[0] == 64 - i; k(); assert same(o, want(a))
left, graph, direct, verdict = launch_trial(); assert left == 0 and 0 < graph < 1e9 and 0 < direct < 1e9
assert verdict == ("kernel" if graph > direct else "graph")
n = calls("GraphLaunch"); assert n == 32; k(); assert calls("GraphLaunch") - n == (verdict == "graph") and same(o, want(a))
""", FKL_LAUNCH="auto")
