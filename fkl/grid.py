"""The launch grid for an output of a given size. Called by `fkl.binding`."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

__all__ = ["BLOCK", "EMPTY", "Grid", "launch_grid"]

#: Threads of a block; the kernel is compiled for no more.
BLOCK = 256
#: The hardware's bound of a grid in y and z. In x it is 2^31 - 1.
_MAX_YZ = 65535


class Grid(NamedTuple):
    """Blocks and threads of a launch. ``cells``: how many threads of a row move a run of pixels. ``longest`` says what x
    counts: columns (0), rows (1) or planes (2)."""

    x: int
    y: int
    z: int
    block_x: int
    block_y: int
    cells: int
    longest: int

    def pack(self) -> bytes:
        """Its part of `Extents` in kernel.h."""
        return struct.pack("<qi", self.cells, self.longest)


#: Nothing to launch.
EMPTY = Grid(0, 0, 0, 0, 0, 0, 0)


@lru_cache(maxsize=256)
def launch_grid(width: int, height: int, planes: int, pixels: int = 1) -> Grid:
    """The grid for an output of this size.

    Parameters
    ----------
    width, height, planes : int
        The output, none of them 0.
    pixels : int
        Pixels that a thread moves at once; what remains of a row has a thread a pixel. 1: all pixels have.
    """
    cells = width // pixels if pixels > 1 else 0
    threads = cells + width - cells * pixels
    block_x = BLOCK if threads >= BLOCK else 1 << (threads - 1).bit_length()
    block_y = min(BLOCK // block_x, 1 << (height - 1).bit_length())
    counts = [-(-threads // block_x), -(-height // block_y), planes]
    # Two of them beyond the bound would be more pixels than any device holds.
    longest = max(range(3), key=lambda i: (counts[i] > _MAX_YZ, i == 0))
    counts[0], counts[longest] = counts[longest], counts[0]
    return Grid(counts[0], counts[1], counts[2], block_x, block_y, cells, longest)
