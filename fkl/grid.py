"""The launch grid for an output of a given size. Called by `fkl.binding`."""

from __future__ import annotations

__all__ = ["BLOCK", "Grid", "launch_grid"]

#: Threads of a block; the kernel is compiled for no more.
BLOCK = 256
#: The hardware's bound of a grid in y and z; the kernel strides beyond it.
_MAX_YZ = 65535

Grid = tuple[int, int, int, int, int]


def launch_grid(width: int, height: int, planes: int, pixels: int) -> Grid:
    """Grid and block extents: ``(grid x, grid y, grid z, block x, block y)``.

    Parameters
    ----------
    width, height, planes : int
        The output, none of them 0.
    pixels : int
        Pixels a thread moves at once.
    """
    runs = -(-width // pixels)
    block_x = BLOCK if runs >= BLOCK else max(1 << (runs - 1).bit_length(), 1)
    block_y = min(BLOCK // block_x, 1 << (height - 1).bit_length())
    return -(-runs // block_x), min(-(-height // block_y), _MAX_YZ), min(planes, _MAX_YZ), block_x, block_y
