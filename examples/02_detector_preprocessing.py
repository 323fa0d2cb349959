"""Preprocessing of a detector in one kernel: letterbox, scale, planar split; and boxes mapped back to the photograph.

    python examples/02_detector_preprocessing.py
"""

import numpy as np
from places import TARGET, get, photograph, picture, put

import fkl

photo = photograph()[:400]
height, width, _ = photo.shape
resize = fkl.Resize(640, 640, aspect_ratio="preserve", background=114)
k = fkl.compose(fkl.TensorRead(), resize, fkl.Div(255.0), fkl.TensorSplit(), target=TARGET)
network_input = get(k(put(photo)))
print(TARGET, network_input.shape, network_input.dtype)

# A box that a network found in its input, in the photograph's own coordinates.
place = resize.placement(width, height)
box = np.array([200.0, 150.0, 420.0, 380.0])
offset, scale = [place.x, place.y] * 2, [place.scale_x, place.scale_y] * 2
print("box in the input:", box, "in the photograph:", ((box - offset) / scale).round(1))

try:
    import cv2
except ImportError:
    print("OpenCV is not installed: no comparison")
else:
    content = cv2.resize(photo.astype(np.float32), (place.width, place.height))
    expected = np.full((640, 640, 3), 114, np.float32)
    expected[place.y : place.y + place.height, place.x : place.x + place.width] = content
    difference = np.abs(network_input - (expected / 255).transpose(2, 0, 1)).max()
    print("largest difference to OpenCV's letterbox:", difference)
    assert difference < 1e-5
picture("letterbox", (network_input.transpose(1, 2, 0) * 255).round().astype(np.uint8))
