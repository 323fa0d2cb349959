"""DLPack capsules of fkl's own memory: each keeps its owner alive, and gives it back once, from any thread."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from fkl.runtime.dlpack cimport (
    DL_CPU, DL_CUDA, DL_IS_COPIED, DL_MAJOR, DL_MINOR, DL_READ_ONLY, fkl_DLManagedTensor,
    fkl_DLManagedTensorVersioned, fkl_DLTensor,
)
from fkl.runtime.view cimport Array, dlpack_code, itemsize_of

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000
    #define fkl_finalizing() Py_IsFinalizing()
    #else
    #define fkl_finalizing() _Py_IsFinalizing()
    #endif

    /* The GIL for a thread that may be none of Python's; 0 if the interpreter is going away, where Python objects must
       be left alone. */
    static int fkl_gil(PyGILState_STATE *state) {
        if (!Py_IsInitialized() || fkl_finalizing()) return 0;
        *state = PyGILState_Ensure();
        return 1;
    }
    """
    ctypedef int PyGILState_STATE
    int fkl_gil(PyGILState_STATE*) nogil
    void PyGILState_Release(PyGILState_STATE) nogil
    void fkl_decref "Py_DECREF" (PyObject*) nogil
    # On bare pointers: a capsule's destructor must not count references to the dying capsule.
    int capsule_is_valid "PyCapsule_IsValid" (PyObject*, const char*)
    void* capsule_pointer "PyCapsule_GetPointer" (PyObject*, const char*)
    object new_capsule "PyCapsule_New" (void*, const char*, void (*)(PyObject*) noexcept)

cdef enum:
    DIMENSIONS = 8

cdef struct Old:
    fkl_DLManagedTensor tensor
    int64_t shape[DIMENSIONS]
    int64_t strides[DIMENSIONS]

cdef struct New:
    fkl_DLManagedTensorVersioned tensor
    int64_t shape[DIMENSIONS]
    int64_t strides[DIMENSIONS]

cdef void _drop(void* context) noexcept nogil:
    """Release the owner that a tensor kept alive."""
    cdef PyGILState_STATE state
    if context != NULL and fkl_gil(&state):
        fkl_decref(<PyObject*>context)
        PyGILState_Release(state)


cdef void _delete_old(fkl_DLManagedTensor* tensor) noexcept nogil:
    _drop(tensor.manager_ctx)
    free(tensor)


cdef void _delete_new(fkl_DLManagedTensorVersioned* tensor) noexcept nogil:
    _drop(tensor.manager_ctx)
    free(tensor)


cdef void _unused_old(PyObject* capsule) noexcept:
    """A capsule that nobody consumed gives its tensor back itself."""
    cdef fkl_DLManagedTensor* tensor
    if capsule_is_valid(capsule, b"dltensor"):
        tensor = <fkl_DLManagedTensor*>capsule_pointer(capsule, b"dltensor")
        tensor.deleter(tensor)


cdef void _unused_new(PyObject* capsule) noexcept:
    cdef fkl_DLManagedTensorVersioned* tensor
    if capsule_is_valid(capsule, b"dltensor_versioned"):
        tensor = <fkl_DLManagedTensorVersioned*>capsule_pointer(capsule, b"dltensor_versioned")
        tensor.deleter(tensor)


cdef void _describe(const Array* a, fkl_DLTensor* tensor, int64_t* shape, int64_t* strides) noexcept:
    cdef int i
    cdef int size = itemsize_of(a.base)
    tensor.data = a.ptr
    tensor.device.device_type = DL_CPU if a.device < 0 else DL_CUDA
    tensor.device.device_id = 0 if a.device < 0 else a.device
    tensor.ndim = a.ndim
    tensor.dtype.code = dlpack_code(a.base)
    tensor.dtype.bits = 8 * size
    tensor.dtype.lanes = 1
    tensor.shape = shape
    tensor.strides = strides
    tensor.byte_offset = 0
    for i in range(a.ndim):
        shape[i] = a.shape[i]
        strides[i] = a.strides[i] // size


cdef object make_capsule(const Array* a, object owner, bint versioned, bint copied):
    """A capsule of an array that keeps ``owner`` alive.

    Raises
    ------
    BufferError
        Strides that are no multiple of the item size, which DLPack cannot say; read-only memory in the old form.
    """
    cdef Old* old
    cdef New* new
    cdef int i
    for i in range(a.ndim):
        if a.strides[i] % itemsize_of(a.base):
            raise BufferError(f"DLPack counts strides in items, this buffer has one of {a.strides[i]} bytes")
    if not versioned:
        if a.readonly:
            raise BufferError("this buffer is read-only, which a DLPack capsule can only say from version 1.0 on; "
                              "ask with max_version=(1, 0)")
        old = <Old*>calloc(1, sizeof(Old))
        if old == NULL:
            raise MemoryError
        _describe(a, &old.tensor.dl_tensor, old.shape, old.strides)
        old.tensor.deleter = _delete_old
        old.tensor.manager_ctx = <void*>owner
        Py_INCREF(owner)
        try:
            return new_capsule(&old.tensor, b"dltensor", _unused_old)
        except BaseException:
            Py_DECREF(owner)
            free(old)
            raise
    new = <New*>calloc(1, sizeof(New))
    if new == NULL:
        raise MemoryError
    _describe(a, &new.tensor.dl_tensor, new.shape, new.strides)
    new.tensor.version.major, new.tensor.version.minor = DL_MAJOR, DL_MINOR
    new.tensor.flags = (DL_READ_ONLY if a.readonly else 0) | (DL_IS_COPIED if copied else 0)
    new.tensor.deleter = _delete_new
    new.tensor.manager_ctx = <void*>owner
    Py_INCREF(owner)
    try:
        return new_capsule(&new.tensor, b"dltensor_versioned", _unused_new)
    except BaseException:
        Py_DECREF(owner)
        free(new)
        raise
