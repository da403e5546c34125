/*
 * ptx_code_record.h - the vector layer under ptx_vm_functions.h that records what a function does, in place of doing it.
 *
 * Private to ptx_code.c. Machine code of sin or lg2 is the record of the very function that the virtual machine runs, so both give
 * the same bits. A vector is the number of what made it: an operand, an instruction of the record, or a constant.
 */
#ifndef PTX_CODE_RECORD_H
#define PTX_CODE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Instructions: name, shape, map (1: 0F, 2: 0F38, 3: 0F3A), prefix (1: 66, 2: F3, 3: F2), opcode and its extension. A row
   serves AVX2 and AVX-512, whose opcodes are the same, unless its name ends with the one that has it. COMPARE gives a mask. */
/* clang-format off */
#define PTX_CODE__ROWS(X) \
    X(ADD_F32, COMMUTATIVE, 1, 0, 0x58, 0) X(SUB_F32, BINARY, 1, 0, 0x5c, 0) X(MUL_F32, COMMUTATIVE, 1, 0, 0x59, 0) \
    X(MUL_TO_ZERO_512, TO_ZERO, 1, 0, 0x59, 0) X(DIV_F32, BINARY, 1, 0, 0x5e, 0) X(MIN_F32, BINARY, 1, 0, 0x5d, 0) \
    X(MAX_F32, BINARY, 1, 0, 0x5f, 0) X(RANGE_F32_512, BINARY_IMM, 3, 1, 0x50, 0) X(SQRT_F32, UNARY, 1, 0, 0x51, 0) \
    X(ROUND_F32, UNARY_IMM, 3, 1, 0x08, 0) X(FROM_S32, UNARY, 1, 0, 0x5b, 0) X(FROM_U32_512, UNARY, 1, 3, 0x7a, 0) \
    X(FMA_F32, FMA, 2, 1, 0x98, 0) X(FMS_F32, FMA, 2, 1, 0x9a, 0) X(AND, COMMUTATIVE, 1, 1, 0xdb, 0) \
    X(OR, COMMUTATIVE, 1, 1, 0xeb, 0) X(XOR, COMMUTATIVE, 1, 1, 0xef, 0) X(ADD_U32, COMMUTATIVE, 1, 1, 0xfe, 0) \
    X(SUB_U32, BINARY, 1, 1, 0xfa, 0) X(MUL_LO_U32, COMMUTATIVE, 2, 1, 0x40, 0) X(MIN_U32, COMMUTATIVE, 2, 1, 0x3b, 0) \
    X(MAX_U32, COMMUTATIVE, 2, 1, 0x3f, 0) X(MIN_S32, COMMUTATIVE, 2, 1, 0x39, 0) X(MAX_S32, COMMUTATIVE, 2, 1, 0x3d, 0) \
    X(ABS_S32, UNARY, 2, 1, 0x1e, 0) X(SHL, BINARY, 2, 1, 0x47, 0) X(SHR_U32, BINARY, 2, 1, 0x45, 0) \
    X(SHR_S32, BINARY, 2, 1, 0x46, 0) X(SHL_BY, SHIFT, 1, 1, 0x72, 6) X(SHR_U32_BY, SHIFT, 1, 1, 0x72, 2) \
    X(SHR_S32_BY, SHIFT, 1, 1, 0x72, 4) X(COMPARE_F32, COMPARE, 1, 0, 0xc2, 0) X(COMPARE_U32_512, COMPARE, 3, 1, 0x1e, 0) \
    X(COMPARE_S32_512, COMPARE, 3, 1, 0x1f, 0) X(EQUAL_U32_AVX2, COMMUTATIVE, 1, 1, 0x76, 0) \
    X(GREATER_S32_AVX2, BINARY, 1, 1, 0x66, 0) X(SELECT_512, SELECT, 2, 1, 0x65, 0) X(SELECT_AVX2, SELECT, 3, 1, 0x4a, 0) \
    X(FROM_MASK_512, FROM_MASK, 2, 2, 0x38, 0) X(TO_MASK_512, TO_MASK, 2, 2, 0x39, 0) X(LOAD, UNARY, 1, 0, 0x10, 0) \
    X(STORE, UNARY, 1, 0, 0x11, 0) X(BROADCAST, UNARY, 2, 1, 0x18, 0)
/* clang-format on */

#define PTX_CODE__ROW_NAME(name, shape, map, prefix, opcode, extension) PTX_CODE__##name,
enum { PTX_CODE__ROWS(PTX_CODE__ROW_NAME) PTX_CODE__NUM_ROWS };

#define PTX_CODE__MAX_INSTRUCTIONS 48u /* of one operation */
#define PTX_CODE__FIRST_CONSTANT 64u   /* numbers below: three operands, then instructions */
#define PTX_CODE__MAX_CONSTANTS (256u - PTX_CODE__FIRST_CONSTANT)

/* last: bit k: nothing later reads what source k is. */
typedef struct PtxCodeInstruction {
    uint8_t row, immediate, num_sources, last;
    uint8_t sources[3];
} PtxCodeInstruction;

typedef struct PtxCodeRecord {
    uint32_t num_instructions; /* 0: there is no code for the operation */
    PtxCodeInstruction instructions[PTX_CODE__MAX_INSTRUCTIONS];
} PtxCodeRecord;

typedef struct PtxCodeRecorder {
    bool is_512;
    PtxCodeRecord* record;
    uint32_t num_constants;
    uint32_t constants[PTX_CODE__MAX_CONSTANTS];
} PtxCodeRecorder;

static PtxCodeRecorder ptx_code__recorder;

#define PTX_VM__INLINE static inline __attribute__((unused))
typedef struct PtxVmV {
    uint8_t number;
} PtxVmV;
typedef PtxVmV PtxVmM;

static PtxVmV ptx_code__add(uint8_t row, uint8_t immediate, uint8_t num_sources, PtxVmV a, PtxVmV b, PtxVmV c) {
    PtxCodeRecord* record = ptx_code__recorder.record;
    const PtxCodeInstruction instruction = {row, immediate, num_sources, 0, {a.number, b.number, c.number}};
    const PtxVmV result = {(uint8_t)(3 + record->num_instructions)};
    record->instructions[record->num_instructions++] = instruction;
    return result;
}

PTX_VM__INLINE PtxVmV ptx_vm__set_bits(uint32_t bits) {
    PtxCodeRecorder* recorder = &ptx_code__recorder;
    uint32_t i = 0;
    while (i < recorder->num_constants && recorder->constants[i] != bits) i++;
    if (i == recorder->num_constants) recorder->constants[recorder->num_constants++] = bits;
    const PtxVmV constant = {(uint8_t)(PTX_CODE__FIRST_CONSTANT + i)};
    return constant;
}
PTX_VM__INLINE PtxVmV ptx_vm__set(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return ptx_vm__set_bits(bits);
}
PTX_VM__INLINE PtxVmV ptx_vm__opaque(float value) { return ptx_vm__set(value); }

#define PTX_CODE__UNARY(name, row, immediate)                                                                        \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a) { return ptx_code__add(PTX_CODE__##row, immediate, 1, a, a, a); }
#define PTX_CODE__BINARY(name, row, immediate)                                                                                 \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a, PtxVmV b) { return ptx_code__add(PTX_CODE__##row, immediate, 2, a, b, b); }
#define PTX_CODE__SHIFT(name, row) \
    PTX_VM__INLINE PtxVmV ptx_vm__##name(PtxVmV a, unsigned n) { return ptx_code__add(PTX_CODE__##row, (uint8_t)n, 1, a, a, a); }
PTX_CODE__BINARY(add_f32, ADD_F32, 0)
PTX_CODE__BINARY(sub_f32, SUB_F32, 0)
PTX_CODE__BINARY(mul_f32, MUL_F32, 0)
PTX_CODE__BINARY(div, DIV_F32, 0)
PTX_CODE__BINARY(min_raw_f32, MIN_F32, 0)
PTX_CODE__BINARY(max_raw_f32, MAX_F32, 0)
PTX_CODE__UNARY(sqrt_f32, SQRT_F32, 0)
PTX_CODE__UNARY(round, ROUND_F32, 8) /* to nearest, without exceptions */
PTX_CODE__UNARY(f32_from_s32, FROM_S32, 0)
PTX_CODE__BINARY(and_b32, AND, 0)
PTX_CODE__BINARY(or_b32, OR, 0)
PTX_CODE__BINARY(xor_b32, XOR, 0)
PTX_CODE__BINARY(add_u32, ADD_U32, 0)
PTX_CODE__BINARY(sub_u32, SUB_U32, 0)
PTX_CODE__BINARY(mul_lo_u32, MUL_LO_U32, 0)
PTX_CODE__BINARY(min_u32, MIN_U32, 0)
PTX_CODE__BINARY(max_u32, MAX_U32, 0)
PTX_CODE__BINARY(min_s32, MIN_S32, 0)
PTX_CODE__BINARY(max_s32, MAX_S32, 0)
PTX_CODE__UNARY(abs_s32, ABS_S32, 0)
PTX_CODE__BINARY(shl_b32, SHL, 0)
PTX_CODE__BINARY(shr_u32, SHR_U32, 0)
PTX_CODE__BINARY(shr_s32, SHR_S32, 0)
PTX_CODE__SHIFT(shift_left, SHL_BY)
PTX_CODE__SHIFT(shift_right, SHR_U32_BY)
PTX_CODE__SHIFT(shift_right_signed, SHR_S32_BY)
PTX_CODE__BINARY(less, COMPARE_F32, 0x11)
PTX_CODE__BINARY(equal, COMPARE_F32, 0)

PTX_VM__INLINE PtxVmV ptx_vm__fma_f32(PtxVmV a, PtxVmV b, PtxVmV c) { return ptx_code__add(PTX_CODE__FMA_F32, 0, 3, a, b, c); }
PTX_VM__INLINE PtxVmM ptx_vm__is_nan(PtxVmV a) { return ptx_code__add(PTX_CODE__COMPARE_F32, 3, 2, a, a, a); }
PTX_VM__INLINE PtxVmV ptx_vm__neg_s32(PtxVmV a) { return ptx_vm__sub_u32(ptx_vm__set_bits(0), a); }
PTX_VM__INLINE PtxVmV ptx_vm__not_b32(PtxVmV a) { return ptx_vm__xor_b32(a, ptx_vm__set_bits(0xffffffffu)); }
PTX_VM__INLINE PtxVmV ptx_vm__from_mask(PtxVmM m) {
    return ptx_code__recorder.is_512 ? ptx_code__add(PTX_CODE__FROM_MASK_512, 0, 1, m, m, m) : m;
}
PTX_VM__INLINE PtxVmM ptx_vm__to_mask(PtxVmV v) {
    return ptx_code__recorder.is_512 ? ptx_code__add(PTX_CODE__TO_MASK_512, 0, 1, v, v, v) : v;
}
PTX_VM__INLINE PtxVmV ptx_vm__select(PtxVmM m, PtxVmV yes, PtxVmV no) {
    return ptx_code__add(ptx_code__recorder.is_512 ? PTX_CODE__SELECT_512 : PTX_CODE__SELECT_AVX2, 0, 3, no, yes, m);
}
PTX_VM__INLINE PtxVmM ptx_vm__equal_u32(PtxVmV a, PtxVmV b) {
    return ptx_code__add(ptx_code__recorder.is_512 ? PTX_CODE__COMPARE_U32_512 : PTX_CODE__EQUAL_U32_AVX2, 0, 2, a, b, b);
}

/* What ptx_vm_simd.h has at each of the two levels. */
PTX_VM__INLINE PtxVmV ptx_vm__toward_zero(PtxVmV product, PtxVmV a, PtxVmV b) {
    if (ptx_code__recorder.is_512) return ptx_code__add(PTX_CODE__MUL_TO_ZERO_512, 0, 2, a, b, b);
    const PtxVmV error = ptx_code__add(PTX_CODE__FMS_F32, 0, 3, a, b, product);
    return ptx_vm__add_u32(product, ptx_vm__shift_right_signed(error, 31));
}
PTX_VM__INLINE PtxVmV ptx_vm__f32_from_u32(PtxVmV a) {
    if (ptx_code__recorder.is_512) return ptx_code__add(PTX_CODE__FROM_U32_512, 0, 1, a, a, a);
    const PtxVmV high = ptx_vm__f32_from_s32(ptx_vm__shift_right(a, 16));
    const PtxVmV low = ptx_vm__f32_from_s32(ptx_vm__and_b32(a, ptx_vm__set_bits(0xffffu)));
    return ptx_vm__add_f32(ptx_vm__mul_f32(high, ptx_vm__set(65536.0f)), low);
}
PTX_VM__INLINE PtxVmV ptx_vm__number_of_two(PtxVmV a, PtxVmV b, PtxVmV extreme) {
    return ptx_vm__select(ptx_vm__is_nan(b), a, ptx_vm__select(ptx_vm__is_nan(a), b, extreme));
}
PTX_VM__INLINE PtxVmV ptx_vm__min_f32(PtxVmV a, PtxVmV b) {
    if (ptx_code__recorder.is_512) return ptx_code__add(PTX_CODE__RANGE_F32_512, 4, 2, a, b, b);
    return ptx_vm__number_of_two(a, b, ptx_vm__or_b32(ptx_vm__min_raw_f32(a, b), ptx_vm__min_raw_f32(b, a)));
}
PTX_VM__INLINE PtxVmV ptx_vm__max_f32(PtxVmV a, PtxVmV b) {
    if (ptx_code__recorder.is_512) return ptx_code__add(PTX_CODE__RANGE_F32_512, 5, 2, a, b, b);
    return ptx_vm__number_of_two(a, b, ptx_vm__and_b32(ptx_vm__max_raw_f32(a, b), ptx_vm__max_raw_f32(b, a)));
}

/* Comparisons of integers: a < b, with operands exchanged or inverted for the other three. */
PTX_VM__INLINE PtxVmV ptx_code__less_s32(PtxVmV a, PtxVmV b) {
    if (ptx_code__recorder.is_512) return ptx_vm__from_mask(ptx_code__add(PTX_CODE__COMPARE_S32_512, 1, 2, a, b, b));
    return ptx_code__add(PTX_CODE__GREATER_S32_AVX2, 0, 2, b, a, a);
}
PTX_VM__INLINE PtxVmV ptx_code__less_u32(PtxVmV a, PtxVmV b) {
    if (ptx_code__recorder.is_512) return ptx_vm__from_mask(ptx_code__add(PTX_CODE__COMPARE_U32_512, 1, 2, a, b, b));
    const PtxVmV sign = ptx_vm__set_bits(0x80000000u);
    return ptx_code__less_s32(ptx_vm__xor_b32(a, sign), ptx_vm__xor_b32(b, sign));
}
#define PTX_CODE__COMPARISONS(type)                                                                                           \
    PTX_VM__INLINE PtxVmV ptx_vm__setp_lt_##type(PtxVmV a, PtxVmV b) { return ptx_code__less_##type(a, b); }                  \
    PTX_VM__INLINE PtxVmV ptx_vm__setp_gt_##type(PtxVmV a, PtxVmV b) { return ptx_code__less_##type(b, a); }                  \
    PTX_VM__INLINE PtxVmV ptx_vm__setp_ge_##type(PtxVmV a, PtxVmV b) { return ptx_vm__not_b32(ptx_code__less_##type(a, b)); } \
    PTX_VM__INLINE PtxVmV ptx_vm__setp_le_##type(PtxVmV a, PtxVmV b) { return ptx_vm__not_b32(ptx_code__less_##type(b, a)); }
PTX_CODE__COMPARISONS(u32)
PTX_CODE__COMPARISONS(s32)

#endif /* PTX_CODE_RECORD_H */
