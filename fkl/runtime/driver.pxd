"""The driver's function table and the check of its answers; see driver.pyx."""

from libc.stdint cimport uint64_t, uintptr_t

cdef extern from "fkl_cuda.h" nogil:
    ctypedef int fkl_CUdevice
    ctypedef unsigned long long fkl_CUdeviceptr
    ctypedef struct fkl_context_tag "struct CUctx_st":
        pass
    ctypedef fkl_context_tag* fkl_CUcontext
    ctypedef struct fkl_stream_tag "struct CUstream_st":
        pass
    ctypedef fkl_stream_tag* fkl_CUstream
    ctypedef struct fkl_event_tag "struct CUevent_st":
        pass
    ctypedef fkl_event_tag* fkl_CUevent
    ctypedef struct fkl_function_tag "struct CUfunc_st":
        pass
    ctypedef fkl_function_tag* fkl_CUfunction
    ctypedef struct fkl_kernel_tag "struct CUkern_st":
        pass
    ctypedef fkl_kernel_tag* fkl_CUkernel
    ctypedef struct fkl_library_tag "struct CUlib_st":
        pass
    ctypedef fkl_library_tag* fkl_CUlibrary
    ctypedef struct fkl_graph_tag "struct CUgraph_st":
        pass
    ctypedef fkl_graph_tag* fkl_CUgraph
    ctypedef struct fkl_node_tag "struct CUgraphNode_st":
        pass
    ctypedef fkl_node_tag* fkl_CUgraphNode
    ctypedef struct fkl_exec_tag "struct CUgraphExec_st":
        pass
    ctypedef fkl_exec_tag* fkl_CUgraphExec

    ctypedef struct fkl_kernel_node:
        fkl_CUfunction func
        unsigned int gridDimX
        unsigned int gridDimY
        unsigned int gridDimZ
        unsigned int blockDimX
        unsigned int blockDimY
        unsigned int blockDimZ
        unsigned int sharedMemBytes
        void** kernelParams
        void** extra
        fkl_CUkernel kern
        fkl_CUcontext ctx

    ctypedef struct fkl_pool_tag "struct CUmemPoolHandle_st":
        pass
    ctypedef fkl_pool_tag* fkl_CUmemoryPool

    ctypedef struct fkl_pool_properties:
        int allocType
        int handleTypes
        int locationType
        int locationId

    ctypedef struct fkl_copy2d:
        size_t srcXInBytes
        size_t srcY
        int srcMemoryType
        const void* srcHost
        fkl_CUdeviceptr srcDevice
        void* srcArray
        size_t srcPitch
        size_t dstXInBytes
        size_t dstY
        int dstMemoryType
        void* dstHost
        fkl_CUdeviceptr dstDevice
        void* dstArray
        size_t dstPitch
        size_t WidthInBytes
        size_t Height

    ctypedef struct fkl_driver_table:
        int (*Init)(unsigned int) noexcept nogil
        int (*DriverGetVersion)(int*) noexcept nogil
        int (*GetErrorName)(int, const char**) noexcept nogil
        int (*GetErrorString)(int, const char**) noexcept nogil
        int (*DeviceGet)(fkl_CUdevice*, int) noexcept nogil
        int (*DeviceGetCount)(int*) noexcept nogil
        int (*DeviceGetName)(char*, int, fkl_CUdevice) noexcept nogil
        int (*DeviceGetAttribute)(int*, int, fkl_CUdevice) noexcept nogil
        int (*DevicePrimaryCtxRetain)(fkl_CUcontext*, fkl_CUdevice) noexcept nogil
        int (*CtxGetCurrent)(fkl_CUcontext*) noexcept nogil
        int (*CtxSetCurrent)(fkl_CUcontext) noexcept nogil
        int (*CtxGetDevice)(fkl_CUdevice*) noexcept nogil
        int (*CtxSynchronize)() noexcept nogil
        int (*MemGetInfo)(size_t*, size_t*) noexcept nogil
        int (*MemAlloc)(fkl_CUdeviceptr*, size_t) noexcept nogil
        int (*MemFree)(fkl_CUdeviceptr) noexcept nogil
        int (*MemAllocAsync)(fkl_CUdeviceptr*, size_t, fkl_CUstream) noexcept nogil
        int (*MemFreeAsync)(fkl_CUdeviceptr, fkl_CUstream) noexcept nogil
        int (*MemcpyHtoD)(fkl_CUdeviceptr, const void*, size_t) noexcept nogil
        int (*MemcpyDtoH)(void*, fkl_CUdeviceptr, size_t) noexcept nogil
        int (*MemcpyHtoDAsync)(fkl_CUdeviceptr, const void*, size_t, fkl_CUstream) noexcept nogil
        int (*MemcpyDtoHAsync)(void*, fkl_CUdeviceptr, size_t, fkl_CUstream) noexcept nogil
        int (*MemcpyDtoDAsync)(fkl_CUdeviceptr, fkl_CUdeviceptr, size_t, fkl_CUstream) noexcept nogil
        int (*Memcpy2DAsync)(const fkl_copy2d*, fkl_CUstream) noexcept nogil
        int (*MemsetD8Async)(fkl_CUdeviceptr, unsigned char, size_t, fkl_CUstream) noexcept nogil
        int (*MemsetD16Async)(fkl_CUdeviceptr, unsigned short, size_t, fkl_CUstream) noexcept nogil
        int (*MemsetD32Async)(fkl_CUdeviceptr, unsigned int, size_t, fkl_CUstream) noexcept nogil
        int (*PointerGetAttribute)(void*, int, fkl_CUdeviceptr) noexcept nogil
        int (*StreamCreateWithPriority)(fkl_CUstream*, unsigned int, int) noexcept nogil
        int (*StreamDestroy)(fkl_CUstream) noexcept nogil
        int (*StreamSynchronize)(fkl_CUstream) noexcept nogil
        int (*StreamQuery)(fkl_CUstream) noexcept nogil
        int (*StreamWaitEvent)(fkl_CUstream, fkl_CUevent, unsigned int) noexcept nogil
        int (*StreamGetCtx)(fkl_CUstream, fkl_CUcontext*) noexcept nogil
        int (*StreamIsCapturing)(fkl_CUstream, int*) noexcept nogil
        int (*ThreadExchangeStreamCaptureMode)(int*) noexcept nogil
        int (*EventCreate)(fkl_CUevent*, unsigned int) noexcept nogil
        int (*EventDestroy)(fkl_CUevent) noexcept nogil
        int (*EventRecord)(fkl_CUevent, fkl_CUstream) noexcept nogil
        int (*EventSynchronize)(fkl_CUevent) noexcept nogil
        int (*EventQuery)(fkl_CUevent) noexcept nogil
        int (*EventElapsedTime)(float*, fkl_CUevent, fkl_CUevent) noexcept nogil
        int (*LibraryLoadData)(fkl_CUlibrary*, const void*, int*, void**, unsigned int, int*, void**,
                               unsigned int) noexcept nogil
        int (*LibraryUnload)(fkl_CUlibrary) noexcept nogil
        int (*LibraryGetKernel)(fkl_CUkernel*, fkl_CUlibrary, const char*) noexcept nogil
        int (*KernelGetFunction)(fkl_CUfunction*, fkl_CUkernel) noexcept nogil
        int (*FuncLoad)(fkl_CUfunction) noexcept nogil
        int (*LaunchKernel)(fkl_CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                            unsigned int, unsigned int, fkl_CUstream, void**, void**) noexcept nogil
        int (*MemHostAlloc)(void**, size_t, unsigned int) noexcept nogil
        int (*MemHostGetDevicePointer)(fkl_CUdeviceptr*, void*, unsigned int) noexcept nogil
        int (*StreamWriteValue32)(fkl_CUstream, fkl_CUdeviceptr, unsigned int, unsigned int) noexcept nogil
        int (*MemPoolCreate)(fkl_CUmemoryPool*, const fkl_pool_properties*) noexcept nogil
        int (*MemPoolSetAttribute)(fkl_CUmemoryPool, int, void*) noexcept nogil
        int (*MemPoolGetAttribute)(fkl_CUmemoryPool, int, void*) noexcept nogil
        int (*MemAllocFromPoolAsync)(fkl_CUdeviceptr*, size_t, fkl_CUmemoryPool, fkl_CUstream) noexcept nogil
        int (*GraphCreate)(fkl_CUgraph*, unsigned int) noexcept nogil
        int (*GraphAddKernelNode)(fkl_CUgraphNode*, fkl_CUgraph, const fkl_CUgraphNode*, size_t,
                                  const fkl_kernel_node*) noexcept nogil
        int (*GraphInstantiateWithFlags)(fkl_CUgraphExec*, fkl_CUgraph, unsigned long long) noexcept nogil
        int (*GraphUpload)(fkl_CUgraphExec, fkl_CUstream) noexcept nogil
        int (*GraphLaunch)(fkl_CUgraphExec, fkl_CUstream) noexcept nogil
        int (*GraphExecKernelNodeSetParams)(fkl_CUgraphExec, fkl_CUgraphNode, const fkl_kernel_node*) noexcept nogil
        int (*GraphExecDestroy)(fkl_CUgraphExec) noexcept nogil
        int (*GraphDestroy)(fkl_CUgraph) noexcept nogil

    ctypedef struct fkl_driver_entry:
        const char* name
        int version
        int required
        size_t offset
    const fkl_driver_entry* fkl_driver_entries

#: 0: not opened yet, 1: open and usable, 2: must not be used (a forked child, or after a sticky error).
cdef int state
#: The entry points; valid once `ensure` has returned.
cdef fkl_driver_table drv

cdef int _open() except -1
cdef int _fail(int status, const char* call) except -1

cdef inline int ensure() except -1:
    """Open the driver at its first use; raise in a process that must not use it."""
    if state == 1:
        return 0
    return _open()

cdef inline int check(int status, const char* call) except -1:
    """Raise the `CudaError` of a status that is not success."""
    if status == 0:
        return 0
    return _fail(status, call)

cdef bint quiet() noexcept nogil
cdef bint relax(int* mode) noexcept nogil
cdef void restore(int* mode) noexcept nogil
