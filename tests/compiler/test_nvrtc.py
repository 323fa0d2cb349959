"""NVRTC compiles every generated kernel for every architecture; needs an NVRTC wheel, but no GPU and no driver."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from matrix import BASES, every

import fkl
from fkl.codegen import generate
from fkl.compiler.finder import installed
from fkl.compiler.gpu import binary
from fkl.dtypes import DType
from fkl.plan import check_chain, make_plan

ARCHITECTURES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]
NEWEST = max((found.version[0] for found in installed()), default=0)

pytestmark = pytest.mark.skipif(not NEWEST, reason="no NVRTC is installed")


def source(ops, dtype, **kw) -> str:
    return generate(make_plan(check_chain(ops), dtype, **kw))


def same_type(case) -> bool:
    """Whether an operation can be followed by another of the same matrix row."""
    return case.out == case.base and case.name not in ("Discard", "AddLast") and not case.name.startswith("VectorReduce")


def casts(base: str, channels: int) -> list:
    """Every conversion from a type, each followed by one back."""
    pairs = [(cast(to), fkl.Cast(base)) for to in BASES for cast in (fkl.Cast, fkl.SaturateCast)]
    return [op for pair in pairs for op in pair]


def rows():
    """(base, channels) -> sources in which every operation stands: long chains, and one for each operation that ends them."""
    groups: dict[tuple[str, int], list[str]] = {}
    for base in BASES:
        for channels in (1, 2, 3, 4):
            cases = [c for c in every() if (c.base, c.channels) == (base, channels)]
            body = [op for c in cases if same_type(c) for op in c.ops]
            half = len(body) // 2
            ends = [list(c.ops) for c in cases if not same_type(c) and "Cast" not in c.name]
            chains = [body[:half], body[half:], casts(base, channels), *ends]
            texts = [source([fkl.TensorRead(), *ops, fkl.TensorWrite()], DType(base, channels)) for ops in chains]
            read, write = (fkl.TensorPack(channels), fkl.TensorSplit()) if channels > 1 else (fkl.ReadSet(1, 3), fkl.TensorWrite())
            texts.append(source([read, write], DType(base, channels) if channels > 1 else read.dtype))
            texts.append(source([fkl.TensorRead(), fkl.SplitWrite()], DType(base, channels), listed=True))
            groups[base, channels] = texts
    return groups


@pytest.fixture(scope="module")
def sources():
    return rows()


@pytest.mark.parametrize("base", BASES)
def test_every_kernel_for_sm_90(sources, base):
    texts = [t for (b, _), group in sources.items() if b == base for t in group]
    with ThreadPoolExecutor(4) as pool:
        images = list(pool.map(lambda t: binary(t, (9, 0), fast_math=False, driver_major=NEWEST), texts))
    assert all(image[:4] == b"\x7fELF" for image in images)


@pytest.mark.parametrize("capability", [a for a in ARCHITECTURES if a != (9, 0)], ids=lambda a: f"sm_{a[0]}{a[1]}")
def test_every_operation_for_every_architecture(sources, capability):
    texts = [t for group in sources.values() for t in group]
    with ThreadPoolExecutor(4) as pool:
        images = list(pool.map(lambda t: binary(t, capability, fast_math=False, driver_major=NEWEST), texts))
    assert all(image[:4] == b"\x7fELF" for image in images)


@pytest.mark.parametrize("count", [2, 60])
def test_divergent_chains(count):
    """Of so many chains that the record of one plane is more than a block holds by its rule."""
    from fkl.codegen import generate_divergent
    from fkl.divergent import lay_out

    chain = check_chain([fkl.TensorRead(), fkl.Crop(0, 0, 4, 4), fkl.Resize(8, 8), fkl.TensorSplit()])
    layout = lay_out((None, *[make_plan(chain, DType("uint8", 3), listed=True)] * count))
    assert layout.inline_planes >= 1 and (layout.plane_size > 3584) == (count == 60)
    assert binary(generate_divergent(layout), (9, 0), fast_math=False, driver_major=NEWEST)[:4] == b"\x7fELF"


def test_fast_math_and_long_chains():
    ops = [fkl.Mul(1.5), fkl.Div(3.0), fkl.Add(0.5), fkl.Sqrt()]
    text = source([fkl.TensorRead(), *ops, fkl.TensorWrite()], DType("float32", 3))
    exact, fast = (binary(text, (9, 0), fast_math=f, driver_major=NEWEST) for f in (False, True))
    assert exact != fast
    many = source([fkl.TensorRead(), *[fkl.Mul(1.5), fkl.Add(0.5)] * 500, fkl.TensorWrite()], DType("float32"))
    assert binary(many, (9, 0), fast_math=False, driver_major=NEWEST)[:4] == b"\x7fELF"
