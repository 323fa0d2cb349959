// What the operations need to know about each scalar type, and the few mathematical functions they call.
#pragma once

#include "fkl/pixel.h"

namespace fkl {

// number<T> describes a scalar type:
//   value       the built-in type that holds any value of T: T itself, f32 for 16-bit floats, u32 (0 or 1) for bool
//   arithmetic  the type its operations compute in: value for floats; for integers an unsigned type of at least 32
//               bits, in which nothing overflows undefined (u16 * u16 in plain C++ does, it promotes to int)
//   get, put    T to value and back; put rounds to a 16-bit float and turns nonzero into true
//   lowest, highest   the finite limits
//   above       integers only: 2^bits or 2^(bits-1), the first value beyond highest; unlike highest exact in f32, f64
template <class T>
struct number;

#define FKL_INTEGER_NUMBER(T, A, BITS, SIGNED)                                                           \
  template <>                                                                                            \
  struct number<T> {                                                                                     \
    using value = T;                                                                                     \
    using arithmetic = A;                                                                                \
    enum { is_float = false, is_integer = true, is_half = false, is_signed = SIGNED, bits = BITS };      \
    FKL_FN T get(T x) { return x; }                                                                      \
    FKL_FN T put(T x) { return x; }                                                                      \
    FKL_FN T lowest() { return SIGNED ? T(A(~A(0)) << (BITS - 1)) : T(0); }                              \
    FKL_FN T highest() { return T(A(~A(0)) >> (8 * sizeof(A) - BITS + SIGNED)); }                        \
    FKL_FN f64 above() { return 2.0 * f64(u64(1) << (BITS - 1 - SIGNED)); }                              \
  };
FKL_INTEGER_NUMBER(u8, u32, 8, 0)
FKL_INTEGER_NUMBER(i8, u32, 8, 1)
FKL_INTEGER_NUMBER(u16, u32, 16, 0)
FKL_INTEGER_NUMBER(i16, u32, 16, 1)
FKL_INTEGER_NUMBER(u32, u32, 32, 0)
FKL_INTEGER_NUMBER(i32, u32, 32, 1)
FKL_INTEGER_NUMBER(u64, u64, 64, 0)
FKL_INTEGER_NUMBER(i64, u64, 64, 1)
#undef FKL_INTEGER_NUMBER

#define FKL_FLOAT_NUMBER(T, V, BITS, GET, PUT, HIGHEST)                                                  \
  template <>                                                                                            \
  struct number<T> {                                                                                     \
    using value = V;                                                                                     \
    using arithmetic = V;                                                                                \
    enum { is_float = true, is_integer = false, is_half = BITS == 16, is_signed = true, bits = BITS };   \
    FKL_FN V get(T x) { return GET(x); }                                                                 \
    FKL_FN T put(V x) { return PUT(x); }                                                                 \
    FKL_FN T lowest() { return PUT(-HIGHEST); }                                                          \
    FKL_FN T highest() { return PUT(HIGHEST); }                                                          \
  };
FKL_FLOAT_NUMBER(f16, f32, 16, to_f32, to_f16, 65504.0f)
FKL_FLOAT_NUMBER(bf16, f32, 16, to_f32, to_bf16, 0x1.fep127f)
FKL_FLOAT_NUMBER(f32, f32, 32, , , 0x1.fffffep127f)
FKL_FLOAT_NUMBER(f64, f64, 64, , , 0x1.fffffffffffffp1023)
#undef FKL_FLOAT_NUMBER

template <>
struct number<b8> {
  using value = u32;
  using arithmetic = u32;
  enum { is_float = false, is_integer = false, is_half = false, is_signed = false, bits = 1 };

  FKL_FN u32 get(b8 x) { return x.bits != 0; }
  FKL_FN b8 put(u32 x) { return to_b8(x != 0); }
  FKL_FN b8 lowest() { return b8{0}; }
  FKL_FN b8 highest() { return b8{1}; }
};

// A scalar in the type its operations compute in, and a result back in T: integers wrap, 16-bit floats round.
template <class T>
FKL_FN typename number<T>::arithmetic widen(T x) {
  return typename number<T>::arithmetic(number<T>::get(x));
}
template <class T>
FKL_FN T narrow(typename number<T>::arithmetic x) {
  return number<T>::put(typename number<T>::value(x));
}

// -x of what integers and floats compute in. On the GPU by complement: ptxas (CUDA 13.0, sm_90) loses the sign of
// (-x) - c where that feeds a minimum or maximum of three.
template <class A>
FKL_FN A negated(A x) {
  return -x;
}
#if FKL_ON_DEVICE
FKL_FN u32 negated(u32 x) {
  u32 y;
  asm("not.b32 %0, %1;" : "=r"(y) : "r"(x));
  return y + 1u;
}
#endif

// Numbers are told from NaN by comparison, so these work for integers too.
template <class T>
FKL_FN bool is_nan(T x) {
  return x != x;
}

// The larger and the smaller of two values; NaN loses to a number.  Which of +0 and -0 wins is left open.
template <class T>
FKL_FN T larger(T a, T b) {
  return a > b || is_nan(b) ? a : b;
}
template <class T>
FKL_FN T smaller(T a, T b) {
  return a < b || is_nan(b) ? a : b;
}

#if FKL_ON_DEVICE
FKL_FN f32 larger(f32 a, f32 b) { return fmaxf(a, b); }
FKL_FN f64 larger(f64 a, f64 b) { return fmax(a, b); }
FKL_FN f32 smaller(f32 a, f32 b) { return fminf(a, b); }
FKL_FN f64 smaller(f64 a, f64 b) { return fmin(a, b); }
FKL_FN f32 magnitude(f32 x) { return fabsf(x); }
FKL_FN f64 magnitude(f64 x) { return fabs(x); }
FKL_FN f32 round_even(f32 x) { return rintf(x); }
FKL_FN f64 round_even(f64 x) { return rint(x); }
FKL_FN f32 root(f32 x) { return __fsqrt_rn(x); }
FKL_FN f32 multiply_add(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
FKL_FN f64 multiply_add(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
FKL_FN f64 root(f64 x) { return __dsqrt_rn(x); }
FKL_FN f32 exponential(f32 x) { return expf(x); }
FKL_FN f64 exponential(f64 x) { return exp(x); }
FKL_FN f32 logarithm(f32 x) { return logf(x); }
FKL_FN f64 logarithm(f64 x) { return log(x); }
FKL_FN f32 power(f32 x, f32 p) { return powf(x, p); }
FKL_FN f64 power(f64 x, f64 p) { return pow(x, p); }
#else
FKL_FN f32 magnitude(f32 x) { return __builtin_fabsf(x); }
FKL_FN f64 magnitude(f64 x) { return __builtin_fabs(x); }
FKL_FN f32 round_even(f32 x) { return __builtin_rintf(x); }
FKL_FN f64 round_even(f64 x) { return __builtin_rint(x); }
FKL_FN f32 root(f32 x) { return __builtin_sqrtf(x); }
FKL_FN f32 multiply_add(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
FKL_FN f64 multiply_add(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
FKL_FN f64 root(f64 x) { return __builtin_sqrt(x); }
FKL_FN f32 exponential(f32 x) { return __builtin_expf(x); }
FKL_FN f64 exponential(f64 x) { return __builtin_exp(x); }
FKL_FN f32 logarithm(f32 x) { return __builtin_logf(x); }
FKL_FN f64 logarithm(f64 x) { return __builtin_log(x); }
FKL_FN f32 power(f32 x, f32 p) { return __builtin_powf(x, p); }
FKL_FN f64 power(f64 x, f64 p) { return __builtin_pow(x, p); }
#endif

}  // namespace fkl
