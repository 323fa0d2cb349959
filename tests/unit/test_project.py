"""The project's own rules: import arrows, complete build files, a lean import, types that match."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "fkl"

#: room -> rooms of fkl that it must not import at any depth of its text.
FORBIDDEN = {
    "dtypes": {"operations", "plan", "codegen", "compiler", "runtime", "kernel", "variant", "binding", "chain", "gpu", "host"},
    "operations": {"plan", "codegen", "compiler", "runtime", "kernel", "variant", "binding", "chain", "gpu", "host"},
    "plan": {"codegen", "compiler", "runtime", "kernel", "variant", "binding", "chain", "gpu", "host"},
    "codegen": {"compiler", "runtime", "kernel", "variant", "binding", "chain", "gpu", "host"},
    "compiler": {"operations", "plan", "codegen", "kernel", "variant", "binding", "chain", "gpu", "host", "layout", "grid"},
    "runtime": {"operations", "plan", "codegen", "compiler", "kernel", "variant", "binding", "chain", "gpu", "host", "layout"},
    "layout": {"plan", "codegen", "compiler", "runtime", "kernel", "variant", "binding", "chain", "gpu", "host"},
    "binding": {"codegen", "compiler", "runtime", "kernel", "variant", "chain", "gpu", "host"},
    "variant": {"kernel", "chain", "gpu", "host", "binding"},
    "chain": {"kernel", "gpu", "host", "runtime", "compiler"},
}


def sources(room: str) -> list[Path]:
    at = PACKAGE / room
    return sorted(p for p in at.rglob("*.p*") if p.suffix in (".py", ".pyx", ".pxd")) if at.is_dir() else [at.with_suffix(".py")]


def imported(path: Path) -> set[str]:
    """The rooms that a file imports or cimports."""
    found = re.findall(r"^\s*(?:from\s+fkl\.(\w+)[\w.]*\s+c?import|c?import\s+fkl\.(\w+))", path.read_text(), re.M)
    return {a or b for a, b in found}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_arrows(room):
    for path in sources(room):
        wrong = imported(path) & FORBIDDEN[room]
        if room == "compiler" and wrong == {"runtime"}:
            continue
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_every_file_is_installed():
    for folder in [PACKAGE, *(p for p in PACKAGE.iterdir() if p.is_dir() and (p / "meson.build").exists())]:
        build = (folder / "meson.build").read_text()
        for path in folder.iterdir():
            if path.suffix in (".py", ".pyi", ".typed", ".pyx"):
                named = f"'{path.name}'" in build or (path.suffix == ".pyx" and f"'{path.stem}'" in build)
                assert named, f"{path.relative_to(ROOT)} is missing in meson.build"


def test_public_names_resolve_and_have_docstrings():
    import fkl

    assert set(fkl.__all__) <= set(dir(fkl))
    for name in fkl.__all__:
        value = getattr(fkl, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), name
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        fkl.Nothing  # noqa: B018


def test_stub_and_lazy_table_name_the_same_things():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    typed = {a.asname for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    import fkl
    import fkl.operations

    lazy = {name for name, home in fkl._HOME.items() if home != "fkl.operations"}
    assert typed == lazy
    assert {name for name, home in fkl._HOME.items() if home == "fkl.operations"} == set(fkl.operations.__all__)


def test_import_is_lean():
    code = """
import sys
before = set(sys.modules)
import fkl
heavy = {m.partition(".")[0] for m in set(sys.modules) - before} & {"numpy", "torch", "cupy", "ctypes", "cuda", "platformdirs", "asyncio"}
assert not heavy, heavy
fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
assert "numpy" not in sys.modules and "torch" not in sys.modules
assert not any("libcuda" in line or "nvrtc" in line for line in open("/proc/self/maps"))
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


@pytest.mark.parametrize("command", [[], ["--help"], ["info"], ["cache"], ["demo", "--help"]])
def test_command_line_explains_itself(command):
    done = subprocess.run([sys.executable, "-P", "-m", "fkl", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if command == ["info"]:
        for word in ("CUDA driver", "NVRTC", "host compiler", "cache", "CPU target"):
            assert word in done.stdout
    if not command:
        assert "demo" in done.stdout and "info" in done.stdout


def test_demo_on_the_cpu_target(tmp_path):
    picture = tmp_path / "out.png"
    command = [sys.executable, "-P", "-m", "fkl", "demo", "--target", "cpu", "--output", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "difference to NumPy   0 at most" in done.stdout
    from PIL import Image

    with Image.open(picture) as image:
        assert image.size == (3 * 512, 512)
    bad = subprocess.run([*command, "nothing.jpg"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2 and "nothing.jpg" in bad.stderr and "Traceback" not in bad.stderr


@pytest.mark.parametrize(
    ("command", "settings", "status", "words"),
    [
        (["demo", "--target", "gpu"], {"FKL_CUDA_DRIVER": "/nowhere/libcuda.so.1"}, 2, "/nowhere/libcuda.so.1"),
        (["demo", "--target", "cpu"], {"CXX": "/nowhere/c++"}, 2, "/nowhere/c++"),
        (["demo", "--output", "/nowhere/x.png"], {}, 2, "no folder /nowhere"),
        (["demo", "--output", "x.tensor"], {}, 2, "x.tensor: its ending"),
        (["demo", "--output", "x.psd"], {}, 2, "x.psd: its ending"),
        (["demo", "--output", "x.blp"], {}, 2, "x.blp: its ending"),
        (["demo", "--target", "cpu"], {"CXX": '"'}, 2, "No closing quotation"),
        (["cache"], {"FKL_MODULE_CACHE": "", "FKL_LAUNCH": " ", "FKL_CACHE_SIZE": "", "FKL_NUM_THREADS": ""}, 0, "entries"),
        (["info"], {"FKL_LAUNCH": "banana"}, 2, "FKL_LAUNCH"),
        (["info"], {"FKL_MODULE_CACHE": "x"}, 2, "FKL_MODULE_CACHE"),
        (["demo"], {"FKL_CACHE_SIZE": "banana"}, 2, "FKL_CACHE_SIZE"),
        (["info"], {"FKL_NUM_THREADS": "x"}, 2, "FKL_NUM_THREADS"),
        (["cache"], {"FKL_CACHE_DIR": "/proc/nowhere"}, 0, "FKL_CACHE_DIR names another"),
        (["cache"], {"FKL_CACHE": "0"}, 0, "FKL_CACHE=0 switches it off"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(command, settings, status, words):
    environment = {**os.environ, **settings}
    done = subprocess.run([sys.executable, "-P", "-m", "fkl", *command], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == status and words in done.stdout + done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_pictures_that_are_too_large(tmp_path):
    from PIL import Image

    bomb = tmp_path / "bomb.png"
    Image.new("1", (30_000, 12_000)).save(bomb)
    done = subprocess.run([sys.executable, "-P", "-m", "fkl", "demo", str(bomb)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and f"cannot read {bomb}" in done.stderr and "Traceback" not in done.stderr


def test_output_that_nobody_takes():
    command = [sys.executable, "-P", "-m", "fkl", "info"]
    for unbuffered in ("", "1"):
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=environment)
        os.close(writer)
        assert done.returncode == 1 and not done.stderr
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
        assert done.returncode == 1 and "No space left" in done.stderr and done.stderr.count("\n") == 1


def test_the_table_of_operations_is_up_to_date():
    import importlib.util

    spec = importlib.util.spec_from_file_location("generate_operations", ROOT / "docs" / "generate_operations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "operations.md").read_text() == module.text(), "run python docs/generate_operations.py"
    cases = (ROOT / "tests" / "matrix.py").read_text()
    for name, (_, where) in module.ORACLES.items():
        tests = (ROOT / "tests" / "operations" / f"test_{where}.py").read_text() + (cases if where == module.MATRIX else "")
        assert name in tests, f"{name} is not in tests/operations/test_{where}.py"


def test_every_cython_module_has_a_stub():
    for path in PACKAGE.rglob("*.pyx"):
        assert path.with_suffix(".pyi").exists(), path.relative_to(ROOT)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="for free-threaded interpreters")
def test_no_extension_brings_the_lock_back():
    extensions = ["fkl.kernel", "fkl.sequences", "fkl.patch", "fkl.repeat", "fkl.runtime.buffer", "fkl.runtime.launch", "fkl.runtime.stream"]
    code = f"import sys, {', '.join(extensions)}; assert not sys._is_gil_enabled()"
    done = subprocess.run([sys.executable, "-P", "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_module_hides_a_public_name():
    """Importing a module sets it as an attribute of the package."""
    modules = {path.name.partition(".")[0] for path in (ROOT / "fkl").iterdir() if not path.name.startswith("_")}
    import fkl

    assert not modules & set(fkl.__all__)
