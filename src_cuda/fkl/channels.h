// Operations across the channels of a pixel.
#pragma once

#include "fkl/numeric.h"

namespace fkl {

// out[k] = a[I[k]], the order being part of the type.
template <int... I, class T, int C>
FKL_FN pixel<T, int(sizeof...(I))> reorder(pixel<T, C> a) {
  static_assert(((I >= 0 && I < C) && ...), "a channel index is 0 to C - 1");
  return {{a.v[I]...}};
}

// out[k] = a[index[k]], the order being a value.  Selected by comparison: a run-time subscript would move the pixel
// from registers to memory.
template <class T, int C>
FKL_FN pixel<T, C> reorder_rt(pixel<T, C> a, pixel<i32, C> index) {
  pixel<T, C> r;
  FKL_CHANNELS(k, C) {
    r.v[k] = a.v[0];
    FKL_CHANNELS(c, C) {
      if (index.v[k] == c) r.v[k] = a.v[c];
    }
  }
  return r;
}

// The first K channels.
template <int K, class T, int C>
FKL_FN pixel<T, K> discard(pixel<T, C> a) {
  static_assert(K >= 1 && K < C, "discard keeps 1 to C - 1 channels");
  pixel<T, K> r;
  FKL_CHANNELS(c, K) r.v[c] = a.v[c];
  return r;
}

template <class T, int C>
FKL_FN pixel<T, C + 1> add_last(pixel<T, C> a, pixel<T, 1> last) {
  pixel<T, C + 1> r;
  FKL_CHANNELS(c, C) r.v[c] = a.v[c];
  r.v[C] = last.v[0];
  return r;
}

// Left folds over the channels.  The fold is one operation: 16-bit floats are rounded once, at its end.

template <class T, int C>
FKL_FN pixel<T, 1> reduce_add(pixel<T, C> a) {
  auto sum = widen(a.v[0]);
  FKL_UNROLL for (int c = 1; c < C; ++c) sum = sum + widen(a.v[c]);
  return {{narrow<T>(sum)}};
}

template <class T, int C>
FKL_FN pixel<T, 1> reduce_mul(pixel<T, C> a) {
  auto product = widen(a.v[0]);
  FKL_UNROLL for (int c = 1; c < C; ++c) product = product * widen(a.v[c]);
  return {{narrow<T>(product)}};
}

template <class T, int C>
FKL_FN pixel<T, 1> reduce_max(pixel<T, C> a) {
  using N = number<T>;
  auto most = N::get(a.v[0]);
  FKL_UNROLL for (int c = 1; c < C; ++c) most = larger(most, N::get(a.v[c]));
  return {{N::put(most)}};
}

template <class T, int C>
FKL_FN pixel<T, 1> reduce_min(pixel<T, C> a) {
  using N = number<T>;
  auto least = N::get(a.v[0]);
  FKL_UNROLL for (int c = 1; c < C; ++c) least = smaller(least, N::get(a.v[c]));
  return {{N::put(least)}};
}

// Whether all channels are nonzero.
template <class T, int C>
FKL_FN pixel<b8, 1> vector_and(pixel<T, C> a) {
  bool all = true;
  FKL_CHANNELS(c, C) all = all & (number<T>::get(a.v[c]) != 0);
  return {{to_b8(all)}};
}

}  // namespace fkl
