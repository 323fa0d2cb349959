"""What `kernels.py` compares with: the workloads in torch, and as kernels that somebody wrote by hand.

The torch functions are written with index arithmetic, so that torch.compile can fuse each into a kernel or two. The CUDA
kernels fold constants (a division by 255, a mean and a deviation are one multiply-add), keep everything in float32, and may
round otherwise than fkl does: they are what an expert would write for the one job.
"""

from __future__ import annotations

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

CUDA = r"""
#define FOLD float s0, float s1, float s2, float b0, float b1, float b2
#define FOLDED const float scale[3] = {s0, s1, s2}, bias[3] = {b0, b1, b2};

extern "C" __global__ void w1(const float4* x, float4* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = __ldcs(x + i);
  v.x = fmaxf(v.x * 1.2f - 0.2f, 0.f); v.y = fmaxf(v.y * 1.2f - 0.2f, 0.f);
  v.z = fmaxf(v.z * 1.2f - 0.2f, 0.f); v.w = fmaxf(v.w * 1.2f - 0.2f, 0.f);
  __stcs(y + i, v);
}

// Four pixels a thread: three 32-bit loads, three 16-byte stores.
extern "C" __global__ void w2(const unsigned* x, float4* y, unsigned quads, FOLD) {
  FOLDED
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= quads) return;
  const unsigned* in = x + (size_t(blockIdx.y) * quads + i) * 3;
  float4* out = y + size_t(blockIdx.y) * 3 * quads + i;
  const unsigned a = __ldcs(in), b = __ldcs(in + 1), c = __ldcs(in + 2);
  #define BYTE(w, k) float((w >> (8 * k)) & 255)
  const float r[4] = {BYTE(a, 0), BYTE(a, 3), BYTE(b, 2), BYTE(c, 1)};
  const float g[4] = {BYTE(a, 1), BYTE(b, 0), BYTE(b, 3), BYTE(c, 2)};
  const float l[4] = {BYTE(a, 2), BYTE(b, 1), BYTE(c, 0), BYTE(c, 3)};
  #define ROW(v, k) make_float4(v[0] * scale[k] + bias[k], v[1] * scale[k] + bias[k], v[2] * scale[k] + bias[k], v[3] * scale[k] + bias[k])
  __stcs(out, ROW(r, 0)); __stcs(out + quads, ROW(g, 1)); __stcs(out + 2 * size_t(quads), ROW(l, 2));
}

struct Tap { int near, far; float weight; };

static __device__ Tap tap(int i, float step, int size) {
  const float at = fmaxf((i + 0.5f) * step - 0.5f, 0.f);
  const int near = min(int(at), size - 1);
  return {near, min(near + 1, size - 1), at - near};
}

static __device__ float blend(float a, float b, float t) { return a + (b - a) * t; }

extern "C" __global__ void w3(const unsigned char* x, float* y, const int4* boxes, int pitch, FOLD) {
  FOLDED
  const int i = blockIdx.x * blockDim.x + threadIdx.x, column = i % 64, row = i / 64;
  const int4 box = boxes[blockIdx.y];
  const Tap h = tap(column, box.z / 64.f, box.z), v = tap(row, box.w / 128.f, box.w);
  const unsigned char* top = x + size_t(box.y + v.near) * pitch + box.x * 3;
  const unsigned char* bottom = x + size_t(box.y + v.far) * pitch + box.x * 3;
  float* out = y + size_t(blockIdx.y) * 3 * 8192 + i;
  #pragma unroll
  for (int c = 0; c < 3; ++c) {
    const int k = 2 - c;
    const float a = blend(__ldg(top + h.near * 3 + k), __ldg(top + h.far * 3 + k), h.weight);
    const float b = blend(__ldg(bottom + h.near * 3 + k), __ldg(bottom + h.far * 3 + k), h.weight);
    out[c * 8192] = blend(a, b, v.weight) * scale[c] + bias[c];
  }
}

static __device__ float3 yuv(const unsigned char* x, int row, int column) {
  const uchar2 uv = __ldg((const uchar2*)(x + size_t(2160 + row / 2) * 3840 + (column & ~1)));
  return make_float3(__ldg(x + size_t(row) * 3840 + column), uv.x, uv.y);
}

// 3840 x 2160 into the middle of 640 x 640: 640 x 360 from row 140 on. Both steps are linear, so it blends first and converts
// once.
extern "C" __global__ void w4(const unsigned char* x, float* y) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= 640 || row >= 640) return;
  float* out = y + row * 640 + column;
  if (row < 140 || row >= 500) {
    out[0] = out[409600] = out[819200] = 114 / 255.f;
    return;
  }
  const Tap h = tap(column, 6.f, 3840), v = tap(row - 140, 6.f, 2160);
  const float3 a = yuv(x, v.near, h.near), b = yuv(x, v.near, h.far), c = yuv(x, v.far, h.near), d = yuv(x, v.far, h.far);
  #define MIX(k) blend(blend(a.k, b.k, h.weight), blend(c.k, d.k, h.weight), v.weight)
  const float luma = (MIX(x) - 16) * (1.16438356f / 255), u = MIX(y) - 128.f, w = MIX(z) - 128.f;
  out[0] = luma + 1.79274107f / 255 * w;
  out[409600] = luma - 0.21324861f / 255 * u - 0.53290933f / 255 * w;
  out[819200] = luma + 2.11240179f / 255 * u;
}

extern "C" __global__ void w5(const unsigned char* x, unsigned char* y, float m0, float m1, float m2, float m3, float m4, float m5,
                              float m6, float m7, float m8) {
  const float m[9] = {m0, m1, m2, m3, m4, m5, m6, m7, m8};
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= 1920 || row >= 1080) return;
  const float w = __frcp_rn(m[6] * column + m[7] * row + m[8]);
  const float sx = (m[0] * column + m[1] * row + m[2]) * w, sy = (m[3] * column + m[4] * row + m[5]) * w;
  const float fx = floorf(sx), fy = floorf(sy), wx = sx - fx, wy = sy - fy;
  const int x0 = int(fx), y0 = int(fy);
  unsigned char* out = y + (size_t(row) * 1920 + column) * 3;
  #pragma unroll
  for (int k = 0; k < 3; ++k) {
    #define AT(yy, xx) ((unsigned)(yy) < 1080u && (unsigned)(xx) < 1920u ? float(__ldg(x + (size_t(yy) * 1920 + (xx)) * 3 + k)) : 0.f)
    const float top = blend(AT(y0, x0), AT(y0, x0 + 1), wx), bottom = blend(AT(y0 + 1, x0), AT(y0 + 1, x0 + 1), wx);
    out[k] = (unsigned char)(int)rintf(blend(top, bottom, wy));
  }
}

extern "C" __global__ void w6(const float4* x, float4* y, unsigned n, float a, float b) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  #pragma unroll 50
  for (int k = 0; k < 1000; ++k) { v.x = v.x * a + b; v.y = v.y * a + b; v.z = v.z * a + b; v.w = v.w * a + b; }
  y[i] = v;
}
"""

TRITON = '''
import triton
import triton.language as tl


@triton.jit
def w1(x, y, n, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.maximum(((v * 2 + 1) * 3 - 4) / 5, 0.0), mask=at < n)


@triton.jit
def w2(x, y, n, s0, s1, s2, b0, b1, b2, block: tl.constexpr):
    plane = tl.program_id(1).to(tl.int64) * n * 3
    at = tl.program_id(0) * block + tl.arange(0, block)
    keep = at < n
    r = tl.load(x + plane + at * 3, mask=keep).to(tl.float32)
    g = tl.load(x + plane + at * 3 + 1, mask=keep).to(tl.float32)
    b = tl.load(x + plane + at * 3 + 2, mask=keep).to(tl.float32)
    tl.store(y + plane + at, r * s0 + b0, mask=keep)
    tl.store(y + plane + n + at, g * s1 + b1, mask=keep)
    tl.store(y + plane + 2 * n + at, b * s2 + b2, mask=keep)
'''


def folded():
    """Scale and bias of (v / 255 - mean) / std."""
    return [1 / (255 * s) for s in STD], [-m / s for m, s in zip(MEAN, STD, strict=True)]


# -- torch ----------------------------------------------------------------------------------------------------------


def torch_functions(torch, rois, matrix):
    """Workload -> function of one input; each returns a new, contiguous output."""
    mean, std = torch.tensor(MEAN, device="cuda"), torch.tensor(STD, device="cuda")
    boxes = torch.tensor(rois, device="cuda", dtype=torch.float32)
    whole = torch.tensor([2160.0, 3840.0], device="cuda")
    m = [v for row in matrix for v in row]

    def w1(t):
        return (((t * 2 + 1) * 3 - 4) / 5).clamp_min(0)

    def w2(t):
        return ((t.float() / 255 - mean) / std).movedim(-1, -3).contiguous()

    def taps(count, size, device):
        """Near and far index and the far one's weight, of a linear resize to ``count``; ``size`` may be one per plane."""
        at = ((torch.arange(count, device=device) + 0.5) * (size / count) - 0.5).clamp_min(0)
        near = torch.minimum(at.floor(), size - 1)
        return near.long(), torch.minimum(near + 1, size - 1).long(), at - near

    def resized(pixels, v, h):
        """Blend four gathers; ``pixels(rows, columns)`` gives (..., channels)."""
        (top, bottom, wv), (left, right, wh) = v, h
        rows, wv, wh = [top[..., :, None], bottom[..., :, None]], wv[..., :, None, None], wh[..., None, :, None]
        columns = [left[..., None, :], right[..., None, :]]
        a, b = (torch.lerp(pixels(r, columns[0]), pixels(r, columns[1]), wh) for r in rows)
        return torch.lerp(a, b, wv)

    def w3(t):
        x0, y0, width, height = (boxes[:, i, None] for i in range(4))
        v, h = taps(128, height, t.device), taps(64, width, t.device)
        v, h = ((n + o.long(), f + o.long(), w) for (n, f, w), o in ((v, y0), (h, x0)))
        out = resized(lambda r, c: t[r, c].float(), v, h).flip(-1)
        return ((out / 255 - mean) / std).permute(0, 3, 1, 2).contiguous()

    def w4(t):
        luma, chroma = t[:2160], t[2160:].view(1080, 1920, 2)

        def pixels(r, c):
            y = (luma[r, c].float() - 16) * (255 / 219)
            uv = chroma[r // 2, c // 2].float() - 128
            u, v = uv[..., 0], uv[..., 1]
            parts = y + 1.79274107 * v, y - 0.21324861 * u - 0.53290933 * v, y + 2.11240179 * u
            return torch.stack(parts, -1)

        inner = resized(pixels, taps(360, whole[0], t.device), taps(640, whole[1], t.device)) / 255
        out = torch.full((3, 640, 640), 114 / 255, device=t.device)
        out[:, 140:500] = inner.permute(2, 0, 1)
        return out

    def w5(t):
        row, column = torch.arange(1080, device=t.device)[:, None].float(), torch.arange(1920, device=t.device)[None, :].float()
        w = m[6] * column + m[7] * row + m[8]
        x, y = (m[0] * column + m[1] * row + m[2]) / w, (m[3] * column + m[4] * row + m[5]) / w
        fx, fy = x.floor(), y.floor()

        def at(r, c):
            inside = ((r >= 0) & (r < 1080) & (c >= 0) & (c < 1920))[..., None]
            return torch.where(inside, t[r.long().clamp(0, 1079), c.long().clamp(0, 1919)].float(), 0.0)

        top = torch.lerp(at(fy, fx), at(fy, fx + 1), (x - fx)[..., None])
        bottom = torch.lerp(at(fy + 1, fx), at(fy + 1, fx + 1), (x - fx)[..., None])
        return torch.lerp(top, bottom, (y - fy)[..., None]).round().to(torch.uint8)

    return {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5}


# -- by hand --------------------------------------------------------------------------------------------------------


def by_hand(torch, rois, matrix):
    """Workload -> function of (input, output) that launches the kernel on torch's current stream."""
    import cupy
    import numpy as np

    module = cupy.RawModule(code=CUDA, options=("--std=c++17",))
    get = {name: module.get_function(name) for name in ("w1", "w2", "w3", "w4", "w5", "w6")}
    fold = [np.float32(v) for part in folded() for v in part]
    boxes = cupy.asarray(np.array(rois, np.int32))
    m = [np.float32(v) for v in np.ravel(matrix)]
    streams = {}

    def launch(name, grid, block, *args):
        handle = torch.cuda.current_stream().cuda_stream
        stream = streams.get(handle) or streams.setdefault(handle, cupy.cuda.ExternalStream(handle))
        with stream:
            get[name](grid, block, args)

    def at(tensor):
        return np.uint64(tensor.data_ptr())

    def w1(x, y):
        n = x.numel() // 4
        launch("w1", (-(-n // 256),), (256,), at(x), at(y), np.uint32(n))

    def w2(x, y):
        quads = x.shape[-3] * x.shape[-2] // 4
        launch("w2", (-(-quads // 256), x.numel() // (12 * quads)), (256,), at(x), at(y), np.uint32(quads), *fold)

    def w3(x, y):
        launch("w3", (8192 // 128, len(rois)), (128,), at(x), at(y), boxes, np.int32(3840 * 3), *fold)

    def w4(x, y):
        launch("w4", (20, 80), (32, 8), at(x), at(y))

    def w5(x, y):
        launch("w5", (60, 135), (32, 8), at(x), at(y), *m)

    def w6(x, y):
        n = x.numel() // 4
        launch("w6", (-(-n // 256),), (256,), at(x), at(y), np.uint32(n), np.float32(0.999), np.float32(0.001))

    return {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6}


def by_triton(torch):
    """Workload -> function of (input, output)."""
    import tempfile
    from importlib.util import module_from_spec, spec_from_file_location

    import triton  # noqa: F401

    # triton reads a kernel's text from its file.
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(TRITON)
    spec = spec_from_file_location("fkl_triton_kernels", file.name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    scale, bias = folded()

    def w1(x, y):
        module.w1[(-(-x.numel() // 1024),)](x, y, x.numel(), block=1024)

    def w2(x, y):
        n = x.shape[-3] * x.shape[-2]
        module.w2[(-(-n // 1024), x.numel() // (3 * n))](x, y, n, *scale, *bias, block=1024)

    return {"W1": w1, "W2": w2}
