/* The part of the CUDA driver's ABI that fkl uses, in our own words, and the table of its entry points.
 *
 * No CUDA header is needed to build. tests/abi compiles static assertions of this text against the real cuda.h where
 * one is installed. Every function stands with the CUDA version whose ABI is declared: that is what cuGetProcAddress
 * is asked for, so a newer driver still hands out this signature.
 */
#ifndef FKL_CUDA_H
#define FKL_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int fkl_CUresult;
typedef int fkl_CUdevice;
typedef unsigned long long fkl_CUdeviceptr;
typedef struct CUctx_st *fkl_CUcontext;
typedef struct CUstream_st *fkl_CUstream;
typedef struct CUevent_st *fkl_CUevent;
typedef struct CUfunc_st *fkl_CUfunction;
typedef struct CUkern_st *fkl_CUkernel;
typedef struct CUlib_st *fkl_CUlibrary;
typedef struct CUgraph_st *fkl_CUgraph;
typedef struct CUgraphNode_st *fkl_CUgraphNode;
typedef struct CUgraphExec_st *fkl_CUgraphExec;

/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct {
    fkl_CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    fkl_CUkernel kern;
    fkl_CUcontext ctx;
} fkl_kernel_node;

/* CUDA_MEMCPY2D_v2 */
typedef struct {
    size_t srcXInBytes, srcY;
    int srcMemoryType;
    const void *srcHost;
    fkl_CUdeviceptr srcDevice;
    void *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    int dstMemoryType;
    void *dstHost;
    fkl_CUdeviceptr dstDevice;
    void *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} fkl_copy2d;

typedef struct CUmemPoolHandle_st *fkl_CUmemoryPool;
/* CUmemPoolProps: pinned memory (1) of a device (1), named by its ordinal; the rest is zero. */
typedef struct {
    int allocType;
    int handleTypes;
    int locationType;
    int locationId;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
} fkl_pool_properties;

/* X(name without cu, CUDA version of the ABI, parameters) */
#define FKL_DRIVER_REQUIRED(X)                                                                                        \
    X(Init, 2000, (unsigned int flags))                                                                               \
    X(DriverGetVersion, 2020, (int *version))                                                                         \
    X(GetErrorName, 6000, (fkl_CUresult error, const char **text))                                                    \
    X(GetErrorString, 6000, (fkl_CUresult error, const char **text))                                                  \
    X(DeviceGet, 2000, (fkl_CUdevice * device, int ordinal))                                                          \
    X(DeviceGetCount, 2000, (int *count))                                                                             \
    X(DeviceGetName, 2000, (char *name, int length, fkl_CUdevice device))                                             \
    X(DeviceGetAttribute, 2000, (int *value, int attribute, fkl_CUdevice device))                                     \
    X(DevicePrimaryCtxRetain, 7000, (fkl_CUcontext * context, fkl_CUdevice device))                                   \
    X(CtxGetCurrent, 4000, (fkl_CUcontext * context))                                                                 \
    X(CtxSetCurrent, 4000, (fkl_CUcontext context))                                                                   \
    X(CtxGetDevice, 2000, (fkl_CUdevice * device))                                                                    \
    X(CtxSynchronize, 2000, (void))                                                                                   \
    X(MemGetInfo, 3020, (size_t *available, size_t *total))                                                           \
    X(MemAlloc, 3020, (fkl_CUdeviceptr * memory, size_t bytes))                                                       \
    X(MemFree, 3020, (fkl_CUdeviceptr memory))                                                                        \
    X(MemAllocAsync, 11020, (fkl_CUdeviceptr * memory, size_t bytes, fkl_CUstream stream))                            \
    X(MemFreeAsync, 11020, (fkl_CUdeviceptr memory, fkl_CUstream stream))                                             \
    X(MemcpyHtoD, 3020, (fkl_CUdeviceptr to, const void *from, size_t bytes))                                         \
    X(MemcpyDtoH, 3020, (void *to, fkl_CUdeviceptr from, size_t bytes))                                               \
    X(MemcpyHtoDAsync, 3020, (fkl_CUdeviceptr to, const void *from, size_t bytes, fkl_CUstream stream))               \
    X(MemcpyDtoHAsync, 3020, (void *to, fkl_CUdeviceptr from, size_t bytes, fkl_CUstream stream))                     \
    X(MemcpyDtoDAsync, 3020, (fkl_CUdeviceptr to, fkl_CUdeviceptr from, size_t bytes, fkl_CUstream stream))           \
    X(Memcpy2DAsync, 3020, (const fkl_copy2d *copy, fkl_CUstream stream))                                             \
    X(MemsetD8Async, 3020, (fkl_CUdeviceptr to, unsigned char value, size_t count, fkl_CUstream stream))              \
    X(MemsetD16Async, 3020, (fkl_CUdeviceptr to, unsigned short value, size_t count, fkl_CUstream stream))            \
    X(MemsetD32Async, 3020, (fkl_CUdeviceptr to, unsigned int value, size_t count, fkl_CUstream stream))              \
    X(PointerGetAttribute, 4000, (void *value, int attribute, fkl_CUdeviceptr pointer))                               \
    X(StreamCreateWithPriority, 5050, (fkl_CUstream * stream, unsigned int flags, int priority))                      \
    X(StreamDestroy, 4000, (fkl_CUstream stream))                                                                     \
    X(StreamSynchronize, 2000, (fkl_CUstream stream))                                                                 \
    X(StreamQuery, 2000, (fkl_CUstream stream))                                                                       \
    X(StreamWaitEvent, 3020, (fkl_CUstream stream, fkl_CUevent event, unsigned int flags))                            \
    X(StreamGetCtx, 9020, (fkl_CUstream stream, fkl_CUcontext * context))                                             \
    X(StreamIsCapturing, 10000, (fkl_CUstream stream, int *status))                                                   \
    X(ThreadExchangeStreamCaptureMode, 10010, (int *mode))                                                            \
    X(EventCreate, 2000, (fkl_CUevent * event, unsigned int flags))                                                   \
    X(EventDestroy, 4000, (fkl_CUevent event))                                                                        \
    X(EventRecord, 2000, (fkl_CUevent event, fkl_CUstream stream))                                                    \
    X(EventSynchronize, 2000, (fkl_CUevent event))                                                                    \
    X(EventQuery, 2000, (fkl_CUevent event))                                                                          \
    X(EventElapsedTime, 2000, (float *milliseconds, fkl_CUevent start, fkl_CUevent end))                              \
    X(LibraryLoadData, 12000, (fkl_CUlibrary * library, const void *image, int *jit_options, void **jit_values,       \
                               unsigned int jit_count, int *options, void **values, unsigned int count))              \
    X(LibraryUnload, 12000, (fkl_CUlibrary library))                                                                  \
    X(LibraryGetKernel, 12000, (fkl_CUkernel * kernel, fkl_CUlibrary library, const char *name))                      \
    X(KernelGetFunction, 12000, (fkl_CUfunction * function, fkl_CUkernel kernel))                                     \
    X(LaunchKernel, 4000, (fkl_CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,                \
                           unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,                    \
                           fkl_CUstream stream, void **parameters, void **extra))

#define FKL_DRIVER_OPTIONAL(X)                                                                                        \
    X(FuncLoad, 12040, (fkl_CUfunction function))                                                                     \
    X(MemHostAlloc, 2020, (void **memory, size_t bytes, unsigned int flags))                                          \
    X(MemHostGetDevicePointer, 3020, (fkl_CUdeviceptr * address, void *memory, unsigned int flags))                   \
    X(StreamWriteValue32, 12000, (fkl_CUstream stream, fkl_CUdeviceptr to, unsigned int value, unsigned int flags))   \
    X(MemPoolCreate, 11020, (fkl_CUmemoryPool * pool, const fkl_pool_properties *properties))                         \
    X(MemPoolSetAttribute, 11020, (fkl_CUmemoryPool pool, int attribute, void *value))                                \
    X(MemPoolGetAttribute, 11020, (fkl_CUmemoryPool pool, int attribute, void *value))                                \
    X(MemAllocFromPoolAsync, 11020, (fkl_CUdeviceptr * memory, size_t bytes, fkl_CUmemoryPool pool, fkl_CUstream stream))\
    X(GraphCreate, 10000, (fkl_CUgraph * graph, unsigned int flags))                                                  \
    X(GraphAddKernelNode, 12000, (fkl_CUgraphNode * node, fkl_CUgraph graph, const fkl_CUgraphNode *after,            \
                                  size_t count, const fkl_kernel_node *parameters))                                   \
    X(GraphInstantiateWithFlags, 11040, (fkl_CUgraphExec * exec, fkl_CUgraph graph, unsigned long long flags))        \
    X(GraphUpload, 11010, (fkl_CUgraphExec exec, fkl_CUstream stream))                                                \
    X(GraphLaunch, 10000, (fkl_CUgraphExec exec, fkl_CUstream stream))                                                \
    X(GraphExecKernelNodeSetParams, 12000, (fkl_CUgraphExec exec, fkl_CUgraphNode node,                               \
                                            const fkl_kernel_node *parameters))                                       \
    X(GraphExecDestroy, 10000, (fkl_CUgraphExec exec))                                                                \
    X(GraphDestroy, 10000, (fkl_CUgraph graph))

typedef struct {
#define FKL_FIELD(name, version, parameters) fkl_CUresult(*name) parameters;
    FKL_DRIVER_REQUIRED(FKL_FIELD)
    FKL_DRIVER_OPTIONAL(FKL_FIELD)
#undef FKL_FIELD
} fkl_driver_table;

/* The names of cuGetProcAddress, as cuda.h maps them: the newer name is asked for by the version argument. */
typedef struct {
    const char *name;
    int version;
    int required;
    size_t offset;
} fkl_driver_entry;

#define FKL_REQUIRED_ENTRY(name, version, parameters) {"cu" #name, version, 1, offsetof(fkl_driver_table, name)},
#define FKL_OPTIONAL_ENTRY(name, version, parameters) {"cu" #name, version, 0, offsetof(fkl_driver_table, name)},
static const fkl_driver_entry fkl_driver_entries[] = {
    FKL_DRIVER_REQUIRED(FKL_REQUIRED_ENTRY) FKL_DRIVER_OPTIONAL(FKL_OPTIONAL_ENTRY){NULL, 0, 0, 0}};

#endif
