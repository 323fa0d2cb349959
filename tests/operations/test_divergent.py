"""`compose_divergent`: every plane equals its own chain's result."""

import sys
import threading

import numpy as np
import pytest
from double import check

import fkl

RNG = np.random.default_rng(0)
CAMERA = [RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8) for _ in range(4)]
DEPTH = [RNG.random((15, 18, 3)).astype(np.float32) for _ in range(3)]
ONE = [fkl.TensorRead(), fkl.Crop(2, 3, 20, 14), fkl.Resize(10, 8), fkl.Div(255.0), fkl.TensorSplit()]
TWO = [fkl.TensorRead(), fkl.Resize(10, 8, "nearest"), fkl.Mul(2.0), fkl.VectorReorder(2, 1, 0), fkl.TensorSplit()]


def alone(chain, image):
    return fkl.compose(*chain, target="cpu")(image)


def expected(plane_map, images):
    return np.stack([alone((ONE, TWO)[n - 1], image) for n, image in zip(plane_map, images, strict=True)])


def test_planes_equal_their_own_chains():
    k = fkl.compose_divergent([1, 2, 1], ONE, TWO, target="cpu")
    images = [CAMERA[0], DEPTH[0], CAMERA[1]]
    assert (k(images) == expected([1, 2, 1], images)).all()
    source = k.source()
    for plane_map, images in (([2, 2, 1, 1, 2], [DEPTH[0], DEPTH[1], CAMERA[2], CAMERA[3], DEPTH[2]]), ([1], [CAMERA[0]]), ([2, 2], DEPTH[:2]), ([1, 2] * 100, [CAMERA[1], DEPTH[1]] * 100)):
        k.update(plane_map)
        assert (k(images) == expected(plane_map, images)).all()
    assert k.source() == source
    out = np.full((2, 3, 8, 10), -1, np.float32)
    k.update([1, 2])
    assert k([CAMERA[0], DEPTH[0]], out=out) is out and (out == expected([1, 2], [CAMERA[0], DEPTH[0]])).all()


def test_arrays_with_planes_and_elementwise_chains():
    a = [fkl.TensorRead(), fkl.Cast("float32"), fkl.TensorWrite()]
    b = [fkl.TensorRead(), fkl.Cast("float32"), fkl.Mul((1.0, 2.0, 3.0)), fkl.Neg(), fkl.TensorWrite()]
    stack = np.stack(CAMERA)
    k = fkl.compose_divergent([2, 1, 2, 1], a, b, target="cpu")
    f = stack.astype(np.float32)
    want = np.stack([-(f[0] * [1, 2, 3]), f[1], -(f[2] * [1, 2, 3]), f[3]]).astype(np.float32)
    assert (k(stack) == want).all() and "4 planes" in repr(k)


@pytest.mark.parametrize("plane_map", [[], [0], [3], [1, "2"], [1.5], [True, 1]])
def test_maps_that_are_none(plane_map):
    with pytest.raises(ValueError, match="plane map"):
        fkl.compose_divergent(plane_map, ONE, TWO, target="cpu")


def test_refusals():
    k = fkl.compose_divergent([1, 2], ONE, TWO, target="cpu")
    with pytest.raises(ValueError, match="2 planes, got 3 images"):
        k([CAMERA[0]] * 3)
    with pytest.raises(ValueError, match="one size"):
        other = [*TWO[:1], fkl.Resize(9, 8, "nearest"), *TWO[2:]]
        fkl.compose_divergent([1, 2], ONE, other, target="cpu")([CAMERA[0], DEPTH[0]])
    with pytest.raises(ValueError, match="same write and type"):
        fkl.compose_divergent([1, 2], ONE, [*TWO[:-1], fkl.TensorWrite()], target="cpu")([CAMERA[0], DEPTH[0]])
    with pytest.raises(ValueError, match="same write and type"):
        fkl.compose_divergent([1, 2], ONE, [*TWO[:-1], fkl.Cast("float16"), fkl.TensorSplit()], target="cpu")([CAMERA[0], DEPTH[0]])
    for bound in ([fkl.TensorRead(CAMERA[0]), *ONE[1:]], [*ONE[:-1], fkl.TensorSplit(CAMERA[0])],
                  [ONE[0], fkl.Add(fkl.TensorRead(CAMERA[0])), *ONE[1:]], [fkl.ReadSet(1, 10, 8), fkl.TensorWrite()]):  # fmt: skip
        with pytest.raises(ValueError, match="chain 2"):
            fkl.compose_divergent([1, 2], ONE, bound, target="cpu")
    with pytest.raises(ValueError, match="at least one chain"):
        fkl.compose_divergent([1])
    out = np.zeros((2, 3, 8, 10), np.float32)
    for chains, given in (((ONE, ONE), [out]), (([*ONE[:-1], fkl.TensorTSplit()],) * 2, [out] * 3), (([*ONE[:-1], fkl.TensorWrite()],) * 2, (out,) * 3)):
        with pytest.raises(TypeError, match="writes one array, not a list"):
            fkl.compose_divergent([1, 2], *chains, target="cpu")(CAMERA[:2], out=given)
    assert not out.any()
    with pytest.raises(ValueError, match="takes no stream"):
        k([CAMERA[0], DEPTH[0]], stream=0)
    with pytest.raises(ValueError, match="outside"):
        fkl.compose_divergent([1, 1], [*ONE[:1], fkl.Crop(25, 0, 10, 5), *ONE[1:]], target="cpu")(CAMERA[:2])


def test_chains_without_planes_keep_none_from_running():
    video = [fkl.ReadYUV("nv12"), fkl.ConvertYUVToRGB(), fkl.Resize(10, 8), fkl.TensorSplit()]
    halves = [fkl.TensorRead(), fkl.Cast("float16"), fkl.Resize(10, 8), fkl.Cast("float32"), fkl.TensorSplit()]
    gray = [fkl.TensorRead(), fkl.BwNot(), fkl.Resize(10, 8), fkl.TensorSplit()]
    chains = (video, ONE, gray, halves)
    k = fkl.compose_divergent([4, 4], *chains, target="cpu")
    assert (k(DEPTH[:2]) == np.stack([alone(halves, image) for image in DEPTH[:2]])).all()
    # The third chain takes no floats, and is in the kernel as soon as it has a plane.
    assert "chain1" in k.source() and "chain2" not in k.source()
    k.update([2, 3, 4])
    images = [CAMERA[0], CAMERA[1], DEPTH[0]]
    assert (k(images) == np.stack([alone(chains[n - 1], image) for n, image in zip([2, 3, 4], images, strict=True)])).all()
    source = k.source()
    k.update([4, 4, 2])
    images = [*DEPTH[:2], CAMERA[2]]
    assert (k(images) == np.stack([alone(halves, DEPTH[0]), alone(halves, DEPTH[1]), alone(ONE, CAMERA[2])])).all()
    assert k.source() == source, "a chain keeps the type it had last"
    other = [fkl.TensorRead(), fkl.Resize(10, 8), fkl.Cast("float16"), fkl.TensorSplit()]
    k = fkl.compose_divergent([1, 1], ONE, other, target="cpu")
    assert (k(CAMERA[:2]) == expected([1, 1], CAMERA[:2])).all() and "chain1" not in k.source()


def test_a_type_of_the_past_keeps_no_chain_out():
    chains = [fkl.TensorRead(), fkl.TensorWrite()], [fkl.TensorRead(), fkl.Neg(), fkl.TensorWrite()]
    k = fkl.compose_divergent([1, 2], *chains, target="cpu")
    f = CAMERA[0].astype(np.float32)
    assert (k([f, f]) == np.stack([f, -f])).all()
    k.update([1, 1])
    assert (k(CAMERA[:2]) == np.stack(CAMERA[:2])).all() and "chain1" in k.source()
    source = k.source()
    k.update([2, 1])
    assert (k(CAMERA[:2]) == np.stack([-CAMERA[0], CAMERA[1]])).all() and k.source() == source


def test_maps_of_one_type_share_a_layout():
    chains = [[fkl.TensorRead(), *[fkl.Neg()] * i, fkl.Cast("float32"), fkl.TensorWrite()] for i in range(6)]
    k = fkl.compose_divergent([1], *chains, target="cpu")
    for first in range(1, 7):
        k.update([first, 7 - first])
        want = [c.astype(np.int64) * (-1) ** i % 256 for c, i in zip(CAMERA, (first - 1, 6 - first), strict=False)]
        assert (k(CAMERA[:2]) == np.stack(want)).all()
    assert len(k._layouts) == 1


def test_arguments_that_are_none():
    with pytest.raises(TypeError, match="fast_math is a bool"):
        fkl.compose_divergent([1], ONE, target="cpu", fast_math="x")
    with pytest.raises(ValueError, match="names chain array"):
        fkl.compose_divergent([np.array([1])], ONE, target="cpu")
    k = fkl.compose_divergent([2, 1, 2, 1], ONE, TWO, target="cpu")
    with pytest.raises(ValueError, match=r"image 1 is .*uint8, image 3 is .*float32"):
        k([DEPTH[0], CAMERA[0], DEPTH[0], DEPTH[0]])
    with pytest.raises(ValueError, match="image 2 of the list has planes"):
        k([DEPTH[0], CAMERA[0], np.stack(DEPTH), CAMERA[0]])


def test_updates_from_another_thread():
    """A call keeps to one map, whatever is assigned meanwhile: each is right for some map, or refused."""
    k = fkl.compose_divergent([1, 2], ONE, TWO, target="cpu")
    k([CAMERA[0], DEPTH[0]])
    maps = ([1, 1], [2, 2], [1, 1, 1])
    rights = [expected(plane_map, CAMERA[:2]) for plane_map in maps[:2]]
    done = threading.Event()

    def change():
        while not done.is_set():
            for plane_map in maps:
                k.update(plane_map)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(400):
            try:
                result = k(CAMERA[:2])
            except ValueError as error:
                assert "give one image a plane" in str(error)
            else:
                assert any((result == right).all() for right in rights)
    finally:
        done.set()
        changer.join()
        sys.setswitchinterval(interval)
    k.update([1, 1])
    assert (k(CAMERA[:2]) == rights[0]).all()


@pytest.mark.parametrize("wrong", [3, None, "12", b"1", 1.5, {1: 1}, np.array(1)])
def test_maps_that_are_no_sequence(wrong):
    with pytest.raises(TypeError, match="plane map is a sequence"):
        fkl.compose_divergent(wrong, ONE, target="cpu")
    k = fkl.compose_divergent([1], ONE, target="cpu")
    with pytest.raises(TypeError, match="plane map is a sequence"):
        k.update(wrong)
    assert k.plane_map == (1,) and (k([CAMERA[0]]) == expected([1], [CAMERA[0]])).all()
    with pytest.raises(TypeError, match="chain 1 is a sequence of operations"):
        fkl.compose_divergent([1], 3, target="cpu")


def test_on_a_device():
    check("""
    a = [fkl.TensorRead(), fkl.Cast("float32"), fkl.TensorSplit()]; b = [fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorSplit()]
    rng = np.random.default_rng(0)
    u, f = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8), rng.random((6, 8, 3)).astype(np.float32)
    k = fkl.compose_divergent([1, 2, 2], a, b); s = fkl.Stream()
    want = np.stack([u.astype(np.float32), f * 2, f * 2]).transpose(0, 3, 1, 2)
    n = D.double_launches(); r = k([fkl.asarray(u), fkl.asarray(f), fkl.asarray(f)], stream=s); assert D.double_launches() == n + 1
    assert (r.to_numpy() == want).all()
    try: k([fkl.asarray(u), fkl.asarray(f), f])
    except ValueError as e: assert "CPU memory" in str(e)
    else: raise SystemExit("no error")
    k.update([2] * 200); r = k([fkl.asarray(f)] * 200); assert (r.to_numpy()[199] == want[1]).all() and len(compiled) == 1
    """)
