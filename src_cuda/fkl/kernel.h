// The transform kernel: walks the output of a generated chain, on the GPU grid or over bands of a host thread.
// A chain declares Source, Target, source(), at() and, if its pixels stream through unmoved, body() and `wide`.
#pragma once
#include "fkl/image.h"

namespace fkl {

// Size of the output in pixels. Tight arrays are handed in as one long row.
struct Extents {
  i64 width;
  i64 height;
  i64 planes;
};

#if FKL_ON_DEVICE

// V neighbouring pixels of one row. A row's last, partial run goes pixel by pixel.
template <class Chain, int V, class Params>
FKL_FN void run_cell(const Params& p, i64 x, i64 y, i64 z) {
  if (x + V <= p.out.width) {
    typename Chain::Source::Pixel in[V];
    typename Chain::Target::Pixel out[V];
    Chain::Source::load_run(Chain::source(p, z), x, y, z, in);
    FKL_UNROLL
    for (int i = 0; i < V; ++i) out[i] = Chain::body(p, x + i, y, z, in[i]);
    Chain::Target::store_run(p.dst, x, y, z, out);
  } else {
    for (; x < p.out.width; ++x) Chain::Target::store(p.dst, x, y, z, Chain::at(p, x, y, z));
  }
}

// The grid strides over rows and planes, so that neither is bounded by the hardware's 65,535.
template <class Chain, class Params>
FKL_FN void run_scalar(const Params& p) {
  const i64 x = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= p.out.width) return;
  for (i64 z = blockIdx.z; z < p.out.planes; z += gridDim.z)
    for (i64 y = i64(blockIdx.y) * blockDim.y + threadIdx.y; y < p.out.height; y += i64(gridDim.y) * blockDim.y)
      Chain::Target::store(p.dst, x, y, z, Chain::at(p, x, y, z));
}

template <class Chain, int V, class Params>
FKL_FN void run_wide(const Params& p) {
  const i64 x = (i64(blockIdx.x) * blockDim.x + threadIdx.x) * V;
  if (x >= p.out.width) return;
  for (i64 z = blockIdx.z; z < p.out.planes; z += gridDim.z)
    for (i64 y = i64(blockIdx.y) * blockDim.y + threadIdx.y; y < p.out.height; y += i64(gridDim.y) * blockDim.y)
      run_cell<Chain, V>(p, x, y, z);
}

#define FKL_SCALAR_KERNEL(Params, Chain)                                                                        \
  extern "C" __global__ void __launch_bounds__(256) fkl_scalar(const __grid_constant__ Params p) {              \
    fkl::run_scalar<Chain>(p);                                                                                  \
  }
#define FKL_WIDE_KERNEL(Params, Chain, V)                                                                       \
  extern "C" __global__ void __launch_bounds__(256) fkl_wide(const __grid_constant__ Params p) {                \
    fkl::run_wide<Chain, V>(p);                                                                                 \
  }

#else

// Units of work are runs of up to `chunk` pixels of a row: unit = (z * height + y) * runs + run.
template <class Chain, class Params>
FKL_FN void run_band(const Params& p, i64 begin, i64 end, i64 chunk) {
  const i64 runs = (p.out.width + chunk - 1) / chunk;
  for (i64 unit = begin; unit < end; ++unit) {
    const i64 row = unit / runs;
    const i64 first = (unit - row * runs) * chunk;
    const i64 last = first + chunk < p.out.width ? first + chunk : p.out.width;
    const i64 z = row / p.out.height, y = row - z * p.out.height;
    for (i64 x = first; x < last; ++x) Chain::Target::store(p.dst, x, y, z, Chain::at(p, x, y, z));
  }
}

// The parameters are copied so that the compiler sees that no store changes them.
#define FKL_SCALAR_KERNEL(Params, Chain)                                                                        \
  extern "C" void fkl_band(const Params* params, fkl::i64 begin, fkl::i64 end, fkl::i64 chunk) {                \
    const Params p = *params;                                                                                   \
    fkl::run_band<Chain>(p, begin, end, chunk);                                                                 \
  }
#define FKL_WIDE_KERNEL(Params, Chain, V)

#endif

}  // namespace fkl
