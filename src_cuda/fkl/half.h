// Storage types of 16-bit floats and of bool, and their conversions.
//
// Own types instead of cuda_fp16.h: that header needs an extra wheel under NVRTC and three under the host compiler.
// All paths round to nearest even, keep subnormals, overflow to infinity and keep NaN (its payload is free).
#pragma once

#include "fkl/config.h"

namespace fkl {

struct f16 {  // IEEE binary16: 1 sign, 5 exponent, 10 mantissa bits
  u16 bits;
};

struct bf16 {  // bfloat16, the upper half of a float32: 1 sign, 8 exponent, 7 mantissa bits
  u16 bits;
};

struct b8 {  // bool as arrays store it; any nonzero byte is true, results are 0 or 1
  u8 bits;
};

FKL_FN bool to_bool(b8 x) { return x.bits != 0; }
FKL_FN b8 to_b8(bool x) { return b8{u8(x)}; }

FKL_FN f32 to_f32(bf16 x) { return float_of(u32(x.bits) << 16); }

#if FKL_ON_DEVICE

FKL_FN f32 to_f32(f16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

FKL_FN f16 to_f16(f32 x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

#else

// Branch-free, so that a loop over pixels can be vectorised.
FKL_FN f32 to_f32(f16 x) {
  const u32 sign = u32(x.bits & 0x8000u) << 16;
  const u32 magnitude = x.bits & 0x7fffu;
  const u32 normal = (magnitude << 13) + ((127u - 15u) << 23);
  const u32 special = (magnitude << 13) | 0x7f800000u;
  const u32 subnormal = bits_of(f32(i32(magnitude)) * 0x1p-24f);  // exact: a multiple of the smallest subnormal
  const u32 body = magnitude >= 0x7c00u ? special : magnitude < 0x0400u ? subnormal : normal;
  return float_of(sign | body);
}

FKL_FN f16 to_f16(f32 x) {
  const u32 bits = bits_of(x);
  const u32 sign = (bits >> 16) & 0x8000u;
  const u32 magnitude = bits & 0x7fffffffu;
  // Half of the dropped part's range, plus one where the kept part is odd: ties go to even.
  const u32 rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
  const u32 normal = (rounded - ((127u - 15u) << 23)) >> 13;
  // One ulp in [0.5, 1) is 2^-24, the smallest subnormal of the result, so this addition rounds to its multiples.
  const u32 subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  const u32 body = magnitude > 0x7f800000u    ? 0x7e00u  // NaN
                   : magnitude >= 0x477ff000u ? 0x7c00u  // from 65520 on the nearest is infinity
                   : magnitude < 0x38800000u  ? subnormal
                                              : normal;
  return f16{u16(sign | body)};
}

#endif

#if FKL_ON_DEVICE && __CUDA_ARCH__ >= 800

FKL_FN bf16 to_bf16(f32 x) {
  bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

#else

FKL_FN bf16 to_bf16(f32 x) {
  const u32 bits = bits_of(x);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // may carry into infinity, as it should
  const u32 nan = (bits >> 16) | 0x0040u;                            // a payload in the lower half must not get lost
  return bf16{u16((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

#endif

// from_f32<T>(x): x rounded to a 16-bit type; T = f32 returns x, for code that is generic in the type.
template <class T>
FKL_FN T from_f32(f32 x) {
  static_assert(same<T, f16> || same<T, bf16> || same<T, f32>, "from_f32 makes f16, bf16 or f32");
  if constexpr (same<T, f16>) {
    return to_f16(x);
  } else if constexpr (same<T, bf16>) {
    return to_bf16(x);
  } else {
    return x;
  }
}
FKL_FN f32 to_f32(f32 x) { return x; }

}  // namespace fkl
