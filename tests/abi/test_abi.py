"""Our declarations of the CUDA and DLPack ABIs against the real headers, wherever those are installed."""

import glob
import shutil
import subprocess
from pathlib import Path

import pytest

ABI = Path(__file__).parents[2] / "fkl" / "runtime" / "abi"
CUDA = [p for p in (*glob.glob("/usr/local/cuda*/include"), *glob.glob("/usr/include")) if Path(p, "cuda.h").exists()]

CHECKS = """
#include <stddef.h>
#include <cuda.h>
#include "fkl_cuda.h"
#define SAME(a, b, field) _Static_assert(offsetof(a, field) == offsetof(b, field), #field)
#define SIZE(a, b) _Static_assert(sizeof(a) == sizeof(b), #a)
SIZE(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS);
SAME(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS, func);
SAME(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS, blockDimZ);
SAME(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS, kern);
SAME(fkl_kernel_node, CUDA_KERNEL_NODE_PARAMS, ctx);
SIZE(fkl_copy2d, CUDA_MEMCPY2D);
SAME(fkl_copy2d, CUDA_MEMCPY2D, srcMemoryType);
SAME(fkl_copy2d, CUDA_MEMCPY2D, srcDevice);
SAME(fkl_copy2d, CUDA_MEMCPY2D, srcPitch);
SAME(fkl_copy2d, CUDA_MEMCPY2D, dstHost);
SAME(fkl_copy2d, CUDA_MEMCPY2D, dstPitch);
SAME(fkl_copy2d, CUDA_MEMCPY2D, Height);
SIZE(fkl_pool_properties, CUmemPoolProps);
SAME(fkl_pool_properties, CUmemPoolProps, allocType);
SAME(fkl_pool_properties, CUmemPoolProps, handleTypes);
SAME(fkl_pool_properties, CUmemPoolProps, win32SecurityAttributes);
_Static_assert(offsetof(fkl_pool_properties, locationType) == offsetof(CUmemPoolProps, location) + offsetof(CUmemLocation, type), "");
_Static_assert(offsetof(fkl_pool_properties, locationId) == offsetof(CUmemPoolProps, location) + offsetof(CUmemLocation, id), "");
_Static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == 1 && CU_MEM_LOCATION_TYPE_DEVICE == 1, "");
_Static_assert(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == 4 && CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT == 5, "");
_Static_assert(CU_MEMPOOL_ATTR_USED_MEM_CURRENT == 7 && CU_STREAM_WRITE_VALUE_DEFAULT == 0, "");
_Static_assert(CU_MEMHOSTALLOC_PORTABLE == 1 && CU_MEMHOSTALLOC_DEVICEMAP == 2, "");
SIZE(fkl_CUdeviceptr, CUdeviceptr);
SIZE(fkl_CUdevice, CUdevice);
SIZE(fkl_CUresult, CUresult);
_Static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75 && CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76, "");
_Static_assert(CU_POINTER_ATTRIBUTE_MEMORY_TYPE == 2 && CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == 9, "");
_Static_assert(CU_MEMORYTYPE_HOST == 1 && CU_MEMORYTYPE_DEVICE == 2, "");
_Static_assert(CU_STREAM_NON_BLOCKING == 1 && CU_EVENT_DISABLE_TIMING == 2 && CU_STREAM_CAPTURE_MODE_RELAXED == 2, "");
_Static_assert(CU_STREAM_CAPTURE_STATUS_NONE == 0 && CU_GET_PROC_ADDRESS_LEGACY_STREAM == 1, "");
_Static_assert(CUDA_ERROR_INVALID_VALUE == 1 && CUDA_ERROR_NOT_READY == 600 && CUDA_ERROR_STREAM_CAPTURE_IMPLICIT == 906, "");
_Static_assert(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED == 900 && CUDA_ERROR_CAPTURED_EVENT == 907 && CUDA_ERROR_STUB_LIBRARY == 34, "");
_Static_assert(CUDA_ERROR_NO_BINARY_FOR_GPU == 209 && CUDA_ERROR_UNSUPPORTED_PTX_VERSION == 222 && CUDA_ERROR_ILLEGAL_ADDRESS == 700, "");
/* The parameters of the calls, by assigning the real functions to our table (enums pass as int). */
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
static void table(fkl_driver_table *t) {
    t->MemAlloc = cuMemAlloc; t->LaunchKernel = (void *)cuLaunchKernel; t->StreamWaitEvent = cuStreamWaitEvent;
    t->MemsetD32Async = cuMemsetD32Async; t->MemcpyHtoDAsync = cuMemcpyHtoDAsync;
}
int main(void) { return table == 0; }
"""


@pytest.mark.skipif(not CUDA, reason="no cuda.h is installed")
@pytest.mark.parametrize("include", CUDA)
def test_cuda(include, tmp_path):
    source = tmp_path / "abi.c"
    source.write_text(CHECKS)
    compiler = shutil.which("cc") or "gcc"
    subprocess.run([compiler, "-std=c11", "-fsyntax-only", f"-I{include}", f"-I{ABI}", str(source)], check=True)


def test_dlpack_sizes(tmp_path):
    source = tmp_path / "abi.c"
    source.write_text('#include "fkl_dlpack.h"\nint main(void) { return 0; }\n')
    subprocess.run([shutil.which("cc") or "gcc", "-std=c11", "-fsyntax-only", f"-I{ABI}", str(source)], check=True)


def test_base_indices_agree():
    """The C-level dtype codes follow the order of fkl.dtypes.BASES."""
    text = (ABI.parent / "view.pyx").read_text()
    block = text.split("cdef enum Base:")[1].split("cdef int _itemsizes")[0]
    names = [n.strip().split(" = ")[0].lower() for n in block.replace("\n", ",").split(",") if n.strip()]
    from fkl.dtypes import BASES

    assert tuple(names) == BASES
