"""PTX and programs for readers: constants with their values beside their bits.

Owns these comments. What is compiled goes without them, since stubs are made by the thousand.
"""

import re

import numpy as np

_CONSTANT = re.compile(r"\b0[fF]([0-9a-fA-F]{8})\b|\b0[dD]([0-9a-fA-F]{16})\b")


_TOKEN = re.compile(r"(?<!\S)0x([0-9a-f]{8}):f(?:32|64)(?!\S)")


def with_token_values(program: str) -> str:
    """The text form of a program, and a comment for each floating point constant that it has as bits: those without a decimal."""
    bits_of = {match[0]: match[1] for match in _TOKEN.finditer(program)}
    return program + "".join(f"# {token} is {_value(bits, '')}\n" for token, bits in bits_of.items())


def with_values(ptx: str) -> str:
    """The same PTX; each line with floating point constants, which are written as bits, ends with a comment of their values.

    A value is the shortest decimal that gives the same bits, or `inf` or `nan`. Lines that have a comment stay as they are.
    """
    return "\n".join(_with_value(line) for line in ptx.split("\n"))


def _with_value(line: str) -> str:
    values = [_value(*match) for match in _CONSTANT.findall(line)]
    return f"{line}  // {', '.join(values)}" if values and "//" not in line else line


def _value(single: str, double: str) -> str:
    if single:
        return str(np.uint32(int(single, 16)).view(np.float32))
    return str(np.uint64(int(double, 16)).view(np.float64))
