"""Every example runs on the GPU. Those with a photograph need scikit-image and Pillow."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Run as from the command line, then ask whether code was loaded on a device.
RUN = """
import runpy, sys
sys.argv, sys.path[0] = [{path!r}], {folder!r}
runpy.run_path({path!r}, run_name="__main__")
from fkl.variant import loaded_modules
assert loaded_modules() > 0, "nothing ran on the GPU"
"""


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("[0-9]*.py")), ids=lambda p: p.name)
def test_example(path):
    if "photograph" in path.read_text() or "picture(" in path.read_text():
        for module in ("skimage", "PIL"):
            pytest.importorskip(module)
    code = RUN.format(path=str(path), folder=str(EXAMPLES))
    done = subprocess.run([sys.executable, "-P", "-c", "import sys; sys.path.insert(0, '')\n" + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
