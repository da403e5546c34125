"""Operands of PTX instructions: registers, constants, special registers, symbols, addresses and vectors.

Owns how they are read and written. Knows nothing of what instructions compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from emulated_gpu.ptx_special import special_register
from emulated_gpu.ptx_text import PtxError, Scope, parse_constant
from emulated_gpu.ptx_values import DTYPES, cut, unsigned

Reader = Callable  # (group, threads) -> array
Writer = Callable  # (group, threads, values)

_ADDRESS = re.compile(r"\[\s*([\w$%]+)\s*(?:([+-])\s*(-?(?:0[xX][0-9a-fA-F]+|\d+)))?\s*\]")


class Operands:
    """The operands of one statement.

    Args:
        scope: of the statement. register_types: of each slot. addresses: of parameters and variables, each in its space.
    """

    def __init__(self, scope: Scope, register_types: list[str], addresses: Mapping[str, int]):
        self._scope, self._register_types, self._addresses = scope, register_types, addresses

    def slot(self, name: str) -> int:
        """The slot of a register. Raises PtxError."""
        slot = self._scope.find("registers", name)
        if slot is None:
            raise PtxError(f"no register {name}")
        return slot

    def reader(self, operand: str, type_name: str) -> Reader:
        """Gives an operand's values as this type."""
        dtype = DTYPES[type_name]
        if type_name == "pred" and operand.startswith("!"):
            inner = self.reader(operand[1:].strip(), type_name)
            return lambda group, threads: ~inner(group, threads)
        slot = self._scope.find("registers", operand)
        if slot is not None:
            if DTYPES[unsigned(self._register_types[slot])].itemsize == dtype.itemsize or dtype.kind == "b":
                return lambda group, threads: group.read(slot, threads).view(dtype)
            return lambda group, threads: cut(group.read(slot, threads), dtype)
        constant = parse_constant(operand, type_name)
        if constant is None:
            constant = self._symbol(operand)
        if constant is not None:
            if dtype.kind == "b":
                values = np.array([constant != 0])
            else:
                values = (
                    np.array([constant & (2 ** (8 * dtype.itemsize) - 1)], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
                )
            return lambda group, threads: values
        if operand.startswith("%"):
            special = special_register(operand[1:])
            return lambda group, threads: cut(special(group, threads), dtype)
        raise PtxError(f"operand {operand}")

    def _symbol(self, operand: str) -> int | None:
        """The address of a variable, with an offset."""
        match = re.fullmatch(r"([\w$]+)\s*(?:([+-])\s*(\d+))?", operand)
        address = self._addresses.get(match[1]) if match else None
        return None if address is None else address + int((match[2] or "+") + (match[3] or "0"))

    def writer(self, operand: str) -> Writer:
        """Takes values of any type that the register holds; a narrower one is extended by its own sign."""
        if operand == "_":
            return lambda group, threads, values: None
        slot = self.slot(operand)
        type_name = self._register_types[slot]
        if type_name == "pred":
            return lambda group, threads, values: group.write(slot, threads, values.astype(bool))
        dtype = DTYPES[unsigned(type_name)]
        return lambda group, threads, values: group.write(slot, threads, cut(values, dtype))

    def address(self, operand: str) -> Reader:
        """Gives the addresses of an operand such as `[%rd1+8]`."""
        match = _ADDRESS.fullmatch(operand)
        if match is None:
            raise PtxError(f"address {operand}")
        base, sign, offset = match.groups()
        offset = int(offset, 0) * (-1 if sign == "-" else 1) if offset else 0
        read = self.reader(base, "u64")
        if offset == 0:
            return read
        addend = np.array([offset & (2**64 - 1)], np.uint64)
        return lambda group, threads: read(group, threads) + addend

    def elements(self, operand: str) -> list[str]:
        """The operands of a vector, or the operand itself."""
        return [part.strip() for part in operand.strip("{}").split(",")] if operand.startswith("{") else [operand]
