"""What an operation is: a descriptor with a role, a type transition, a C++ spelling and typed values.

Every file of this room defines operations with these pieces; `fkl.plan` walks a chain of them. An operation knows
nothing of CUDA, buffers or caches.

The split between `Operation.lower` and `Operation.values` is the library's first rule: what `lower` returns is
*type* (it reaches the generated source and the signature), what `values` returns is *value* (it reaches the
parameter block only).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from fkl.bounds import Bounds
from fkl.dtypes import DType

__all__ = ["Elementwise", "Extents", "Field", "Geometry", "Lowered", "Operation", "Read", "Sampled", "Write", "article"]


class Extents(NamedTuple):
    """Size of the array at one place of a chain.

    ``rank`` counts the dimensions that are not channels (1: W, 2: H W, 3: P H W); ``unit_channel`` says that a
    one-channel array carries an explicit channel dimension of 1. ``sizes`` holds (width, height) of every plane where
    they differ, and then ``width`` and ``height`` are the first plane's. ``extended``: the array may be asked outside.
    """

    width: int
    height: int
    planes: int
    rank: int
    unit_channel: bool = False
    sizes: tuple[tuple[int, int], ...] | None = None
    extended: bool = False

    def size_of(self, plane: int) -> tuple[int, int]:
        """Width and height of a plane."""
        return self.sizes[plane] if self.sizes is not None else (self.width, self.height)


class Field(NamedTuple):
    """One typed value of an operation in the parameter block.

    ``ctype`` is its C++ spelling. With ``per_plane`` the block holds one record a plane, in the plane table.
    """

    ctype: str
    size: int
    align: int
    per_plane: bool = False


class Lowered(NamedTuple):
    """An operation spelled for one input type.

    ``code`` is a C++ statement template: ``{x}`` names the input, ``{y}`` the variable to declare, ``{0}``,
    ``{1}``, ... the fields, and ``{m}`` stands where a quotient may be told how it is made (quotient.h).
    ``weight`` is how many scalar operations it is for a channel, roughly.
    """

    code: str
    fields: tuple[Field, ...]
    out: DType
    weight: int = 1


class Sampled(NamedTuple):
    """A geometry operation spelled for one input type.

    ``code`` is a C++ expression template of the output pixel at ``x, y, z``: ``{L}`` names the level before it, ``{0}``,
    ``{1}``, ... the fields. ``extended``: whether it answers outside of its size. ``taps``: how many pixels of that level
    an output pixel needs, as far as the code tells.
    """

    code: str
    fields: tuple[Field, ...]
    out: DType
    extended: bool
    taps: int = 1


class Operation:
    """Base of all operations. Constructors check what can be checked without knowing the chain's type."""

    #: "read", "elementwise", "geometry" or "write".
    role: ClassVar[str] = "elementwise"
    #: Device headers that declare the functions its code calls.
    headers: ClassVar[tuple[str, ...]] = ("fkl/elementwise.h",)

    def lower(self, dtype: DType) -> Lowered:
        """Spell the operation for an input of this type.

        Raises
        ------
        TypeError
            The operation does not take this type.
        """
        raise TypeError(f"{type(self).__name__} cannot stand here")

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        """The bytes of every field, in the order of `Lowered.fields`.

        Raises
        ------
        ValueError
            A value the chain's type cannot hold, or one that does not fit the extents.
        """
        return ()

    @property
    def form(self) -> tuple[Any, ...] | None:
        """All that `lower` and `bounds` look at besides their argument: chains of equal forms share a plan. None: no sharing."""
        return None

    def bounds(self, before: Bounds) -> Bounds | None:
        """What is known of float32 results if that much is known of what they are made of, and values are moderate."""
        return None

    def extents(self, extents: Extents, before: DType, after: DType) -> Extents:
        """Size of the output array for an input of this size."""
        if before.channels != after.channels and extents.unit_channel:
            return extents._replace(unit_channel=False)
        return extents

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The constructor arguments, for `repr` and for copies."""
        return (), {}

    def __repr__(self) -> str:
        args, kwargs = self.arguments()
        inner = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
        return f"{type(self).__name__}({', '.join(inner)})"


class Elementwise(Operation):
    """An operation that maps a pixel to a pixel."""

    #: The bases it takes: a subset of "float", "integer", "bool".
    takes: ClassVar[tuple[str, ...]] = ("float", "integer")

    def check(self, dtype: DType) -> None:
        """Raise the `TypeError` of a type that this operation does not take."""
        kind = "bool" if dtype.is_bool else "float" if dtype.is_float else "integer"
        if kind not in self.takes:
            name = type(self).__name__
            accepted = " and ".join(self.takes)
            if "float" in self.takes and "integer" not in self.takes:
                hint = 'put Cast("float32") before it'
            elif kind == "bool":
                hint = 'put Cast("uint8") before it'
            else:
                hint = "put a Cast to an integer type before it"
            raise TypeError(f"{name} takes {accepted} types, the chain has {dtype} there; {hint}")


class Geometry(Operation):
    """An operation whose output pixel needs other pixels of its input."""

    role = "geometry"
    headers = ("fkl/geometry.h",)
    #: Whether pixels outside are made of pixels inside, so that there has to be one if any is asked for.
    repeats: bool = False

    def sample(self, dtype: DType, *, extended: bool, roll: bool) -> Sampled:
        """Spell the operation for an input of this type.

        Parameters
        ----------
        dtype : DType
        extended : bool
            Whether the level before answers outside of its size.
        roll : bool
            Whether taps must be visited in a loop.
        """
        raise NotImplementedError

    def reads(self, width: int, height: int) -> int:
        """How many pixels of an input of this size an output pixel is made of, at most."""
        return 1

    def check_values(self, out: DType) -> None:
        """Raise the `ValueError` of a number that a result of this type cannot be."""

    def plane_values(self, dtype: DType, width: int, height: int, plane: int, extents: Extents) -> tuple[bytes, ...]:
        """The bytes of every field for one plane of this size.

        Raises
        ------
        ValueError
            A value that does not fit the size.
        """
        raise NotImplementedError


class Read(Operation):
    """An operation that starts a chain."""

    role = "read"
    headers: ClassVar[tuple[str, ...]] = ("fkl/image.h",)
    #: The array bound at compose time, or None.
    source: Any = None


class Write(Operation):
    """An operation that ends a chain."""

    role = "write"
    headers = ("fkl/image.h",)
    #: The array bound at compose time, or None.
    dest: Any = None


def article(count: int, noun: str) -> str:
    """A count with its noun: ``1 channel``, ``3 channels``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
