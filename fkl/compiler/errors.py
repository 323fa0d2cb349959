"""`CompileError`: a source that a compiler refused, or no compiler to give it to."""

from __future__ import annotations

__all__ = ["CompileError", "failed"]


class CompileError(RuntimeError):
    """A kernel could not be compiled.

    Attributes
    ----------
    log : str
        All that the compiler said.
    source : str
        The text it was given; empty if no compiler was found.
    path : str
        Where the source was kept for inspection; empty if it was not.
    """

    def __init__(self, message: str, log: str = "", source: str = "", path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.log = log
        self.source = source
        self.path = path

    def __reduce__(self) -> tuple[type[CompileError], tuple[str, str, str, str]]:
        return CompileError, (self.message, self.log, self.source, self.path)


def failed(compiler: str, options: list[str], log: str, source: str, suffix: str) -> CompileError:
    """The error of a source that was refused: short in its message, complete in its attributes.

    Parameters
    ----------
    compiler : str
        Name and version.
    options : list of str
    log : str
    source : str
        Kept in the temporary directory under a name with this ``suffix``.
    """
    import os
    import tempfile

    log = log.rstrip("\0\n ")
    path = ""
    try:
        handle, path = tempfile.mkstemp(prefix="fkl-", suffix=suffix)
        with os.fdopen(handle, "w") as file:
            file.write(source)
    except OSError as error:
        path = ""
        log += f"\n(the source could not be kept: {error})"
    lines = [line for line in log.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it gave no reason")
    parts = [f"{compiler} refused a kernel: {first.strip():.600}", f"options: {' '.join(options):.600}"]
    if path:
        parts.append(f"source: {path}")
    rest = "\n".join(f"  {line:.160}" for line in lines[:12])
    parts.append(f"log (all of it in .log):\n{rest}")
    return CompileError("\n".join(parts)[:3900], log, source, path)
