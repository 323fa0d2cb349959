"""From a decoder's NV12 surface to a network's input: only the pixels that are needed are read and converted.

    python examples/04_decoder_surface.py
"""

import numpy as np
from places import TARGET, get, photograph, picture, put

import fkl

# A surface as a decoder would give it: luma, then interleaved chroma at half the size.
photo = photograph()
to_yuv = [fkl.ConvertRGBToYUV("bt709"), fkl.SaturateCast("uint8")]
yuv = fkl.compose(fkl.TensorRead(), *to_yuv, fkl.TensorWrite(), target="cpu")(photo)
surface = np.concatenate([yuv[..., 0], yuv[::2, ::2, 1:].reshape(256, 512)])

k = fkl.compose(
    fkl.ReadYUV("nv12", chroma="linear"),
    fkl.ConvertYUVToRGB(primaries="bt709", range="limited"),
    fkl.Crop(100, 10, 300, 250),
    fkl.Resize(320, 320, aspect_ratio="preserve", background=0),
    fkl.Saturate(0.0, 255.0),
    fkl.Div(255.0),
    fkl.TensorSplit(),
    target=TARGET,
)
result = get(k(put(surface)))
print(TARGET, surface.shape, "->", result.shape)
picture("decoder", (result.transpose(1, 2, 0) * 255).round().astype(np.uint8))
