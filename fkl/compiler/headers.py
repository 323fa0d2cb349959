"""The device headers as text: what every compile includes and every cache key digests."""

from __future__ import annotations

import functools
import hashlib

__all__ = ["digest", "header_texts", "include_root"]


@functools.cache
def include_root() -> str:
    """The directory that holds ``fkl/core.h``."""
    from importlib.resources import files
    from pathlib import Path

    # Through a file, since an editable install shows folders that the file system does not have.
    return str(Path(str(files("fkl") / "include" / "fkl" / "core.h")).parent.parent)


@functools.cache
def header_texts() -> dict[str, bytes]:
    """Every header by the name it is included with, such as ``fkl/core.h``."""
    import os

    folder = include_root() + "/fkl"
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".h"):
            with open(f"{folder}/{name}", "rb") as file:
                found["fkl/" + name] = file.read()
    return found


@functools.cache
def digest() -> bytes:
    """Digest of all headers."""
    total = hashlib.sha256()
    for name, text in header_texts().items():
        total.update(b"%s\0%d\0" % (name.encode(), len(text)))
        total.update(text)
    return total.digest()
