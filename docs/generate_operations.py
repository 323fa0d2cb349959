"""Write docs/operations.md from the operations themselves; a test compares the file with what this makes.

    python docs/generate_operations.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import fkl
from fkl.operations.base import Elementwise, Geometry, Read, Write

HEAD = """# Operations

Made by `docs/generate_operations.py` from the code. A chain means the same as applying its operations to whole arrays, one
after another. Bases: bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64, float16, bfloat16, float32, float64; a
pixel has 1 to 4 channels. 16-bit floats compute in float32 and round after each operation. Values are one number, or one a
channel, and must fit the chain's type where they stand. `Add Sub Mul Div Max Min AbsDiff BwAnd BwOr BwXor` also take a bound
read: a second array.

"""


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


def text() -> str:
    classes = [getattr(fkl, n) for n, home in sorted(fkl._HOME.items()) if home == "fkl.operations"]
    kinds = [("Reads", Read), ("Writes", Write), ("Geometry", Geometry), ("Elementwise", Elementwise)]
    out = [HEAD]
    for title, base in kinds:
        elementwise = base is Elementwise
        columns = "| operation | takes | meaning |\n|---|---|---|\n" if elementwise else "| operation | meaning |\n|---|---|\n"
        out.append(f"## {title}\n\n{columns}")
        for cls in classes:
            if inspect.isclass(cls) and issubclass(cls, base) and cls is not base:
                takes = f"{', '.join(cls.takes)} | " if elementwise else ""
                out.append(f"| `{signature(cls)}` | {takes}{summary(cls)} |\n")
        out.append("\n")
    return "".join(out).rstrip() + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("operations.md").write_text(text())
