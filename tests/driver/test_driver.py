"""The runtime against the driver test double: opening, errors, contexts, streams, fork, exit."""

import pytest
from double import check, run

QUIET = "import fkl\n"


def error_of(script: str, **environment: str) -> str:
    """The message of the CudaError that a script ends with."""
    done = run("try:\n    " + script + "\nexcept fkl.CudaError as e:\n    print(e.code, e.name, e.call, '|', e)", **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- opening --------------------------------------------------------------------------------------------------------


def test_missing_driver_names_the_library_and_the_cpu_target():
    script = "import fkl\ntry: fkl.empty((4,))\nexcept fkl.CudaError as e: print(e.code, e)"
    text = run(script, preamble="", FKL_CUDA_DRIVER="libnothing.so.1").stdout
    assert text.startswith("-1 ") and "libnothing.so.1" in text and 'target="cpu"' in text


def test_stub_driver():
    assert "stub" in error_of("fkl.empty((4,))", FKL_DOUBLE_INIT="34")


def test_old_driver():
    text = error_of("fkl.empty((4,))", FKL_DOUBLE_VERSION="11080")
    assert "too old" in text and "12.0" in text and "11.8" in text


def test_missing_required_entry():
    assert "lacks cuLaunchKernel" in error_of("fkl.empty((4,))", FKL_DOUBLE_WITHHOLD="cuLaunchKernel")


def test_missing_optional_entry():
    check("b = fkl.empty((4,)); fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite(b))()", FKL_DOUBLE_WITHHOLD="cuFuncLoad")


def test_no_device():
    text = error_of("fkl.empty((4,))", FKL_DOUBLE_DEVICES="0")
    assert "100" in text and 'target="cpu"' in text
    assert check("from fkl.runtime.context import available; print(available())", FKL_DOUBLE_DEVICES="0") == "False\n"


def test_unbound_compose_and_cpu_runs_open_no_driver():
    check("""
    from fkl.runtime.driver import is_loaded
    fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
    fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite(), target="cpu")(np.zeros((4, 8), np.float32))
    assert not is_loaded() and log() == ""
    """)


# -- errors ---------------------------------------------------------------------------------------------------------


def test_out_of_memory_has_code_name_text_and_call():
    text = error_of('D.double_fault(b"MemAlloc", 1, 2); fkl.empty((4,))')
    assert text.startswith("2 CUDA_ERROR_OUT_OF_MEMORY cuMemAlloc |") and "out of memory" in text


@pytest.mark.parametrize(("call", "entry"), [("LibraryLoadData", "cuLibraryLoadData"), ("LaunchKernel", "cuLaunchKernel")])
def test_failures_leave_the_kernel_usable(call, entry):
    check(f"""
    x = fkl.asarray(np.ones((3, 5), np.float32)); o = fkl.empty((3, 5))
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
    D.double_fault(b"{call}", 1, 1)
    try:
        k(x, out=o)
    except fkl.CudaError as e:
        assert e.code == 1 and e.call == "{entry}", e
    else:
        raise SystemExit("no error")
    k(x, out=o)
    assert (o.to_numpy() == 2).all()
    """)


def test_a_graph_that_cannot_be_made_leaves_nothing_behind():
    check("""
    x = fkl.asarray(np.ones((3, 5), np.float32)); o = fkl.empty((3, 5))
    D.double_fault(b"GraphInstantiateWithFlags", 1, 2)
    try:
        fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o))
    except fkl.CudaError as e:
        assert e.call == "cuGraphInstantiate", e
    else:
        raise SystemExit("no error")
    assert calls("GraphCreate") == calls("GraphDestroy") == 1
    """)


def test_sticky_errors_repeat_and_ask_for_a_restart():
    check("""
    x = fkl.asarray(np.ones((3, 5), np.float32)); o = fkl.empty((3, 5))
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o)); k()
    D.double_fault(b"LaunchKernel", 1, 700)
    for use in (k, k, lambda: fkl.empty((3,)), o.copy_to_host):
        try:
            use()
        except fkl.CudaError as e:
            assert e.code == 700 and e.call == "cuGraphLaunch" and "restart" in str(e), e
        else:
            raise SystemExit("no error")
    """)


def test_errors_pickle():
    check("""
    import copy, pickle
    e = fkl.CudaError(2, "N", "t", "cuX")
    for other in (pickle.loads(pickle.dumps(e)), copy.copy(e)):
        assert str(other) == str(e) and other.code == 2 and other.call == "cuX"
    """)


# -- contexts and devices -------------------------------------------------------------------------------------------


def test_thread_without_context_and_foreign_context_are_restored():
    check("""
    x = fkl.asarray(np.ones((3, 5), np.float32)); o = fkl.empty((3, 5))
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o))
    seen = []
    def work():
        for start in (-1, 10, 1, 0):
            D.double_set_current(start)
            k(); b = fkl.empty((7,), device=0); b.fill(3.0); b.to_numpy(); del b
            fkl.compose(fkl.TensorRead(x), fkl.Mul(3.0), fkl.TensorWrite(o))()
            fkl.Stream(0).synchronize()
            seen.append((start, D.double_current()))
    t = threading.Thread(target=work); t.start(); t.join()
    assert all(a == b for a, b in seen) and len(seen) == 4, seen
    """)


def test_two_devices():
    check("""
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
    a = fkl.asarray(np.zeros((4, 8), np.float32), device=0); b = fkl.asarray(np.ones((4, 8), np.float32), device=1)
    r0, r1 = k(a), k(b)
    assert (r0.device, r1.device) == (0, 1)
    assert (r0.to_numpy() == 1).all() and (r1.to_numpy() == 2).all()
    assert compiled == [(9, 0), (8, 6)], compiled
    bound = fkl.compose(fkl.TensorRead(a), fkl.Add(1.0), fkl.TensorWrite())
    before = D.double_launches()
    for wrong in (lambda: bound(b), lambda: k(a, out=r1), lambda: fkl.compose(fkl.TensorRead(a), fkl.Add(1.0), fkl.TensorWrite(r1))):
        try:
            wrong()
        except ValueError as e:
            assert "cuda:0" in str(e) and "cuda:1" in str(e), e
        else:
            raise SystemExit("no error")
    assert D.double_launches() == before
    D.double_set_current(1)
    assert fkl.empty((2,)).device == 1
    D.double_set_current(0)
    # What is bound on the second device runs there, on its streams, whatever device is current.
    o, p = fkl.empty((4, 8), "float32", device=1), fkl.empty((4, 8), "float32", device=1)
    one = fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite(o)); two = fkl.compose(fkl.TensorRead(o), fkl.Mul(3.0), fkl.TensorWrite(p))
    s = fkl.Stream(device=1); assert s.device == 1
    one(stream=s); s.synchronize(); assert (o.to_numpy() == 2).all()
    assert two.run() is p and (p.to_numpy() == 6).all() and two.run(stream=s) is p
    b.fill(4.0); both = fkl.sequence(one, two); both(stream=s); s.synchronize(); assert (p.to_numpy() == 15).all()
    b.fill(5.0); both.run(); assert (p.to_numpy() == 18).all()
    try: fkl.sequence(one, fkl.compose(fkl.TensorRead(a), fkl.Add(1.0), fkl.TensorWrite(fkl.empty((4, 8), device=0))))
    except ValueError as e: assert "cuda:0" in str(e) and "cuda:1" in str(e), e
    else: raise SystemExit("no error")
    """)


def test_device_that_does_not_exist():
    check("""
    for bad in (lambda: fkl.empty((2,), device=7), lambda: fkl.Stream(-1), lambda: fkl.DeviceBuffer(4, device=2)):
        try:
            bad()
        except ValueError as e:
            assert "cuda:0 to cuda:1" in str(e)
        else:
            raise SystemExit("no error")
    """)


# -- streams --------------------------------------------------------------------------------------------------------


def test_streams_and_events():
    check("""
    s = fkl.Stream()
    assert s.__cuda_stream__() == (0, s.handle) and s.query()
    e = s.record(timing=True); f = s.record(timing=True)
    e.synchronize(); s.wait(e); s.synchronize()
    assert f.elapsed(e) == 1.5 and e.query()
    with fkl.Stream() as t:
        t.synchronize()
    try:
        t.synchronize()
    except ValueError as error:
        assert "closed" in str(error)
    else:
        raise SystemExit("no error")
    s.close(); s.close()
    del e, f, s, t; gc.collect()
    assert "bad" not in log() and calls("StreamDestroy") == 2
    """)


def test_decoding_streams():
    check("""
    from fkl.runtime.stream import stream_handle
    import numpy
    class New:
        def __cuda_stream__(self): return (0, 77)
    class Old:
        __cuda_stream__ = (0, 78)
    assert stream_handle(None) == 0 and stream_handle(5) == 5 and stream_handle(New()) == 77 and stream_handle(Old()) == 78
    class Version:
        def __cuda_stream__(self): return (1, 77)
    class Odd:
        def __cuda_stream__(self): return 77
    class Broken:
        def __cuda_stream__(self): raise KeyError("inside")
    class Ptr:
        ptr = 5; handle = 6
    for bad in (True, "s", 1.5, [], Ptr(), Version(), Odd(), fkl.Event(), fkl.empty((3,))):
        try:
            stream_handle(bad)
        except TypeError:
            pass
        else:
            raise SystemExit(f"no error for {bad}")
    for bad in (-1, 2**64, type("N", (), {"__cuda_stream__": (0, -5)})(), type("N", (), {"__cuda_stream__": (0, 2**70)})()):
        try:
            stream_handle(bad)
        except ValueError as e:
            assert "negative" in str(e)
        else:
            raise SystemExit("no error")
    try:
        stream_handle(Broken())
    except KeyError:
        pass
    """)


def test_waits_can_be_interrupted():
    check("""
    import signal
    e = fkl.Event()
    class Stop(Exception): pass
    def stop(*_): raise Stop
    signal.signal(signal.SIGALRM, stop)
    D.double_never_ready(1); signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        e.synchronize()
    except Stop:
        pass
    else:
        raise SystemExit("the wait was not interrupted")
    D.double_never_ready(0); e.synchronize()
    """)


# -- fork and exit --------------------------------------------------------------------------------------------------


def test_forked_child():
    check("""
    x = fkl.asarray(np.ones((3, 5), np.float32)); o = fkl.empty((3, 5))
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(o)); k()
    frees = calls("MemFree")
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            k()
        except fkl.CudaError as e:
            status = 0 if "fork" in str(e) and "spawn" in str(e) else 4
        try:
            fkl.empty((4,)); status = 5
        except fkl.CudaError:
            pass
        del x, o, k; gc.collect()
        if calls("MemFree") != frees:
            status = 6
        y = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite(), target="cpu")(np.zeros((400, 800), np.float32))
        os._exit(status if (y == 1).all() else 7)
    assert os.waitpid(pid, 0)[1] == 0
    k()
    """)


def test_fork_before_first_use_is_harmless():
    check("""
    pid = os.fork()
    if pid == 0:
        b = fkl.empty((4,)); b.fill(1.0)
        os._exit(0 if (b.to_numpy() == 1).all() else 3)
    assert os.waitpid(pid, 0)[1] == 0
    """)


@pytest.mark.parametrize("hold", ["pass", "c = [x, k]; c.append(c)", "sys.kept = (x, k, s)", "threading.local().kept = (x, k, s)"])
def test_exit_is_silent(hold):
    check(f"""
    x = fkl.asarray(np.ones((3, 5), np.float32))
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite()); r = k(); s = fkl.Stream(); cap = x.__dlpack__()
    {hold}
    raise SystemExit(0)
    """)
