"""Every operation with every type and channel count it takes, each with its oracle. Used on both targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import oracle
from oracle import BASES, FLOATS, INTEGERS

import fkl

NUMBERS = BASES[1:]


class Case(NamedTuple):
    """One operation on one type: what to compose, what it must give, and how exactly."""

    name: str
    base: str
    channels: int
    ops: tuple
    expect: Callable[[np.ndarray], np.ndarray]
    out: str
    ulps: float = 0.0
    zeros_equal: bool = False

    @property
    def id(self) -> str:
        return f"{self.name}-{self.base}x{self.channels}"


def constant(base: str, channels: int, kind: str = "plain"):
    """A per-channel constant that the type can hold."""
    if base == "bool":
        return tuple([True, False, True, True][:channels])
    if base in FLOATS:
        return tuple([0.3, -2.5, 7.0, 1.25][:channels])
    info = np.iinfo(base)
    if kind == "divisor":
        return tuple([3, 7, info.max, -1 if info.min else 2][:channels])
    return tuple([3, info.max, 5, info.min or 1][:channels])


def with_channels(bases=BASES) -> Iterator[tuple[str, int]]:
    for base in bases:
        for channels in (1, 2, 3, 4):
            yield base, channels


def elementwise() -> Iterator[Case]:
    for base, c in with_channels():
        v = constant(base, c)
        if base != "bool":
            for name in ("Add", "Sub", "Mul", "AbsDiff"):
                yield Case(name, base, c, (getattr(fkl, name)(v),), lambda x, n=name, b=base, v=v: oracle.binary(n, x, b, v),
                           base)  # fmt: skip
            d = constant(base, c, "divisor")
            yield Case("Div", base, c, (fkl.Div(d),), lambda x, b=base, v=d: oracle.binary("Div", x, b, v), base)
            low, high = ((-1.5, 100.0) if base in FLOATS else (2, 100))
            yield Case("Saturate", base, c, (fkl.Saturate(low, high),),
                       lambda x, b=base, lo=low, hi=high: oracle.saturate(x, b, lo, hi), base)  # fmt: skip
            names = ("Abs", "Neg", "Sqr", "Sqrt", "SaturateFloat") if base in FLOATS else ("Abs", "Neg", "Sqr")
            for name in names:
                yield Case(name, base, c, (getattr(fkl, name)(),), lambda x, n=name, b=base: oracle.unary(n, x, b), base)
        for name in ("Max", "Min"):
            yield Case(name, base, c, (getattr(fkl, name)(v),), lambda x, n=name, b=base, v=v: oracle.binary(n, x, b, v)
                       if b != "bool" else (np.logical_or if n == "Max" else np.logical_and)(x, oracle.pixel(v, b, x.shape[-1])),
                       base, zeros_equal=True)  # fmt: skip
        if base == "bool" or base in INTEGERS:
            functions = {"BwAnd": np.bitwise_and, "BwOr": np.bitwise_or, "BwXor": np.bitwise_xor}
            for name, f in functions.items():
                yield Case(name, base, c, (getattr(fkl, name)(v),),
                           lambda x, f=f, b=base, v=v: f(x, np.array(v, b)), base)  # fmt: skip
            yield Case("BwNot", base, c, (fkl.BwNot(),), lambda x: np.invert(x), base)
        if base in INTEGERS:
            for n in (0, 3, np.iinfo(base).bits - 1):
                for name in ("ShiftLeft", "ShiftRight"):
                    yield Case(f"{name}{n}", base, c, (getattr(fkl, name)(n),),
                               lambda x, k=name, b=base, n=n: oracle.shift(k, x, b, n), base)  # fmt: skip
            yield Case("IsEven", base, c, (fkl.IsEven(),), lambda x, b=base: oracle.unary("IsEven", x, b), "bool")


def conversions() -> Iterator[Case]:
    for i, base in enumerate(BASES):
        for k, to in enumerate(BASES):
            c = 1 + (i + k) % 4
            yield Case(f"Cast-{to}", base, c, (fkl.Cast(to),), lambda x, b=base, t=to: oracle.cast(x, b, t), to)
            yield Case(f"SaturateCast-{to}", base, c, (fkl.SaturateCast(to),),
                       lambda x, b=base, t=to: oracle.saturate_cast(x, b, t), to)  # fmt: skip


def channels() -> Iterator[Case]:
    orders = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (3, 3, 0, 1)}
    for base, c in with_channels():
        order = list(orders[c])
        yield Case("VectorReorder", base, c, (fkl.VectorReorder(*order),), lambda x, o=order: x[..., o], base)
        yield Case("VectorReorderRT", base, c, (fkl.VectorReorderRT(*order),), lambda x, o=order: x[..., o], base)
        if c > 1:
            yield Case("Discard", base, c, (fkl.Discard(c - 1),), lambda x, c=c: x[..., : c - 1], base)
        if c < 4:
            last = constant(base, 1)[0]
            yield Case("AddLast", base, c, (fkl.AddLast(last),),
                       lambda x, b=base, v=last: np.concatenate(
                           [x, np.broadcast_to(oracle.pixel(v, b, 1), (*x.shape[:-1], 1))], -1), base)  # fmt: skip
        for how in ("Max", "Min") if base == "bool" else ("Add", "Mul", "Max", "Min"):
            yield Case(f"VectorReduce{how}", base, c, (fkl.VectorReduce(how),),
                       lambda x, h=how, b=base: oracle.reduce(h, x, b), base, zeros_equal=how in ("Max", "Min"))  # fmt: skip
        if base not in FLOATS:
            yield Case("VectorAnd", base, c, (fkl.VectorAnd(),), lambda x: np.all(x != 0, -1, keepdims=True), "bool")


def combined() -> Iterator[Case]:
    for base, c in with_channels(NUMBERS):
        v = constant(base, c)
        body = [fkl.Mul(v), fkl.Add(v)]

        def loop(x, n, b=base, v=v):
            for _ in range(n):
                x = oracle.binary("Add", oracle.binary("Mul", x, b, v), b, v)
            return x

        for n in (0, 1, 5):
            yield Case(f"StaticLoop{n}", base, c, (fkl.StaticLoop(body, n),), lambda x, n=n, f=loop: f(x, n), base)
    m = [[0.299, 0.587, 0.114], [-0.5, 2.0, 1e-3], [7.0, -1.0, 0.25]]
    yield Case("MxVFloat3", "float32", 3, (fkl.MxVFloat3(m),), lambda x: oracle.matrix3(x, m), "float32")


def transcendental() -> Iterator[Case]:
    for base, c in with_channels(FLOATS):
        limit = 1.0 if base in oracle.SMALL else 2.0
        yield Case("Exp", base, c, (fkl.Exp(),), lambda x: reference("exp", x), base, limit)
        yield Case("Ln", base, c, (fkl.Ln(),), lambda x: reference("log", x), base, limit)
        p = 2.2
        yield Case("Pow", base, c, (fkl.Pow(p),), lambda x, b=base, p=p: reference("pow", x, oracle.pixel(p, b, 1)[0]),
                   base, 1.0 if base in oracle.SMALL else 4.0)  # fmt: skip


def reference(name: str, x: np.ndarray, p=None) -> np.ndarray:
    """The float64 function; for float64 itself, mpmath."""
    x64 = x.astype(np.float64)
    with np.errstate(all="ignore"):
        plain = {"exp": np.exp, "log": np.log, "pow": lambda a: np.power(a, np.float64(p))}[name](x64)
    if x.dtype != np.float64:
        return plain
    import mpmath

    flat = plain.reshape(-1).copy()
    with mpmath.workprec(120):
        for i, a in enumerate(x64.reshape(-1)):
            if not (math.isfinite(a) and math.isfinite(flat[i])) or (name != "exp" and a <= 0):
                continue
            value = {"exp": mpmath.exp, "log": mpmath.log, "pow": lambda t: mpmath.power(t, mpmath.mpf(float(p)))}[name]
            flat[i] = float(value(mpmath.mpf(float(a))))
    return flat.reshape(plain.shape)


def every() -> list[Case]:
    """All of them."""
    return [*elementwise(), *conversions(), *channels(), *combined(), *transcendental()]


def input_of(case: Case, height: int = 5, width: int = 37) -> np.ndarray:
    """The input array (H, W, C) of a case, as the oracle sees it."""
    return oracle.samples(case.base, (height, width, case.channels))


def verdict(case: Case, got: np.ndarray, x: np.ndarray) -> str:
    """Empty if a result (H, W, C), decoded, is what the oracle gives."""
    want = case.expect(x)
    if case.ulps:
        off = oracle.ulps(got, want.astype(np.float64), case.out)
        return "" if off <= case.ulps else f"{off} ulp off, {case.ulps} allowed"
    return oracle.difference(got, np.asarray(want, oracle.carrier(case.out)), zeros_equal=case.zeros_equal)
