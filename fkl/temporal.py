"""`CircularTensor`: the last frames of a stream, each written by one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from fkl.checks import index_of, integer, one_of
from fkl.dtypes import DType, parse_dtype
from fkl.operations.base import Operation, article

__all__ = ["CircularTensor"]


class CircularTensor:
    """A window over the last ``batch`` frames.

    Parameters
    ----------
    width, height, batch : int
        Size of a stored frame, and how many are kept.
    dtype : dtype
        Of the frames pushed, scalar or pixel type: "uint8" with ``channels=3``, or "uint8x3".
    channels : int, optional
        Of a pixel, 1 to 4; by default as many as ``dtype`` says.
    order : {"newest_first", "oldest_first"}
        Of `snapshot`.
    layout : {"packed", "planar"}
        How frames are kept: (H, W[, C]) or (C, H, W).
    out_dtype : dtype, optional
        What is kept; None: ``dtype``. Without operations of its own an update casts to it.
    device : int, optional
        CUDA ordinal; None: the current device. Ignored by ``target="cpu"``.
    target : {"gpu", "cpu"}

    Attributes
    ----------
    frames_pushed : int
        How many updates there were. Planes not yet pushed are zero.

    Raises
    ------
    TypeError, ValueError
        Unknown types or names, sizes below 1.
    """

    def __init__(
        self, width: int, height: int, batch: int, dtype: Any = "uint8", channels: int | None = None,
        order: Literal["newest_first", "oldest_first"] = "newest_first", layout: Literal["packed", "planar"] = "packed",
        out_dtype: Any = None, device: int | None = None, target: Literal["gpu", "cpu"] = "gpu",
    ) -> None:  # fmt: skip
        sizes = []
        for name, size in (("width", width), ("height", height), ("batch", batch)):
            found_size = index_of(size)
            if found_size is None or found_size < 1:
                raise ValueError(f"CircularTensor: {name} is an integer of 1 or more, got {size!r:.80}")
            sizes.append(found_size)
        one_of(order, ("newest_first", "oldest_first"), "CircularTensor: order")
        one_of(layout, ("packed", "planar"), "CircularTensor: layout")
        one_of(target, ("gpu", "cpu"), "CircularTensor: target")
        found = parse_dtype(dtype)
        channels = found.channels if channels is None else integer(channels, "CircularTensor: channels")
        if found.channels not in (1, channels):
            raise ValueError(f"CircularTensor: dtype is {found}, channels says {channels}; give one of them")
        kept = found if out_dtype is None else parse_dtype(out_dtype)
        if kept.channels not in (1, channels):
            raise ValueError(f"CircularTensor: frames have {article(channels, 'channel')}, out_dtype is {kept}")
        self.frame_dtype, self.out_dtype = DType(found.base, channels), DType(kept.base, channels)
        self.width, self.height, self.batch = sizes
        self.order, self.layout, self.target = order, layout, target
        self.frames_pushed = 0
        self._kernels: list[tuple[tuple[Operation, ...], Any]] = []
        plane: tuple[int, ...] = (self.height, self.width)
        packed = plane if channels == 1 else (*plane, channels)
        self._frame_shape: tuple[int, ...] = packed if layout == "packed" or channels == 1 else (channels, *plane)
        shape = (self.batch, *self._frame_shape)
        size = self.out_dtype.pixelsize * self.batch * self.height * self.width
        if size >= 2**63:
            raise ValueError(f"CircularTensor: the window would take {size} bytes; an array has fewer than 2^63")
        if target == "cpu":
            from fkl.runtime.frameworks import allocate

            self._ring = allocate(None, shape, self.out_dtype.base, -1, 0)
            self._ring[...] = 0
        else:
            from fkl.runtime.buffer import empty

            self._ring = empty(shape, self.out_dtype.base, device)
            self._ring.fill(0)

    def __len__(self) -> int:
        """How many of the planes have been pushed."""
        return min(self.frames_pushed, self.batch)

    def _head(self) -> int:
        """The slot of the next frame: backwards for newest first, so that a snapshot is two runs of memory."""
        slot = self.frames_pushed % self.batch
        return slot if self.order == "oldest_first" else self.batch - 1 - slot

    def _planes(self, first: int, count: int) -> Any:
        """A view of some planes of the ring."""
        if self.target == "cpu":
            return self._ring[first : first + count]
        from fkl.runtime.buffer import DeviceBuffer

        ring = self._ring
        at = ring.ptr + first * (ring.nbytes // self.batch)
        shape = (count, *self._frame_shape)
        return DeviceBuffer.from_ptr(at, shape, self.out_dtype.base, owner=ring, device=ring.device, check=False)

    def _check_type(self, frame: Any) -> None:
        """Refuse a frame of another scalar type; its shape is the kernel's to check."""
        if isinstance(frame, (list, tuple)):
            raise TypeError("update pushes one frame, not a list of them; push one after the other")
        found = getattr(frame, "dtype", None)
        if found is None:
            from fkl.runtime.view import view

            found = view(frame).dtype
        if parse_dtype(found).base != self.frame_dtype.base:
            raise ValueError(
                f"the window takes frames of {self.frame_dtype}, got {found}; convert it, or make a window of that dtype"
            )

    def _check_shape(self, frame: Any, kernel: Any) -> None:
        """Refuse a frame that turned would fit: outputs fit up to dimensions of 1, which here would mix up rows and columns."""
        from fkl.runtime.view import view

        result = kernel._result_for(self.frame_dtype, view(frame).shape)[1]
        if (result.width, result.height) != (self.width, self.height):
            raise ValueError(
                f"the window keeps frames of {self.width} x {self.height} (width x height), this one becomes "
                f"{result.width} x {result.height}"
            )

    def _kernel(self, ops: tuple[Operation, ...]) -> Any:
        for known, kernel in self._kernels:
            if len(known) == len(ops) and all(a is b for a, b in zip(known, ops, strict=True)):
                return kernel
        from fkl.kernel import compose
        from fkl.operations import Cast, TensorRead, TensorSplit, TensorWrite

        body = ops if ops or self.out_dtype == self.frame_dtype else (Cast(self.out_dtype.base),)
        write = TensorWrite() if self.layout == "packed" else TensorSplit()
        kernel = compose(TensorRead(channels=self.frame_dtype.channels), *body, write, target=self.target)
        self._kernels = [*self._kernels[-7:], (ops, kernel)]
        return kernel

    def update(self, frame: Any, ops: Operation | Sequence[Operation] | None = None, stream: Any = None) -> None:
        """Push a frame: one kernel that reads it, applies operations and writes its plane.

        Parameters
        ----------
        frame : array
            (H, W[, C]) of the frame type, any size that the operations bring to the window's.
        ops : operation or sequence of operations, optional
            Applied on the way. Give the same objects each time, so that nothing is composed anew.
        stream : stream or int, optional
            Where to run; GPU only.

        Raises
        ------
        TypeError, ValueError
            A frame or operations that do not fit; nothing was pushed.
        """
        if ops is not None and not isinstance(ops, (Operation, Sequence)):
            raise TypeError(f"ops is an operation or a sequence of operations, got {ops!r:.80}")
        chosen = () if ops is None else (ops,) if isinstance(ops, Operation) else tuple(ops)
        self._check_type(frame)
        slot = self._planes(self._head(), 1)
        target = slot[0] if self.target == "cpu" else slot
        kernel = self._kernel(chosen)
        if 1 in (self.width, self.height):
            self._check_shape(frame, kernel)
        kernel(frame, out=target, stream=stream)
        if self.target == "gpu":
            self._ring_used(stream)
        self.frames_pushed += 1

    def _ring_used(self, stream: Any) -> None:
        """The ring itself learns of the stream: its planes are borrowed views."""
        self._ring.used_on(stream)

    def snapshot(self, stream: Any = None) -> Any:
        """A copy of the window in its order: (batch, H, W[, C]), or (batch, C, H, W) if planar.

        Parameters
        ----------
        stream : stream or int, optional
            Where to copy; GPU only.

        Returns
        -------
        DeviceBuffer or numpy.ndarray

        Raises
        ------
        ValueError
            A stream with ``target="cpu"``.
        """
        # The oldest plane stands where the next frame goes; newest first it is the newest that follows.
        first = self._head() if self.order == "oldest_first" else (self._head() + 1) % self.batch
        if self.target == "cpu":
            import numpy

            if stream is not None:
                raise ValueError('target="cpu" runs at once and takes no stream')
            return numpy.concatenate([self._ring[first:], self._ring[:first]])
        from fkl.runtime.buffer import DeviceBuffer, empty

        out = empty((self.batch, *self._frame_shape), self.out_dtype.base, self._ring.device)
        copy = self._copier()
        bytes_each = self._ring.nbytes // self.batch
        for source, count, at in ((first, self.batch - first, 0), (0, first, self.batch - first)):
            if count:
                items = count * bytes_each // self.out_dtype.itemsize
                ends = [
                    DeviceBuffer.from_ptr(
                        buffer.ptr + offset * bytes_each, items, self.out_dtype.base, owner=buffer, device=out.device, check=False
                    )
                    for buffer, offset in ((self._ring, source), (out, at))
                ]
                copy(ends[0], out=ends[1], stream=stream)
        out.used_on(stream)
        self._ring_used(stream)
        return out

    def _copier(self) -> Any:
        from fkl.kernel import compose
        from fkl.operations import TensorRead, TensorWrite

        if not hasattr(self, "_copy"):
            self._copy = compose(TensorRead(), TensorWrite())
        return self._copy

    def __repr__(self) -> str:
        return (
            f"<fkl.CircularTensor {self.batch} x {self._frame_shape} {self.out_dtype.base}, {self.order}, {self.layout}, "
            f"{self.target}, {self.frames_pushed} pushed>"
        )
