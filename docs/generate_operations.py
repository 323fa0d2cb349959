"""Write docs/operations.md from the operations themselves; a test compares the file with what this makes.

    python docs/generate_operations.py

Which types an operation takes and what it gives is asked of the operation, type by type; which test compares it with
what is said in `ORACLES`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import fkl
from fkl.dtypes import DType
from fkl.operations.base import Elementwise, Geometry, Operation, Read, Write

BASES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
    "float32", "float64",
)  # fmt: skip
INTEGERS, FLOATS = BASES[1:9], BASES[9:]

HEAD = f"""# Operations

Made by `docs/generate_operations.py` from the code. A chain means the same as applying its operations to whole arrays, one
after another. Bases are {", ".join(BASES[:9])},
{", ".join(BASES[9:])}; *integers* are the eight from uint8 to int64, *floats* the last four. A pixel
has 1 to 4 channels. 16-bit floats compute in float32 and round after each operation. Values are one number, or one a
channel, and must fit the chain's type where they stand. `Add Sub Mul Div Max Min AbsDiff BwAnd BwOr BwXor` also take a
bound read: a second array.

*Gives* is the type after the operation. *Compared with* names the independent oracle of the tests, and in brackets the file of
`tests/operations`. Every operation is also compiled by NVRTC for all architectures, and run on both targets with equal
bits (but for `Exp`, `Ln` and `Pow`).

"""

MATRIX, GEOMETRY, COLOR, LAYOUTS = "matrix_cpu", "geometry", "color_video", "reads_writes"
#: What a test compares an operation with, and where: the oracle, the file.
ORACLES: dict[str, tuple[str, str]] = {
    "Abs": ("NumPy, exact", MATRIX),
    "AbsDiff": ("Python integers and NumPy, exact", MATRIX),
    "Add": ("NumPy, exact", MATRIX),
    "AddLast": ("NumPy, exact", MATRIX),
    "BorderReader": ("`numpy.pad`, exact", GEOMETRY),
    "BwAnd": ("NumPy, exact", MATRIX),
    "BwNot": ("NumPy, exact", MATRIX),
    "BwOr": ("NumPy, exact", MATRIX),
    "BwXor": ("NumPy, exact", MATRIX),
    "Cast": ("NumPy in range, limits beyond, exact", MATRIX),
    "ColorConversion": ("`cv2.cvtColor`: uint8 1, uint16 2, float32 1e-6", COLOR),
    "ConvertRGBToYUV": ("ITU formula in float64, 1e-5 of the scale", COLOR),
    "ConvertYUVToRGB": ("ITU formula in float64, 1e-5 of the scale; OpenCV 1 of 255", COLOR),
    "Crop": ("slices, exact", GEOMETRY),
    "Deinterlace": ("NumPy, exact", GEOMETRY),
    "Discard": ("NumPy, exact", MATRIX),
    "Div": ("NumPy; integers: Python, truncated; exact", MATRIX),
    "Exp": ("float64 function (mpmath for float64)", MATRIX),
    "IsEven": ("Python integers, exact", MATRIX),
    "Ln": ("float64 function (mpmath for float64)", MATRIX),
    "Max": ("`numpy.fmax`, exact", MATRIX),
    "Min": ("`numpy.fmin`, exact", MATRIX),
    "Mul": ("NumPy, exact", MATRIX),
    "MxVFloat3": ("NumPy in float32, exact", MATRIX),
    "Neg": ("NumPy, exact", MATRIX),
    "PerThreadRead": ("NumPy, exact", LAYOUTS),
    "PerThreadWrite": ("NumPy, exact", LAYOUTS),
    "Pow": ("float64 function (mpmath for float64)", MATRIX),
    "ReadSet": ("NumPy, exact", LAYOUTS),
    "ReadYUV": ("NumPy, exact; OpenCV after the matrix", COLOR),
    "Resize": ("`cv2.resize` 2e-6 (cubic 5e-6), PIL 1e-5, float64 formulas; nearest exact", GEOMETRY),
    "Saturate": ("`numpy.clip`, exact", MATRIX),
    "SaturateCast": ("`numpy.rint` and `clip`, Python integers, exact", MATRIX),
    "SaturateFloat": ("NumPy, exact", MATRIX),
    "ShiftLeft": ("NumPy, exact", MATRIX),
    "ShiftRight": ("NumPy, exact", MATRIX),
    "SplitWrite": ("NumPy, exact", LAYOUTS),
    "Sqr": ("NumPy, exact", MATRIX),
    "Sqrt": ("NumPy, exact", MATRIX),
    "StaticLoop": ("the operations in turn, exact", MATRIX),
    "Sub": ("NumPy, exact", MATRIX),
    "TensorPack": ("NumPy, exact", LAYOUTS),
    "TensorRead": ("NumPy, exact", LAYOUTS),
    "TensorSplit": ("NumPy, exact", LAYOUTS),
    "TensorTSplit": ("NumPy, exact", LAYOUTS),
    "TensorWrite": ("NumPy, exact", LAYOUTS),
    "VectorAnd": ("NumPy, exact", MATRIX),
    "VectorReduce": ("Python integers and NumPy, exact", MATRIX),
    "VectorReorder": ("NumPy, exact", MATRIX),
    "VectorReorderRT": ("NumPy, exact", MATRIX),
    "Warping": ("float64 formula; `cv2.warpPerspective` 1e-3", GEOMETRY),
}


def examples(cls: type, channels: int) -> Iterator[Operation]:
    """Operations of a class whose types together are all that the class takes with so many channels."""
    name = cls.__name__
    if name == "ReadSet":
        yield from (cls(0, 1, 1, (base, channels)) for base in BASES)
    elif name in ("Cast", "SaturateCast"):
        yield from (cls(base) for base in BASES)
    elif name == "ColorConversion":
        orders = "BGR", "RGB", "BGRA", "RGBA"
        yield from (cls(f"{a}2{b}") for a in (*orders, "GRAY") for b in (*orders, "GRAY") if a != b)
        yield from (cls(f"{a}2{b}") for space in ("HSV", "YUV") for a, b in ((space, "RGB"), ("RGB", space)))
    elif name in ("ConvertYUVToRGB", "ConvertRGBToYUV"):
        yield from (cls(), cls(alpha=1))
    elif name == "ReadYUV":
        yield from (cls("nv12"), cls("p010"))
    elif name == "Resize":
        yield from (cls(4, 4), cls(4, 4, "nearest"))
    elif name == "Warping":
        yield from (cls([[1, 0, 0], [0, 1, 0]], 4, 4, interp) for interp in ("linear", "nearest"))
    elif name in ("VectorReorder", "VectorReorderRT"):
        yield cls(*range(channels))
    elif name == "Discard":
        yield from (cls(keep) for keep in range(1, channels))
    elif name == "VectorReduce":
        yield from (cls("add"), cls("max"))
    else:
        number = "Add Sub Mul Div Max Min AbsDiff Pow BwAnd BwOr BwXor AddLast ShiftLeft ShiftRight"
        simple = {
            **{takes_one: (1,) for takes_one in number.split()},
            "Crop": (0, 0, 1, 1), "Saturate": (0, 1), "TensorPack": (channels,), "MxVFloat3": ([[1, 0, 0]] * 3,),
        }  # fmt: skip
        if name == "StaticLoop":
            yield cls(fkl.VectorReorder(*range(channels)), 1)
        else:
            yield cls(*simple.get(name, ()))


def transitions(cls: type) -> dict[DType, set[DType]]:
    """The types that a class takes, each with those it may give."""
    found: dict[DType, set[DType]] = {}
    for base in BASES:
        for channels in (1, 2, 3, 4):
            before = DType(base, channels)
            for op in examples(cls, channels):
                try:
                    lowered = op.sample(before, extended=False, roll=False) if isinstance(op, Geometry) else op.lower(before)
                except (TypeError, ValueError):
                    continue
                found.setdefault(before, set()).add(lowered.out)
    return found


def words_for(bases: list[str]) -> str:
    """A set of bases in few words."""
    if len(bases) == len(BASES):
        return "all"
    words = []
    for group, name in ((INTEGERS, "integers"), (FLOATS, "floats")):
        if set(group) <= set(bases):
            words.append(name)
            bases = [b for b in bases if b not in group]
    return ", ".join([*bases, *words])


def numbers(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    if low == high:
        return str(low)
    return f"{low} to {high}" if len(counts) == high - low + 1 > 2 else ", ".join(map(str, sorted(counts)[:-1])) + f" or {high}"


def counted(counts: set[int]) -> str:
    return f"{numbers(counts)} channel" + "s" * (counts != {1})


def takes(found: dict[DType, set[DType]]) -> str:
    bases = [b for b in BASES if any(t.base == b for t in found)]
    counts = {t.channels for t in found}
    return words_for(bases) + ("" if len(counts) == 4 else f"; {counted(counts)}")


def gives(cls: type, found: dict[DType, set[DType]]) -> str:
    """What a class gives, in few words."""
    if cls.__name__ in ("Cast", "SaturateCast"):
        return "the named base"
    if cls.__name__ == "ReadSet":
        return "the named type"
    changed = {after.base for before, afters in found.items() for after in afters if after.base != before.base}
    kept = [b for b in BASES if any(after.base == b for before, afters in found.items() for after in afters if before.base == b)]
    nearest = cls.__name__ in ("Resize", "Warping")
    base = "the same"
    if changed:
        (target,) = changed
        still = [b for b in FLOATS if b != target and b in kept]
        base = target + (f" ({', '.join(still)} and nearest: the same)" if nearest else "")
    shifts = {after.channels - before.channels for before, afters in found.items() for after in afters}
    if shifts == {0}:
        return base
    counts = {after.channels for afters in found.values() for after in afters}
    if shifts == {1}:
        return f"{base}, one channel more"
    return f"{base}, fewer channels" if max(shifts) < 0 else f"{base}, {counted(counts)}"


def summary(cls: type) -> str:
    """The docstring's first paragraph on one line."""
    text = inspect.getdoc(cls) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def signature(cls: type) -> str:
    try:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        return cls.__name__ + "()"
    shown = [str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters if p.name not in ("args", "kwargs")]
    return f"{cls.__name__}({', '.join(shown)})"


def classes(base: type) -> list[type]:
    """The public operations of a kind."""
    public = [getattr(fkl, n) for n, home in sorted(fkl._HOME.items()) if home == "fkl.operations"]
    return [cls for cls in public if inspect.isclass(cls) and issubclass(cls, base) and cls is not base]


def text() -> str:
    out = [HEAD]
    for title, base in (("Reads", Read), ("Writes", Write), ("Geometry", Geometry), ("Elementwise", Elementwise)):
        out.append(f"## {title}\n\n| operation | meaning | takes | gives | compared with |\n|---|---|---|---|---|\n")
        for cls in classes(base):
            found = transitions(cls)
            oracle, where = ORACLES[cls.__name__]
            out.append(f"| `{signature(cls)}` | {summary(cls)} | {takes(found)} | {gives(cls, found)} | {oracle} [{where}] |\n")
        out.append("\n")
    return "".join(out).rstrip() + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("operations.md").write_text(text())
