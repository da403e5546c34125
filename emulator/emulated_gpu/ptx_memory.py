"""Memory that emulated kernels read and write: areas of bytes at addresses, and the checks that a GPU makes.

Owns addresses. Knows nothing of PTX.
"""

from __future__ import annotations

import ctypes

import numpy as np

# Where memory that is no global memory lies in the generic address space: no address of a process is there.
WINDOWS = {"global": 0, "const": 0, "shared": 1 << 56, "local": 1 << 57}


class EmulatorFault(Exception):
    """Fault that ends a kernel on a GPU as well."""


class IllegalAddress(EmulatorFault):
    """An access outside of all memory that is allocated."""


class MisalignedAddress(EmulatorFault):
    """An access at an address that is no multiple of its size."""


class Area:
    """Bytes at an address.

    Args:
        data: `(num_bytes,)` uint8; accesses go to it, no copy is made.
    """

    def __init__(self, address: int, data: np.ndarray):
        self.address, self.data, self.end = address, data, address + len(data)
        self._views: dict[np.dtype, np.ndarray] = {}

    def view(self, dtype: np.dtype) -> np.ndarray:
        """The bytes as elements of this type."""
        if dtype not in self._views:
            self._views[dtype] = self.data[: len(self.data) // dtype.itemsize * dtype.itemsize].view(dtype)
        return self._views[dtype]


class Memory:
    """A space of areas that do not overlap. name: for messages."""

    def __init__(self, name: str = "global", areas: tuple[Area, ...] = ()):
        self.name = name
        self._areas = sorted(areas, key=lambda area: area.address)
        self._starts = np.array([area.address for area in self._areas], np.uint64)

    @classmethod
    def of_arrays(cls, *arrays: np.ndarray) -> Memory:
        """A space that holds these arrays, each at the address where it lies in this process (`array.ctypes.data`)."""
        return cls(areas=tuple(Area(array.ctypes.data, array.reshape(-1).view(np.uint8)) for array in arrays if array.nbytes))

    def with_areas(self, areas: list[Area]) -> Memory:
        """Copy of this space with further areas."""
        return Memory(self.name, (*self._areas, *areas)) if areas else self

    def load(self, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Values at addresses, `(n,)` uint64, multiples of their size."""
        area = self._area_of_all(addresses, dtype)
        if area is not None:
            return area.view(dtype)[(addresses - np.uint64(area.address)) >> _shift(dtype)]
        values = np.empty(len(addresses), dtype)
        for area, chosen in self._by_area(addresses, dtype):
            values[chosen] = area.view(dtype)[(addresses[chosen] - np.uint64(area.address)) >> _shift(dtype)]
        return values

    def store(self, addresses: np.ndarray, values: np.ndarray) -> None:
        """Writes values, `(n,)` or `(1,)`, at addresses; of two for one address the last stays."""
        dtype = values.dtype
        area = self._area_of_all(addresses, dtype)
        if area is not None:
            area.view(dtype)[(addresses - np.uint64(area.address)) >> _shift(dtype)] = values
            return
        values = np.broadcast_to(values, addresses.shape)
        for area, chosen in self._by_area(addresses, dtype):
            area.view(dtype)[(addresses[chosen] - np.uint64(area.address)) >> _shift(dtype)] = values[chosen]

    def _area_of_all(self, addresses: np.ndarray, dtype: np.dtype) -> Area | None:
        """The area that holds all of these, if one does."""
        size = dtype.itemsize
        first, last = int(addresses.min()), int(addresses.max())
        index = int(np.searchsorted(self._starts, np.uint64(first), "right")) - 1
        if index >= 0 and last + size <= self._areas[index].end:
            return self._areas[index]
        return None

    def _by_area(self, addresses: np.ndarray, dtype: np.dtype):
        indices = np.searchsorted(self._starts, addresses, "right").astype(np.int64) - 1
        for index in np.unique(indices):
            chosen = np.flatnonzero(indices == index)
            last = int(addresses[chosen].max())
            if index < 0 or last + dtype.itemsize > self._areas[index].end:
                wrong = int(addresses[chosen].min()) if index < 0 else last
                raise IllegalAddress(f"{self.name} address {wrong:#x}, {dtype.itemsize} bytes")
            yield self._areas[index], chosen


def process_area(address: int, num_bytes: int) -> Area:
    """An area of this process's own memory."""
    data = np.frombuffer((ctypes.c_uint8 * num_bytes).from_address(address), np.uint8)
    return Area(address, data)


def _shift(dtype: np.dtype) -> np.uint64:
    return np.uint64(dtype.itemsize.bit_length() - 1)
