"""Cameras of different kinds in one launch: each plane goes through the chain of its camera.

    python examples/05_several_cameras.py
"""

import numpy as np
from places import TARGET, get, photograph, put

import fkl

photo = photograph()
colour = [fkl.TensorRead(), fkl.Crop(50, 50, 400, 300), fkl.Resize(160, 120), fkl.Div(255.0), fkl.TensorSplit()]
thermal = [
    fkl.TensorRead(channels=1), fkl.Cast("float32"), fkl.Div(65535.0), fkl.Resize(160, 120), fkl.AddLast(0.0), fkl.AddLast(0.0),
    fkl.VectorReorder(0, 0, 0), fkl.TensorSplit(),
]  # fmt: skip
heat = (photo[..., 0].astype(np.uint16) << 8).copy()

k = fkl.compose_divergent([1, 2, 1], colour, thermal, target=TARGET)
print(get(k([put(photo), put(heat), put(photo[::-1].copy())])).shape)
k.update([2, 2, 1, 1])  # another set of cameras: nothing compiles
batch = get(k([put(heat), put(heat), put(photo), put(photo)]))
print(batch.shape)
assert (batch[0] == batch[1]).all() and (batch[2] == batch[3]).all()
