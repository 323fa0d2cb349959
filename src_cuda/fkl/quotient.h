// Quotients of f32 on the GPU: division's own steps without its test and branch at every one.
//
// The GPU divides by a reciprocal and a correction, after a test whether the operands' exponents keep these clear of overflow
// and underflow. Here the test is made once for all quotients of a thread. Values of a chain come with their reciprocals,
// correctly rounded (tests/unit/test_quotients.py shows that the steps are exact with these). Where it fails the thread
// computes again with Exact, so that results are those of IEEE division always.
#pragma once
#include "fkl/config.h"

namespace fkl {

// Divides by what the target's division is.
struct Exact {
  enum { can_fail = 0 };
  template <class Extents>
  FKL_MEMBER bool holds(const Extents&) const {
    return true;
  }
};
FKL_FN f32 quotient(f32 x, f32 d, Exact&) { return x / d; }
FKL_FN f32 quotient(f32 x, f32 d, f32, Exact&) { return x / d; }

// The same with little text to compile, for where it is rarely needed.
struct Called {};
#if FKL_ON_DEVICE
static __device__ __noinline__ f32 called(f32 x, f32 d) { return x / d; }
FKL_FN f32 quotient(f32 x, f32 d, Called&) { return called(x, d); }
FKL_FN f32 quotient(f32 x, f32 d, f32, Called&) { return called(x, d); }
#endif

#if FKL_ON_DEVICE && !defined(FKL_FAST_MATH)

// A reciprocal by the GPU's own means: approximate, then one Newton step.
FKL_FN f32 reciprocal(f32 d) {
  f32 r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
  return __fmaf_rn(r, __fmaf_rn(r, -d, 1.0f), r);
}

// SIGNED: a dividend may be -0, whose sign the last sum would lose.
template <bool SIGNED>
FKL_FN f32 steps(f32 x, f32 d, f32 r) {
  const f32 q = __fmul_rn(x, r);
  const f32 sum = __fmaf_rn(r, __fmaf_rn(q, -d, x), q);
  return SIGNED ? copysignf(sum, q) : sum;
}

// Every quotient is noted. Exponents from -60 to 60 keep all steps exact; 0 and NaN as dividends do too.
struct Noted {
  enum { can_fail = 1 };
  f32 largest = 0.0f;
  u32 smallest = ~0u;  // of twice the bits, less one: a zero is the largest
  bool divisors = true;
  template <class Extents>
  FKL_MEMBER bool holds(const Extents&) const {
    return divisors & (largest < 0x1p60f) & (smallest >= 0x43000000u - 1u);
  }
};
FKL_FN f32 quotient(f32 x, f32 d, f32 r, Noted& n) {
  n.largest = fmaxf(n.largest, fabsf(x));
  n.smallest = min(n.smallest, (bits_of(x) << 1) - 1u);
  n.divisors = n.divisors & (fabsf(d) >= 0x1p-60f) & (fabsf(d) < 0x1p60f);
  return steps<true>(x, d, r);
}
FKL_FN f32 quotient(f32 x, f32 d, Noted& n) { return quotient(x, d, reciprocal(d), n); }

// The chain's types and the host's look at its values say that no operand leaves these bounds; see fkl/bounds.py.
struct Bounded {
  enum { can_fail = 1 };
  template <class Extents>
  FKL_MEMBER bool holds(const Extents& out) const {
    return out.moderate != 0;
  }
};
FKL_FN f32 quotient(f32 x, f32 d, f32 r, Bounded&) { return steps<true>(x, d, r); }
FKL_FN f32 quotient(f32 x, f32 d, Bounded&) { return steps<true>(x, d, reciprocal(d)); }
// Nor is any dividend -0.
struct BoundedPlus : Bounded {};
FKL_FN f32 quotient(f32 x, f32 d, f32 r, BoundedPlus&) { return steps<false>(x, d, r); }
FKL_FN f32 quotient(f32 x, f32 d, BoundedPlus&) { return steps<false>(x, d, reciprocal(d)); }

#else
typedef Exact Noted;
typedef Exact Bounded;
typedef Exact BoundedPlus;
#endif

}  // namespace fkl
