"""Inputs of exact functions at which programs are tried.

Owns which they are. They depend on seeds alone: a hash draws them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evo.approximation.bits import ExactFunction, Words
from evo.errors import UserError


def drawn(count: int, seed: int, stream: int, width: int) -> Words:
    """Words of `width` bits, by the finalizer of MurmurHash3 with 64 bits."""
    hashed = np.arange(count, dtype=np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15 + stream * 0xD1B54A32D192ED03) % (1 << 64))
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
        hashed = (hashed ^ hashed >> np.uint64(33)) * np.uint64(factor)
    return (hashed >> np.uint64(16)).astype(np.uint32) & np.uint32((1 << width) - 1)


def special_words(function: ExactFunction) -> list[Words]:
    """Words of few bits, repeated fields and their neighbours, of every input in turn."""
    fields = [0, 1, 2, 3, 7, 8, 15, 16, 127, 128, 240, 255, 0x7F80, 0x3F80, 0x7C00, 0x3C00, 0x8000, 0xFFFF]
    fields += [f * 0x10001 for f in fields] + [f * 0x01010101 for f in fields if f < 256] + [1 << k for k in range(32)]
    fields += [0x7F800000, 0x00800000, 0x007FFFFF, 0x3F800000, 0x4B000000, 0xFFFFFFFF, 0x7F7FFFFF]
    special = np.unique(np.array([(f + d) & 0xFFFFFFFF for f in fields for d in (-1, 0, 1)], np.uint32))
    return [np.roll(special, 7 * k) & np.uint32((1 << width) - 1) for k, width in enumerate(function.widths)]


def sample(function: ExactFunction, num_points: int, seed: int, more: Sequence[Any] = ()) -> list[Words]:
    """Valid inputs: special ones, some given ones, and random ones, half of which have few ones or zeros.

    Raises:
        UserError: fewer than 2 meet the precondition, or the given ones do not fit.
    """
    count = 8 * num_points
    special = special_words(function)
    random: list[Words] = []
    for k, width in enumerate(function.widths):
        dense, second, third = (drawn(count, seed, 3 * k + i, width) for i in range(3))
        kind = drawn(count, seed, -1 - k, 32) % np.uint32(6)
        made = np.where(kind == 0, dense & second & third, np.where(kind == 1, dense | second | third, dense))
        if random:  # some are near the first input
            near = random[0] ^ (dense & second & third & np.uint32(0x00FFFF00))
            made = np.where(kind == 2, near & np.uint32((1 << width) - 1), made)
        random.append(made)
    if 1 << sum(function.widths) <= count:  # all inputs
        numbers, random = np.arange(1 << sum(function.widths), dtype=np.uint32), []
        for width in function.widths:
            random.append(numbers & np.uint32((1 << width) - 1))
            numbers = numbers >> np.uint32(width)
    try:
        extra = np.array([point if isinstance(point, Sequence) else (point,) for point in more], np.uint32)
        extra = extra.reshape(-1, len(function.inputs)).T
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"task_options.counterexamples: must be words, or lists of {len(function.inputs)}: {error}") from error
    words = [np.concatenate([g, s, r]) for g, s, r in zip(extra, special, random, strict=True)]
    keep = np.flatnonzero(function.condition(*words))
    num_given = int((keep < len(extra[0])).sum())
    order = np.argsort(drawn(len(keep) - num_given, seed, 1 << 20, 32), kind="stable")
    keep = np.concatenate([keep[:num_given], keep[num_given:][order]])
    if len(keep) < 2:
        raise UserError(f"task_options.precondition: {function.condition.text!r} holds at fewer than 2 of {len(words[0])} inputs")
    return [np.ascontiguousarray(column[keep[:num_points]]) for column in words]
