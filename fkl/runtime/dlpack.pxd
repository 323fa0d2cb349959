"""The DLPack ABI; see abi/fkl_dlpack.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "fkl_dlpack.h" nogil:
    ctypedef struct fkl_DLDevice:
        int32_t device_type
        int32_t device_id

    ctypedef struct fkl_DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    ctypedef struct fkl_DLTensor:
        void* data
        fkl_DLDevice device
        int32_t ndim
        fkl_DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset

    ctypedef struct fkl_DLManagedTensor:
        fkl_DLTensor dl_tensor
        void* manager_ctx
        void (*deleter)(fkl_DLManagedTensor*) noexcept nogil

    ctypedef struct fkl_DLVersion:
        uint32_t major
        uint32_t minor

    ctypedef struct fkl_DLManagedTensorVersioned:
        fkl_DLVersion version
        void* manager_ctx
        void (*deleter)(fkl_DLManagedTensorVersioned*) noexcept nogil
        uint64_t flags
        fkl_DLTensor dl_tensor

    ctypedef struct fkl_DLExchange:
        fkl_DLVersion version
        fkl_DLExchange* previous
        int (*tensor_from_object)(void*, fkl_DLTensor*) except -1
        int (*current_stream)(int32_t, int32_t, void**) except -1

cdef enum:
    DL_CPU = 1
    DL_CUDA = 2
    DL_CUDA_HOST = 3
    DL_CUDA_MANAGED = 13
    DL_MAJOR = 1
    DL_MINOR = 3
    DL_READ_ONLY = 1     # flags of the versioned struct
    DL_IS_COPIED = 2
