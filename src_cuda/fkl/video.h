// Video surfaces: luma and subsampled chroma in one array or two, read as (Y, U, V) pixels.
#pragma once

#include "fkl/image.h"

namespace fkl {

struct YuvRecord {
  u8* y;
  u8* u;
  u8* v;
  i64 y_pitch, c_pitch, y_plane, c_plane;  // bytes from row to row and from frame to frame
  i32 y_step, c_step;                      // bytes from sample to sample
  i32 c_width, c_height;                   // size of the chroma planes
  i32 shift;                               // samples lie so many bits too high
  i32 halved;                              // 1: chroma rows are halved too (4:2:0)
};

enum { CHROMA_REPLICATE, CHROMA_LEFT, CHROMA_CENTER };

template <class T, int MODE>
struct Yuv {
  typedef pixel<T, 3> Pixel;
  typedef YuvRecord Record;

  FKL_FN u32 sample(const YuvRecord& m, const u8* plane, i32 x, i32 y, i64 z) {
    x = x < 0 ? 0 : x >= m.c_width ? m.c_width - 1 : x;
    y = y < 0 ? 0 : y >= m.c_height ? m.c_height - 1 : y;
    return u32(*reinterpret_cast<const T*>(plane + z * m.c_plane + y * m.c_pitch + i64(x) * m.c_step)) >> m.shift;
  }

  FKL_FN T chroma(const YuvRecord& m, const u8* plane, i32 x, i32 y, i64 z) {
    const i32 cx = x >> 1, cy = m.halved ? y >> 1 : y;
    if constexpr (MODE == CHROMA_REPLICATE) return T(sample(m, plane, cx, cy, z));
    // Weights in quarters: between columns x0 and x0 + 1, and rows y0 and y0 + 1.
    const bool odd = x & 1;
    const i32 x0 = MODE == CHROMA_LEFT || odd ? cx : cx - 1;
    const u32 wx = MODE == CHROMA_LEFT ? (odd ? 2 : 0) : odd ? 1 : 3;
    const i32 y0 = !m.halved || (y & 1) ? cy : cy - 1;
    const u32 wy = !m.halved ? 0 : (y & 1) ? 1 : 3;
    const u32 top = sample(m, plane, x0, y0, z) * (4 - wx) + sample(m, plane, x0 + 1, y0, z) * wx;
    const u32 bottom = sample(m, plane, x0, y0 + 1, z) * (4 - wx) + sample(m, plane, x0 + 1, y0 + 1, z) * wx;
    return T((top * (4 - wy) + bottom * wy + 8) >> 4);
  }

  FKL_FN Pixel load(const YuvRecord& m, i32 x, i32 y, i64 z) {
    const T luma = *reinterpret_cast<const T*>(m.y + z * m.y_plane + y * m.y_pitch + i64(x) * m.y_step);
    return {{T(luma >> m.shift), chroma(m, m.u, x, y, z), chroma(m, m.v, x, y, z)}};
  }
};

}  // namespace fkl
