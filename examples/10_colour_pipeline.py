"""Colour: from an RGB photograph to HSV and back with more saturation, to grey, to YCrCb, each in one kernel.

    python examples/10_colour_pipeline.py
"""

import numpy as np
from places import TARGET, get, photograph, picture, put

import fkl

photo = photograph()
x = put(photo)

# Hue 0..360, saturation and value 0..1 as floats: saturation times 1.5, clamped, and back to bytes.
vivid = fkl.compose(
    fkl.TensorRead(), fkl.Cast("float32"), fkl.Div(255.0), fkl.ColorConversion("RGB2HSV"),
    fkl.Mul((1.0, 1.5, 1.0)), fkl.Min((360.0, 1.0, 1.0)), fkl.ColorConversion("HSV2RGB"),
    fkl.Mul(255.0), fkl.SaturateCast("uint8"), fkl.TensorWrite(), target=TARGET,
)  # fmt: skip
grey = fkl.compose(fkl.TensorRead(), fkl.ColorConversion("RGB2GRAY"), fkl.TensorWrite(), target=TARGET)
luma = fkl.compose(fkl.TensorRead(), fkl.ColorConversion("RGB2YCrCb"), fkl.Discard(1), fkl.TensorWrite(), target=TARGET)

strong, g, y = get(vivid(x)), get(grey(x)), get(luma(x))
print(TARGET, strong.shape, g.shape, y.shape)
difference = np.abs(g.astype(int).reshape(y.shape) - y).max()
print("grey and luma differ by at most", difference)
assert difference <= 1

try:
    import cv2
except ImportError:
    print("OpenCV is not installed: no comparison")
else:
    hsv = cv2.cvtColor(photo.astype(np.float32) / 255, cv2.COLOR_RGB2HSV)
    hsv[..., 1] = np.minimum(hsv[..., 1] * np.float32(1.5), 1)
    expected = np.rint(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB) * 255).clip(0, 255)
    difference = np.abs(strong - expected).max()
    print("largest difference to OpenCV:", difference)
    assert difference <= 1
picture("colours", np.concatenate([photo, strong, np.repeat(g.reshape(*photo.shape[:2], 1), 3, 2)], 1))
