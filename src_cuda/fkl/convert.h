// Conversions between scalar types, defined for every value of every pair: cast and saturate_cast.
#pragma once

#include "fkl/numeric.h"

namespace fkl {

// A float to an integer: truncated toward zero, out of range saturated, NaN to 0.  The value is compared before it is
// converted, since an unchecked conversion is undefined and differs between the CPU and the GPU.
template <class To, class F>
FKL_FN To truncate(F x) {
  using N = number<To>;
  const F above = F(N::above());
  const F below = N::is_signed ? -above : F(0);
  const F safe = x > below && x < above ? x : F(0);
  return x >= above ? N::highest() : x <= below ? N::lowest() : To(safe);
}

// An integer clamped to the range of another integer type.  The limits of To compared with are values of From.
template <class To, class From>
FKL_FN To clamp_integer(From x) {
  using N = number<From>;
  using M = number<To>;
  if constexpr (N::is_signed && (!M::is_signed || M::bits < N::bits)) {
    if (x < From(M::lowest())) return M::lowest();
  }
  if constexpr (M::bits - M::is_signed < N::bits - N::is_signed) {
    if (x > From(M::highest())) return M::highest();
  }
  return To(x);
}

// A float to an integer, truncated or rounded half to even, by the rules of `truncate`.
template <class To, bool ROUND, class F>
FKL_FN To to_integer(F x) {
#if FKL_ON_DEVICE
  // The GPU's own conversions of f32 saturate at 32 bits and send NaN to 0.
  if constexpr (same<F, f32> && same<To, u32>) {
    return ROUND ? __float2uint_rn(x) : __float2uint_rz(x);
  } else if constexpr (same<F, f32> && number<To>::bits <= 32) {
    return clamp_integer<To>(ROUND ? __float2int_rn(x) : __float2int_rz(x));
  }
#endif
  return truncate<To>(ROUND ? round_even(x) : x);
}

// Any scalar as f32 or f64. On the GPU through 32 bits: the conversions of 8 and 16 bits are several times slower there.
template <class F, class From>
FKL_FN F to_float(From x) {
  using N = number<From>;
#if FKL_ON_DEVICE
  if constexpr (same<F, f32> && N::is_integer && N::bits < 32) {
    i32 wide = x;
    asm("" : "+r"(wide));  // or the compiler would see through it
    return f32(wide);
  }
#endif
  return F(N::get(x));
}

// A finite x no larger than `most` in magnitude; infinities and NaN as they are.
template <class F>
FKL_FN F clamp_finite(F x, F most) {
  const F clamped = x > most ? most : x < -most ? -most : x;
  return magnitude(x) == F(float_of(0x7f800000u)) ? x : clamped;
}

// One scalar by the rules of `cast`.
template <class To, class From>
FKL_FN To cast_scalar(From x) {
  using N = number<From>;
  if constexpr (same<To, b8>) {
    return to_b8(N::get(x) != 0);  // NaN is true, as in NumPy
  } else if constexpr (same<To, From>) {
    return x;
  } else if constexpr (N::is_float && number<To>::is_integer) {
    return to_integer<To, false>(N::get(x));
  } else if constexpr (number<To>::is_half) {
    return from_f32<To>(to_float<f32>(x));  // 64-bit sources round twice, by definition
  } else if constexpr (number<To>::is_float) {
    return to_float<To>(x);
  } else {
    return To(N::get(x));
  }
}

// One scalar by the rules of `saturate_cast`.
template <class To, class From>
FKL_FN To saturate_scalar(From x) {
  using N = number<From>;
  using M = number<To>;
  if constexpr (same<To, From> || same<To, b8> || same<From, b8>) {
    return cast_scalar<To>(x);
  } else if constexpr (N::is_float && M::is_integer) {
    return to_integer<To, true>(N::get(x));
  } else if constexpr (N::is_integer && M::is_integer) {
    return clamp_integer<To>(x);
  } else if constexpr (M::is_half) {
    return from_f32<To>(clamp_finite(saturate_scalar<f32>(x), M::get(M::highest())));
  } else if constexpr (same<From, f64> && same<To, f32>) {
    return f32(clamp_finite(x, f64(M::highest())));
  } else {
    return cast_scalar<To>(x);
  }
}

// Every channel converted: float to integer truncates and saturates (NaN gives 0), integer to narrower integer wraps,
// to bool is x != 0, to a float rounds to nearest even and overflows to infinity.
template <class To, class From, int C>
FKL_FN pixel<To, C> cast(pixel<From, C> a) {
  pixel<To, C> r;
  FKL_CHANNELS(c, C) r.v[c] = cast_scalar<To>(a.v[c]);
  return r;
}

// Every channel converted: float to integer rounds half to even, then clamps (NaN gives 0), integer to integer clamps,
// to a float clamps finite values and keeps infinities and NaN; bool as `cast`.
template <class To, class From, int C>
FKL_FN pixel<To, C> saturate_cast(pixel<From, C> a) {
  pixel<To, C> r;
  FKL_CHANNELS(c, C) r.v[c] = saturate_scalar<To>(a.v[c]);
  return r;
}

}  // namespace fkl
