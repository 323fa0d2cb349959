"""The last frames of a stream as one tensor, each pushed by one kernel that also scales it.

    python examples/06_temporal_window.py
"""

import numpy as np
from places import TARGET, get, photograph, put

import fkl

photo = photograph()
window = fkl.CircularTensor(128, 96, 4, channels=3, layout="planar", out_dtype="float32", order="oldest_first", target=TARGET)
scale = [fkl.Resize(128, 96), fkl.Div(255.0)]  # the same objects each time, so that nothing is composed anew
for shift in range(0, 60, 10):
    window.update(put(np.roll(photo, shift, axis=1)), scale)
    print(f"{window.frames_pushed} pushed, {len(window)} in the window")
clip = get(window.snapshot())
print(clip.shape, clip.dtype, "newest frame last:", np.allclose(clip[-1].mean(), photo.mean() / 255, atol=0.01))
