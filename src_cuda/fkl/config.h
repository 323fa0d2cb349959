// What every other header stands on: the target switch, function specifiers, fixed-size scalar names.
//
// These headers are compiled twice: by NVRTC for the GPU and by g++ or clang++ for the CPU target, both as C++17.
// Neither side may include a standard header: NVRTC has none, and on the host they would dominate the compile time.
#pragma once

#if defined(__CUDACC_RTC__) || defined(__CUDA_ARCH__)
#define FKL_ON_DEVICE 1
#else
#define FKL_ON_DEVICE 0
#endif

// FKL_FN: a free function or static member function.  FKL_MEMBER: a non-static member function.
// FKL_UNROLL: before a loop whose count is known.  FKL_UNROLL_BY(n): before one whose count is not.
#if FKL_ON_DEVICE
#define FKL_PRAGMA(text) _Pragma(#text)
#define FKL_UNROLL_BY(n) FKL_PRAGMA(unroll n)
#define FKL_FN static __device__ __forceinline__
#define FKL_MEMBER __device__ __forceinline__
#define FKL_UNROLL _Pragma("unroll")
#else
#define FKL_UNROLL_BY(n)
#define FKL_FN static inline __attribute__((always_inline))
#define FKL_MEMBER inline __attribute__((always_inline))
#ifdef __clang__
#define FKL_UNROLL _Pragma("unroll")
#else
#define FKL_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

namespace fkl {

using u8 = unsigned char;
using i8 = signed char;  // plain char is unsigned on aarch64
using u16 = unsigned short;
using i16 = short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;
using f32 = float;
using f64 = double;

static_assert(sizeof(u8) == 1 && sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "integer sizes");
static_assert(sizeof(f32) == 4 && sizeof(f64) == 8, "floating-point sizes");
static_assert(-1 >> 1 == -1, "arithmetic right shift of signed integers");

// a * b + c in one instruction, which the compiler also keeps as it is: written with operators, sums of several addresses are
// taken apart and added anew. And the pointer to global memory that such a sum is.
#if FKL_ON_DEVICE
FKL_FN u64 multiply_wide_add(u32 a, u32 b, u64 c) {
  u64 r;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(c));
  return r;
}
FKL_FN u8* global_pointer(u64 address) { return static_cast<u8*>(__cvta_global_to_generic(address)); }
#else
FKL_FN u64 multiply_wide_add(u32 a, u32 b, u64 c) { return u64(a) * b + c; }
FKL_FN u8* global_pointer(u64 address) { return reinterpret_cast<u8*>(address); }
#endif

// Whether two types are one and the same.
template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

// The bits of a float as an integer, and back.
#if FKL_ON_DEVICE
FKL_FN u32 bits_of(f32 x) { return __float_as_uint(x); }
FKL_FN f32 float_of(u32 bits) { return __uint_as_float(bits); }
#else
FKL_FN u32 bits_of(f32 x) {
  u32 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
FKL_FN f32 float_of(u32 bits) {
  f32 x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

}  // namespace fkl
