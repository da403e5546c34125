"""Goals from which one instruction leads to numbers: masks, sums and factors; for floats, magic exponents and scales.

A word whose upper bits are those of 2^digits holds an integer in its lower bits, so that a difference gives the number. A product
with a power of two moves the exponent, from where a shift has left it. Owns these constants.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FORMATS
from evo.approximation.solvers import ALL, Goal, Words
from evo.approximation.word_machine import apply

MANTISSA = {"f16": 10, "bf16": 7, "f32": 23}
_SMALL = ((3, 7, 448), (2, 15, 57344), (1, 1, 6))  # digits, bias and largest number of e4m3, e5m2 and e2m1
_TYPES = {"f16": "f16x2", "bf16": "bf16x2", "f32": "f32"}  # of an input
_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}  # that instructions give
_MOST_ZERO = 128  # above an integer input that is taken away, as bf16 has it
_STEPS = (1.0, 0.5, 0.25, 0.125)  # units of numbers before an input joins them
_BIASES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_SCALES = {"f16": range(-15, 25), "bf16": (*range(-16, 17), *range(100, 128)), "f32": (*range(-24, 25), *range(100, 128))}


def _numbers(values: Words, form: str) -> NDArray[np.float64]:
    if form == "f32":
        floats = values.view(np.float32)
    else:
        halves = values.view(np.uint16)
        floats = halves.view(np.float16) if form == "f16" else (halves.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(invalid="ignore"):  # NaNs
        return floats.astype(np.float64)


def _words(numbers: NDArray[np.float64], form: str) -> Words | None:
    """Words of numbers; None if the format lacks one of them."""
    with np.errstate(all="ignore"):
        near = numbers.astype(np.float16 if form == "f16" else np.float32)
    bits: NDArray[Any] = near.view(np.uint16 if form == "f16" else np.uint32)
    if form == "bf16":
        if (bits & 0xFFFF).any():
            return None
        bits = (bits >> 16).astype(np.uint16)
    if not (near.astype(np.float64) == numbers).all():
        return None
    return bits.view(np.uint32)


def _splat(number: float, form: str) -> int | None:
    words = _words(np.full(1 if form == "f32" else 2, number), form)
    return None if words is None else int(words[0])


def integer_goals(known: Any, goal: Goal) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
    """As `Synthesis.goals`: without bits that are the same at all points; multiples of a number, plus an input or none."""
    values, care = goal
    ones, zeros = np.bitwise_or.reduce(values & care), np.bitwise_or.reduce(~values & care)
    mask, constant = int(ones & zeros), int(ones & ~zeros)
    if mask and (care & ~np.uint32(mask)).any():
        yield (lambda node: ("lop3_ea", node, mask, constant)), Goal(values, care & np.uint32(mask)), known.slots["lop3_ea"]
    if (care != ALL).any():
        return
    yield from _limited(known, values)
    yield from _with_sign(known, values)
    inputs = [node for node in known.rows if node[0] == "%"]
    for node in inputs:  # a quotient that is rounded toward 0 has the sign added
        negative = ("shr", node, 31)
        yield partial(_after, "add", (negative,)), Goal(values - known.values(negative), care), 2 * known.slots["add"]
    for addend in (None, *inputs):
        for sign in (1, -1) if addend else (1,):
            rest = sign * (values.astype(np.int64) - (known.values(addend).astype(np.int64) if addend else 0))
            factor = int(np.gcd.reduce(rest))
            if rest.min() < 0 or factor == 0 or (addend is None and factor == 1):
                continue
            name, more = ("mad", (addend,)) if addend else ("mul", ())
            operands = (sign * factor & 0xFFFFFFFF, *more)
            divided = Goal((rest // factor).astype(np.uint32), care)
            yield partial(_after, name, operands), divided, known.slots[name]


def _limited(known: Any, values: Words) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
    """Before a limit that some results have: there, the unlimited result is unknown."""
    for kind, ordered in (("u", values), ("s", values.view(np.int32))):
        for name, limit in ((f"min_{kind}", int(ordered.max())), (f"max_{kind}", int(ordered.min()))):
            is_limit = ordered == limit
            if 1 < is_limit.sum() < len(values) - 8:
                care = np.where(is_limit, np.uint32(0), ALL)
                yield partial(_after, name, (limit & 0xFFFFFFFF,)), Goal(values, care), known.slots[name]


def _limited_numbers(known: Any, numbers: Any, values: Words, form: str) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
    """As `_limited`, of the numbers of a format."""
    suffix, word = ("f", np.uint32) if form == "f32" else (f"2_{form}", np.uint16)
    if np.isnan(numbers).any():
        return
    for name, limit in ((f"min{suffix}", numbers.max()), (f"max{suffix}", numbers.min())):
        is_limit, constant = numbers == limit, _splat(float(limit), form)
        if known.has(name) and np.isfinite(limit) and constant is not None and 1 < is_limit.sum() < len(numbers) - 8:
            care = np.where(is_limit, 0, -1).astype(word).view(np.uint32)
            yield partial(_after, name, (constant,)), Goal(values, care), known.slots[name]


def _with_sign(known: Any, values: Words) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
    """Before the highest bit of each field is repeated above it, by a product with ones."""
    ones = np.bitwise_or.reduce(values) & np.bitwise_or.reduce(~values)
    repeated = int(ones & ~np.bitwise_or.reduce(values ^ values << np.uint32(1)) & ~np.uint32(1))
    signs = repeated >> 1 & ~repeated
    if signs.bit_count() > 1:
        count = repeated.bit_count() // signs.bit_count()
        if sum(signs << k for k in range(1, count + 1)) & 0xFFFFFFFF == repeated:

            def extended(node: Any) -> Any:
                return ("mad", ("lop3_c0", node, signs, 0), (2 << count) - 2, node)

            yield extended, Goal(values & ~np.uint32(repeated), np.full_like(values, ALL)), 2 * known.slots["mad"]


def _after(name: str, operands: tuple[Any, ...], node: Any) -> Any:
    return (name, node, *operands)


def number_goals(known: Any, goal: Goal) -> Iterator[tuple[Callable[[Any], Any], Goal, float]]:
    """As `Synthesis.goals`, of words each number in which matters wholly or not at all."""
    values, care = goal
    for form, digits in MANTISSA.items():
        numbers, is_known = _numbers(values, form), _fields(care, form) != 0
        if not is_known.any() or (_fields(~care, form)[is_known]).any():
            continue
        if is_known.all():
            yield from _limited_numbers(known, numbers, values, form)
        suffix = "f" if form == "f32" else f"2_{form}"
        names = {name: f"{name}{suffix}" for name in ("add", "sub", "mul", "fma")}
        yield from _with_inputs(known, numbers, form, names, goal)
        yield from _with_nan(known, numbers, form, names["fma"], goal)
        numbers = np.where(is_known, numbers, numbers[is_known][0])
        if not np.isfinite(numbers).all() or np.abs(numbers).max() < 2.0 ** FORMATS[form].least:  # integers
            continue
        yield from _scaled(known, numbers, form, names, care)
        yield from _magic(known, numbers, form, digits, names, care)
        if is_known.all():
            yield from _differences(known, numbers, form, names, care)


def _with_nan(known: Any, numbers: Any, form: str, name: str, goal: Goal) -> Iterator[Any]:
    """Before infinities become NaN, and no other number changes: x * 0 + x."""
    fields, is_nan, infinity = _fields(goal.values, form), np.isnan(numbers), _splat(np.inf, form)
    if known.has(name) and is_nan.any() and not is_nan.all() and (fields[is_nan] == _NAN[form]).all() and infinity is not None:
        words = np.where(is_nan, _fields(np.array([infinity], np.uint32), form)[0], fields).view(np.uint32)
        yield (lambda node: (name, node, 0, node)), Goal(words, goal.care), known.slots[name]


def _fields(words: Words, form: str) -> NDArray[Any]:
    return words if form == "f32" else words.view(np.uint16)


def _with_inputs(known: Any, numbers: Any, form: str, names: dict[str, str], goal: Goal) -> Iterator[Any]:
    """Before a sum with an input, a product, or both: from numbers of few digits, as far as the inputs determine them."""
    words = [node for node in known.rows if node[0] == "%"]
    inputs = [node for node in words if known.function.types[node[1]] == _TYPES[form]]
    values_of = {node: _numbers(known.values(node), form) for node in inputs}
    magic, ones = _splat(2.0 ** MANTISSA[form], form), 1 if form == "f32" else 0x00010001
    small = [node for node in words if known.function.types[node[1]] == "u32" and known.values(node).max() < _MOST_ZERO]
    tried: list[tuple[str, Callable[[Any], Any], Any]] = []
    with np.errstate(all="ignore"):
        for node, operand in values_of.items():
            tried += [
                (names["mul"], partial(_after, names["mul"], (node,)), numbers / operand),
                (names["add"], partial(_after, names["add"], (node,)), numbers - operand),
                (names["sub"], partial(_after, names["sub"], (node,)), numbers + operand),
            ]
            tried += [
                (names["fma"], partial(_after, names["fma"], (factor, node)), (numbers - operand) / values_of[factor] + 0.0)
                for factor in inputs
                if factor != node
            ]
        for node in (("mad", word, ones, magic) for word in small):  # an integer below the leading one of a number
            tried.append((names["sub"], partial(_after, names["sub"], (node,)), numbers + _numbers(known.values(node), form)))
        for name, wrap, wanted in tried:
            is_known = np.isfinite(wanted) & np.isfinite(numbers) & (_fields(goal.care, form) != 0)
            for step in _STEPS if known.has(name) and is_known.mean() > 0.5 else ():
                number = np.where(is_known, np.rint(wanted / step) * step, 0)
                candidates = [_words(number + more, form) for more in (0, step, -step)]
                made = [
                    None if candidate is None else _fields(apply(*_with_words(known, wrap(candidate))), form)
                    for candidate in candidates
                ]
                if candidates[0] is None or np.any(is_known & (made[0] != _fields(goal.values, form))):
                    continue
                is_clear = is_known & np.logical_and.reduce(
                    [made[0] != result for result in made[1:] if result is not None]
                )  # of no other number
                if is_clear.mean() > 0.5:
                    care = np.where(is_clear, _fields(goal.care, form), 0).astype(_fields(goal.care, form).dtype)
                    yield wrap, Goal(candidates[0], care.view(np.uint32)), known.slots[name]
                break


def _with_words(known: Any, node: Any) -> list[Any]:
    """An instruction and its operands, inputs as their words."""
    return [known.values(operand) if isinstance(operand, tuple) else operand for operand in node]


def _scaled(known: Any, numbers: Any, form: str, names: dict[str, str], care: Words) -> Iterator[Any]:
    zero = 0x80000000 if form == "f32" else 0x80008000  # -0
    for k in _SCALES[form]:
        words, factor = _words(numbers * 2.0**-k, form), _splat(2.0**k, form)
        if k == 0 or words is None or factor is None:
            continue
        goal = Goal(words, care)
        if known.has(names["mul"]):
            yield (lambda node, c=factor: (names["mul"], node, c)), goal, known.slots[names["mul"]]
        elif known.has(names["fma"]):
            yield (lambda node, c=factor: (names["fma"], node, c, zero)), goal, known.slots[names["fma"]]


def _magic(known: Any, numbers: Any, form: str, digits: int, names: dict[str, str], care: Words) -> Iterator[Any]:
    base = 2.0**digits
    for bias in _BIASES:
        if numbers.min() + bias < 0:
            continue
        for k in range(digits + 1):
            held = (numbers + bias) * 2.0**k + base
            if held.max() >= 2 * base or not (held == np.rint(held)).all():
                continue
            words = _words(held, form)
            rest, factor, unit = _splat(-(base * 2.0**-k + bias), form), _splat(2.0**-k, form), _splat(1.0, form)
            if words is None or rest is None or factor is None:
                continue
            if k == 0 and known.has(names["add"]):
                yield (lambda node, c=rest: (names["add"], node, c)), Goal(words, care), known.slots[names["add"]]
            elif known.has(names["fma"]):
                f = unit if k == 0 else factor
                yield (lambda node, f=f, c=rest: (names["fma"], node, f, c)), Goal(words, care), known.slots[names["fma"]]
        if numbers.min() + bias >= 0:
            break


def _differences(known: Any, numbers: Any, form: str, names: dict[str, str], care: Words) -> Iterator[Any]:
    """From words whose one bit decides between two powers of two, as the sign of an integer whose field reaches the exponent."""
    if form == "f32" or not known.has(names["fma"]) or numbers.min() >= 0:
        return
    digits = MANTISSA[form]
    minus = _splat(-1.0, form)
    bit = 1 << digits
    magic = _splat(2.0**digits, form)
    for row in list(known.rows):
        if row[0] != "%" and row[0] not in ("shr", "prmt"):
            continue
        node = ("lop3_ca", row, (magic or 0) | bit * 0x10001, magic)
        subtrahend = _numbers(known.values(node), form)
        words = _words(numbers + subtrahend, form)
        if words is None:
            continue
        if known.has(names["sub"]):
            yield (lambda left, right=node: (names["sub"], left, right)), Goal(words, care), known.slots[names["sub"]]
        else:
            yield (lambda left, right=node: (names["fma"], right, minus, left)), Goal(words, care), known.slots[names["fma"]]


def rounded(x: Any) -> Iterator[Any]:
    """Nodes of the sizes of two bf16 as codes of small floats, to nearest even.

    To add a multiple of the power of two below a number, and take it away again, rounds it to the digits of the format.
    """

    def twice(number: float) -> int:
        return int(np.float32(number).view(np.uint32) >> 16) * 0x00010001

    for digits, bias, largest in _SMALL:
        size = ("min2_bf16", ("lop3_c0", x, 0x7FFF7FFF, 0), twice(largest))
        power = ("max2_bf16", ("lop3_c0", size, 0x7F807F80, 0), twice(2.0 ** (1 - bias)))
        factor = 2 ** (MANTISSA["bf16"] - digits)
        number = ("fma2_bf16", power, twice(-factor), ("fma2_bf16", power, twice(factor), size))
        yield ("shr", ("fma2_bf16", number, twice(2.0 ** (bias - 127)), 0), MANTISSA["bf16"] - digits)
