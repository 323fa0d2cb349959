"""Unbound kernels as arguments of other libraries' tasks, in processes of their own. Each needs its library."""

import importlib.metadata
import subprocess
import sys

import pytest

MAKE = """
import os
import fkl, numpy as np

k = fkl.compose(fkl.TensorRead(), fkl.Resize(8, 6), fkl.Div(255.0), fkl.TensorSplit(), target="cpu")
images = [np.random.default_rng(i).integers(0, 256, (20 + i, 30, 3), dtype=np.uint8) for i in range(8)]

def work(kernel, image):
    return kernel(image), os.getpid()
"""
CHECK = """
assert all(np.array_equal(got, k(image)) for (got, _), image in zip(results, images, strict=True))
assert os.getpid() not in {process for _, process in results}
"""
RAY = """
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
task = ray.remote(work)
results = ray.get([task.remote(k, image) for image in images])
"""
DASK = """
import dask
with dask.config.set({"multiprocessing.context": "spawn"}):
    tasks = [dask.delayed(work)(k, image) for image in images]
    results = dask.compute(*tasks, scheduler="processes", num_workers=2)
"""


@pytest.mark.parametrize(("library", "spread"), [("ray", RAY), ("dask", DASK)])
def test_tasks(library, spread, tmp_path):
    if not any(True for _ in importlib.metadata.distributions(name=library)):
        pytest.skip(f"{library} is not installed")
    script = tmp_path / "main.py"
    script.write_text(MAKE + 'if __name__ == "__main__":\n' + "".join(f"    {line}\n" for line in (spread + CHECK).splitlines()))
    done = subprocess.run([sys.executable, "-P", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
