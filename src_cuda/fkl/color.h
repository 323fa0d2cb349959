// Colour: conversions between RGB orders, grey, YCrCb, YUV and HSV with OpenCV's constants, and the ITU matrices of video.
//
// R is the index of red (0 for RGB, 2 for BGR), blue is 2 - R. Integers are computed in f32 and rounded half to even.
#pragma once

#include "fkl/convert.h"
#include "fkl/geometry.h"

namespace fkl {

template <class T>
using Colour = typename Weighted<T>::type;

template <class T>
FKL_FN Colour<T> level(T x) {
  return Colour<T>(number<T>::get(x));
}
template <class T>
FKL_FN T shade(Colour<T> x) {
  if constexpr (number<T>::is_half) return from_f32<T>(x);
  else return saturate_scalar<T>(x);
}

// The middle of a chroma channel.
template <class T>
FKL_FN Colour<T> middle() {
  return number<T>::is_float ? Colour<T>(0.5f) : Colour<T>(f32(u64(1) << (number<T>::bits - 1)));
}

template <int R, class T, int C>
FKL_FN Colour<T> luma(const pixel<T, C>& a) {
  typedef Colour<T> F;
  return (F(0.299) * level(a.v[R]) + F(0.587) * level(a.v[1])) + F(0.114) * level(a.v[2 - R]);
}

template <int R, class T, int C>
FKL_FN pixel<T, 1> to_gray(const pixel<T, C>& a) {
  return {{shade<T>(luma<R>(a))}};
}

template <int K, class T>
FKL_FN pixel<T, K> from_gray(const pixel<T, 1>& a) {
  pixel<T, K> r;
  FKL_CHANNELS(c, K) r.v[c] = a.v[0];
  return r;
}

// Y, then (red difference, blue difference) or the other way round.
template <int R, bool YUV, class T>
FKL_FN pixel<T, 3> to_ycc(const pixel<T, 3>& a) {
  typedef Colour<T> F;
  const F y = luma<R>(a), red = level(a.v[R]) - y, blue = level(a.v[2 - R]) - y, d = middle<T>();
  if constexpr (YUV) return {{shade<T>(y), shade<T>(blue * F(0.492) + d), shade<T>(red * F(0.877) + d)}};
  return {{shade<T>(y), shade<T>(red * F(0.713) + d), shade<T>(blue * F(0.564) + d)}};
}

template <int R, bool YUV, class T>
FKL_FN pixel<T, 3> from_ycc(const pixel<T, 3>& a) {
  typedef Colour<T> F;
  const F y = level(a.v[0]), d = middle<T>();
  const F blue = level(a.v[YUV ? 1 : 2]) - d, red = level(a.v[YUV ? 2 : 1]) - d;
  pixel<T, 3> r;
  r.v[R] = shade<T>(y + red * F(YUV ? 1.140 : 1.403));
  r.v[1] = shade<T>((y - red * F(YUV ? 0.581 : 0.714)) - blue * F(YUV ? 0.395 : 0.344));
  r.v[2 - R] = shade<T>(y + blue * F(YUV ? 2.032 : 1.773));
  return r;
}

template <class F>
struct Hsv {
  F h, s, v;
};

// Degrees, 0..1, and the value as it is.
template <class F>
FKL_FN Hsv<F> hsv_of(F red, F green, F blue) {
  const F v = larger(larger(red, green), blue), low = smaller(smaller(red, green), blue), d = v - low;
  const F eps = F(1.1920929e-7), s = d / (magnitude(v) + eps), k = F(60.0) / (d + eps);
  F h = v == red ? (green - blue) * k : v == green ? (blue - red) * k + F(120.0) : (red - green) * k + F(240.0);
  if (h < F(0.0)) h = h + F(360.0);
  return {h, s, v};
}

template <int R, class T>
FKL_FN pixel<T, 3> to_hsv(const pixel<T, 3>& a) {
  const auto hsv = hsv_of(level(a.v[R]), level(a.v[1]), level(a.v[2 - R]));
  if constexpr (same<T, u8>) {
    const i32 h = i32(round_even(hsv.h * 0.5f));
    return {{u8(h >= 180 ? h - 180 : h), shade<u8>(hsv.s * 255.0f), shade<u8>(hsv.v)}};
  } else {
    return {{T(hsv.h), T(hsv.s), T(hsv.v)}};
  }
}

template <int R, class T>
FKL_FN pixel<T, 3> from_hsv(const pixel<T, 3>& a) {
  typedef Colour<T> F;
  constexpr bool bytes = same<T, u8>;
  F h = level(a.v[0]) * F(bytes ? 2.0f : 1.0f) / F(60.0);
  const F s = level(a.v[1]) / F(bytes ? 255.0f : 1.0f), v = level(a.v[2]) / F(bytes ? 255.0f : 1.0f);
  // Any angle is brought into one turn; what is no angle counts as 0.
  if (!(h > F(-1e6) && h < F(1e6))) h = F(0.0);
  const i32 whole = i32(h) - (h < F(i32(h)) ? 1 : 0);
  const F f = h - F(whole);
  const i32 sector = ((whole % 6) + 6) % 6;
  const F p = v * (F(1.0) - s), q = v * (F(1.0) - s * f), t = v * (F(1.0) - s * (F(1.0) - f));
  const F red = sector == 0 || sector == 5 ? v : sector == 1 ? q : sector == 4 ? t : p;
  const F green = sector == 1 || sector == 2 ? v : sector == 3 ? q : sector == 0 ? t : p;
  const F blue = sector == 3 || sector == 4 ? v : sector == 5 ? q : sector == 2 ? t : p;
  const F scale = F(bytes ? 255.0f : 1.0f);
  pixel<T, 3> r;
  r.v[R] = shade<T>(red * scale);
  r.v[1] = shade<T>(green * scale);
  r.v[2 - R] = shade<T>(blue * scale);
  return r;
}

// A video matrix: what luma is multiplied by and then lowered by, the offset of chroma, and what multiplies that; see
// ConvertYUVToRGB.
struct VideoRecord {
  f32 luma, black, chroma_offset, red_v, green_u, green_v, blue_u, alpha;
};

template <class T>
FKL_FN pixel<f32, 3> video_to_rgb(const pixel<T, 3>& a, const VideoRecord& m) {
  const f32 y = multiply_add(to_float<f32>(a.v[0]), m.luma, -m.black);
  const f32 u = to_float<f32>(a.v[1]) - m.chroma_offset, v = to_float<f32>(a.v[2]) - m.chroma_offset;
  return {{multiply_add(m.red_v, v, y), multiply_add(m.green_v, v, multiply_add(m.green_u, u, y)), multiply_add(m.blue_u, u, y)}};
}

struct VideoInverse {
  f32 red, green, blue, luma, luma_offset, u, v, chroma_offset;
};

template <class T>
FKL_FN pixel<f32, 3> rgb_to_video(const pixel<T, 3>& a, const VideoInverse& m) {
  const f32 r = to_float<f32>(a.v[0]), g = to_float<f32>(a.v[1]), b = to_float<f32>(a.v[2]);
  const f32 y = (m.red * r + m.green * g) + m.blue * b;
  return {{y * m.luma + m.luma_offset, (b - y) * m.u + m.chroma_offset, (r - y) * m.v + m.chroma_offset}};
}

}  // namespace fkl
