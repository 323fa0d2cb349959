// Operations on every channel by itself.  A second operand is a pixel: a value of the chain or one of another image.
//
// 16-bit floats compute in f32 and round the result; integers wrap.  Plain operators only, so that both targets agree
// bit for bit where the compiler neither contracts nor reorders.
#pragma once

#include "fkl/numeric.h"
#include "fkl/quotient.h"

namespace fkl {

template <class T, int C>
FKL_FN pixel<T, C> add(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) + widen(b.v[c]));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> sub(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) - widen(b.v[c]));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> mul(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) * widen(b.v[c]));
  return a;
}

// Integer division truncates toward zero.  Two divisors are kept away from it, since a CPU traps on them: zero gives 0,
// and -1 negates, which lets the smallest value wrap to itself.
template <class T>
FKL_FN T divide(T a, T b) {
  if constexpr (number<T>::is_float) {
    return narrow<T>(widen(a) / widen(b));
  } else if constexpr (number<T>::is_signed) {
    if (b == 0) return 0;
    if (b == -1) return narrow<T>(negated(widen(a)));
    return T(a / b);
  } else {
    return b == 0 ? T(0) : T(a / b);
  }
}

template <class T, int C>
FKL_FN pixel<T, C> div(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = divide(a.v[c], b.v[c]);
  return a;
}

// The same of floats up to 32 bits, with the quotients that the kernel asks for.
template <class T, int C, class Math>
FKL_FN pixel<T, C> div(pixel<T, C> a, pixel<T, C> b, Math& math) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(quotient(widen(a.v[c]), widen(b.v[c]), math));
  return a;
}

// By values that come with their reciprocals.
template <int C, class Math>
FKL_FN pixel<f32, C> div_by(pixel<f32, C> a, pixel<f32, C> b, pixel<f32, C> r, Math& math) {
  FKL_CHANNELS(c, C) a.v[c] = quotient(a.v[c], b.v[c], r.v[c], math);
  return a;
}
template <int C>
FKL_FN pixel<f32, C> div_by(pixel<f32, C> a, pixel<f32, C> b, pixel<f32, C>) {
  return div(a, b);
}

template <class T, int C>
FKL_FN pixel<T, C> max_(pixel<T, C> a, pixel<T, C> b) {
  using N = number<T>;
  FKL_CHANNELS(c, C) a.v[c] = N::put(larger(N::get(a.v[c]), N::get(b.v[c])));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> min_(pixel<T, C> a, pixel<T, C> b) {
  using N = number<T>;
  FKL_CHANNELS(c, C) a.v[c] = N::put(smaller(N::get(a.v[c]), N::get(b.v[c])));
  return a;
}

// Clamped to [lo, hi]; a NaN in any of the three gives NaN.
template <class T, int C>
FKL_FN pixel<T, C> saturate(pixel<T, C> a, pixel<T, C> lo, pixel<T, C> hi) {
  using N = number<T>;
  FKL_CHANNELS(c, C) {
    const auto x = N::get(a.v[c]), low = N::get(lo.v[c]), high = N::get(hi.v[c]);
    const auto raised = x < low || is_nan(low) ? low : x;
    a.v[c] = N::put(raised > high || is_nan(high) ? high : raised);
  }
  return a;
}

// Clamped to [0, 1]; NaN gives 0.
template <class T, int C>
FKL_FN pixel<T, C> saturate_float(pixel<T, C> a) {
  using N = number<T>;
  using V = typename N::value;
  static_assert(N::is_float, "saturate_float takes floats");
  FKL_CHANNELS(c, C) {
    const V x = N::get(a.v[c]);
    a.v[c] = N::put(x >= V(0) ? (x < V(1) ? x : V(1)) : V(0));
  }
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> abs_(pixel<T, C> a) {
  FKL_CHANNELS(c, C) {
    if constexpr (number<T>::is_float) {
      a.v[c] = narrow<T>(magnitude(widen(a.v[c])));
    } else if constexpr (number<T>::is_signed) {
      a.v[c] = narrow<T>(a.v[c] < 0 ? negated(widen(a.v[c])) : widen(a.v[c]));
    }
  }
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> neg(pixel<T, C> a) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(negated(widen(a.v[c])));  // on the unsigned type of integers: wraps
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> sqr(pixel<T, C> a) {
  return mul(a, a);
}

template <class T, int C>
FKL_FN pixel<T, C> sqrt_(pixel<T, C> a) {
  static_assert(number<T>::is_float, "sqrt_ takes floats");
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(root(widen(a.v[c])));
  return a;
}

// |a - b|.  The difference of two integers always fits the unsigned type; a signed result saturates.
template <class T, int C>
FKL_FN pixel<T, C> absdiff(pixel<T, C> a, pixel<T, C> b) {
  using N = number<T>;
  FKL_CHANNELS(c, C) {
    if constexpr (N::is_float) {
      a.v[c] = narrow<T>(magnitude(widen(a.v[c]) - widen(b.v[c])));
    } else {
      const auto up = widen(a.v[c]) - widen(b.v[c]);
      const auto distance = a.v[c] > b.v[c] ? up : negated(up);
      a.v[c] = narrow<T>(smaller(distance, widen(N::highest())));
    }
  }
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> exp_(pixel<T, C> a) {
  static_assert(number<T>::is_float, "exp_ takes floats");
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(exponential(widen(a.v[c])));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> ln(pixel<T, C> a) {
  static_assert(number<T>::is_float, "ln takes floats");
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(logarithm(widen(a.v[c])));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> pow_(pixel<T, C> a, pixel<T, C> p) {
  static_assert(number<T>::is_float, "pow_ takes floats");
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(power(widen(a.v[c]), widen(p.v[c])));
  return a;
}

// Bits of integers.  bool takes the logical operation of the same name, whatever nonzero byte stands for true.

template <class T, int C>
FKL_FN pixel<T, C> bw_and(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) & widen(b.v[c]));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> bw_or(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) | widen(b.v[c]));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> bw_xor(pixel<T, C> a, pixel<T, C> b) {
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) ^ widen(b.v[c]));
  return a;
}

template <class T, int C>
FKL_FN pixel<T, C> bw_not(pixel<T, C> a) {
  FKL_CHANNELS(c, C) {
    if constexpr (same<T, b8>) {
      a.v[c] = to_b8(!to_bool(a.v[c]));
    } else {
      a.v[c] = narrow<T>(~widen(a.v[c]));
    }
  }
  return a;
}

// n is 0 to bits - 1.  It is masked, so that a wrong one is still defined.
template <class T, int C>
FKL_FN pixel<T, C> shift_left(pixel<T, C> a, pixel<i32, C> n) {
  static_assert(number<T>::is_integer, "shift_left takes integers");
  FKL_CHANNELS(c, C) a.v[c] = narrow<T>(widen(a.v[c]) << (n.v[c] & (number<T>::bits - 1)));
  return a;
}

// Signed types keep their sign.
template <class T, int C>
FKL_FN pixel<T, C> shift_right(pixel<T, C> a, pixel<i32, C> n) {
  static_assert(number<T>::is_integer, "shift_right takes integers");
  FKL_CHANNELS(c, C) a.v[c] = T(a.v[c] >> (n.v[c] & (number<T>::bits - 1)));
  return a;
}

template <class T, int C>
FKL_FN pixel<b8, C> is_even(pixel<T, C> a) {
  static_assert(number<T>::is_integer, "is_even takes integers");
  pixel<b8, C> r;
  FKL_CHANNELS(c, C) r.v[c] = to_b8((a.v[c] & 1) == 0);
  return r;
}

// A 3x3 matrix, row by row.
struct mat3 {
  f32 m[9];
};

FKL_FN pixel<f32, 3> mxv3(pixel<f32, 3> a, const mat3& m) {
  pixel<f32, 3> r;
  FKL_CHANNELS(c, 3) r.v[c] = (m.m[3 * c] * a.v[0] + m.m[3 * c + 1] * a.v[1]) + m.m[3 * c + 2] * a.v[2];
  return r;
}

}  // namespace fkl
