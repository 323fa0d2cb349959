// How pixels lie in memory: the records of the parameter block and the formats that load and store through them.
// Used by generated chains as their Source and Target. All strides are bytes.
#pragma once
#include "fkl/pixel.h"

namespace fkl {

// One strided array: rows `pitch` apart, planes `plane` apart, channels `channel` apart (planar formats only).
struct Image {
  u8* data;
  i64 pitch;
  i64 plane;
  i64 channel;
};

// One array for each channel.
template <int C>
struct Images {
  struct One {
    u8* data;
    i64 pitch;
    i64 plane;
  } c[C];
};

// The largest machine word that divides a run of bytes; fkl/plan.py has the same rule.
template <int B>
constexpr int word_size = B % 16 == 0 ? 16 : B % 8 == 0 ? 8 : B % 4 == 0 ? 4 : B % 2 == 0 ? 2 : 1;

// The address of the pixel at column x of row y, of `size` bytes; `plane`: of the first pixel. Chains with geometry count in
// 32 bits, and the host sees to it that there a pitch has no more: two instructions.
FKL_FN u8* address(u8* plane, i64 x, i64 y, i64 pitch, u32 size) { return plane + y * pitch + x * size; }
FKL_FN u8* address(u8* plane, u32 x, u32 y, i64 pitch, u32 size) {
  return global_pointer(multiply_wide_add(x, size, multiply_wide_add(y, u32(pitch), u64(plane))));
}
FKL_FN u8* address(u8* plane, i32 x, i32 y, i64 pitch, u32 size) { return address(plane, u32(x), u32(y), pitch, size); }

template <class T, int C> struct Packed;

#if FKL_ON_DEVICE
template <int BYTES> struct Word;
template <> struct Word<16> { typedef uint4 type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<4> { typedef u32 type; };
template <> struct Word<2> { typedef u16 type; };
template <> struct Word<1> { typedef u8 type; };

// N values of T moved as the widest words that divide them; the address is aligned to that word.
template <class T, int N>
union Run {
  enum { bytes = int(sizeof(T)) * N, word = word_size<int(sizeof(T)) * N>, count = bytes / word, stride = count | 1 };
  typedef typename Word<word>::type W;
  T value[N];
  W words[bytes / word];

  __device__ __forceinline__ void load(const u8* at) {
    FKL_UNROLL
    for (int i = 0; i < bytes / word; ++i) words[i] = one(reinterpret_cast<const W*>(at) + i);
  }
  // Words of 16 bytes and those that a warp hands around keep the default: streaming costs up to a third of the speed of
  // some copies.
  static __device__ __forceinline__ W one(const W* at) {
    if constexpr (int(word) < 16) {
      return __ldcs(at);
    } else {
      return *at;
    }
  }
  // What is written is the first to leave the caches.
  __device__ __forceinline__ void store(u8* at) const {
    FKL_UNROLL
    for (int i = 0; i < bytes / word; ++i) __stcs(reinterpret_cast<W*>(at) + i, words[i]);
  }

  // A thread with several words leaves gaps between its neighbours' at every instruction. A warp moves word after word
  // instead, and hands each to its owner in shared memory: `stride` words a thread, odd, so that no two threads of an
  // access meet in a bank. `first`: the address of the warp's first run.
  __device__ __forceinline__ void load_warp(const u8* first, uint4* memory, u32 lane) {
    W* const stage = reinterpret_cast<W*>(memory);
    FKL_UNROLL
    for (u32 i = 0; i < count; ++i) {
      const u32 w = i * 32 + lane;
      stage[w / count * stride + w % count] = reinterpret_cast<const W*>(first)[w];
    }
    __syncwarp();
    FKL_UNROLL
    for (u32 i = 0; i < count; ++i) words[i] = stage[lane * stride + i];
    __syncwarp();
  }
  __device__ __forceinline__ void store_warp(u8* first, uint4* memory, u32 lane) const {
    W* const stage = reinterpret_cast<W*>(memory);
    FKL_UNROLL
    for (u32 i = 0; i < count; ++i) stage[lane * stride + i] = words[i];
    __syncwarp();
    FKL_UNROLL
    for (u32 i = 0; i < count; ++i) {
      const u32 w = i * 32 + lane;
      reinterpret_cast<W*>(first)[w] = stage[w / count * stride + w % count];
    }
  }
};

// Bytes of shared memory that a warp needs to load or store runs of V pixels together, 0 where each thread does better
// alone: loads of words below 16 bytes hit the first-level cache.
template <class Format, int V>
struct Stage {
  enum { load = 0, store = 0 };
};
template <class T, int C, int V>
struct Stage<Packed<T, C>, V> {
  typedef Run<pixel<T, C>, V> R;
  enum { store = V > 1 && R::count > 1 ? 32 * R::stride * R::word : 0, load = R::word == 16 ? store : 0 };
};
#endif

// Channels beside each other.
template <class T, int C>
struct Packed {
  typedef pixel<T, C> Pixel;
  typedef Image Record;

  template <class I>
  FKL_FN u8* at(const Image& m, I x, I y, i64 z) {
    return address(m.data + z * m.plane, x, y, m.pitch, sizeof(Pixel));
  }
  template <class I>
  FKL_FN Pixel load(const Image& m, I x, I y, i64 z) {
    return *reinterpret_cast<const Pixel*>(at(m, x, y, z));
  }
  template <class I>
  FKL_FN void store(const Image& m, I x, I y, i64 z, const Pixel& v) {
    *reinterpret_cast<Pixel*>(at(m, x, y, z)) = v;
  }

#if FKL_ON_DEVICE
  template <int V>
  FKL_FN void load_run(const Image& m, i64 x, i64 y, i64 z, Pixel (&out)[V]) {
    Run<Pixel, V> run;
    run.load(at(m, x, y, z));
    FKL_UNROLL
    for (int i = 0; i < V; ++i) out[i] = run.value[i];
  }
  template <int V>
  FKL_FN void store_run(const Image& m, i64 x, i64 y, i64 z, const Pixel (&in)[V]) {
    Run<Pixel, V> run;
    FKL_UNROLL
    for (int i = 0; i < V; ++i) run.value[i] = in[i];
    run.store(at(m, x, y, z));
  }
  // The same for a warp whose 32 runs lie side by side, through shared memory of its own; x is this thread's.
  template <int V>
  FKL_FN void load_warp(const Image& m, i64 x, i64 y, i64 z, Pixel (&out)[V], uint4* stage, u32 lane) {
    Run<Pixel, V> run;
    run.load_warp(at(m, x - lane * V, y, z), stage, lane);
    FKL_UNROLL
    for (int i = 0; i < V; ++i) out[i] = run.value[i];
  }
  template <int V>
  FKL_FN void store_warp(const Image& m, i64 x, i64 y, i64 z, const Pixel (&in)[V], uint4* stage, u32 lane) {
    Run<Pixel, V> run;
    FKL_UNROLL
    for (int i = 0; i < V; ++i) run.value[i] = in[i];
    run.store_warp(at(m, x - lane * V, y, z), stage, lane);
  }
#endif
};

// Each channel in a plane of its own, all in one array.
template <class T, int C>
struct Planar {
  typedef pixel<T, C> Pixel;
  typedef Image Record;

  template <class I>
  FKL_FN u8* at(const Image& m, I x, I y, i64 z, int c) {
    return address(m.data + z * m.plane, x, y, m.pitch, sizeof(T)) + c * m.channel;
  }
  template <class I>
  FKL_FN Pixel load(const Image& m, I x, I y, i64 z) {
    Pixel v;
    FKL_UNROLL
    for (int c = 0; c < C; ++c) v.v[c] = *reinterpret_cast<const T*>(at(m, x, y, z, c));
    return v;
  }
  template <class I>
  FKL_FN void store(const Image& m, I x, I y, i64 z, const Pixel& v) {
    FKL_UNROLL
    for (int c = 0; c < C; ++c) *reinterpret_cast<T*>(at(m, x, y, z, c)) = v.v[c];
  }

#if FKL_ON_DEVICE
  template <int V>
  FKL_FN void load_run(const Image& m, i64 x, i64 y, i64 z, Pixel (&out)[V]) {
    FKL_UNROLL
    for (int c = 0; c < C; ++c) {
      Run<T, V> run;
      run.load(at(m, x, y, z, c));
      FKL_UNROLL
      for (int i = 0; i < V; ++i) out[i].v[c] = run.value[i];
    }
  }
  template <int V>
  FKL_FN void store_run(const Image& m, i64 x, i64 y, i64 z, const Pixel (&in)[V]) {
    FKL_UNROLL
    for (int c = 0; c < C; ++c) {
      Run<T, V> run;
      FKL_UNROLL
      for (int i = 0; i < V; ++i) run.value[i] = in[i].v[c];
      run.store(at(m, x, y, z, c));
    }
  }
#endif
};

// Each channel in an array of its own.
template <class T, int C>
struct Separate {
  typedef pixel<T, C> Pixel;
  typedef Images<C> Record;

  template <class I>
  FKL_FN u8* at(const Record& m, I x, I y, i64 z, int c) {
    return address(m.c[c].data + z * m.c[c].plane, x, y, m.c[c].pitch, sizeof(T));
  }
  template <class I>
  FKL_FN void store(const Record& m, I x, I y, i64 z, const Pixel& v) {
    FKL_UNROLL
    for (int c = 0; c < C; ++c) *reinterpret_cast<T*>(at(m, x, y, z, c)) = v.v[c];
  }

#if FKL_ON_DEVICE
  template <int V>
  FKL_FN void store_run(const Record& m, i64 x, i64 y, i64 z, const Pixel (&in)[V]) {
    FKL_UNROLL
    for (int c = 0; c < C; ++c) {
      Run<T, V> run;
      FKL_UNROLL
      for (int i = 0; i < V; ++i) run.value[i] = in[i].v[c];
      run.store(at(m, x, y, z, c));
    }
  }
#endif
};

// The same pixel everywhere; its record is the pixel.
template <class T, int C>
struct Constant {
  typedef pixel<T, C> Pixel;
  typedef pixel<T, C> Record;

  template <class I>
  FKL_FN Pixel load(const Record& m, I, I, i64) {
    return m;
  }

#if FKL_ON_DEVICE
  template <int V>
  FKL_FN void load_run(const Record& m, i64, i64, i64, Pixel (&out)[V]) {
    FKL_UNROLL
    for (int i = 0; i < V; ++i) out[i] = m;
  }
#endif
};

}  // namespace fkl
