/*
 * ptx_vm_packed.h - operations on words of any type: bits by tables, bytes, packed halves and small floats, f32 with subnormals.
 *
 * Private to ptx_vm_functions.h. A word holds what the instruction takes it for. All results are PTX's to the bit: NaN is
 * 0x7fffffff in f32, 0x7fff in f16 and bf16, 0x7f in e4m3 and e5m2. Bytes and halves count from the lowest one.
 */

#ifndef PTX_VM_PACKED_H
#define PTX_VM_PACKED_H

/* ---- bits and bytes ---------------------------------------------------------------------------------------------- */

/* Bit by bit, bit 4a + 2b + c of the table. */
PTX_VM__INLINE PtxVmV ptx_vm__lop3_b32(PtxVmV a, PtxVmV b, PtxVmV c, uint32_t table) {
    const PtxVmU x = PTX_VM__WORDS(a), y = PTX_VM__WORDS(b), z = PTX_VM__WORDS(c);
    PtxVmU row[4];
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t off = 0u - (table >> 2 * i & 1u), on = 0u - (table >> (2 * i + 1) & 1u);
        row[i] = (z & (on ^ off)) ^ off;
    }
    return (PtxVmV)ptx_vm__choose(x, ptx_vm__choose(y, row[3], row[2]), ptx_vm__choose(y, row[1], row[0]));
}

/* Byte `index` of the eight of y:x. */
PTX_VM__INLINE PtxVmU ptx_vm__byte_of(PtxVmU x, PtxVmU y, PtxVmU index) {
    const PtxVmU shift = (index & 3u) << 3;
    return ptx_vm__choose(PTX_VM__TRUE((index & 4u) != 0u), y >> shift, x >> shift) & 255u;
}
PTX_VM__INLINE PtxVmU ptx_vm__four_bytes(PtxVmU x, PtxVmU y, PtxVmU i0, PtxVmU i1, PtxVmU i2, PtxVmU i3) {
    return ptx_vm__byte_of(x, y, i0) | ptx_vm__byte_of(x, y, i1) << 8 | ptx_vm__byte_of(x, y, i2) << 16 |
        ptx_vm__byte_of(x, y, i3) << 24;
}
/* Bit 3 of a selector replaces the byte by copies of its sign. */
PTX_VM__INLINE PtxVmU ptx_vm__selected(PtxVmU x, PtxVmU y, PtxVmU selector) {
    const PtxVmU byte = ptx_vm__byte_of(x, y, selector);
    return ptx_vm__choose(PTX_VM__TRUE((selector & 8u) != 0u), PTX_VM__TRUE((byte & 128u) != 0u) & 255u, byte);
}
PTX_VM__TERNARY_BITS(
    prmt_b32,
    ptx_vm__selected(x, y, z) | ptx_vm__selected(x, y, z >> 4) << 8 | ptx_vm__selected(x, y, z >> 8) << 16 |
        ptx_vm__selected(x, y, z >> 12) << 24
)
PTX_VM__TERNARY_BITS(prmt_f4e, ptx_vm__four_bytes(x, y, z & 3u, (z & 3u) + 1u, (z & 3u) + 2u, (z & 3u) + 3u))
PTX_VM__TERNARY_BITS(prmt_b4e, ptx_vm__four_bytes(x, y, z & 3u, (z & 3u) + 7u, (z & 3u) + 6u, (z & 3u) + 5u))
PTX_VM__TERNARY_BITS(prmt_rc8, ptx_vm__byte_of(x, y, z & 3u) * 0x01010101u)
PTX_VM__INLINE PtxVmU ptx_vm__at_least(PtxVmU x, uint32_t bound) {
    return ptx_vm__choose(PTX_VM__TRUE(x < bound), x & 0u, x - bound) + bound;
}
PTX_VM__TERNARY_BITS(
    prmt_ecl,
    ptx_vm__four_bytes(x, y, z & 3u, ptx_vm__at_least(z & 3u, 1), ptx_vm__at_least(z & 3u, 2), ptx_vm__at_least(z & 3u, 3))
)
PTX_VM__INLINE PtxVmU ptx_vm__at_most(PtxVmU x, uint32_t bound) {
    return bound - ptx_vm__choose(PTX_VM__TRUE(x < bound), bound - x, x & 0u);
}
PTX_VM__TERNARY_BITS(prmt_ecr, ptx_vm__four_bytes(x, y, z & 0u, ptx_vm__at_most(z & 3u, 1), ptx_vm__at_most(z & 3u, 2), z & 3u))
PTX_VM__TERNARY_BITS(prmt_rc16, (x >> ((z & 1u) << 4) & 0xffffu) * 0x00010001u)

PTX_VM__INLINE PtxVmV ptx_vm__mad_hi_u32(PtxVmV x, PtxVmV y, PtxVmV z) { return ptx_vm__add_u32(ptx_vm__mul_hi_u32(x, y), z); }
PTX_VM__INLINE PtxVmU ptx_vm__byte_s32(PtxVmU x, int from) { return (PtxVmU)(PTX_VM__SIGNED(x << (24 - from)) >> 24); }
PTX_VM__TERNARY_BITS(
    dp4a_u32_u32,
    z + (x & 255u) * (y & 255u) + (x >> 8 & 255u) * (y >> 8 & 255u) + (x >> 16 & 255u) * (y >> 16 & 255u) + (x >> 24) * (y >> 24)
)
PTX_VM__TERNARY_BITS(
    dp4a_s32_s32,
    z + ptx_vm__byte_s32(x, 0) * ptx_vm__byte_s32(y, 0) + ptx_vm__byte_s32(x, 8) * ptx_vm__byte_s32(y, 8) +
        ptx_vm__byte_s32(x, 16) * ptx_vm__byte_s32(y, 16) + ptx_vm__byte_s32(x, 24) * ptx_vm__byte_s32(y, 24)
)
PTX_VM__INLINE PtxVmU ptx_vm__distance(PtxVmU x, PtxVmU y) { return ptx_vm__choose(PTX_VM__TRUE(x < y), y - x, x - y); }
PTX_VM__TERNARY_BITS(
    vabsdiff4_add,
    z + ptx_vm__distance(x & 255u, y & 255u) + ptx_vm__distance(x >> 8 & 255u, y >> 8 & 255u) +
        ptx_vm__distance(x >> 16 & 255u, y >> 16 & 255u) + ptx_vm__distance(x >> 24, y >> 24)
)

PTX_VM__INLINE PtxVmU ptx_vm__limited(PtxVmU x, int least, int most) {
    const PtxVmU low = PTX_VM__TRUE(PTX_VM__SIGNED(x) < least), high = PTX_VM__TRUE(PTX_VM__SIGNED(x) > most);
    return (ptx_vm__choose(low, (x & 0u) + (uint32_t)least, ptx_vm__choose(high, (x & 0u) + (uint32_t)most, x))) & 255u;
}
PTX_VM__TERNARY_BITS(pack_s8_s32, ptx_vm__limited(y, -128, 127) | ptx_vm__limited(x, -128, 127) << 8 | z << 16)
PTX_VM__TERNARY_BITS(pack_u8_s32, ptx_vm__limited(y, 0, 255) | ptx_vm__limited(x, 0, 255) << 8 | z << 16)

/* NaN is 0. */
PTX_VM__INLINE PtxVmV ptx_vm__s32_from_f32(PtxVmV x) {
    const PtxVmU is_low = PTX_VM__TRUE(x < -2147483648.0f), is_high = PTX_VM__TRUE(x >= 2147483648.0f);
    const PtxVmU is_inside = PTX_VM__TRUE(x >= -2147483648.0f) & ~is_high;
    const PtxVmS inside = __builtin_convertvector(ptx_vm__round((PtxVmV)(PTX_VM__WORDS(x) & is_inside)), PtxVmS);
    return (PtxVmV)(((PtxVmU)inside & is_inside) | (is_low & 0x80000000u) | (is_high & 0x7fffffffu));
}

/* ---- f32 with subnormals ----------------------------------------------------------------------------------------- */

/* The mode of IEEE 754, for one operation: compilers may not move it past the two changes of mode. */
#if defined(__SSE2__)
#define PTX_VM__IEEE_MODE() _mm_setcsr(0x1f80u)
#else
#define PTX_VM__IEEE_MODE() ptx_vm__restore_mode(0)
#endif
#define PTX_VM__IN_IEEE(result, expression)              \
    {                                                    \
        __asm__ volatile("" : : : "memory");             \
        PTX_VM__IEEE_MODE();                             \
        __asm__ volatile("" : PTX_VM__REGISTER(x));      \
        __asm__ volatile("" : PTX_VM__REGISTER(y));      \
        __asm__ volatile("" : PTX_VM__REGISTER(z));      \
        result = expression;                             \
        __asm__ volatile("" : PTX_VM__REGISTER(result)); \
        (void)ptx_vm__set_mode();                        \
    }
PTX_VM__INLINE PtxVmV ptx_vm__fma_f32_bits(PtxVmV x, PtxVmV y, PtxVmV z) {
    PtxVmV result;
    PTX_VM__IN_IEEE(result, ptx_vm__fma_f32(x, y, z))
    return ptx_vm__fix_nan_f32(result);
}
PTX_VM__INLINE PtxVmV ptx_vm__add_f32_bits(PtxVmV x, PtxVmV y) { return ptx_vm__fma_f32_bits(x, ptx_vm__set(1.0f), y); }
PTX_VM__INLINE PtxVmV ptx_vm__sub_f32_bits(PtxVmV x, PtxVmV y) { return ptx_vm__fma_f32_bits(y, ptx_vm__set(-1.0f), x); }
PTX_VM__INLINE PtxVmV ptx_vm__mul_f32_bits(PtxVmV x, PtxVmV y) { return ptx_vm__fma_f32_bits(x, y, ptx_vm__set(-0.0f)); }
PTX_VM__INLINE PtxVmV ptx_vm__min_f32_bits(PtxVmV x, PtxVmV y) { return ptx_vm__fix_nan_f32(ptx_vm__min_half(x, y)); }
PTX_VM__INLINE PtxVmV ptx_vm__max_f32_bits(PtxVmV x, PtxVmV y) { return ptx_vm__fix_nan_f32(ptx_vm__max_half(x, y)); }

/* ---- halves and small floats ------------------------------------------------------------------------------------- */

/* The f32 of the size of a smaller format: its exponent and digits where those of f32 are, `bias` to be added to the exponent. */
PTX_VM__INLINE PtxVmU ptx_vm__widened(PtxVmU size, uint32_t bias) {
    const PtxVmU none = size & 0u;
    const PtxVmV least = (PtxVmV)(none + ((bias + 1) << 23));
    const PtxVmU small = PTX_VM__WORDS(ptx_vm__sub_f32((PtxVmV)(size | PTX_VM__WORDS(least)), least));
    return ptx_vm__choose(PTX_VM__TRUE(size < 0x00800000u), small, size + (bias << 23));
}
/* Half `from` (0 or 16), as f16 and bf16 are held. */
PTX_VM__INLINE PtxVmV ptx_vm__half_f16(PtxVmV word, int from) {
    const PtxVmU x = PTX_VM__WORDS(word) >> from, size = (x & 0x7fffu) << 13;
    const PtxVmU special = PTX_VM__TRUE(size >= 0x0f800000u) & (112u << 23);
    return (PtxVmV)((ptx_vm__widened(size, 112) + special) | (x & 0x8000u) << 16);
}
PTX_VM__INLINE PtxVmV ptx_vm__f32_from_f16(PtxVmV x) { return ptx_vm__fix_nan_f32(ptx_vm__half_f16(x, 0)); }
PTX_VM__INLINE PtxVmV ptx_vm__half_bf16(PtxVmV word, int from) { return (PtxVmV)(PTX_VM__WORDS(word) >> from << 16); }

/* The opposite: of an f32 that is a number of the smaller format, whose digits take the bits from `shift` on. */
PTX_VM__INLINE PtxVmU ptx_vm__narrow(PtxVmV x, uint32_t bias, int shift) {
    const PtxVmU size = PTX_VM__WORDS(x) & 0x7fffffffu, none = size & 0u;
    const PtxVmV unit = (PtxVmV)(none + ((bias + 1 + (uint32_t)shift) << 23)); /* 2^23 times the least number */
    const PtxVmU small = PTX_VM__WORDS(ptx_vm__add_f32((PtxVmV)size, unit)) - PTX_VM__WORDS(unit);
    return ptx_vm__choose(PTX_VM__TRUE(size < (bias + 1) << 23), small, (size - (bias << 23)) >> shift);
}
PTX_VM__INLINE PtxVmU ptx_vm__bits_f16(PtxVmV x) {
    const PtxVmU size = PTX_VM__WORDS(x) & 0x7fffffffu, none = size & 0u;
    const PtxVmU finite = ptx_vm__narrow(x, 112, 13) | (PTX_VM__WORDS(x) >> 16 & 0x8000u);
    const PtxVmU infinite = (none + 0x7c00u) | (PTX_VM__WORDS(x) >> 16 & 0x8000u);
    return ptx_vm__choose(
        PTX_VM__TRUE(size > 0x7f800000u), none + 0x7fffu, ptx_vm__choose(PTX_VM__TRUE(size == 0x7f800000u), infinite, finite)
    );
}
PTX_VM__INLINE PtxVmU ptx_vm__bits_bf16(PtxVmV x) {
    const PtxVmU size = PTX_VM__WORDS(x) & 0x7fffffffu;
    return ptx_vm__choose(PTX_VM__TRUE(size > 0x7f800000u), (size & 0u) + 0x7fffu, PTX_VM__WORDS(x) >> 16);
}
#define PTX_VM__PACKED(form, low, high) ((PtxVmV)(ptx_vm__bits_##form(low) | ptx_vm__bits_##form(high) << 16))
#define PTX_VM__PACKED_2(form, name, function)                                    \
    PTX_VM__INLINE PtxVmV ptx_vm__##name##_##form##x2_bits(PtxVmV x, PtxVmV y) {  \
        return PTX_VM__PACKED(                                                    \
            form, function(ptx_vm__half_##form(x, 0), ptx_vm__half_##form(y, 0)), \
            function(ptx_vm__half_##form(x, 16), ptx_vm__half_##form(y, 16))      \
        );                                                                        \
    }
#define PTX_VM__PACKED_ALL(form)                                                                                       \
    PTX_VM__PACKED_2(form, add, ptx_vm__add_##form)                                                                    \
    PTX_VM__PACKED_2(form, sub, ptx_vm__sub_##form)                                                                    \
    PTX_VM__PACKED_2(form, mul, ptx_vm__mul_##form)                                                                    \
    PTX_VM__PACKED_2(form, min, ptx_vm__min_half)                                                                      \
    PTX_VM__PACKED_2(form, max, ptx_vm__max_half)                                                                      \
    PTX_VM__INLINE PtxVmV ptx_vm__fma_##form##x2_bits(PtxVmV x, PtxVmV y, PtxVmV z) {                                  \
        return PTX_VM__PACKED(                                                                                         \
            form, ptx_vm__fma_##form(ptx_vm__half_##form(x, 0), ptx_vm__half_##form(y, 0), ptx_vm__half_##form(z, 0)), \
            ptx_vm__fma_##form(ptx_vm__half_##form(x, 16), ptx_vm__half_##form(y, 16), ptx_vm__half_##form(z, 16))     \
        );                                                                                                             \
    }
PTX_VM__PACKED_ALL(f16)
PTX_VM__PACKED_ALL(bf16)

/* The first operand is the upper half. */
PTX_VM__INLINE PtxVmV ptx_vm__f16x2_from_f32(PtxVmV x, PtxVmV y) {
    return PTX_VM__PACKED(f16, ptx_vm__round_f16(y), ptx_vm__round_f16(x));
}
PTX_VM__INLINE PtxVmV ptx_vm__bf16x2_from_f32(PtxVmV x, PtxVmV y) {
    return PTX_VM__PACKED(bf16, ptx_vm__round_bf16(y), ptx_vm__round_bf16(x));
}

PTX_VM__INLINE PtxVmV ptx_vm__byte_e4m3(PtxVmU x) {
    const PtxVmU size = (x & 0x7fu) << 20, is_nan = PTX_VM__TRUE((x & 0x7fu) == 0x7fu);
    return (PtxVmV)(ptx_vm__choose(is_nan, (x & 0u) + PTX_VM__NAN_BITS, ptx_vm__widened(size, 120) | (x & 0x80u) << 24));
}
PTX_VM__INLINE PtxVmV ptx_vm__byte_e5m2(PtxVmU x) { return ptx_vm__half_f16((PtxVmV)((x & 255u) << 8), 0); }
PTX_VM__INLINE PtxVmV ptx_vm__f16x2_from_e4m3x2(PtxVmV x) {
    return PTX_VM__PACKED(f16, ptx_vm__byte_e4m3(PTX_VM__WORDS(x)), ptx_vm__byte_e4m3(PTX_VM__WORDS(x) >> 8));
}
PTX_VM__INLINE PtxVmV ptx_vm__f16x2_from_e5m2x2(PtxVmV x) {
    return PTX_VM__PACKED(f16, ptx_vm__byte_e5m2(PTX_VM__WORDS(x)), ptx_vm__byte_e5m2(PTX_VM__WORDS(x) >> 8));
}

/* Rounded to `23 - shift` digits after the point, not beyond the largest number. As `ptx_vm__round_f16`. */
PTX_VM__INLINE PtxVmU ptx_vm__small(PtxVmV x, uint32_t bias, int shift, float largest) {
    const PtxVmU size = PTX_VM__WORDS(x) & 0x7fffffffu, none = size & 0u;
    const PtxVmU is_large = PTX_VM__TRUE((PtxVmV)size >= largest), least = none + ((bias + 1) << 23);
    PtxVmU exponent = size & 0x7f800000u;
    exponent = ptx_vm__choose(PTX_VM__TRUE(exponent < least) | is_large, least, exponent);
    const PtxVmV magic = (PtxVmV)(exponent + (((uint32_t)shift << 23) | 0x400000u));
    const PtxVmV held = (PtxVmV)ptx_vm__choose(is_large, none, size);
    PtxVmV rounded = ptx_vm__sub_f32(ptx_vm__add_f32(held, magic), magic);
    rounded = (PtxVmV)ptx_vm__choose(is_large, PTX_VM__WORDS(ptx_vm__set(largest)), PTX_VM__WORDS(rounded));
    const PtxVmU found = ptx_vm__narrow(rounded, bias, shift) | (PTX_VM__WORDS(x) >> 24 & 0x80u);
    return ptx_vm__choose(PTX_VM__TRUE(size > 0x7f800000u), none + 0x7fu, found);
}
PTX_VM__INLINE PtxVmU ptx_vm__small_e4m3(PtxVmV x) { return ptx_vm__small(x, 120, 20, 448.0f); }
PTX_VM__INLINE PtxVmU ptx_vm__small_e5m2(PtxVmV x) { return ptx_vm__small(x, 112, 21, 57344.0f); }
#define PTX_VM__TO_SMALL(form)                                                               \
    PTX_VM__INLINE PtxVmV ptx_vm__##form##x2_from_f32(PtxVmV x, PtxVmV y) {                  \
        return (PtxVmV)(ptx_vm__small_##form(y) | ptx_vm__small_##form(x) << 8);             \
    }                                                                                        \
    PTX_VM__INLINE PtxVmV ptx_vm__##form##x2_from_f16x2(PtxVmV x) {                          \
        return ptx_vm__##form##x2_from_f32(ptx_vm__half_f16(x, 16), ptx_vm__half_f16(x, 0)); \
    }
PTX_VM__TO_SMALL(e4m3)
PTX_VM__TO_SMALL(e5m2)

#endif /* PTX_VM_PACKED_H */
