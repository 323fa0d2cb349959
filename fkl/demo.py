"""``python -m fkl demo``: a photograph through a network's preprocessing and back, in two kernels."""

from __future__ import annotations

import io
import sys
import time
from typing import Any, Literal

__all__ = ["run_demo"]

#: Mean and standard deviation of ImageNet's channels, the usual normalisation of vision networks.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
#: Timed calls.
CALLS = 200


def load_photograph(path: str | None) -> Any:
    """An RGB photograph (H, W, 3) in uint8: a file's, or one that scikit-image ships."""
    import numpy as np

    if path is None:
        from skimage import data

        return np.ascontiguousarray(data.astronaut()[..., :3])  # type: ignore[no-untyped-call]
    from PIL import Image

    try:
        with Image.open(path) as file:
            return np.asarray(file.convert("RGB"))
    except (Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise OSError(str(error)) from None


def reference(photo: Any) -> Any:
    """The preprocessing in NumPy, one operation after another."""
    import numpy as np

    x = photo.astype(np.float32) / np.float32(255)
    return ((x - np.array(MEAN, np.float32)) / np.array(STD, np.float32)).transpose(2, 0, 1)


def chains(target: Literal["gpu", "cpu"], source: Any = None, planes: Any = None, restored: Any = None) -> tuple[Any, Any]:
    """Preprocessing, packed uint8 -> normalised planes, and its inverse."""
    import fkl

    there = fkl.compose(
        fkl.TensorRead(source), fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub(MEAN), fkl.Div(STD),
        fkl.TensorSplit(planes), target=target,
    )  # fmt: skip
    back = fkl.compose(
        fkl.TensorPack(3, planes), fkl.Mul(STD), fkl.Add(MEAN), fkl.Mul(255.0), fkl.SaturateCast("uint8"),
        fkl.TensorWrite(restored), target=target,
    )  # fmt: skip
    return there, back


def on_gpu(photo: Any) -> tuple[str, float, float, Any, Any]:
    """Device, compile milliseconds, microseconds a call, normalised planes, restored photograph."""
    import fkl
    from fkl.runtime.context import current_device_index, device_name

    height, width, _ = photo.shape
    source = fkl.asarray(photo)
    planes = fkl.empty((3, height, width), "float32")
    restored = fkl.empty((height, width, 3), "uint8")
    begin = time.perf_counter()
    there, back = chains("gpu", source, planes, restored)
    compiled = time.perf_counter() - begin
    there()
    stream = fkl.Stream()
    start = stream.record(timing=True)
    for _ in range(CALLS):
        there(stream=stream)
    end = stream.record(timing=True)
    end.synchronize()
    back(stream=stream)
    stream.synchronize()
    name = f"cuda:{source.device}, {device_name(current_device_index())}"
    return name, compiled * 1e3, end.elapsed(start) * 1e3 / CALLS, planes.to_numpy(), restored.to_numpy()


def on_cpu(photo: Any) -> tuple[str, float, float, Any, Any]:
    """The same on the CPU target."""
    import numpy as np

    from fkl.compiler.host import compiler_info
    from fkl.compiler.threads import thread_count

    there, back = chains("cpu")
    begin = time.perf_counter()
    there.compile("uint8x3", photo.shape)
    back.compile("float32", (3, *photo.shape[:2]))
    compiled = time.perf_counter() - begin
    planes = np.empty((3, *photo.shape[:2]), np.float32)
    there(photo, out=planes)
    begin = time.perf_counter()
    for _ in range(CALLS):
        there(photo, out=planes)
    spent = time.perf_counter() - begin
    name = f"the CPU target, {thread_count()} threads, {compiler_info()[1]}"
    return name, compiled * 1e3, spent / CALLS * 1e6, planes, back(planes)


def write_picture(path: str, photo: Any, planes: Any, restored: Any) -> None:
    """Three pictures side by side: the photograph, what the network gets (stretched to 0..255), and the way back."""
    import numpy as np
    from PIL import Image

    seen = planes.transpose(1, 2, 0)
    low, high = seen.min(), seen.max()
    stretched = ((seen - low) * (255 / max(high - low, 1e-6))).astype(np.uint8)
    Image.fromarray(np.concatenate([photo, stretched, restored], axis=1)).save(path)


def check_output(path: str) -> str | None:
    """What is wrong with the name of the picture to write, before there is any work to lose."""
    from pathlib import Path

    from PIL import Image

    folder = Path(path).absolute().parent
    if not folder.is_dir():
        return f"cannot write {path}: there is no folder {folder}"
    kind = Image.registered_extensions().get(Path(path).suffix.lower())
    try:
        Image.new("RGB", (3, 1)).save(io.BytesIO(), kind or "")
    except (KeyError, ValueError, OSError):
        return f"cannot write {path}: its ending names no format of colour pictures; use .png or .jpg"
    return None


def run_demo(path: str | None, target: str, output: str) -> int:
    """Run the demonstration; returns the exit status."""
    import numpy as np

    from fkl.runtime.context import available

    try:
        wrong = check_output(output)
        if wrong:
            print(wrong, file=sys.stderr)
            return 2
        photo = load_photograph(path)
    except ImportError as error:
        print(f'the demonstration needs {error.name}: pip install "fkl-cuda[demo]"', file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot read {path}: {error}", file=sys.stderr)
        return 2
    if target == "auto":
        target = "gpu" if available() else "cpu"
    device, compiled, spent, planes, restored = on_gpu(photo) if target == "gpu" else on_cpu(photo)
    difference = float(np.abs(planes - reference(photo)).max())
    off = int(np.abs(restored.astype(np.int16) - photo).max())
    try:
        write_picture(output, photo, planes, restored)
    except (OSError, ValueError) as error:  # ValueError: a format with a limit that the size exceeds
        print(f"cannot write {output}: {error}", file=sys.stderr)
        return 2
    print(f"photograph            {photo.shape[1]} x {photo.shape[0]}, uint8 RGB")
    print("chain                 cast, / 255, - mean, / std, split into planes: one kernel; and back: another")
    print(f"device                {device}")
    print(f"compile time          {compiled:.1f} ms for both kernels (a few when they come from the cache)")
    print(f"time per call         {spent:.1f} us, mean of {CALLS}")
    print(f"difference to NumPy   {difference:g} at most (0: equal bit for bit)")
    print(f"after the way back    {off} of 255 at most")
    print(f"picture               {output}: the photograph, what a network gets, the way back")
    return 0 if difference == 0 and off == 0 else 1
