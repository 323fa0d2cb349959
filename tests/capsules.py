"""DLPack capsules built by hand, to import what no producer at hand would export."""

from __future__ import annotations

import ctypes

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Producer:
    """An object whose ``__dlpack__`` gives one hand-made capsule; ``deleted`` counts the calls of its deleter."""

    def __init__(self, pointer, shape, dtype=(2, 32, 1), device=(2, 0), strides=None, offset=0, versioned=False,
                 major=1, flags=0, deleter=True, old_signature=False):  # fmt: skip
        self.deleted = 0
        self.stream = "not asked"
        self._device = device
        self._old_signature = old_signature
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = None if strides is None else (ctypes.c_int64 * max(len(strides), 1))(*strides)
        self._deleter = DELETER(self._delete)
        self._managed = Versioned() if versioned else Managed()
        t = self._managed.tensor
        t.data, t.device_type, t.device_id, t.ndim = pointer, *device, len(shape)
        t.code, t.bits, t.lanes = dtype
        t.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        if self._strides is not None:
            t.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        t.byte_offset = offset
        if deleter:
            self._managed.deleter = ctypes.cast(self._deleter, ctypes.c_void_p)
        if versioned:
            self._managed.major, self._managed.flags = major, flags
        self._name = b"dltensor_versioned" if versioned else b"dltensor"

    #: How often the deleter ran; on the class, for the collector may take the object's own dictionary first.
    deleted = 0

    def _delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, *, stream=None, **more):
        if self._old_signature and more:
            raise TypeError("unexpected keyword")
        self.stream = stream
        return api.PyCapsule_New(ctypes.addressof(self._managed), self._name, None)


def name_of(capsule) -> str:
    for name in (b"dltensor", b"dltensor_versioned", b"used_dltensor", b"used_dltensor_versioned"):
        if api.PyCapsule_IsValid(capsule, name):
            return name.decode()
    return "?"


def take(capsule):
    """Consume a capsule as an importer would; returns the struct and a function that calls its deleter."""
    name = name_of(capsule).encode()
    pointer = api.PyCapsule_GetPointer(capsule, name)
    api.PyCapsule_SetName(capsule, b"used_" + name if name != b"dltensor" else b"used_dltensor")
    kind = Versioned if b"versioned" in name else Managed
    managed = ctypes.cast(pointer, ctypes.POINTER(kind)).contents
    # CDLL-style call: the GIL is released while the deleter runs.
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)
    return managed, lambda: function(pointer)
