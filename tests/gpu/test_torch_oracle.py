"""Resizes against torch's own, on the GPU."""

import numpy as np
import pytest

import fkl

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(31, 17), (64, 128), (300, 200), (97, 64)])
@pytest.mark.parametrize(
    ("mode", "ours", "tolerance"),
    [
        ("bilinear", {}, 2e-6), ("bicubic", {"interp": "cubic"}, 5e-6), ("nearest-exact", {"interp": "nearest"}, 0.0),
        ("bilinear antialias", {"antialias": True}, 1e-4), ("bicubic antialias", {"interp": "cubic", "antialias": True}, 1e-4),
    ],
)  # fmt: skip
def test_resize(mode, ours, tolerance, size, channels):
    height, width = 96, 64
    x = torch.from_numpy(np.random.default_rng(0).random((height, width, channels))).cuda()
    name, _, antialias = mode.partition(" ")
    options = {} if name.startswith("nearest") else {"align_corners": False, "antialias": bool(antialias)}
    want = F.interpolate(x.permute(2, 0, 1)[None], (size[1], size[0]), mode=name, **options)[0].permute(1, 2, 0)
    k = fkl.compose(fkl.TensorRead(channels=channels), fkl.Resize(*size, **ours), fkl.TensorWrite())
    got = k(x.float()).reshape(want.shape)
    assert got.dtype == torch.float32
    difference = (got - want.float()).abs()
    if name.startswith("nearest"):
        # Where a position is a whole number exactly, torch's float32 may fall below it.
        for axis, (old, new) in enumerate(((height, size[1]), (width, size[0]))):
            whole = [i for i in range(new) if (2 * i + 1) * old % (2 * new) == 0]
            difference.index_fill_(axis, torch.tensor(whole, dtype=torch.long, device="cuda"), 0.0)
    assert difference.max().item() <= max(tolerance, 6e-8)


def test_affine_warp_against_grid_sample():
    x = torch.rand(3, 90, 120, device="cuda")
    m = np.array([[0.9, 0.1, 5.0], [-0.05, 1.05, -3.0]])
    k = fkl.compose(fkl.TensorPack(3), fkl.Warping(m, 120, 90), fkl.TensorSplit())
    ys, xs = torch.meshgrid(torch.arange(90.0), torch.arange(120.0), indexing="ij")
    sx = m[0, 0] * xs + m[0, 1] * ys + m[0, 2]
    sy = m[1, 0] * xs + m[1, 1] * ys + m[1, 2]
    grid = torch.stack([(sx + 0.5) * 2 / 120 - 1, (sy + 0.5) * 2 / 90 - 1], -1)[None].double().cuda()
    want = F.grid_sample(x[None].double(), grid, mode="bilinear", padding_mode="zeros", align_corners=False)[0]
    assert (k(x) - want.float()).abs().max().item() <= 4e-7 * 120
