"""A detector's preprocessing from end to end: a decoded NV12 frame to the network's input, then its boxes to crops.

    python examples/11_detector_end_to_end.py

The first kernel makes the network's input (colour, letterbox, scale, planes), the second cuts the detections out of the
same surface for a second network, one plane each. Compared with OpenCV's letterbox on a real photograph.
"""

import numpy as np
from places import TARGET, get, photograph, picture, put

import fkl

SIZE = 416
photo = photograph()[60:444]  # 512 x 384, as a camera's 4:3
height, width, _ = photo.shape


def nv12(rgb: np.ndarray) -> np.ndarray:
    """The surface that a decoder would give: BT.601, limited range."""
    to_yuv = fkl.compose(
        fkl.TensorRead(), fkl.ConvertRGBToYUV("bt601", "limited"), fkl.SaturateCast("uint8"), fkl.TensorSplit(), target="cpu"
    )
    y, u, v = to_yuv(rgb)
    chroma = np.stack([u[::2, ::2], v[::2, ::2]], -1).reshape(height // 2, width)
    return np.concatenate([y, chroma])


surface = nv12(photo)
frame = put(surface)
resize = fkl.Resize(SIZE, SIZE, aspect_ratio="preserve", background=114.0)
colour = fkl.ConvertYUVToRGB("bt601", "limited")
prepare = fkl.compose(fkl.ReadYUV("nv12"), colour, resize, fkl.Div(255.0), fkl.TensorSplit(), target=TARGET)
network_input = get(prepare(frame))
print(TARGET, "network input", network_input.shape, network_input.dtype)

# What a network might answer, in coordinates of its input, and where that is in the frame.
boxes = np.array([[150.0, 60.0, 260.0, 180.0], [20.0, 250.0, 140.0, 360.0], [250.0, 210.0, 330.0, 330.0]])
place = resize.placement(width, height)
corners = (boxes - [place.x, place.y] * 2) / ([place.scale_x, place.scale_y] * 2)
corners = np.clip(corners.round().astype(int), 0, [width, height] * 2)
rectangles = [(int(a), int(b), int(c - a), int(d - b)) for a, b, c, d in corners]

patches = fkl.Crop(rectangles), fkl.Resize(96, 96), fkl.SaturateCast("uint8")
cut = fkl.compose(fkl.ReadYUV("nv12"), colour, *patches, fkl.TensorWrite(), target=TARGET)
crops = get(cut(frame))
print("detections", rectangles, "->", crops.shape)

try:
    import cv2
except ImportError:
    print("OpenCV is not installed: no comparison")
else:
    rgb = cv2.cvtColor(surface, cv2.COLOR_YUV2RGB_NV12).astype(np.float32)
    expected = np.full((SIZE, SIZE, 3), 114, np.float32)
    content = cv2.resize(rgb, (place.width, place.height))
    expected[place.y : place.y + place.height, place.x : place.x + place.width] = content
    difference = np.abs(network_input * 255 - expected.transpose(2, 0, 1))
    print(f"difference to OpenCV's letterbox, of 255: mean {difference.mean():.3f}, most {difference.max():.3f}")
    # OpenCV rounds and clamps the colours to bytes before it resizes, fkl keeps what lies beyond 0..255: the largest
    # differences, of tens, are at saturated colours, the mean is a rounding.
    assert difference.mean() < 0.6
image = (network_input.transpose(1, 2, 0) * 255).clip(0, 255).round().astype(np.uint8)
strip = np.zeros((SIZE, 96, 3), np.uint8)
strip[: 3 * 96] = crops.reshape(-1, 96, 3)
picture("detector", np.concatenate([image, strip], 1))
