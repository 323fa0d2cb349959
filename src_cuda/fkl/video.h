// Video surfaces: luma and subsampled chroma in one array or two, read as (Y, U, V) pixels.
#pragma once

#include "fkl/image.h"

namespace fkl {

struct YuvRecord {
  u8* y;
  u8* u;
  u8* v;
  i64 y_plane, c_plane;   // bytes from frame to frame
  u32 y_pitch, c_pitch;   // and from row to row
  i32 c_width, c_height;  // size of the chroma planes
  i32 shift;              // samples lie so many bits too high
  i32 paired;             // whether the chroma samples of a pixel are aligned as a pair
};

enum { CHROMA_REPLICATE, CHROMA_LEFT, CHROMA_CENTER };

// How samples lie: luma between chroma (4:2:2), the chroma samples of a pixel beside each other, U or V first, or each in a
// plane (4:2:0).
enum { BETWEEN, PAIRED_UV, PAIRED_VU, APART };

// Two samples that lie beside each other: one access if they are aligned for it. Loads that do not apply are switched off,
// each into registers of its own: none waits for another, and there is no branch for the compiler to take apart. No store of
// a kernel reaches what it reads here (outputs that overlap a surface are refused), so that the order to stores is free.
template <class T>
FKL_FN void load_pair(const u8* at, i32 aligned, u32& first, u32& second) {
  static_assert(sizeof(T) <= 2, "samples of one byte or two");
#if FKL_ON_DEVICE
  const u64 address = __cvta_generic_to_global(at);
#define FKL_LOAD_PAIR(pair, sample, bits, mask)                                                                       \
  asm("{ .reg .pred q; .reg .b32 w, l, h; mov.b32 w, 0; mov.b32 l, 0; mov.b32 h, 0; setp.ne.s32 q, %3, 0;"            \
      " @q ld.global." pair " w, [%2]; @!q ld.global." sample " l, [%2]; @!q ld.global." sample " h, [%2 + %4];"       \
      " and.b32 %0, w, " mask "; or.b32 %0, %0, l; shr.u32 %1, w, " bits "; or.b32 %1, %1, h; }"                           \
      : "=r"(first), "=r"(second) : "l"(address), "r"(aligned), "n"(sizeof(T)))
  if constexpr (sizeof(T) == 1) FKL_LOAD_PAIR("u16", "u8", "8", "0xff");
  if constexpr (sizeof(T) == 2) FKL_LOAD_PAIR("u32", "u16", "16", "0xffff");
#undef FKL_LOAD_PAIR
#else
  if (aligned && u64(at) % (2 * sizeof(T)) != 0) __builtin_trap();  // the host was wrong, and a GPU would fault
  first = reinterpret_cast<const T*>(at)[0], second = reinterpret_cast<const T*>(at)[1];
#endif
}

template <class T, int MODE, int SAMPLES>
struct Yuv {
  typedef pixel<T, 3> Pixel;
  typedef YuvRecord Record;
  // Bytes from sample to sample, and whether chroma rows are halved as its columns are.
  enum { size = int(sizeof(T)), y_step = SAMPLES == BETWEEN ? 2 * size : size, halved = SAMPLES == BETWEEN ? 0 : 1 };
  enum { c_step = SAMPLES == BETWEEN ? 4 * size : SAMPLES == APART ? size : 2 * size };

  // A sample without the bits it lies too high by; those of a byte have none.
  FKL_FN T lowered(const YuvRecord& m, u32 v) { return sizeof(T) == 1 ? T(v) : T(v) >> m.shift; }
  FKL_FN u32 lowered(const YuvRecord& m, const u8* at) { return lowered(m, *reinterpret_cast<const T*>(at)); }

  FKL_FN u32 inside(const YuvRecord& m, u8* plane, u32 x, u32 y, i64 z) {
    return lowered(m, address(plane + z * m.c_plane, x, y, m.c_pitch, c_step));
  }

  FKL_FN u32 sample(const YuvRecord& m, u8* plane, i32 x, i32 y, i64 z) {
    x = x < 0 ? 0 : x >= m.c_width ? m.c_width - 1 : x;
    y = y < 0 ? 0 : y >= m.c_height ? m.c_height - 1 : y;
    return inside(m, plane, u32(x), u32(y), z);
  }

  // Between the samples around a pixel.
  FKL_FN T interpolated(const YuvRecord& m, u8* plane, u32 x, u32 y, i64 z) {
    const i32 cx = i32(x >> 1), cy = i32(y >> halved);
    // Weights in quarters: between columns x0 and x0 + 1, and rows y0 and y0 + 1.
    const bool odd = x & 1;
    const i32 x0 = MODE == CHROMA_LEFT || odd ? cx : cx - 1;
    const u32 wx = MODE == CHROMA_LEFT ? (odd ? 2 : 0) : odd ? 1 : 3;
    const i32 y0 = !halved || (y & 1) ? cy : cy - 1;
    const u32 wy = !halved ? 0 : (y & 1) ? 1 : 3;
    const u32 top = sample(m, plane, x0, y0, z) * (4 - wx) + sample(m, plane, x0 + 1, y0, z) * wx;
    const u32 bottom = sample(m, plane, x0, y0 + 1, z) * (4 - wx) + sample(m, plane, x0 + 1, y0 + 1, z) * wx;
    return T((top * (4 - wy) + bottom * wy + 8) >> 4);
  }

  FKL_FN Pixel load(const YuvRecord& m, u32 x, u32 y, i64 z) {
    const T luma = T(lowered(m, address(m.y + z * m.y_plane, x, y, m.y_pitch, y_step)));
    if constexpr (MODE != CHROMA_REPLICATE) return {{luma, interpolated(m, m.u, x, y, z), interpolated(m, m.v, x, y, z)}};
    // Surfaces have even sizes: half of a pixel's place is inside always.
    if constexpr (SAMPLES == APART) return {{luma, T(inside(m, m.u, x >> 1, y >> 1, z)), T(inside(m, m.v, x >> 1, y >> 1, z))}};
    // Both lie in a pair as wide as the pixel and its neighbour, and one address is enough.
    u8* const first = SAMPLES == PAIRED_VU ? m.v : m.u;
    const u8* const at = address(first + z * m.c_plane, x & ~1u, y >> halved, m.c_pitch, c_step / 2);
    if constexpr (SAMPLES == BETWEEN) return {{luma, T(lowered(m, at)), T(lowered(m, at + 2 * size))}};
    u32 low, high;
    load_pair<T>(at, m.paired, low, high);
    return {{luma, lowered(m, SAMPLES == PAIRED_UV ? low : high), lowered(m, SAMPLES == PAIRED_UV ? high : low)}};
  }
};

}  // namespace fkl
