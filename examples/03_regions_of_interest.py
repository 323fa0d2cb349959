"""A batch of regions whose number changes every frame: one kernel, compiled once.

    python examples/03_regions_of_interest.py
"""

import numpy as np
from places import TARGET, get, photograph, picture, put

import fkl

photo = put(photograph())
regions = fkl.Crop([(0, 0, 64, 64)])
operations = [regions, fkl.Resize(96, 128), fkl.ColorConversion("RGB2BGR"), fkl.Div(255.0)]
k = fkl.compose(fkl.TensorRead(), *operations, fkl.TensorSplit(), target=TARGET)
k(photo)
rng = np.random.default_rng(0)
for frame in range(5):
    boxes = [(*rng.integers(0, 300, 2).tolist(), *rng.integers(40, 200, 2).tolist()) for _ in range(int(rng.integers(0, 12)))]
    k.update(regions, boxes)  # a value: nothing compiles
    batch = get(k(photo))
    print(f"frame {frame}: {len(boxes)} regions -> {batch.shape}")
k.update(regions, [(170, 20, 110, 150), (0, 300, 200, 200), (400, 100, 100, 140)])
batch = get(k(photo))
picture("regions", (np.concatenate(list(batch.transpose(0, 2, 3, 1)), 1)[..., ::-1] * 255).clip(0, 255).astype(np.uint8))
