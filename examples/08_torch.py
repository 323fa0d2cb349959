"""torch tensors in and out: current streams, outputs of torch's own, a CUDA graph.

    python examples/08_torch.py

Needs torch and a CUDA GPU; says so without them.
"""

import sys

import fkl

try:
    import torch
except ImportError:
    print("this example needs torch (pip install torch) and a CUDA GPU")
    sys.exit(0)
if not torch.cuda.is_available():
    print("needs a CUDA GPU; `python -m fkl info` says what is missing")
    sys.exit(0)

x = torch.randint(0, 256, (8, 224, 224, 3), dtype=torch.uint8, device="cuda")
normalise = [fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub((0.485, 0.456, 0.406)), fkl.Div((0.229, 0.224, 0.225))]
k = fkl.compose(fkl.TensorRead(), *normalise, fkl.TensorSplit())
y = k(x)
print(type(y), tuple(y.shape), y.device)
mean, std = (torch.tensor(v, device="cuda") for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
# torch divides by a number through its reciprocal, so the last bit may differ; fkl's division is the exact one.
assert torch.allclose(y, ((x.float() / 255 - mean) / std).permute(0, 3, 1, 2), atol=1e-6)

out = torch.empty_like(y)
bound = fkl.compose(fkl.TensorRead(x), *normalise, fkl.TensorSplit(out))
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    bound()
x.random_(0, 256)
graph.replay()
torch.cuda.synchronize()
assert torch.equal(out, k(x))
print("captured and replayed")
