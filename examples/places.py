"""Where the examples run: on the GPU if there is one, else on the CPU target, with the same chains."""

from __future__ import annotations

import numpy as np

import fkl
from fkl.runtime.context import available

TARGET = "gpu" if available() else "cpu"


def put(array: np.ndarray):
    """The array where the chains run."""
    return fkl.asarray(array) if TARGET == "gpu" else array


def get(result) -> np.ndarray:
    """A result as a NumPy array."""
    return result if isinstance(result, np.ndarray) else result.to_numpy()


def photograph() -> np.ndarray:
    """A real photograph, shipped with scikit-image."""
    from skimage import data

    return np.ascontiguousarray(data.astronaut()[..., :3])


def picture(name: str, array: np.ndarray) -> None:
    """Write a PNG into the temporary directory and say where."""
    import tempfile

    from PIL import Image

    path = f"{tempfile.gettempdir()}/fkl-{name}.png"
    Image.fromarray(array).save(path)
    print("picture:", path)
