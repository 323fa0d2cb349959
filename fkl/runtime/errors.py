"""`CudaError`: what the driver refused, and what to do about it. Raised by `fkl.runtime.driver`."""

from __future__ import annotations

__all__ = ["STICKY", "CudaError"]

#: Codes after which the process can use the device no more (illegal address, assert, hardware faults, ...).
STICKY = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719})

_CAPTURE = (
    "a stream is being captured into a CUDA graph, which forbids this call. Do it before the capture (compose or "
    "k.compile(...) first), or pass stream= with the stream that captures"
)
_ADVICE = {
    2: "the device has no memory left for this; free buffers, or use smaller ones",
    3: "the driver is shutting down or was never initialised",
    4: "the driver is shutting down",
    34: (
        "this libcuda.so.1 is the stub of a CUDA toolkit, not a driver; take the stubs folder out of LD_LIBRARY_PATH, "
        'or use target="cpu"'
    ),
    100: 'no CUDA device was found; target="cpu" works without one',
    209: "the compiled code does not fit this device; a cached entry of another machine may be at fault (FKL_CACHE=0)",
    222: "the code was compiled by an NVRTC newer than the driver; install the NVRTC wheel of the driver's major version",
    999: "an unknown error of the driver; the system log (dmesg, Xid) may tell more",
}


class CudaError(RuntimeError):
    """A CUDA driver call failed, or there is no driver to call.

    Attributes
    ----------
    code : int
        The driver's ``CUresult``; -1 if the driver could not be opened, or must not be used in this process.
    name : str
        Such as ``"CUDA_ERROR_OUT_OF_MEMORY"``.
    text : str
        The driver's own description.
    call : str
        The entry point that failed, such as ``"cuMemAlloc"``.
    """

    def __init__(self, code: int, name: str, text: str, call: str, note: str = "") -> None:
        self.code = code
        self.name = name
        self.text = text
        self.call = call
        self.note = note or advice(code)
        message = f"{call}: {name} ({code}): {text}" if code >= 0 else text
        super().__init__(f"{message}; {self.note}" if self.note else message)

    def __reduce__(self) -> tuple[type[CudaError], tuple[int, str, str, str, str]]:
        return CudaError, (self.code, self.name, self.text, self.call, self.note)


def advice(code: int) -> str:
    """What a user can do about an error code; empty if nothing is known."""
    if code == 906:
        return (
            "work on the legacy default stream would end a capture that is under way on another stream; pass stream= "
            "with a stream of its own, or wait until the capture has ended. The capture is unharmed"
        )
    return _CAPTURE if 900 <= code <= 908 else _ADVICE.get(code, "")
