"""`memory_info`: what fkl holds of a device."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["MemoryInfo", "memory_info"]


class MemoryInfo(NamedTuple):
    """What `memory_info` reports.

    Attributes
    ----------
    device : int
    free, total : int
        Bytes of the device, as the driver says.
    buffers : int
        Bytes of living `DeviceBuffer` memory that was allocated by name (`fkl.empty`, `DeviceBuffer(...)`, copies).
    pool_used, pool_reserved : int
        Bytes in use, and taken from the device, by the pool that outputs of calls come from.
    graphs, most_graphs : int
        Graphs of launches, in the whole process, and their bound; each takes some 100 KB of device memory. Kernels beyond
        the bound launch without one.
    modules : int
        GPU modules the process keeps loaded (``FKL_MODULE_CACHE``).
    waiting : int
        Frees that wait for the end of a stream capture.
    """

    device: int
    free: int
    total: int
    buffers: int
    pool_used: int
    pool_reserved: int
    graphs: int
    most_graphs: int
    modules: int
    waiting: int


def memory_info(device: int | None = None) -> MemoryInfo:
    """What fkl holds of a device, and what the device has left.

    Parameters
    ----------
    device : int, optional
        None: the current device.

    Returns
    -------
    MemoryInfo

    Raises
    ------
    fkl.CudaError
        There is no driver.
    ValueError
        The device does not exist.
    """
    from fkl.runtime import context, launch, memory
    from fkl.variant import loaded_modules

    index = context.current_device_index() if device is None else device
    free, total = context.memory_info(index)
    buffers, used, reserved, waiting = memory.statistics(index)
    return MemoryInfo(
        index, free, total, buffers, used, reserved, launch.graph_count(), launch.MOST_GRAPHS, loaded_modules(), waiting
    )
