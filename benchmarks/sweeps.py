"""Sweeps: copies and casts of every dtype and layout at 256 MB, and bandwidth over image sizes and batches.

    python benchmarks/sweeps.py

Timed like `kernels.py`. A copy or cast is compared with a device-to-device copy that moves as many bytes. Needs a GPU and torch.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from common import arguments, interleaved, save, table
from kernels import NORMALISE, captured, copies

import fkl
from fkl.runtime.context import available

BYTES = 256 << 20
LEAST = 0.90
SIZES = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8, "float16": 2,
    "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip


def fill(torch, name: str, shape):
    """A tensor of random bits that mean numbers."""
    dtype = getattr(torch, name)
    if name == "bool":
        return torch.randint(0, 2, shape, dtype=torch.uint8, device="cuda").view(torch.bool)
    if dtype.is_floating_point:
        return (torch.rand(shape, device="cuda") * 200).to(dtype)
    bits = torch.randint(0, 100, (int(np.prod(shape)) * SIZES[name],), dtype=torch.uint8, device="cuda")
    return bits.view(dtype).view(shape)


def moved_once(torch, name: str, channels: int, kind: str, to: str | None):
    """One copy or cast: (kernel, input, output, bytes moved)."""
    out = to or name
    pixels = 2 * BYTES // (channels * (SIZES[name] + SIZES[out])) // 4096 * 4096
    packed, planar = (pixels // 4096, 4096, channels), (channels, pixels // 4096, 4096)
    x = fill(torch, name, planar if kind == "pack" else packed)
    o = torch.empty(planar if kind == "split" else packed, dtype=getattr(torch, out), device="cuda")
    read = fkl.TensorPack(channels, x) if kind == "pack" else fkl.TensorRead(x)
    write = fkl.TensorSplit(o) if kind == "split" else fkl.TensorWrite(o)
    cast = [fkl.SaturateCast(out)] if to else []
    return fkl.compose(read, *cast, write), x, o, pixels * channels * (SIZES[name] + SIZES[out])


def layouts(torch) -> dict[str, dict[str, float]]:
    """Copies of every dtype, channel count and layout; casts of every dtype from and to float32 and uint8."""
    cases = [(name, c, kind, None) for name in SIZES for c in (1, 2, 3, 4) for kind in ("packed", "split", "pack") if c > 1 or kind == "packed"]
    cases += [(name, c, kind, to) for name in SIZES for to in ("float32", "uint8") if name != to
              for c in (1, 3) for kind in ("packed", "split") if c > 1 or kind == "packed"]  # fmt: skip
    cases += [("float32", 3, "packed", to) for to in SIZES if to not in ("float32", "bool")]
    found = {}
    for name, channels, kind, to in cases:
        kernel, x, o, moved = moved_once(torch, name, channels, kind, to)
        kernel()
        torch.cuda.synchronize()
        if to is None:
            want = x if kind == "packed" else x.movedim(-1, 0) if kind == "split" else x.movedim(0, -1)
            assert torch.equal(o.view(torch.uint8), want.contiguous().view(torch.uint8)), (name, channels, kind)
        times = interleaved({"fkl": captured(torch, [kernel], 1.0), "copy": captured(torch, copies(torch, moved, 1), 1.0)}, rounds=3)
        label = f"{name}x{channels} {kind}" + (f" to {to}" if to else "")
        found[label] = {"microseconds": times["fkl"], "copy": times["copy"], "GB/s": moved / times["fkl"] / 1e3, "of a copy": times["copy"] / times["fkl"]}
        del kernel, x, o
    return found


def bandwidth(torch) -> dict[str, list[dict[str, Any]]]:
    """GB/s of two chains, and of a copy of the same bytes, over square images and over batches of 256x256."""
    found: dict[str, list[dict[str, Any]]] = {"float32, six operations": [], "uint8x3, normalised, to planes": [], "the same, batches of 256x256": []}
    six = [fkl.Mul(2.0), fkl.Add(1.0), fkl.Mul(3.0), fkl.Sub(4.0), fkl.Div(5.0), fkl.Max(0.0)]

    def one(name, shape, out_shape, dtype, ops, write, each, **about):
        moved = int(np.prod(shape)) * each
        count = max(1, min(16, 200_000_000 // moved))
        xs = [fill(torch, dtype, shape) for _ in range(count)]
        outs = [torch.empty(out_shape, device="cuda") for _ in range(count)]
        kernels = [fkl.compose(fkl.TensorRead(x), *ops, write(o)) for x, o in zip(xs, outs, strict=True)]
        times = interleaved({"fkl": captured(torch, kernels, 1.0), "copy": captured(torch, copies(torch, moved, count), 1.0)}, rounds=3)
        found[name].append({**about, "bytes": moved, "microseconds": times["fkl"], "GB/s": moved / times["fkl"] / 1e3, "copy GB/s": moved / times["copy"] / 1e3})

    for side in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384):
        one("float32, six operations", (side, side), (side, side), "float32", six, fkl.TensorWrite, 8, side=side)
        one("uint8x3, normalised, to planes", (side, side, 3), (3, side, side), "uint8", [fkl.Cast("float32"), *NORMALISE], fkl.TensorSplit, 5, side=side)
    for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        one("the same, batches of 256x256", (batch, 256, 256, 3), (batch, 3, 256, 256), "uint8", [fkl.Cast("float32"), *NORMALISE],
            fkl.TensorSplit, 5, batch=batch)  # fmt: skip
    return found


def main() -> None:
    args = arguments(__doc__)
    if not available():
        sys.exit("this benchmark needs a CUDA GPU")
    import torch

    found = layouts(torch)
    low = {label: v for label, v in found.items() if v["of a copy"] < LEAST}
    values = sorted(v["of a copy"] for v in found.values())
    print(f"{len(found)} copies and casts of 256 MB: {values[0]:.2f} to {values[-1]:.2f} of a copy's speed, median {values[len(values) // 2]:.2f}")
    if low:
        table([("below 0.90", "us", "of a copy"), *((label, f"{v['microseconds']:.0f}", f"{v['of a copy']:.2f}") for label, v in low.items())])
    sizes = bandwidth(torch)
    for name, rows in sizes.items():
        print(name)
        table([("size", "us", "GB/s", "copy GB/s"), *((str(r.get("side", r.get("batch"))), f"{r['microseconds']:.1f}", f"{r['GB/s']:.0f}",
                                                        f"{r['copy GB/s']:.0f}") for r in rows)])  # fmt: skip
    save(args.out, "sweeps", {"copies and casts": found, "sizes": sizes})


if __name__ == "__main__":
    main()
