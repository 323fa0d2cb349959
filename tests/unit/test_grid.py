"""Every pixel has exactly one thread, within the hardware's bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.grid import BLOCK, launch_grid

LIMITS = (2**31 - 1, 65535, 65535)


def covered(grid, axis):
    """Blocks along columns, rows or planes, as the kernel fetches them from the grid."""
    counts = [grid.x, grid.y, grid.z]
    return counts[0] if axis == grid.longest else counts[grid.longest] if axis == 0 else counts[axis]


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 500), st.sampled_from([1, 2, 4, 8, 16]))
def test_small(width, height, planes, pixels):
    check(width, height, planes, pixels)


@pytest.mark.parametrize("size", [(2**33, 1, 1), (3, 70_000, 1), (3, 2**25, 1), (5, 4, 70_000), (2, 40_000_000, 1), (1, 1, 2**31 - 1), (300, 70_000, 60_000)])
def test_long_sides(size):
    check(*size, 1)


def check(width, height, planes, pixels):
    g = launch_grid(width, height, planes, pixels)
    assert 1 <= g.block_x * g.block_y <= BLOCK
    assert all(1 <= n <= limit for n, limit in zip((g.x, g.y, g.z), LIMITS, strict=True))
    assert g.cells == (width // pixels if pixels > 1 else 0)
    threads = g.cells + width - g.cells * pixels
    assert (covered(g, 0) - 1) * g.block_x < threads <= covered(g, 0) * g.block_x
    assert (covered(g, 1) - 1) * g.block_y < height <= covered(g, 1) * g.block_y
    assert covered(g, 2) == planes
