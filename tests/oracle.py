"""What every operation means, in NumPy and Python integers alone: the independent side of the operation tests.

An array of bfloat16 is handled as the float32 array of the same values; `encode` and `decode` convert it to and from
the 16 bits that a kernel sees.
"""

from __future__ import annotations

import math

import numpy as np

BASES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
    "float32", "float64",
)  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = BASES[1:9]
SMALL = ("float16", "bfloat16")


def carrier(base: str) -> np.dtype:
    """The NumPy type that values of a base are computed in here."""
    return np.dtype("float32" if base == "bfloat16" else base)


def round_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 rounded to the nearest bfloat16, ties to even, as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)).astype(np.uint32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.view(np.float32)).astype(np.float32)


def encode(x: np.ndarray, base: str) -> np.ndarray:
    """The array as a kernel sees it: bfloat16 as its upper 16 bits in uint16."""
    if base != "bfloat16":
        return np.ascontiguousarray(x, base)
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def decode(x: np.ndarray, base: str) -> np.ndarray:
    """The inverse of `encode`."""
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32) if base == "bfloat16" else x


def to_base(x: np.ndarray, base: str) -> np.ndarray:
    """A float32 (float64) result rounded to a base."""
    with np.errstate(all="ignore"):
        if base == "bfloat16":
            return round_bfloat16(np.asarray(x, np.float32))
        if base == "float16":
            return np.asarray(x, np.float32).astype(np.float16)
        return np.asarray(x).astype(base)


def wide(x: np.ndarray) -> np.ndarray:
    """16-bit floats compute in float32."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def pixel(value, base: str, channels: int) -> np.ndarray:
    """A constant of the chain's type, one number a channel."""
    row = np.broadcast_to(np.asarray(value, dtype=object), (channels,))
    return to_base(np.array([float(v) for v in row], np.float64 if base == "float64" else np.float32), base) if (
        base in FLOATS
    ) else np.array([int(v) for v in row], dtype=base)


def samples(base: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Values of the whole range with the extremes among them."""
    rng = np.random.default_rng([seed, BASES.index(base), *shape])
    n = math.prod(shape)
    if base == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if base in INTEGERS:
        info = np.iinfo(base)
        x = rng.integers(info.min, info.max, n, dtype=base, endpoint=True)
        small = rng.integers(max(info.min, -9), 10, n).astype(base)
        x = np.where(rng.random(n) < 0.4, small, x)
        edge = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype=base)
    else:
        scale = 10.0 ** rng.uniform(-3, 3, n)
        x = to_base((rng.standard_normal(n) * scale).astype(np.float64), base)
        tiny, huge = {"float16": (6e-8, 65504.0), "float64": (5e-324, 1.7e308)}.get(base, (1e-45, 3e38))
        edge = to_base(
            np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, tiny, -tiny, huge, -huge, 1.0, 255.5,
                      -1.5, 3e9, -3e9, 2.0**31, 2.0**63, 2.0**64, 254.5, 65519.0]), base)  # fmt: skip
    at = rng.permutation(n)[: min(len(edge), n)]
    x = x.copy()
    x[at] = edge[: len(at)]
    return x.reshape(shape)


# -- operations: each takes the array (H, W, C) and its base, and returns the array of the next one -----------------


def binary(name: str, x, base: str, value):
    v = pixel(value, base, x.shape[-1])
    a, b = wide(x), wide(v)
    with np.errstate(all="ignore"):
        if base in FLOATS:
            function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.fmax,
                        "Min": np.fmin, "AbsDiff": lambda p, q: np.abs(p - q)}[name]  # fmt: skip
            return to_base(function(a, b), base)
        if name in ("Add", "Sub", "Mul"):
            return {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[name](a, b, dtype=base)
        if name in ("Max", "Min"):
            return (np.maximum if name == "Max" else np.minimum)(a, b)
        if name in ("BwAnd", "BwOr", "BwXor"):
            return {"BwAnd": np.bitwise_and, "BwOr": np.bitwise_or, "BwXor": np.bitwise_xor}[name](a, b)
    info = np.iinfo(base)

    def one(p, q):
        if name == "Div":
            return wrap(abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1), base) if q else 0
        return min(abs(p - q), info.max)

    return each(one, base, x, np.broadcast_to(v, x.shape))


def wrap(n: int, base: str) -> int:
    """An integer modulo 2^bits, in the type's range."""
    info = np.iinfo(base)
    return (n - info.min) % (1 << info.bits) + info.min


def each(function, base: str, *arrays):
    """A function of Python numbers over the elements of arrays."""
    flat = [a.reshape(-1).tolist() for a in arrays]
    return np.array([function(*v) for v in zip(*flat, strict=True)], dtype=carrier(base)).reshape(arrays[0].shape)


def unary(name: str, x, base: str):
    with np.errstate(all="ignore"):
        if base in FLOATS:
            function = {"Abs": np.abs, "Neg": np.negative, "Sqr": lambda a: a * a, "Sqrt": np.sqrt,
                        "SaturateFloat": lambda a: np.where(np.isnan(a), 0, np.clip(a, 0, 1))}[name]  # fmt: skip
            return to_base(function(wide(x)), base)
        if name == "BwNot":
            return np.invert(x)
        if name == "IsEven":
            return each(lambda a: a % 2 == 0, "bool", x)
        function = {"Abs": abs, "Neg": lambda a: -a, "Sqr": lambda a: a * a}[name]
        return each(lambda a: wrap(function(a), base), base, x)


def saturate(x, base: str, low, high):
    lo, hi = wide(pixel(low, base, x.shape[-1])), wide(pixel(high, base, x.shape[-1]))
    return to_base(np.minimum(np.maximum(wide(x), lo), hi), base)


def shift(name: str, x, base: str, n: int):
    return each(lambda a: wrap(a << n, base) if name == "ShiftLeft" else a >> n, base, x)


def cast(x, base: str, to: str):
    """`Cast`, by its rules element by element."""
    with np.errstate(all="ignore"):
        if to == "bool":
            return x != 0
        if to in FLOATS:
            return to_base(x.astype(np.float32), to) if to in SMALL else x.astype(to)
        if base in FLOATS:
            info = np.iinfo(to)

            def one(a):
                return 0 if math.isnan(a) else info.max if a >= info.max else info.min if a <= info.min else int(a)

            return each(one, to, x.astype(np.float64))
        return each(lambda a: wrap(int(a), to), to, x)


def saturate_cast(x, base: str, to: str):
    """`SaturateCast`, by its rules element by element."""
    if to == "bool" or base == "bool" or to == base:
        return cast(x, base, to)
    if to in FLOATS:
        if base not in FLOATS:
            limit = {"float16": 65504.0}.get(to)
            y = x.astype(np.float32) if to in SMALL else x.astype(to)
            return to_base(np.clip(y, -limit, limit) if limit else y, to)
        with np.errstate(all="ignore"):
            limit = {"float16": 65504.0, "bfloat16": float.fromhex("0x1.fep127"), "float32": float(np.finfo("f4").max),
                     "float64": math.inf}[to]  # fmt: skip
            y = x.astype(np.float64)
            y = np.where(np.isfinite(y), np.clip(y, -limit, limit), y)
            # 64-bit floats reach the 16-bit types through float32.
            return to_base(y.astype(np.float32), to) if to in SMALL else y.astype(to)
    info = np.iinfo(to)
    if base in FLOATS:

        def one(a):
            if math.isnan(a):
                return 0
            return info.max if a == math.inf else info.min if a == -math.inf else min(max(round(a), info.min), info.max)

        return each(one, to, x.astype(np.float64))
    return each(lambda a: min(max(int(a), info.min), info.max), to, x)


def reduce(how: str, x, base: str):
    with np.errstate(all="ignore"):
        a = wide(x)
        out = a[..., 0]
        for c in range(1, x.shape[-1]):
            b = a[..., c]
            function = {"Add": np.add, "Mul": np.multiply, "Max": np.fmax, "Min": np.fmin}[how]
            if base == "bool":
                function = np.logical_or if how == "Max" else np.logical_and
            out = function(out, b, dtype=out.dtype) if how in ("Add", "Mul") else function(out, b)
        return to_base(out, base)[..., None]


def matrix3(x, m):
    """`MxVFloat3`: elementwise float32, in the order of the contract."""
    m = np.asarray(m, np.float32)
    with np.errstate(all="ignore"):
        rows = [(m[i, 0] * x[..., 0] + m[i, 1] * x[..., 1]) + m[i, 2] * x[..., 2] for i in range(3)]
    return np.stack(rows, -1)


def difference(got: np.ndarray, want: np.ndarray, *, zeros_equal: bool = False) -> str:
    """Empty if two arrays are equal bit for bit (any NaN equals any NaN), else where they first differ."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    same = got == want
    if want.dtype.kind == "f":
        if not zeros_equal:
            same &= np.signbit(got) == np.signbit(want)
        same |= np.isnan(got) & np.isnan(want)
    if same.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{int((~same).sum())} of {same.size} differ, first at {at}: {got[at]!r} instead of {want[at]!r}"


def ulps(got: np.ndarray, exact: np.ndarray, base: str) -> float:
    """Largest distance from float64 results, in units of the last place of the type."""
    bits, low = {"float16": (10, -14), "bfloat16": (7, -126), "float32": (23, -126), "float64": (52, -1022)}[base]
    with np.errstate(all="ignore"):
        rounded = to_base(exact, base).astype(np.float64)
        finite = np.isfinite(rounded) & np.isfinite(exact)
        if not (np.isnan(got) == np.isnan(rounded)).all():
            return math.inf
        odd = ~finite & ~np.isnan(rounded)
        # Where the type overflows, the neighbouring largest number is one step away.
        if not (got[odd].astype(np.float64) == rounded[odd]).all():
            largest = float(np.finfo("float32" if base == "bfloat16" else base).max)
            if not (np.abs(got[odd].astype(np.float64)) >= largest * 0.99).all():
                return math.inf
        exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(exact[finite]), 5e-324))), low)
        distance = np.abs(got[finite].astype(np.float64) - exact[finite]) / 2.0 ** (exponent - bits)
    return float(distance.max(initial=0.0))
