"""What a PTX instruction computes, in words: for readers, from its PTX text alone.

Owns the words. They follow the PTX ISA 8.1, chapter "Instruction Set". Operands are a, b, c and d in the order of PTX, which is
that of an instruction's `args`. Knows nothing of what runs an instruction.
"""

from __future__ import annotations

from evo.instructions import Instruction

_TERMS = {
    "abs": "absolute value |a|",
    "brev": "bits of a in reverse order",
    "clz": "number of leading zero bits of a",
    "cnot": "1 if a is 0, else 0",
    "cos": "cosine of a in radians",
    "ex2": "exponential 2^a",
    "lg2": "logarithm of a to base 2",
    "neg": "negative -a",
    "not": "not a, bit by bit",
    "popc": "number of one bits of a",
    "rcp": "reciprocal 1 / a",
    "rsqrt": "reciprocal square root 1 / sqrt(a)",
    "sin": "sine of a in radians",
    "sqrt": "square root of a",
    "tanh": "hyperbolic tangent of a",
    "add": "sum a + b",
    "and": "a and b, bit by bit",
    "bfe": "bit field of a: c bits from bit b on",
    "bfi": "b with a bit field of d bits from bit c on taken from a",
    "bfind": "position of the highest one bit of a, of a signed a the highest bit unlike its sign",
    "bmsk": "mask of b one bits from bit a on",
    "copysign": "magnitude of b with the sign of a",
    "div": "quotient a / b",
    "dp2a": "dot product of the two 16-bit parts of a and two bytes of b, plus c",
    "dp4a": "dot product of the four bytes of a and b, plus c",
    "fma": "product and sum a * b + c, rounded once",
    "mad": "product and sum a * b + c",
    "mad24": "product and sum a * b + c of 24-bit a and b",
    "max": "maximum of a and b",
    "min": "minimum of a and b",
    "mma": "matrix product and sum a * b + c, of a whole warp",
    "mul": "product a * b",
    "mul24": "product a * b of 24-bit a and b",
    "or": "a or b, bit by bit",
    "prmt": "four of the eight bytes of a and b, selected by c",
    "rem": "remainder of a / b",
    "sad": "sum of the absolute difference |a - b| and c",
    "selp": "select: a if c is true, else b",
    "shl": "a shifted left by b bits",
    "shr": "a shifted right by b bits",
    "slct": "select: a if c >= 0, else b",
    "sub": "difference a - b",
    "szext": "low b bits of a, extended",
    "xor": "exclusive or of a and b, bit by bit",
}

_COMPARISONS = {"eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b"}
_CONDITIONS = {
    **_COMPARISONS,
    **{f"{name}u": f"{text} or one is NaN" for name, text in _COMPARISONS.items()},
    "num": "neither is NaN",
    "nan": "a or b is NaN",
}

_TESTS = {
    "finite": "finite",
    "infinite": "infinite",
    "number": "not NaN",
    "notanumber": "NaN",
    "normal": "a normal number",
    "subnormal": "a subnormal number",
}

_LOP3 = {
    "0x80": "a and b and c",
    "0xFE": "a or b or c",
    "0x96": "a xor b xor c",
    "0xE8": "majority of a, b and c",
    "0xCA": "b where a has ones, else c",
    "0xEA": "(a and b) or c",
    "0x6A": "(a and b) xor c",
    "0xA8": "(a or b) and c",
    "0x28": "(a xor b) and c",
    "0xBE": "(a xor b) or c",
}

# What a part of the PTX text adds, in this order.
_MODIFIERS = {
    "wide": "of twice the width",
    "shiftamt": "as the left shift that makes it the highest bit",
    "xorsign": "by magnitude, with the exclusive or of both signs",
    "NaN": "NaN if one is NaN",
    "f4e": "mode forward 4 extract",
    "b4e": "mode backward 4 extract",
    "rc8": "mode replicate 8",
    "rc16": "mode replicate 16",
    "ecl": "mode edge clamp left",
    "ecr": "mode edge clamp right",
    "clamp": "counts limited to 32",
    "wrap": "counts modulo 32",
    "approx": "approximate",
    "full": "approximate over the full range",
    "rn": "rounded to nearest",
    "rna": "rounded to nearest, ties away from zero",
    "rz": "rounded toward zero",
    "rm": "rounded down",
    "rp": "rounded up",
    "rni": "rounded to the nearest integer",
    "rzi": "rounded toward zero to an integer",
    "rmi": "rounded down to an integer (floor)",
    "rpi": "rounded up to an integer (ceiling)",
    "relu": "0 if negative",
    "ftz": "subnormals are 0",
}

_FLOATS = ("f16", "f16x2", "f32", "f64", "tf32")


def meaning_of(instruction: Instruction) -> str:
    """One line on what an instruction computes, without its types; `see the PTX ISA` if its PTX is not known here."""
    try:
        return _words(instruction)
    except LookupError:  # of a user's own set
        return "see the PTX ISA"


def _words(instruction: Instruction) -> str:
    text, _, immediates = instruction.ptx.partition(" ")
    mnemonic, *parts = text.split(".")
    term = _term(mnemonic, parts, immediates, len(instruction.args))
    told = [words for name, words in _MODIFIERS.items() if name in parts and not (mnemonic == "fma" and name == "rn")]
    if "sat" in parts:
        is_float = (parts[-2] if mnemonic == "cvt" else parts[-1]) in _FLOATS
        told.append("limited to 0 to 1" if is_float else "limited to the range of its type")
    if parts and parts[-1] == "f16x2" and mnemonic != "cvt":
        told.append("in both halves")
    return "; ".join([term, *told])


def _term(mnemonic: str, parts: list[str], immediates: str, num_operands: int) -> str:
    if mnemonic in ("setp", "set"):
        condition = _CONDITIONS[parts[0]]
        if mnemonic == "setp":
            return f"whether {condition}"
        return f"{'1' if parts[-2] in _FLOATS else 'all bits one'} if {condition}, else 0"
    if mnemonic == "testp":
        return f"whether a is {_TESTS[parts[0]]}"
    if mnemonic == "lop3":
        return f"{_LOP3.get(immediates, f'function {immediates} of a, b and c')}, bit by bit"
    if mnemonic == "cvt":
        return f"a and b as the halves of {parts[-2]}" if num_operands == 2 else f"a converted from {parts[-1]} to {parts[-2]}"
    if mnemonic == "mov":
        return "same bits as another type"
    if mnemonic == "shf":
        return "funnel shift: " + (
            "high half of b, a shifted left by c bits" if parts[0] == "l" else "low half of b, a shifted right by c bits"
        )
    term = _TERMS[mnemonic]
    if mnemonic in ("mul", "mad", "mul24", "mad24") and parts[0] in ("lo", "hi"):
        half = {"lo": "low", "hi": "high"}[parts[0]]
        width = "32 bits" if mnemonic.endswith("24") else "half"
        return (
            f"{term}, with the {half} {width} of the product" if mnemonic.startswith("mad") else f"{half} {width} of the {term}"
        )
    if mnemonic == "dp2a":
        return f"{term}; the {'low' if parts[0] == 'lo' else 'high'} bytes of b"
    return term
