"""A rotation about the centre, with what lies outside mirrored.

    python examples/07_warps_and_borders.py
"""

import numpy as np
from places import TARGET, get, photograph, picture, put

import fkl

photo = photograph()
angle, centre = np.deg2rad(25), 255.5
c, s = np.cos(angle), np.sin(angle)
# Maps output pixels to source pixels.
matrix = [[c, -s, centre - c * centre + s * centre], [s, c, centre - s * centre - c * centre]]
warp = fkl.Warping(matrix, 512, 512)
rotated = {}
for name, ops in {"black": [warp], "mirrored": [fkl.BorderReader("reflect101"), warp]}.items():
    k = fkl.compose(fkl.TensorRead(), *ops, fkl.SaturateCast("uint8"), fkl.TensorWrite(), target=TARGET)
    rotated[name] = get(k(put(photo)))
picture("warps", np.concatenate([photo, *rotated.values()], 1))
