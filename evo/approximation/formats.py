"""Formats of numbers that functions read and give: f32, f16 and bf16, all of whose values are float32 too.

Owns their order, rounding and units in the last place. Knows nothing of functions.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FLUSHED = 2.0**-126  # results below may be flushed to zero, as .ftz does


@dataclass(frozen=True)
class Format:
    """A binary format. digits: binary ones of a normal number. least: exponent of the least normal number. num_bits: of a
    number.
    """

    name: Literal["f32", "f16", "bf16"]
    digits: int
    least: int
    num_bits: int

    @property
    def largest(self) -> float:
        """The largest finite value."""
        exponent = 16 if self.name == "f16" else 128
        return 2.0**exponent * (1.0 - 2.0**-self.digits)

    @property
    def overflow(self) -> float:
        """The least number that rounds to infinity."""
        return self.largest * (1.0 + 2.0**-self.digits / (2.0 - 2.0 ** (1 - self.digits)))

    def of_keys(self, keys: NDArray[Any]) -> NDArray[np.float32]:
        """The values with these keys: integers in the order of the values, 0 for zero, and 1 apart for neighbours."""
        bits = np.abs(keys).astype(np.uint32)
        if self.name == "f16":
            values: NDArray[np.float32] = bits.astype(np.uint16).view(np.float16).astype(np.float32)
        else:
            values = (bits << np.uint32(32 - self.num_bits)).view(np.float32)
        return np.where(keys < 0, -values, values)

    def key(self, value: float) -> int:
        """The key of the value nearest to a number."""
        with np.errstate(over="ignore"):
            nearest = self.round(np.float32(value))
        bits = abs(nearest).astype(np.float16).view(np.uint16) if self.name == "f16" else abs(nearest).view(np.uint32)
        magnitude = int(bits) if self.name == "f16" else int(bits) >> (32 - self.num_bits)
        return -magnitude if nearest < 0 else magnitude

    def keys_of(self, low: float, high: float) -> tuple[int, int]:
        """The keys of the first and last value in an interval. The second is the less if there is none."""
        first, last = self.key(low), self.key(high)
        ends = self.of_keys(np.array([first, last])).astype(np.float64)
        return first + int(ends[0] < low), last - int(ends[1] > high)

    def bits(self, value: np.float32) -> int:
        """Bits of the nearest value of f16 or bf16."""
        nearest = np.float32(self.round(value))
        return int(nearest.astype(np.float16).view(np.uint16)) if self.name == "f16" else int(nearest.view(np.uint32)) >> 16

    def round(self, values: Any) -> Any:
        """The nearest values of the format, ties to even, as float32, of float32."""
        if self.name == "f32":
            return values
        if self.name == "f16":
            with np.errstate(over="ignore"):
                return np.asarray(values).astype(np.float16).astype(np.float32)[()]
        values = np.asarray(values, np.float32)
        bits = values.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(values), values, rounded.view(np.float32))[()]

    def ulp(self, exact: NDArray[np.float64]) -> NDArray[np.float64]:
        """The unit in the last place of each number."""
        exponent = np.where(exact == 0.0, self.least, np.maximum(np.frexp(np.abs(exact))[1] - 1, self.least))
        ulp: NDArray[np.float64] = np.ldexp(1.0, exponent - self.digits + 1)
        return ulp


FORMATS: dict[str, Format] = {
    form.name: form for form in (Format("f32", 24, -126, 32), Format("f16", 11, -14, 16), Format("bf16", 8, -126, 16))
}
