// Geometry: an operation that asks the level before it, `Level::at(p, x, y, z)`, for the pixels an output pixel needs.
//
// Columns and rows are 32-bit; a level is asked inside its own size only, unless it extends itself (border). With ROLL taps
// are visited in a loop: one inlined copy of the levels below instead of one a tap.
#pragma once

#include "fkl/convert.h"
#include "fkl/elementwise.h"

namespace fkl {

struct CropRecord {
  i32 x, y;
};

// One axis of a resize. Positions are fixed-point with 32 bits of fraction: exact to 2^-30 for every
// size, and cheap where f64 is slow.
struct Axis {
  i64 step;   // source pixels an output pixel, in units of 2^-32 ...
  i64 start;  // where output pixel 0 lies
  u32 low;    // ... and the step's next 32 bits
  i32 last;   // index of the last source pixel
};

// What of a letterboxed output is content: columns and rows from the first to before the last.
struct ContentRecord {
  i32 left, top, right, bottom;
};

struct ResizeRecord {
  Axis x, y;
};

// The same for filters that cover areas.
struct Span {
  f64 scale;  // size / length
  i32 size, length, offset, unused;
};

struct SpanRecord {
  Span x, y;
};

// Output to source: rows of a matrix. Positions are f32; the nearest pixel is found in f64.
template <class T>
struct WarpRecord {
  T m[9];
  i32 width, height;
};

struct SizeRecord {
  i32 width, height;
};

#if FKL_ON_DEVICE
FKL_FN f64 floor_(f64 x) { return floor(x); }
FKL_FN f32 floor_(f32 x) { return floorf(x); }
FKL_FN f64 ceil_(f64 x) { return ceil(x); }
#else
FKL_FN f64 floor_(f64 x) { return __builtin_floor(x); }
FKL_FN f32 floor_(f32 x) { return __builtin_floorf(x); }
FKL_FN f64 ceil_(f64 x) { return __builtin_ceil(x); }
#endif

#if FKL_ON_DEVICE
FKL_FN i32 clamp_to(i32 i, i32 last) { return min(max(i, 0), last); }
#else
FKL_FN i32 clamp_to(i32 i, i32 last) { return i < 0 ? 0 : i > last ? last : i; }
#endif
FKL_FN i32 clamp_index(i32 i, i32 size) { return clamp_to(i, size - 1); }

FKL_FN bool within(i32 i, i32 size) { return u32(i) < u32(size); }

// The type that a scalar is weighted in, and the type of an interpolated result: 16-bit floats stay, integers give f32.
template <class T> struct Weighted { typedef f32 type; typedef f32 result; };
template <> struct Weighted<f64> { typedef f64 type; typedef f64 result; };
template <> struct Weighted<f16> { typedef f32 type; typedef f16 result; };
template <> struct Weighted<bf16> { typedef f32 type; typedef bf16 result; };

template <class Pixel>
using Sum = pixel<typename Weighted<typename Pixel::scalar>::type, int(Pixel::channels)>;
template <class Pixel>
using Result = pixel<typename Weighted<typename Pixel::scalar>::result, int(Pixel::channels)>;

template <class S, class P>
FKL_FN S weighted(const P& a) {
  S r;
  FKL_CHANNELS(c, int(P::channels)) r.v[c] = to_float<typename S::scalar>(a.v[c]);
  return r;
}
template <class S>
FKL_FN void accumulate(S& sum, const S& a, typename S::scalar w) {
  FKL_CHANNELS(c, int(S::channels)) sum.v[c] = multiply_add(a.v[c], w, sum.v[c]);
}
template <class S>
FKL_FN S mix(const S& a, const S& b, f32 u, f32 w) {
  S r;
  typedef typename S::scalar T;
  FKL_CHANNELS(c, int(S::channels)) r.v[c] = multiply_add(b.v[c], T(w), a.v[c] * T(u));
  return r;
}
template <class S>
FKL_FN S lerp(const S& a, const S& b, f32 w) {
  return mix(a, b, 1.0f - w, w);
}
template <class R, class S>
FKL_FN R finish(const S& sum) {
  R r;
  FKL_CHANNELS(c, int(R::channels)) r.v[c] = number<typename R::scalar>::put(sum.v[c]);
  return r;
}

// -- crop, border ------------------------------------------------------------------------------------------------

template <class Level, class Params>
FKL_FN auto crop(const Params& p, i32 x, i32 y, u32 z, const CropRecord& r) {
  return Level::at(p, x + r.x, y + r.y, z);
}

FKL_FN i64 modulo(i64 i, i64 n) {
  const i64 m = i % n;
  return m < 0 ? m + n : m;
}

enum { BORDER_REPLICATE, BORDER_REFLECT, BORDER_WRAP, BORDER_REFLECT101 };

template <int MODE>
FKL_FN i32 extend(i32 i, i32 n) {
  if (within(i, n)) return i;
  if constexpr (MODE == BORDER_REPLICATE) {
    return clamp_index(i, n);
  } else if constexpr (MODE == BORDER_WRAP) {
    return i32(modulo(i, n));
  } else if constexpr (MODE == BORDER_REFLECT) {
    const i64 m = modulo(i, 2 * i64(n));
    return i32(m < n ? m : 2 * i64(n) - 1 - m);
  } else {
    if (n == 1) return 0;
    const i64 m = modulo(i, 2 * i64(n) - 2);
    return i32(m < n ? m : 2 * i64(n) - 2 - m);
  }
}

template <class Level, int MODE, class Params>
FKL_FN auto border(const Params& p, i32 x, i32 y, u32 z, const SizeRecord& r) {
  return Level::at(p, extend<MODE>(x, r.width), extend<MODE>(y, r.height), z);
}

template <class Level, class Params, class P>
FKL_FN P border_constant(const Params& p, i32 x, i32 y, u32 z, const SizeRecord& r, const P& value) {
  if (!within(x, r.width) || !within(y, r.height)) return value;
  return Level::at(p, x, y, z);
}

// -- resize ------------------------------------------------------------------------------------------------------

FKL_FN bool inside(i32 x, i32 y, const ContentRecord& r) {
  return x >= r.left && y >= r.top && x < r.right && y < r.bottom;
}

// Where an output index lies in the source, in units of 2^-32: its pixel's index, and how far it is to the next.
struct Position {
  i64 units;
  FKL_MEMBER i32 index() const { return i32(units >> 32); }
  // The lowest two bits are the error of the computation.
  FKL_MEMBER f32 weight() const { return f32(i32(u32(units) >> 2)) * 9.31322574615478515625e-10f; }
};

FKL_FN Position position(i32 i, const Axis& a) {
  // Neither is negative; the start may be.
  return {i64(u64(u32(i)) * u64(a.step)) + i64((u64(u32(i)) * a.low) >> 32) + a.start};
}

// The older rule: min(S - 1, floor(i * scale)) in f64.
FKL_FN i32 top_left_index(i32 i, const Span& a) { return clamp_index(i32(floor_(f64(i - a.offset) * a.scale)), a.size); }

template <class Level, bool ROLL, class Params>
FKL_FN auto resize_nearest(const Params& p, i32 x, i32 y, u32 z, const ResizeRecord& r) {
  return Level::at(p, position(x, r.x).index(), position(y, r.y).index(), z);
}

template <class Level, bool ROLL, class Params>
FKL_FN auto resize_top_left_nearest(const Params& p, i32 x, i32 y, u32 z, const SpanRecord& r) {
  return Level::at(p, top_left_index(x, r.x), top_left_index(y, r.y), z);
}

// Two taps an axis at sx, sy, read by `Tap`.
template <class Level, bool ROLL, class Params>
FKL_FN auto linear_taps(const Params& p, i32 x0, i32 x1, i32 y0, i32 y1, u32 z, f32 wx, f32 wy) {
  typedef typename Level::Pixel P;
  typedef Sum<P> S;
  S row[2];
  if constexpr (ROLL) {
    S sum = {};
    // The same sums as below: (a (1 - wx) + b wx) (1 - wy) + (c (1 - wx) + d wx) wy.
    _Pragma("unroll 1") for (int j = 0; j < 2; ++j) {
      S line = {};
      _Pragma("unroll 1") for (int i = 0; i < 2; ++i)
        accumulate(line, weighted<S>(Level::at(p, i ? x1 : x0, j ? y1 : y0, z)), i ? wx : 1.0f - wx);
      accumulate(sum, line, j ? wy : 1.0f - wy);
    }
    return finish<Result<P>>(sum);
  } else {
    row[0] = lerp(weighted<S>(Level::at(p, x0, y0, z)), weighted<S>(Level::at(p, x1, y0, z)), wx);
    row[1] = lerp(weighted<S>(Level::at(p, x0, y1, z)), weighted<S>(Level::at(p, x1, y1, z)), wx);
    return finish<Result<P>>(lerp(row[0], row[1], wy));
  }
}

template <class Level, bool ROLL, class Params>
FKL_FN auto resize_linear(const Params& p, i32 x, i32 y, u32 z, const ResizeRecord& r) {
  const Position sx = position(x, r.x), sy = position(y, r.y);
  const i32 ix = sx.index(), iy = sy.index();
  return linear_taps<Level, ROLL>(p, clamp_to(ix, r.x.last), clamp_to(ix + 1, r.x.last), clamp_to(iy, r.y.last),
                                  clamp_to(iy + 1, r.y.last), z, sx.weight(), sy.weight());
}

// Keys' kernel at distance t >= 0 with parameter a.
FKL_FN f32 keys(f32 t, f32 a) {
  if (t <= 1.0f) return ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f;
  if (t < 2.0f) return ((a * t - 5.0f * a) * t + 8.0f * a) * t - 4.0f * a;
  return 0.0f;
}

// A loop over taps; the same in every target and level, so that results do not depend on what is rolled.
template <class Level, class Map, class Params>
FKL_FN auto cubic_taps(const Params& p, i32 ix, f32 tx, i32 iy, f32 ty, u32 z, const Map& map) {
  typedef typename Level::Pixel P;
  typedef Sum<P> S;
  S sum = {};
  _Pragma("unroll 1") for (int j = -1; j < 3; ++j) {
    S line = {};
    const f32 dy = ty - f32(j), wy = keys(dy < 0.0f ? -dy : dy, -0.75f);
    _Pragma("unroll 1") for (int i = -1; i < 3; ++i) {
      const f32 dx = tx - f32(i), wx = keys(dx < 0.0f ? -dx : dx, -0.75f);
      accumulate(line, weighted<S>(map(p, ix + i, iy + j, z)), wx);
    }
    accumulate(sum, line, wy);
  }
  return finish<Result<P>>(sum);
}

template <class Level>
struct Clamped {
  i32 last_x, last_y;
  template <class Params>
  FKL_MEMBER typename Level::Pixel operator()(const Params& p, i32 x, i32 y, u32 z) const {
    return Level::at(p, clamp_to(x, last_x), clamp_to(y, last_y), z);
  }
};

template <class Level, bool ROLL, class Params>
FKL_FN auto resize_cubic(const Params& p, i32 x, i32 y, u32 z, const ResizeRecord& r) {
  const Clamped<Level> map = {r.x.last, r.y.last};
  const Position sx = position(x, r.x), sy = position(y, r.y);
  return cubic_taps<Level>(p, sx.index(), sx.weight(), sy.index(), sy.weight(), z, map);
}

// The source pixels that a box covers, each weighted by the part of it that is covered.
template <class Level, bool ROLL, class Params>
FKL_FN auto resize_area(const Params& p, i32 x, i32 y, u32 z, const SpanRecord& r) {
  typedef typename Level::Pixel P;
  typedef Sum<P> S;
  const f64 x0 = f64(x - r.x.offset) * r.x.scale, x1 = f64(x - r.x.offset + 1) * r.x.scale;
  const f64 y0 = f64(y - r.y.offset) * r.y.scale, y1 = f64(y - r.y.offset + 1) * r.y.scale;
  const i32 first_x = clamp_index(i32(floor_(x0)), r.x.size), last_x = clamp_index(i32(ceil_(x1)) - 1, r.x.size);
  const i32 first_y = clamp_index(i32(floor_(y0)), r.y.size), last_y = clamp_index(i32(ceil_(y1)) - 1, r.y.size);
  S sum = {};
  _Pragma("unroll 1") for (i32 j = first_y; j <= last_y; ++j) {
    const f64 low = f64(j) > y0 ? f64(j) : y0, high = f64(j) + 1.0 < y1 ? f64(j) + 1.0 : y1;
    S line = {};
    _Pragma("unroll 1") for (i32 i = first_x; i <= last_x; ++i) {
      const f64 left = f64(i) > x0 ? f64(i) : x0, right = f64(i) + 1.0 < x1 ? f64(i) + 1.0 : x1;
      accumulate(line, weighted<S>(Level::at(p, i, j, z)), f32((right - left) / r.x.scale));
    }
    accumulate(sum, line, f32((high - low) / r.y.scale));
  }
  return finish<Result<P>>(sum);
}

// One axis of an antialiased filter: its first and last tap and the sum of their weights.
template <bool CUBIC>
struct Filter {
  f64 centre, stretch;
  i32 first, last;
  f32 total;
  FKL_MEMBER f32 weight(i32 tap) const {
    const f32 t = f32((f64(tap) + 0.5 - centre) / stretch), d = t < 0.0f ? -t : t;
    if constexpr (CUBIC) return keys(d, -0.5f);
    return d < 1.0f ? 1.0f - d : 0.0f;
  }
};

template <bool CUBIC>
FKL_FN Filter<CUBIC> make_filter(i32 i, const Span& a) {
  Filter<CUBIC> f;
  f.stretch = a.scale > 1.0 ? a.scale : 1.0;
  f.centre = (f64(i - a.offset) + 0.5) * a.scale;
  const f64 support = (CUBIC ? 2.0 : 1.0) * f.stretch;
  const f64 low = f.centre - support + 0.5;
  f.first = low > 0.0 ? i32(low) : 0;
  const i32 end = i32(f.centre + support + 0.5);
  f.last = (end < a.size ? end : a.size) - 1;
  f.total = 0.0f;
  _Pragma("unroll 1") for (i32 k = f.first; k <= f.last; ++k) f.total += f.weight(k);
  return f;
}

template <class Level, bool CUBIC, class Params>
FKL_FN auto resize_filtered(const Params& p, i32 x, i32 y, u32 z, const SpanRecord& r) {
  typedef typename Level::Pixel P;
  typedef Sum<P> S;
  const Filter<CUBIC> fx = make_filter<CUBIC>(x, r.x), fy = make_filter<CUBIC>(y, r.y);
  S sum = {};
  _Pragma("unroll 1") for (i32 j = fy.first; j <= fy.last; ++j) {
    S line = {};
    _Pragma("unroll 1") for (i32 i = fx.first; i <= fx.last; ++i)
      accumulate(line, weighted<S>(Level::at(p, i, j, z)), fx.weight(i) / fx.total);
    accumulate(sum, line, fy.weight(j) / fy.total);
  }
  return finish<Result<P>>(sum);
}
template <class Level, bool ROLL, class Params>
FKL_FN auto resize_antialias_linear(const Params& p, i32 x, i32 y, u32 z, const SpanRecord& r) {
  return resize_filtered<Level, false>(p, x, y, z, r);
}
template <class Level, bool ROLL, class Params>
FKL_FN auto resize_antialias_cubic(const Params& p, i32 x, i32 y, u32 z, const SpanRecord& r) {
  return resize_filtered<Level, true>(p, x, y, z, r);
}

// -- warp --------------------------------------------------------------------------------------------------------

// A level seen without bounds: outside it is 0, unless it extends itself (EXTENDED).
template <class Level, bool EXTENDED>
struct Outside {
  i32 width, height;
  template <class Params>
  FKL_MEMBER typename Level::Pixel operator()(const Params& p, i32 x, i32 y, u32 z) const {
    if constexpr (EXTENDED) {
      return Level::at(p, x, y, z);
    } else {
      // Read in any case, from the nearest pixel inside: without branches the loads of several taps overlap.
      const bool in = within(x, width) & within(y, height);
      const typename Level::Pixel v = Level::at(p, clamp_index(x, width), clamp_index(y, height), z);
      return in ? v : typename Level::Pixel{};
    }
  }
};

// The source position of an output pixel; far outside, and without one (w = 0), a place no image reaches.
template <class T>
FKL_FN void warped(i32 x, i32 y, const WarpRecord<T>& r, T& sx, T& sy) {
  const T w = (r.m[6] * T(x) + r.m[7] * T(y)) + r.m[8];
  const T u = (r.m[0] * T(x) + r.m[1] * T(y)) + r.m[2], v = (r.m[3] * T(x) + r.m[4] * T(y)) + r.m[5];
  const T far = T(1073741824.0);
  const T k = T(1) / w;
  sx = smaller(larger(u * k, -far), far);  // NaN, from 0 / 0, becomes -far
  sy = smaller(larger(v * k, -far), far);
}

template <class Level, bool ROLL, bool EXTENDED, class Params>
FKL_FN auto warp_nearest(const Params& p, i32 x, i32 y, u32 z, const WarpRecord<f64>& r) {
  f64 sx, sy;
  warped(x, y, r, sx, sy);
  const Outside<Level, EXTENDED> map = {r.width, r.height};
  return map(p, i32(floor_(sx + 0.5)), i32(floor_(sy + 0.5)), z);
}

template <class Level, bool ROLL, bool EXTENDED, class Params>
FKL_FN auto warp_linear(const Params& p, i32 x, i32 y, u32 z, const WarpRecord<f32>& r) {
  typedef typename Level::Pixel P;
  typedef Sum<P> S;
  f32 sx, sy;
  warped(x, y, r, sx, sy);
  const Outside<Level, EXTENDED> map = {r.width, r.height};
  const i32 ix = i32(floor_(sx)), iy = i32(floor_(sy));
  const f32 wx = sx - f32(ix), wy = sy - f32(iy);
  if constexpr (!ROLL && !EXTENDED && number<typename P::scalar>::is_integer) {
    // Integers are finite: outside of the image the weight may be 0 instead of the pixel.
    const bool left = within(ix, r.width), right = within(ix + 1, r.width);
    const bool top = within(iy, r.height), bottom = within(iy + 1, r.height);
    const i32 x0 = clamp_index(ix, r.width), x1 = clamp_index(ix + 1, r.width);
    const i32 y0 = clamp_index(iy, r.height), y1 = clamp_index(iy + 1, r.height);
    const P a = Level::at(p, x0, y0, z), b = Level::at(p, x1, y0, z), c = Level::at(p, x0, y1, z), d = Level::at(p, x1, y1, z);
    const f32 w0 = left ? 1.0f - wx : 0.0f, w1 = right ? wx : 0.0f, v0 = top ? 1.0f - wy : 0.0f, v1 = bottom ? wy : 0.0f;
    return finish<Result<P>>(mix(mix(weighted<S>(a), weighted<S>(b), w0, w1), mix(weighted<S>(c), weighted<S>(d), w0, w1), v0, v1));
  } else if constexpr (!ROLL) {
    // All four taps are asked for before the first is used.
    const P a = map(p, ix, iy, z), b = map(p, ix + 1, iy, z), c = map(p, ix, iy + 1, z), d = map(p, ix + 1, iy + 1, z);
    return finish<Result<P>>(lerp(lerp(weighted<S>(a), weighted<S>(b), wx), lerp(weighted<S>(c), weighted<S>(d), wx), wy));
  }
  S sum = {};
  _Pragma("unroll 1") for (int j = 0; j < 2; ++j) {
    S line = {};
    _Pragma("unroll 1") for (int i = 0; i < 2; ++i)
      accumulate(line, weighted<S>(map(p, ix + i, iy + j, z)), i ? wx : 1.0f - wx);
    accumulate(sum, line, j ? wy : 1.0f - wy);
  }
  return finish<Result<P>>(sum);
}

template <class Level, bool ROLL, bool EXTENDED, class Params>
FKL_FN auto warp_cubic(const Params& p, i32 x, i32 y, u32 z, const WarpRecord<f32>& r) {
  f32 sx, sy;
  warped(x, y, r, sx, sy);
  const Outside<Level, EXTENDED> map = {r.width, r.height};
  const i32 ix = i32(floor_(sx)), iy = i32(floor_(sy));
  return cubic_taps<Level>(p, ix, sx - f32(ix), iy, sy - f32(iy), z, map);
}

// -- deinterlace -------------------------------------------------------------------------------------------------

// The mean of two pixels: integers round half up, floats halve the sum.
template <class T, int C>
FKL_FN pixel<T, C> mean(const pixel<T, C>& a, const pixel<T, C>& b) {
  pixel<T, C> r;
  FKL_CHANNELS(c, C) {
    if constexpr (number<T>::is_float) {
      r.v[c] = narrow<T>((widen(a.v[c]) + widen(b.v[c])) / typename number<T>::arithmetic(2));
    } else {
      // Without overflow in any width: the common bits, and half of the others, rounded up.
      r.v[c] = T((a.v[c] | b.v[c]) - ((a.v[c] ^ b.v[c]) >> 1));
    }
  }
  return r;
}

template <class Level, class Params>
FKL_FN auto deinterlace_blend(const Params& p, i32 x, i32 y, u32 z, const SizeRecord&) {
  const auto here = Level::at(p, x, y, z);
  return y == 0 ? here : mean(here, Level::at(p, x, y - 1, z));
}

template <class Level, int KEEP, class Params>
FKL_FN auto deinterlace_linear(const Params& p, i32 x, i32 y, u32 z, const SizeRecord& r) {
  const bool kept = (y & 1) == KEEP;
  const i32 above = kept ? y : y > 0 ? y - 1 : y + 1 < r.height ? y + 1 : y;
  const i32 below = kept ? y : y + 1 < r.height ? y + 1 : y > 0 ? y - 1 : y;
  const auto a = Level::at(p, x, above, z);
  return above == below ? a : mean(a, Level::at(p, x, below, z));
}

}  // namespace fkl
