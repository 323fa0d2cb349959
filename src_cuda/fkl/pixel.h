// A pixel: 1 to 4 channels of one scalar type, passed by value from operation to operation.
#pragma once

#include "fkl/half.h"

namespace fkl {

// A trivial aggregate without alignment beyond that of T, so that it may stand in unions and parameter blocks and
// its size is exactly C * sizeof(T).  Every loop over channels unrolls, so v never needs an address.
template <class T, int C>
struct pixel {
  static_assert(C >= 1 && C <= 4, "a pixel has 1 to 4 channels");
  using scalar = T;
  enum { channels = C };
  T v[C];
};

// Loop header over the channels of a pixel: FKL_CHANNELS(c, C) r.v[c] = f(a.v[c]);
#define FKL_CHANNELS(c, C) FKL_UNROLL for (int c = 0; c < (C); ++c)

// The same value in every channel.
template <int C, class T>
FKL_FN pixel<T, C> splat(T x) {
  pixel<T, C> r;
  FKL_CHANNELS(c, C) r.v[c] = x;
  return r;
}

static_assert(sizeof(pixel<u8, 3>) == 3 && sizeof(pixel<f64, 4>) == 32, "pixels are tightly packed");

}  // namespace fkl
