/* FKL's C++ as a peer of launch.py: the same 64 floats, doubled, behind a C function for ctypes. */

#include <fused_kernel/fused_kernel.h>
#include <fused_kernel/algorithms/basic_ops/arithmetic.h>
#include <fused_kernel/algorithms/basic_ops/memory_operations.h>

extern "C" void twice(void *stream, float *x, float *y, unsigned count) {
    using namespace fk;
    using Row = RawPtr<ND::_1D, float>;
    const unsigned bytes = count * static_cast<unsigned>(sizeof(float));
    Stream on(static_cast<cudaStream_t>(stream));
    executeOperations<TransformDPP<>>(on, PerThreadRead<ND::_1D, float>::build(Row{x, {count, bytes}}), Mul<float>::build(2.f),
                                      PerThreadWrite<ND::_1D, float>::build(Row{y, {count, bytes}}));
}
