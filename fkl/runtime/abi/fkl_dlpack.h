/* The DLPack ABI (version 1.3) in our own words: what tensors look like between libraries. */
#ifndef FKL_DLPACK_H
#define FKL_DLPACK_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t device_type;
    int32_t device_id;
} fkl_DLDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} fkl_DLDataType;

typedef struct {
    void *data;
    fkl_DLDevice device;
    int32_t ndim;
    fkl_DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; older producers leave it NULL for row-major */
    uint64_t byte_offset;
} fkl_DLTensor;

typedef struct fkl_DLManagedTensor {
    fkl_DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct fkl_DLManagedTensor *);
} fkl_DLManagedTensor;

typedef struct {
    uint32_t major;
    uint32_t minor;
} fkl_DLVersion;

typedef struct fkl_DLManagedTensorVersioned {
    fkl_DLVersion version;
    void *manager_ctx;
    void (*deleter)(struct fkl_DLManagedTensorVersioned *);
    uint64_t flags;
    fkl_DLTensor dl_tensor;
} fkl_DLManagedTensorVersioned;

/* The table behind `__dlpack_c_exchange_api__`. */
typedef struct fkl_DLExchange {
    fkl_DLVersion version;
    struct fkl_DLExchange *previous;
    void *allocate;
    void *managed_from_object;
    void *object_from_managed;
    int (*tensor_from_object)(void *object, fkl_DLTensor *out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} fkl_DLExchange;

_Static_assert(sizeof(fkl_DLTensor) == 48, "DLTensor");
_Static_assert(offsetof(fkl_DLTensor, shape) == 24 && offsetof(fkl_DLTensor, byte_offset) == 40, "DLTensor");
_Static_assert(sizeof(fkl_DLManagedTensor) == 64, "DLManagedTensor");
_Static_assert(sizeof(fkl_DLManagedTensorVersioned) == 80, "DLManagedTensorVersioned");
_Static_assert(offsetof(fkl_DLManagedTensorVersioned, dl_tensor) == 32, "DLManagedTensorVersioned");
_Static_assert(sizeof(fkl_DLExchange) == 56 && offsetof(fkl_DLExchange, tensor_from_object) == 40, "DLPackExchangeAPI");

#endif
