"""Compiling, caching, choosing an NVRTC, threads of the CPU target."""

import itertools
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fkl
from fkl.compiler import cache
from fkl.compiler import threads as compiler_threads
from fkl.compiler.errors import CompileError
from fkl.compiler.finder import Found, choose, in_folder, installed
from fkl.compiler.shared import SharedWork
from fkl.compiler.threads import run_bands, thread_count

SOURCE = '#include "fkl/core.h"\nextern "C" __global__ void fkl_kernel() {}\n'
nvrtc = pytest.mark.skipif(not installed(), reason="no NVRTC is installed")
MAJOR = max((f.version[0] for f in installed()), default=13)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache directory of its own."""
    monkeypatch.setenv("FKL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FKL_CACHE", raising=False)
    return tmp_path / "cache"


def sub(code: str, **environment: str | None):
    """A fresh interpreter; a value of None removes a variable."""
    env = {**os.environ, **{k: v for k, v in environment.items() if v is not None}}
    for name, value in environment.items():
        if value is None:
            env.pop(name, None)
    command = [sys.executable, "-P", "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)


CPU_RUN = """
import numpy as np, fkl, logging
logging.basicConfig()
for v in (1.0, 2.0):
    for ops in ([fkl.Add(v)], [fkl.Mul(v)], [fkl.Add(v), fkl.Mul(v)]):
        k = fkl.compose(fkl.TensorRead(), *ops, fkl.TensorWrite(), target="cpu")
        r = k(np.full((4, 8), 3, np.float32))
print(r[0, 0])
"""
GPU_BINARY = """
from fkl.compiler.gpu import binary, compile_count
text = '#include "fkl/core.h"\\nextern "C" __global__ void fkl_kernel() {}\\n'
image = binary(text, (9, 0), fast_math=False, driver_major=%d)
print(compile_count(), image[:4])
""" % MAJOR  # noqa: UP031


# -- errors ---------------------------------------------------------------------------------------------------------


@nvrtc
def test_a_refused_source_is_explained_kept_and_not_cached(folder):
    from fkl.compiler.gpu import binary

    bad = SOURCE + "int x = undefined_name;\n" + "// padding\n" * 20000
    with pytest.raises(CompileError) as info:
        binary(bad, (9, 0), fast_math=False, driver_major=MAJOR)
    error = info.value
    assert len(str(error)) < 4096 and "undefined_name" in str(error) and "sm_90" in str(error) and "NVRTC" in str(error)
    assert "undefined_name" in error.log and "\0" not in error.log
    assert error.path in str(error) and Path(error.path).read_text() == bad
    os.unlink(error.path)
    assert not list(folder.rglob("*.fkl"))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.log == error.log


def test_a_source_that_the_host_compiler_refuses(folder):
    from fkl.compiler.host import library

    with pytest.raises(CompileError, match="refused") as info:
        library("int x = undefined_name;", fast_math=False)
    assert "undefined_name" in info.value.log and Path(info.value.path).exists()
    os.unlink(info.value.path)
    assert not list(folder.rglob("*.fkl"))


def test_no_host_compiler(monkeypatch):
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.Sub(0.25), fkl.TensorWrite(), target="cpu")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(fkl.CompileError, match=r"no-such-compiler.*CXX"):
        k(np.zeros((2, 6), np.float32))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX")
    with pytest.raises(fkl.CompileError, match="clang"):
        k(np.zeros((2, 6), np.float32))
    monkeypatch.setenv("CXX", '"')
    with pytest.raises(fkl.CompileError, match="No closing quotation"):
        k(np.zeros((2, 6), np.float32))
    monkeypatch.undo()
    assert (k(np.zeros((2, 6), np.float32)) == 0.75).all()


def test_a_wrong_setting_is_said_before_the_work(folder, monkeypatch):
    from fkl.compiler import host

    monkeypatch.setattr(host, "_compile", lambda *args: pytest.fail("it compiles"))
    monkeypatch.setenv("FKL_CACHE_SIZE", "banana")
    # A chain of which no other test has the code loaded.
    k = fkl.compose(fkl.TensorRead(), *[fkl.Add(1.0), fkl.Neg()] * 3, fkl.TensorWrite(), target="cpu")
    with pytest.raises(ValueError, match="FKL_CACHE_SIZE"):
        k(np.zeros((2, 6), np.float32))
    monkeypatch.undo()
    assert (k(np.zeros((2, 6), np.float32)) == -1).all()


# -- the choice of an NVRTC -----------------------------------------------------------------------------------------


def test_choice():
    twelve, thirteen, other = Found((12, 9), "/a", None), Found((13, 0), "/b", None), Found((13, 5), "/c", None)
    assert choose([twelve, thirteen], 13) is thirteen
    assert choose([thirteen, twelve], 12) is twelve
    assert choose([thirteen, other], 13) is thirteen
    assert choose([twelve], 13) is twelve
    assert choose([twelve, thirteen], 14) is thirteen
    with pytest.raises(CompileError, match=r"CUDA 12.*13\.0.*cuda12"):
        choose([thirteen], 12)
    with pytest.raises(CompileError, match=r"no NVRTC.*fkl-cuda\[cuda13\]"):
        choose([], 13)


def test_reading_folders(tmp_path):
    assert in_folder(str(tmp_path / "none")) is None and in_folder(str(tmp_path)) is None
    for name in ("libnvrtc.so.13", "libnvrtc.alt.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc-builtins.alt.so.13.0"):
        (tmp_path / name).touch()
    found = in_folder(str(tmp_path))
    assert found == Found((13, 0), f"{tmp_path}/libnvrtc.so.13", f"{tmp_path}/libnvrtc-builtins.so.13.0")


def test_a_named_library_that_is_not_there():
    done = sub(GPU_BINARY, FKL_NVRTC="/nowhere/libnvrtc.so.13", FKL_CACHE="0")
    assert done.returncode == 1 and "FKL_NVRTC names /nowhere/libnvrtc.so.13" in done.stderr


def test_a_named_library_that_is_none(tmp_path):
    fake = tmp_path / "libnvrtc.so.13"
    fake.write_bytes(b"nothing")
    done = sub(GPU_BINARY, FKL_NVRTC=str(fake), FKL_CACHE="0")
    assert done.returncode == 1 and "CompileError" in done.stderr and "cannot be opened" in done.stderr


@nvrtc
def test_devices_outside_of_what_nvrtc_knows():
    from fkl.compiler.gpu import binary

    with pytest.raises(CompileError, match=r"no longer compiles.*5\.0"):
        binary(SOURCE, (5, 0), fast_math=False, driver_major=MAJOR)
    ptx = binary(SOURCE, (19, 9), fast_math=False, driver_major=MAJOR)
    assert b".target sm_" in ptx and ptx.endswith(b"\0")


# -- the cache ------------------------------------------------------------------------------------------------------


@nvrtc
def test_a_second_process_compiles_nothing(folder, tmp_path):
    first = sub(GPU_BINARY)
    assert first.stdout == "1 b'\\x7fELF'\n", first.stderr
    entries = list(folder.rglob("*.fkl"))
    assert len(entries) == 1
    again = subprocess.run(
        [sys.executable, "-P", "-c", GPU_BINARY], cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert again.stdout == "0 b'\\x7fELF'\n" and list(folder.rglob("*.fkl")) == entries


@nvrtc
def test_an_entry_serves_without_any_nvrtc(folder):
    sub(GPU_BINARY)
    hidden = "import fkl.compiler.finder as f\nf._installed = lambda *a: ()\nf._pathfinder = lambda: None\n" + textwrap.dedent(GPU_BINARY)
    assert sub(hidden).stdout == "0 b'\\x7fELF'\n"
    done = sub(hidden.replace("fkl_kernel", "other"))
    assert done.returncode == 1 and "no NVRTC was found" in done.stderr and "fkl-cuda[cuda" in done.stderr


@pytest.mark.parametrize("damage", ["half", "empty", "noise", "folder", "flip"])
def test_damaged_entries_are_rebuilt(folder, damage):
    key = cache.key_of("test", damage)
    cache.put(key, b"payload" * 100)
    (entry,) = folder.rglob("*.fkl")
    raw = entry.read_bytes()
    if damage == "folder":
        entry.unlink()
        entry.mkdir()
    else:
        flipped = bytearray(raw)
        flipped[-1] ^= 1
        entry.write_bytes({"half": raw[: len(raw) // 2], "empty": b"", "noise": os.urandom(len(raw)), "flip": bytes(flipped)}[damage])
    assert cache.get(key) is None
    cache.put(key, b"payload" * 100)
    assert cache.get(key) == b"payload" * 100


def test_bounded_and_least_recently_used(folder, monkeypatch):
    monkeypatch.setenv("FKL_CACHE_SIZE", "64k")
    keys = [cache.key_of(str(i)) for i in range(60)]
    for i, key in enumerate(keys):
        cache.put(key, bytes(4000))
        past = time.time() - 1000 + i
        os.utime(next(folder.rglob(f"{key}.fkl")), (past, past))
        cache.get(keys[0])
    total = sum(p.stat().st_size for p in folder.rglob("*.fkl"))
    assert total <= 65536 + 4100
    assert cache.get(keys[0]) is not None and cache.get(keys[-1]) is not None and cache.get(keys[1]) is None
    monkeypatch.setenv("FKL_CACHE_SIZE", "lots")
    with pytest.raises(ValueError, match="FKL_CACHE_SIZE"):
        cache.put(keys[0], b"x")


def test_switched_off(folder, monkeypatch):
    monkeypatch.setenv("FKL_CACHE", "0")
    cache.put(cache.key_of("a"), b"x")
    assert cache.get(cache.key_of("a")) is None and not folder.exists() and cache.statistics() == (None, 0, 0)


@pytest.mark.parametrize("kind", ["file", "proc", "world", "home"])
def test_unusable_directories_warn_once_and_nothing_fails(tmp_path, kind):
    env: dict[str, str | None] = {"FKL_CACHE_DIR": None, "XDG_CACHE_HOME": None}
    if kind == "file":
        (tmp_path / "cache").write_text("a file")
        env["FKL_CACHE_DIR"] = str(tmp_path / "cache")
    elif kind == "proc":
        env["FKL_CACHE_DIR"] = "/proc/nope"
    elif kind == "world":
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache").chmod(0o777)
        env["FKL_CACHE_DIR"] = str(tmp_path / "cache")
    else:
        (tmp_path / "home").write_text("a file")
        env["HOME"] = str(tmp_path / "home")
    done = sub(CPU_RUN, **env)
    assert done.returncode == 0 and done.stdout == "10.0\n", done.stderr
    assert done.stderr.count("WARNING:fkl") == 1 and "FKL_CACHE_DIR" in done.stderr
    if kind == "world":
        assert not list((tmp_path / "cache").iterdir())


def test_modes(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    done = sub(CPU_RUN, HOME=str(home), XDG_CACHE_HOME=None, FKL_CACHE_DIR=None)
    assert done.returncode == 0, done.stderr
    made = home / ".cache" / "fkl"
    assert made.stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    done = sub("import os; os.umask(0o022)\n" + CPU_RUN, FKL_CACHE_DIR=str(shared))
    assert done.returncode == 0 and shared.stat().st_mode & 0o7777 == 0o2775
    assert all(p.stat().st_mode & 0o777 == 0o644 for p in shared.rglob("*.fkl"))


def test_racing_processes(folder):
    code = textwrap.dedent(CPU_RUN)
    env = {**os.environ}
    runs = [subprocess.Popen([sys.executable, "-P", "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(4)]  # fmt: skip
    for run in runs:
        out, err = run.communicate(timeout=300)
        assert run.returncode == 0 and out == "10.0\n" and err == ""
    assert len(list(folder.rglob("*.fkl"))) == 3 and not list(folder.rglob(".new-*"))


@nvrtc
def test_thirty_two_processes_compile_a_chain_once(folder, tmp_path):
    code = """
import os, sys, time
from fkl.compiler.gpu import binary, compile_count
while not os.path.exists(sys.argv[1]): time.sleep(0.002)
image = binary('#include "fkl/core.h"\\nextern "C" __global__ void fkl_kernel() {}\\n', (8, 6), fast_math=False, driver_major=%d)
print(compile_count(), len(image))
""" % MAJOR  # noqa: UP031
    start = tmp_path / "start"
    runs = [subprocess.Popen([sys.executable, "-P", "-c", code, str(start)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(32)]
    time.sleep(1.0)
    start.touch()
    found = []
    for run in runs:
        out, err = run.communicate(timeout=300)
        assert run.returncode == 0 and err == "", err
        found.append(tuple(map(int, out.split())))
    assert sum(count for count, _ in found) == 1 and len({size for _, size in found}) == 1
    assert len(list(folder.rglob("*.fkl"))) == 1


def test_an_entry_that_is_claimed_and_a_claim_that_is_not_given_back(folder, monkeypatch):
    key, times = cache.key_of("x"), []

    def work():
        with cache.claim(key):
            begin = time.monotonic()
            time.sleep(0.05)
            times.append((begin, time.monotonic()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    times.sort()
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(times))
    monkeypatch.setattr(cache, "_PATIENCE", 0.1)
    with cache.claim(key), cache.claim(key):  # the second goes on after its patience
        pass
    (folder / key[:2] / ".lock").unlink()
    (folder / key[:2] / ".lock").mkdir()
    with cache.claim(key):  # nothing to lock: it goes on as well
        pass
    monkeypatch.setenv("FKL_CACHE", "0")
    with cache.claim(key):
        pass


def test_a_directory_for_temporary_files_that_forbids_execution(tmp_path, folder, monkeypatch):
    import ctypes

    from fkl.compiler import host

    real, seen = ctypes.CDLL, []

    def refuse_temporary(name, *args, **kw):
        seen.append(name)
        if not str(name).startswith(str(folder)):
            raise OSError("failed to map segment from shared object")
        return real(name, *args, **kw)

    monkeypatch.setattr(host.ctypes, "CDLL", refuse_temporary)
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.Mul(2.0), fkl.Sub(3.0), fkl.TensorWrite(), target="cpu")
    assert (k(np.ones((2, 6), np.float32)) == 1).all() and len(seen) == 2


# -- threads --------------------------------------------------------------------------------------------------------


def test_threads_that_want_the_same_work_share_it():
    shared, done, results = SharedWork(), [], []

    def work():
        time.sleep(0.2)
        done.append(1)
        return object()

    threads = [threading.Thread(target=lambda: results.append(shared.once("key", work))) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(done) == 1 and len({id(r) for r in results}) == 1 and len(results) == 6
    with pytest.raises(KeyError):
        shared.once("key", lambda: {}["x"])
    assert shared.once("key", lambda: 5) == 5


@nvrtc
def test_compiles_release_the_gil_and_identical_ones_run_once():
    code = """
    import threading, json
    from fkl.compiler.gpu import binary, compile_count
    import fkl
    from fkl.codegen import generate
    from fkl.plan import check_chain, make_plan
    text = generate(make_plan(check_chain([fkl.TensorRead(), *[fkl.Add(1.0), fkl.Div(2.0)] * 75, fkl.TensorWrite()]), fkl.DType("float32")))
    images = []
    threads = [threading.Thread(target=lambda: images.append(binary(text, (9, 0), fast_math=False, driver_major=%d))) for _ in range(4)]
    ticks = 0
    [t.start() for t in threads]
    while any(t.is_alive() for t in threads):
        ticks += 1
        threads[0].join(0.001)
    print(json.dumps([compile_count(), len(set(images)), ticks]))
    """ % MAJOR  # noqa: UP031
    done = sub(code, FKL_CACHE="0")
    count, distinct, ticks = json.loads(done.stdout)
    assert (count, distinct) == (1, 1) and ticks > 5, done.stderr


def test_bands_cover_everything_once():
    for units in (0, 1, 7, 1000):
        for grain in (1, 3, 5000):
            seen = np.zeros(units, np.int64)

            def mark(begin, end, seen=seen):
                seen[begin:end] += 1

            run_bands(mark, units, grain)
            assert (seen == 1).all()


def test_exceptions_of_a_band_arrive():
    def fail(begin, end):
        if begin == 0:
            raise KeyError("band")

    with pytest.raises(KeyError):
        run_bands(fail, 100, 1)
    run_bands(lambda b, e: run_bands(lambda i, j: None, 50, 1), 100, 1)


def test_thread_count(monkeypatch):
    monkeypatch.setenv("FKL_NUM_THREADS", "1")
    assert thread_count() == 1
    monkeypatch.setenv("FKL_NUM_THREADS", "100000")
    assert thread_count() == len(os.sched_getaffinity(0))
    for bad in ("0", "-1", "x", "1.5"):
        monkeypatch.setenv("FKL_NUM_THREADS", bad)
        with pytest.raises(ValueError, match="FKL_NUM_THREADS"):
            thread_count()


def test_threads_with_images_of_many_sizes(monkeypatch):
    """Whatever the sizes: one pool, and none that is taken away from a thread that uses it."""
    monkeypatch.setattr(compiler_threads, "thread_count", lambda: 6)
    failed, totals = [], []

    def work(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(150):
                units, seen = int(random.integers(1, 12)), []
                run_bands(lambda b, e, seen=seen: seen.extend(range(b, e)), units, 1)
                totals.append(sorted(seen) == list(range(units)))
        except RuntimeError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed and len(totals) == 750 and all(totals)


def test_no_threads_to_be_had(monkeypatch):
    """Where none can be started, the calling thread does it all."""
    monkeypatch.setattr(compiler_threads, "thread_count", lambda: 7)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    seen = []
    run_bands(lambda b, e: seen.extend(range(b, e)), 100, 1)
    assert sorted(seen) == list(range(100))


@pytest.mark.parametrize("end", ["atexit.register(call)", "threading.Thread(target=lambda: (threading.main_thread().join(), call())).start()"])
def test_calls_while_the_interpreter_ends(end):
    code = f"""
    import atexit, threading
    import numpy as np, fkl
    from fkl.compiler import threads
    threads.thread_count = lambda: 4
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite(), target="cpu")
    x = np.zeros((400, 16384), np.float32)
    k(x)
    def call():
        print((k(x) == 1).all(), flush=True)
    {end}
    """
    done = sub(code)
    assert done.stdout == "True\n" and not done.stderr


def test_forks_while_another_thread_compiles(tmp_path):
    """The child has no such thread: it compiles for itself, and keeps no lock of files that others wait for."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        "if '--version' not in sys.argv and not os.path.exists(os.environ['FAST']):\n"
        "    open(os.environ['BEGUN'], 'w').close()\n    time.sleep(2)\n"
        "os.execvp('c++', ['c++', *sys.argv[1:]])\n"
    )
    slow.chmod(0o755)
    code = """
    import os, signal, threading, time
    import numpy as np, fkl
    from fkl.compiler import cache
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.Mul(3.0), fkl.TensorWrite(), target="cpu")
    x = np.zeros((2, 16), np.float32)
    t = threading.Thread(target=k, args=(x,))
    t.start()
    while not os.path.exists(os.environ["BEGUN"]):
        time.sleep(0.01)
    open(os.environ["FAST"], "w").close()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        cache._PATIENCE = 0.1
        os._exit(0 if (k(x) == 3).all() else 3)
    idle = os.fork()
    if idle == 0:
        time.sleep(100)
        os._exit(0)
    print("child", os.waitpid(child, 0)[1], flush=True)
    t.join()
    cache._PATIENCE = 30
    begun = time.monotonic()
    names = os.listdir(os.environ["FKL_CACHE_DIR"])
    for name in names:
        with cache.claim(name):
            pass
    print("locks", len(names) > 0, time.monotonic() - begun < 10)
    os.kill(idle, 9)
    os.waitpid(idle, 0)
    """
    files = {"BEGUN": str(tmp_path / "begun"), "FAST": str(tmp_path / "fast"), "FKL_CACHE_DIR": str(tmp_path / "cache")}
    done = sub(code, CXX=str(slow), FKL_CACHE=None, **files)
    assert done.stdout == "child 0\nlocks True True\n", done.stderr


def test_results_do_not_depend_on_threads_and_survive_a_fork(monkeypatch):
    x = np.random.default_rng(0).normal(size=(700, 1100)).astype(np.float32)
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(1.5), fkl.Add(0.25), fkl.TensorWrite(), target="cpu")
    want = x * np.float32(1.5) + np.float32(0.25)
    assert (k(x) == want).all()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if (k(x) == want).all() else 3)
    assert os.waitpid(pid, 0)[1] == 0
    monkeypatch.setenv("FKL_NUM_THREADS", "1")
    assert (k(x) == want).all()
    row = x.reshape(1, -1)
    assert (k(row) == want.reshape(1, -1)).all()
