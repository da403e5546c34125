"""What each PTX instruction computes, as NumPy on arrays: the functions that exported Python consists of.

Owns the CPU semantics of ptx_vm.h in Python, bit for bit as on x86-64; semantics.h has the same in C. A function is named by its
instruction, with dots as underscores. Knows nothing of programs, and of evo nothing at all: an export contains copies of these
definitions.

Floats are float32, integers uint32 and predicates bool. Unless PTX says otherwise, a function on floats takes subnormal operands
as zeros, rounds once, flushes a subnormal result and gives 0x7fffffff for NaN. Sums and products of two float32 are computed in
float64 and then rounded: for these operations the second rounding does no harm. Long, since each instruction has its function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # an array, or one number of its type

F32_NAN = np.uint32(0x7FFFFFFF).view(np.float32)
F32_TINY = 2.0**-126  # the smallest normal number


def f32(bits: int) -> Any:
    """The float32 with these bits."""
    return np.uint32(bits).view(np.float32)


def bits_of(a: Array) -> Array:
    """The bits of float32 numbers."""
    return np.asarray(a, np.float32).view(np.uint32)


def wide(a: Array) -> Array:
    """float32 numbers as float64, with subnormal ones flushed."""
    return np.where(np.abs(a) < F32_TINY, a * np.float32(0.0), a).astype(np.float64)


def rounded(a: Array) -> Array:
    """float64 numbers as float32. A number that is still subnormal after rounding to 24 bits is flushed."""
    is_tiny = np.abs(a) < F32_TINY * (1.0 - 2.0**-25)
    return canonical(np.where(is_tiny, a * 0.0, a).astype(np.float32))


def canonical(a: Array) -> Array:
    """The numbers with PTX's NaN in place of any other."""
    return np.where(np.isnan(a), F32_NAN, a)


def signed(a: Array) -> Array:
    """The words as signed integers."""
    return np.asarray(a).view(np.int32)


def unsigned(a: Array) -> Array:
    """The low 32 bits of integers."""
    return (np.asarray(a).astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def add_ftz_f32(a: Array, b: Array) -> Array:
    return rounded(wide(a) + wide(b))


def sub_ftz_f32(a: Array, b: Array) -> Array:
    return rounded(wide(a) - wide(b))


def mul_ftz_f32(a: Array, b: Array) -> Array:
    return rounded(wide(a) * wide(b))


def fma_rn_ftz_f32(a: Array, b: Array, c: Array) -> Array:
    product, addend = wide(a) * wide(b), wide(c)
    total = np.asarray(product + addend)
    part = total - product
    error = (product - (total - part)) + (addend - part)
    # Rounds to odd: then the rounding to float32 is as good as the only one.
    is_inexact = np.isfinite(error) & (error != 0.0) & (total.view(np.int64) & 1 == 0)
    step = np.where((error > 0.0) == (total > 0.0), 1, -1)
    return rounded((total.view(np.int64) + np.where(is_inexact, step, 0)).view(np.float64))


def rcp_approx_ftz_f32(a: Array) -> Array:
    return rounded(1.0 / wide(a))


def div_approx_ftz_f32(a: Array, b: Array) -> Array:
    return mul_ftz_f32(a, rcp_approx_ftz_f32(b))


def sqrt_approx_ftz_f32(a: Array) -> Array:
    return rounded(np.sqrt(wide(a)))


def rsqrt_approx_ftz_f32(a: Array) -> Array:
    return rcp_approx_ftz_f32(sqrt_approx_ftz_f32(a))


def abs_ftz_f32(a: Array) -> Array:
    return rounded(np.abs(wide(a)))


def neg_ftz_f32(a: Array) -> Array:
    return rounded(-wide(a))


def min_ftz_f32(a: Array, b: Array) -> Array:
    x, y = wide(a), wide(b)
    return rounded(np.where((x < y) | ((x == y) & np.signbit(x)) | np.isnan(y), x, y))


def max_ftz_f32(a: Array, b: Array) -> Array:
    x, y = wide(a), wide(b)
    return rounded(np.where((x > y) | ((x == y) & np.signbit(y)) | np.isnan(y), x, y))


def copysign_f32(a: Array, b: Array) -> Array:
    """The sign of a, the magnitude of b."""
    return np.asarray((bits_of(a) & np.uint32(0x80000000)) | (bits_of(b) & np.uint32(0x7FFFFFFF))).view(np.float32)


def polynomial(x: Array, *coefficients: float) -> Array:
    """By Horner's rule, the highest power first."""
    total = np.float32(coefficients[0])
    for coefficient in coefficients[1:]:
        total = fma_rn_ftz_f32(x, total, np.float32(coefficient))
    return total


def turns_of(a: Array) -> Array:
    """The magnitude in turns: times 1/2pi rounded toward zero, less the nearest integer, as on a GPU. NaN of infinity."""
    product = wide(np.abs(a)) * float(np.float32(0.15915494))
    turns = product.astype(np.float32)
    turns = np.where(turns > product, np.nextafter(turns, np.float32(0.0)), turns)
    turns = np.where(turns < F32_TINY, np.float32(0.0), turns)
    return turns - np.rint(turns)


def sin_of_turns(r: Array) -> Array:
    """The sine of r turns, r in [-1/4, 1/4]."""
    r2 = mul_ftz_f32(r, r)
    return mul_ftz_f32(r, polynomial(r2, 40.87591, -76.727905, 81.60862, -41.341766, 6.2831855))


def sin_approx_ftz_f32(a: Array) -> Array:
    magic = np.float32(6291456.0)  # rounds to half turns and shows their parity in the last bit
    turns = turns_of(a)
    halves = turns + magic
    sign = (bits_of(halves) << np.uint32(31)) ^ (bits_of(a) & np.uint32(0x80000000))
    return canonical(np.asarray(bits_of(sin_of_turns(turns - (halves - magic))) ^ sign).view(np.float32))


def cos_approx_ftz_f32(a: Array) -> Array:
    return sin_of_turns(np.float32(0.25) - np.abs(turns_of(a)))


def lg2_approx_ftz_f32(a: Array) -> Array:
    bits = bits_of(a)
    exponent = signed(bits - np.uint32(0x3F3504F3)) >> 23
    f = np.asarray(bits - (exponent.view(np.uint32) << np.uint32(23))).view(np.float32) - np.float32(1.0)
    p = polynomial(f, 0.12585415, -0.21009192, 0.2170651, -0.2385357, 0.2877022, -0.3607217, 0.48092026, -0.7213471, 1.4426949)
    x = wide(a)
    p = np.where(x > 0.0, fma_rn_ftz_f32(f, p, exponent.astype(np.float32)), np.where(x < 0.0, F32_NAN, np.float32(-np.inf)))
    return canonical(np.where(x < np.inf, p, np.asarray(a, np.float32)))


def ex2_approx_ftz_f32(a: Array) -> Array:
    magic = np.float32(12582912.0)  # rounds to an integer and shows it in the low bits
    x = wide(a).astype(np.float32)
    clamped = np.where(x < 128.0, x, np.float32(128.0))
    integer = clamped + magic
    f = clamped - (integer - magic)
    p = polynomial(f, 0.00015326471, 0.0013390806, 0.009618506, 0.0555036, 0.24022648, 0.6931472, 1.0)
    power = np.asarray(bits_of(p) + (bits_of(integer) << np.uint32(23))).view(np.float32)
    return canonical(np.where(x >= -126.0, power, np.where(np.isnan(x), x, np.float32(0.0))))


def tanh_approx_f32(a: Array) -> Array:
    """Not ftz: small numbers, also subnormal ones, are their own result."""
    limit = np.float32(5.1939778)
    x = np.where(a > limit, limit, np.where(a < -limit, -limit, a))
    x2 = mul_ftz_f32(x, x)
    p = mul_ftz_f32(x, polynomial(x2, 0.00065158348, 0.10179524, 0.9999354))
    ratio = rounded(wide(p) / wide(polynomial(x2, 0.012630122, 0.4347445, 1.0)))
    return np.where(np.abs(a) < 0.0078125, np.asarray(a, np.float32), ratio)


def cvt_rn_f32_u32(a: Array) -> Array:
    return np.asarray(a).astype(np.float32)


def cvt_rn_f32_s32(a: Array) -> Array:
    return signed(a).astype(np.float32)


def setp_lt_ftz_f32(a: Array, b: Array) -> Array:
    return wide(a) < wide(b)


def selp_f32(a: Array, b: Array, p: Array) -> Array:
    """Where p is true a, otherwise b."""
    return np.where(p, a, b)


selp_u32 = selp_f32

selp_s32 = selp_f32


def mov_b32(a: Array) -> Array:
    return a


def add_u32(a: Array, b: Array) -> Array:
    return a + b


def sub_u32(a: Array, b: Array) -> Array:
    return a - b


def mul_lo_u32(a: Array, b: Array) -> Array:
    return a * b


def mul_hi_u32(a: Array, b: Array) -> Array:
    return (np.asarray(a).astype(np.uint64) * np.asarray(b).astype(np.uint64) >> np.uint64(32)).astype(np.uint32)


def mul_hi_s32(a: Array, b: Array) -> Array:
    return unsigned(signed(a).astype(np.int64) * signed(b).astype(np.int64) >> 32)


def mad_lo_u32(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


add_s32 = add_u32

sub_s32 = sub_u32

mul_lo_s32 = mul_lo_u32

mad_lo_s32 = mad_lo_u32


def neg_s32(a: Array) -> Array:
    return np.uint32(0) - a


def abs_s32(a: Array) -> Array:
    return np.where(signed(a) < 0, np.uint32(0) - a, a)


def min_u32(a: Array, b: Array) -> Array:
    return np.minimum(a, b)


def max_u32(a: Array, b: Array) -> Array:
    return np.maximum(a, b)


def min_s32(a: Array, b: Array) -> Array:
    return np.where(signed(a) < signed(b), a, b)


def max_s32(a: Array, b: Array) -> Array:
    return np.where(signed(a) < signed(b), b, a)


def and_b32(a: Array, b: Array) -> Array:
    return a & b


def or_b32(a: Array, b: Array) -> Array:
    return a | b


def xor_b32(a: Array, b: Array) -> Array:
    return a ^ b


def not_b32(a: Array) -> Array:
    return ~a


and_pred = and_b32

or_pred = or_b32

xor_pred = xor_b32


def not_pred(a: Array) -> Array:
    return np.logical_not(a)


def cnot_b32(a: Array) -> Array:
    return np.where(a == 0, np.uint32(1), np.uint32(0))


def shl_b32(a: Array, b: Array) -> Array:
    """Zero from 32 on."""
    return np.where(b < 32, a << (b & np.uint32(31)), np.uint32(0))


def shr_u32(a: Array, b: Array) -> Array:
    """Zero from 32 on."""
    return np.where(b < 32, a >> (b & np.uint32(31)), np.uint32(0))


def shr_s32(a: Array, b: Array) -> Array:
    """The sign from 32 on."""
    return unsigned(signed(a).astype(np.int64) >> np.minimum(b, np.uint32(31)).astype(np.int64))


def shf_l_clamp_b32(a: Array, b: Array, c: Array) -> Array:
    """The upper word of b:a shifted left by c, at most 32."""
    n = np.minimum(c, np.uint32(32))
    return shl_b32(b, n) | shr_u32(a, np.uint32(32) - n)


def shf_r_clamp_b32(a: Array, b: Array, c: Array) -> Array:
    """The lower word of b:a shifted right by c, at most 32."""
    n = np.minimum(c, np.uint32(32))
    return shr_u32(a, n) | shl_b32(b, np.uint32(32) - n)


def shf_l_wrap_b32(a: Array, b: Array, c: Array) -> Array:
    return shf_l_clamp_b32(a, b, c & np.uint32(31))


def shf_r_wrap_b32(a: Array, b: Array, c: Array) -> Array:
    return shf_r_clamp_b32(a, b, c & np.uint32(31))


def brev_b32(a: Array) -> Array:
    """The bits in reverse order."""
    one, total = np.uint32(1), a ^ a
    for i in range(32):
        total = total | ((a >> np.uint32(i) & one) << np.uint32(31 - i))
    return total


def popc_b32(a: Array) -> Array:
    """The number of bits that are one."""
    return np.bitwise_count(a).astype(np.uint32)


def bfind_u32(a: Array) -> Array:
    """The highest bit that is one, counted from 0; 0xffffffff if there is none."""
    return unsigned(np.frexp(np.asarray(a).astype(np.float64))[1].astype(np.int64) - 1)


def bfind_s32(a: Array) -> Array:
    """The highest bit that differs from the sign."""
    return bfind_u32(np.where(signed(a) < 0, ~a, a))


def clz_b32(a: Array) -> Array:
    """The number of zeros above the highest bit that is one."""
    return np.uint32(31) - bfind_u32(a)


def bfind_shiftamt_u32(a: Array) -> Array:
    """How far left the highest bit that is one can be shifted; 0xffffffff if there is none."""
    return np.where(a == 0, np.uint32(0xFFFFFFFF), clz_b32(a))


def bfind_shiftamt_s32(a: Array) -> Array:
    return bfind_shiftamt_u32(np.where(signed(a) < 0, ~a, a))


def bfe_u32(a: Array, b: Array, c: Array) -> Array:
    """The c bits of a from bit b on. Positions and lengths are bytes."""
    rest = np.uint32(32) - np.minimum(c & np.uint32(255), np.uint32(32))
    return shr_u32(shl_b32(shr_u32(a, b & np.uint32(255)), rest), rest)


def bfe_s32(a: Array, b: Array, c: Array) -> Array:
    """As bfe_u32, filled with the sign; zero without a length."""
    rest = np.uint32(32) - np.minimum(c & np.uint32(255), np.uint32(32))
    field = shr_s32(shl_b32(shr_s32(a, b & np.uint32(255)), rest), rest)
    return np.where(c & np.uint32(255) == 0, np.uint32(0), field)


def setp_eq_u32(a: Array, b: Array) -> Array:
    return a == b


def setp_ne_u32(a: Array, b: Array) -> Array:
    return a != b


def setp_lt_u32(a: Array, b: Array) -> Array:
    return a < b


def setp_le_u32(a: Array, b: Array) -> Array:
    return a <= b


def setp_gt_u32(a: Array, b: Array) -> Array:
    return a > b


def setp_ge_u32(a: Array, b: Array) -> Array:
    return a >= b


setp_eq_s32 = setp_eq_u32

setp_ne_s32 = setp_ne_u32


def setp_lt_s32(a: Array, b: Array) -> Array:
    return signed(a) < signed(b)


def setp_le_s32(a: Array, b: Array) -> Array:
    return signed(a) <= signed(b)


def setp_gt_s32(a: Array, b: Array) -> Array:
    return signed(a) > signed(b)


def setp_ge_s32(a: Array, b: Array) -> Array:
    return signed(a) >= signed(b)
