// The transform kernel: walks the output of a generated chain, on the GPU grid or over bands of a host thread.
//
// A chain declares Source, Target and source(); gather(), all up to the last geometry; body(), the rest, with quotients as
// `Math` makes them (quotient.h); and at(), both. They get a Scope, made by scope(params, plane).
#pragma once
#include "fkl/image.h"
#include "fkl/quotient.h"

namespace fkl {

// A plane's record: from the table in memory if there is one, else from the records that the parameter block holds.
template <class Record>
FKL_FN Record fetched(const Record* table, const Record* held, i64 z) {
#if FKL_ON_DEVICE
  // The held record is always read; that of the table, if there is one, overwrites it by loads that are else switched off.
  // A branch costs more than that, and an address that may be of either memory more still.
  union {
    uint4 words[sizeof(Record) / 16];
    Record record;
  };
  const u32 far = table != nullptr, k = far ? 0 : u32(z);
  const u64 address = __cvta_generic_to_global(table + u32(z));
  FKL_UNROLL
  for (u32 i = 0; i < sizeof(Record) / 16; ++i) {
    uint4& w = words[i];
    w = reinterpret_cast<const uint4*>(held + k)[i];
    asm("{ .reg .pred q; setp.ne.u32 q, %4, 0; @q ld.global.v4.u32 {%0, %1, %2, %3}, [%5]; }"
        : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w) : "r"(far), "l"(address + i * 16));
  }
  return record;
#else
  return (table ? table : held)[z];
#endif
}

// Size of the output in pixels. Tight arrays are handed in as one long row. `cells`: runs of V pixels a row that are
// moved as wide words, 0 where an address or a stride forbids them. `longest`: which of width, height and planes
// (0, 1, 2) the grid has in its x. `moderate`: whether the values keep quotients within Bounded's limits.
struct Extents {
  i64 width;
  i64 height;
  i64 planes;
  i64 cells;
  i32 longest;
  i32 moderate;
};

#if FKL_ON_DEVICE

// Where a thread stands. Only the grid's x may exceed 65,535: whichever of columns, rows and planes needs that is put
// there by the host, and fetched from there. (A loop over rows and planes would do as well, and costs a quarter of the
// compile time.)
struct Place {
  i64 column, row, plane;
};

FKL_FN Place place(const Extents& out) {
  u32 column, row, plane;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(column));
  asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(row));
  asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(plane));
  const u32 x = column;
  column = out.longest == 0 ? x : out.longest == 1 ? row : plane;
  row = out.longest == 1 ? x : row;
  plane = out.longest == 2 ? x : plane;
  return {i64(column) * blockDim.x + threadIdx.x, i64(row) * blockDim.y + threadIdx.y, i64(plane)};
}

// The first `cells` threads of a row move V neighbours each, as wide words; the others one pixel each of what remains.
template <class Chain, int V, class Params>
FKL_FN void run_grid(const Params& p) {
  const Place at = place(p.out);
  const i64 y = at.row, z = at.plane;
  if (y >= p.out.height) return;
  const auto& s = scope(p, z);
  // Pixels that are made one by one.
  i64 single = at.column + p.out.cells * (V - 1), end = single < p.out.width ? single + 1 : single;
  if (V > 1 && at.column < p.out.cells) {
    const i64 x = at.column * V;
    typename Chain::Source::Pixel in[V];
    typename Chain::Target::Pixel out[V];
    typedef Stage<typename Chain::Source, V> In;
    typedef Stage<typename Chain::Target, V> Out;
    constexpr int bytes = int(In::load) > int(Out::store) ? int(In::load) : int(Out::store);
    // Eight warps a block. A warp stands in one row; all of it is among the cells, or it does without its neighbours.
    __shared__ uint4 stages[8][bytes > 0 ? bytes / 16 : 1];
    uint4* const stage = stages[(threadIdx.y * blockDim.x + threadIdx.x) >> 5];
    const u32 lane = threadIdx.x & 31;
    const bool whole = bytes > 0 && (blockDim.x & 31) == 0 && (at.column | 31) < p.out.cells;
    if constexpr (In::load > 0) {
      if (whole) {
        Chain::Source::load_warp(Chain::source(s), x, y, z, in, stage, lane);
      } else {
        Chain::Source::load_run(Chain::source(s), x, y, z, in);
      }
    } else {
      Chain::Source::load_run(Chain::source(s), x, y, z, in);
    }
    typename Chain::Math math;
    FKL_UNROLL
    for (int i = 0; i < V; ++i) out[i] = Chain::body(s, x + i, y, z, in[i], math);
    const bool holds = math.holds(p.out);
    if constexpr (Out::store > 0) {
      if (whole && (!Chain::Math::can_fail || __all_sync(~0u, holds))) {
        Chain::Target::store_warp(p.dst, x, y, z, out, stage, lane);
        return;
      }
    }
    if (holds) {
      Chain::Target::store_run(p.dst, x, y, z, out);
      return;
    }
    single = x;
    end = x + V;
  }
  if constexpr (V > 1 && Chain::Math::can_fail) {
    FKL_UNROLL_BY(1)
    for (; single < end; ++single) Chain::Target::store(p.dst, single, y, z, Chain::at(s, single, y, z));
  } else {
    // No more than one, and a loop costs a quarter of the compile time.
    if (single < end) Chain::Target::store(p.dst, single, y, z, Chain::at(s, single, y, z));
  }
}

// The parameter block travels with the launch or, where it is too large for that, lies in device memory.
#ifdef FKL_LARGE_PARAMETERS
#define FKL_BLOCK(Params) const Params* memory
#define FKL_BLOCK_AT *memory
#else
#define FKL_BLOCK(Params) const __grid_constant__ Params block
#define FKL_BLOCK_AT block
#endif

#define FKL_KERNEL(Params, Chain, V)                                                                            \
  extern "C" __global__ void __launch_bounds__(256) fkl_kernel(FKL_BLOCK(Params)) {                             \
    fkl::run_grid<Chain, V>(FKL_BLOCK_AT);                                                                      \
  }

// A chain with geometry: a thread makes R pixels of a column, one or two, which share what depends on the column alone.
template <class Chain, int R, class Params>
FKL_FN void run_sampled(const Params& p) {
  const Place at = place(p.out);
  // Neither columns nor rows reach 2^31 here.
  const u32 x = u32(at.column), y = u32(at.row) * R;
  const u32 z = u32(at.plane);
  if ((x >= u32(p.out.width)) | (y >= u32(p.out.height))) return;
  const auto& s = scope(p, z);
  const u32 last = u32(p.out.height) - 1;
  auto first = Chain::gather(s, x, y, z);
  auto second = R > 1 ? Chain::gather(s, x, min(y + 1, last), z) : first;
  typename Chain::Math math;
  typename Chain::Target::Pixel out[R];
  FKL_UNROLL
  for (int i = 0; i < R; ++i) out[i] = Chain::body(s, x, i ? min(y + i, last) : y, z, i ? second : first, math);
  if constexpr (Chain::Math::can_fail) {
    if (!math.holds(p.out)) {
      // One after the other, so that there is little text for this.
      Called exact;
      FKL_UNROLL_BY(1)
      for (int i = 0; i < R && y + i <= last; ++i) {
        Chain::Target::store(p.dst, x, y + i, z, Chain::body(s, x, y + i, z, first, exact));
        first = second;
      }
      return;
    }
  }
  FKL_UNROLL
  for (int i = 0; i < R; ++i)
    if (i == 0 || y + i <= last) Chain::Target::store(p.dst, x, y + i, z, out[i]);
}

#define FKL_SAMPLED_KERNEL(Params, Chain, R)                                                                    \
  extern "C" __global__ void __launch_bounds__(256) fkl_kernel(FKL_BLOCK(Params)) {                             \
    fkl::run_sampled<Chain, R>(FKL_BLOCK_AT);                                                                   \
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
    const auto& s = scope(p, z);
    for (i64 x = first; x < last; ++x) Chain::Target::store(p.dst, x, y, z, Chain::at(s, x, y, z));
  }
}

// The parameters are copied so that the compiler sees that no store changes them.
#define FKL_KERNEL(Params, Chain, V)                                                                            \
  extern "C" void fkl_band(const Params* params, fkl::i64 begin, fkl::i64 end, fkl::i64 chunk) {                \
    const Params p = *params;                                                                                   \
    fkl::run_band<Chain>(p, begin, end, chunk);                                                                 \
  }
#define FKL_SAMPLED_KERNEL(Params, Chain, R) FKL_KERNEL(Params, Chain, 1)

#endif

}  // namespace fkl
