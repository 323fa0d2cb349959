"""A folder of images spread over worker processes with Dask. An unbound kernel travels as its chain and values; the first worker
compiles it, the others find it in the cache.

    python examples/13_folder_of_images.py [folder]

Without Dask (pip install dask) the standard library's process pool does the same.
"""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from places import TARGET, get, photograph, put

import fkl

WORKERS = 2


def prepare(kernel, paths):
    """In a worker: the mean of every prepared image, and which process did it."""
    found = {}
    for path in paths:
        pixels = np.ascontiguousarray(Image.open(path).convert("RGB"))
        planes = get(kernel(put(pixels)))
        found[path.name] = (planes.shape, float(planes.mean()), os.getpid())
    return found


def some_images(folder: Path) -> None:
    """Pieces of a photograph, of different sizes."""
    photo = photograph()
    for i in range(12):
        Image.fromarray(photo[i * 10 : 250 + i * 20, i * 5 : 300 + i * 15]).save(folder / f"piece{i:02}.png")


def spread(kernel, groups):
    """Every group in a process of a pool; spawned, since CUDA does not survive a fork."""
    try:
        import dask
        from dask import delayed
    except ImportError:
        from concurrent.futures import ProcessPoolExecutor

        with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
            return list(pool.map(prepare, [kernel] * len(groups), groups))
    with dask.config.set({"multiprocessing.context": "spawn"}):
        tasks = [delayed(prepare)(kernel, group) for group in groups]
        return dask.compute(*tasks, scheduler="processes", num_workers=WORKERS, chunksize=1)


def main() -> None:
    operations = [fkl.Resize(224, 224, "linear", "preserve", 114, antialias=True), fkl.Div(255.0)]
    kernel = fkl.compose(fkl.TensorRead(), *operations, fkl.TensorSplit(), target=TARGET)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary)
        if len(sys.argv) == 1:
            some_images(folder)
        paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
        groups = [paths[i::4] for i in range(4) if paths[i::4]]
        found = {name: value for part in spread(kernel, groups) for name, value in part.items()}
        for name, (shape, mean, process) in sorted(found.items()):
            print(f"{name}: {shape}, mean {mean:.4f}, by process {process}")
        assert len(found) == len(paths)
        if paths:
            # The same here, to compare.
            first = prepare(kernel, paths[:1])[paths[0].name]
            assert first[:2] == found[paths[0].name][:2]


if __name__ == "__main__":
    main()
