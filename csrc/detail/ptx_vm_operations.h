/*
 * ptx_vm_operations.h - the list of what the CPU computes for PTX instructions.
 *
 * Private to ptx_vm.h and ast_ptx_interpreter.h. generated/instruction_table.h says which instruction is which operation, and
 * ptx_vm_functions.h has their functions.
 */

#ifndef PTX_VM_OPERATIONS_H
#define PTX_VM_OPERATIONS_H

/* Operations: enumerator, name of the kernels, kind, NaN, function of one vector. The kind tells how many operands there are and
   which of them a kernel can take from the accumulator. NaN tells which bits a NaN result has: LOOSE_NAN: any (float
   arithmetic); PASSES_NAN: any, or the first operand's if that is NaN; EXACT: PTX's, or the result is no float. */
#define PTX_VM__OPERATIONS(X)                                                                                \
    X(ADD_F32, add_f32, COMMUTATIVE, LOOSE_NAN, ptx_vm__add)                                                 \
    X(SUB_F32, sub_f32, BINARY, LOOSE_NAN, ptx_vm__sub)                                                      \
    X(MUL_F32, mul_f32, COMMUTATIVE, LOOSE_NAN, ptx_vm__mul)                                                 \
    X(FMA_F32, fma_f32, MULTIPLY_ADD, LOOSE_NAN, ptx_vm__fma)                                                \
    X(DIV_F32, div_f32, BINARY, LOOSE_NAN, ptx_vm__div_f32)                                                  \
    X(ABS_F32, abs_f32, UNARY, LOOSE_NAN, ptx_vm__abs_f32)                                                   \
    X(NEG_F32, neg_f32, UNARY, LOOSE_NAN, ptx_vm__neg_f32)                                                   \
    X(MIN_F32, min_f32, EXTREME, LOOSE_NAN, ptx_vm__min_raw)                                                 \
    X(MAX_F32, max_f32, EXTREME, LOOSE_NAN, ptx_vm__max_raw)                                                 \
    X(MIN_RAW_F32, min_raw_f32, BINARY, LOOSE_NAN, ptx_vm__min_raw)                                          \
    X(MAX_RAW_F32, max_raw_f32, BINARY, LOOSE_NAN, ptx_vm__max_raw)                                          \
    X(RCP_F32, rcp_f32, UNARY, LOOSE_NAN, ptx_vm__rcp_f32)                                                   \
    X(SQRT_F32, sqrt_f32, UNARY, LOOSE_NAN, ptx_vm__sqrt)                                                    \
    X(RSQRT_F32, rsqrt_f32, UNARY, LOOSE_NAN, ptx_vm__rsqrt_f32)                                             \
    X(SIN_F32, sin_f32, UNARY, LOOSE_NAN, ptx_vm__sin_f32)                                                   \
    X(COS_F32, cos_f32, UNARY, LOOSE_NAN, ptx_vm__cos_f32)                                                   \
    X(LG2_F32, lg2_f32, UNARY, PASSES_NAN, ptx_vm__lg2_f32)                                                  \
    X(EX2_F32, ex2_f32, UNARY, PASSES_NAN, ptx_vm__ex2_f32)                                                  \
    X(TANH_F32, tanh_f32, UNARY, PASSES_NAN, ptx_vm__tanh_f32)                                               \
    X(COPYSIGN_F32, copysign_f32, BINARY, EXACT, ptx_vm__copysign_f32)                                       \
    X(SETP_LT_F32, setp_lt_f32, BINARY, EXACT, ptx_vm__setp_lt_f32)                                          \
    X(SETP_EQ_U32, setp_eq_u32, COMMUTATIVE, EXACT, ptx_vm__setp_eq_u32)                                     \
    X(SETP_NE_U32, setp_ne_u32, COMMUTATIVE, EXACT, ptx_vm__setp_ne_u32)                                     \
    X(SELP_B32, selp_b32, SELECT, EXACT, ptx_vm__selp_b32)                                                   \
    X(ADD_U32, add_u32, COMMUTATIVE, EXACT, ptx_vm__add_u32)                                                 \
    X(SUB_U32, sub_u32, BINARY, EXACT, ptx_vm__sub_u32)                                                      \
    X(MUL_LO_U32, mul_lo_u32, COMMUTATIVE, EXACT, ptx_vm__mul_lo_u32)                                        \
    X(MUL_HI_U32, mul_hi_u32, COMMUTATIVE, EXACT, ptx_vm__mul_hi_u32)                                        \
    X(MAD_LO_U32, mad_lo_u32, MULTIPLY_ADD, EXACT, ptx_vm__mad_lo_u32)                                       \
    X(XOR_B32, xor_b32, COMMUTATIVE, EXACT, ptx_vm__xor)                                                     \
    X(F32_FROM_U32, f32_from_u32, UNARY, EXACT, ptx_vm__f32_from_u32)                                        \
    X(AND_B32, and_b32, COMMUTATIVE, EXACT, ptx_vm__and)                                                     \
    X(OR_B32, or_b32, COMMUTATIVE, EXACT, ptx_vm__or)                                                        \
    X(NOT_B32, not_b32, UNARY, EXACT, ptx_vm__not_b32)                                                       \
    X(CNOT_B32, cnot_b32, UNARY, EXACT, ptx_vm__cnot_b32)                                                    \
    X(SHL_B32, shl_b32, BINARY, EXACT, ptx_vm__shl_b32)                                                      \
    X(SHR_U32, shr_u32, BINARY, EXACT, ptx_vm__shr_u32)                                                      \
    X(SHR_S32, shr_s32, BINARY, EXACT, ptx_vm__shr_s32)                                                      \
    X(SHF_L_WRAP_B32, shf_l_wrap_b32, SELECT, EXACT, ptx_vm__shf_l_wrap_b32)                                 \
    X(SHF_L_CLAMP_B32, shf_l_clamp_b32, SELECT, EXACT, ptx_vm__shf_l_clamp_b32)                              \
    X(SHF_R_WRAP_B32, shf_r_wrap_b32, SELECT, EXACT, ptx_vm__shf_r_wrap_b32)                                 \
    X(SHF_R_CLAMP_B32, shf_r_clamp_b32, SELECT, EXACT, ptx_vm__shf_r_clamp_b32)                              \
    X(BREV_B32, brev_b32, UNARY, EXACT, ptx_vm__brev_b32)                                                    \
    X(POPC_B32, popc_b32, UNARY, EXACT, ptx_vm__popc_b32)                                                    \
    X(CLZ_B32, clz_b32, UNARY, EXACT, ptx_vm__clz_b32)                                                       \
    X(BFIND_U32, bfind_u32, UNARY, EXACT, ptx_vm__bfind_u32)                                                 \
    X(BFIND_S32, bfind_s32, UNARY, EXACT, ptx_vm__bfind_s32)                                                 \
    X(BFIND_SHIFTAMT_U32, bfind_shiftamt_u32, UNARY, EXACT, ptx_vm__bfind_shiftamt_u32)                      \
    X(BFIND_SHIFTAMT_S32, bfind_shiftamt_s32, UNARY, EXACT, ptx_vm__bfind_shiftamt_s32)                      \
    X(BFE_U32, bfe_u32, SELECT, EXACT, ptx_vm__bfe_u32)                                                      \
    X(BFE_S32, bfe_s32, SELECT, EXACT, ptx_vm__bfe_s32)                                                      \
    X(NEG_S32, neg_s32, UNARY, EXACT, ptx_vm__neg_s32)                                                       \
    X(ABS_S32, abs_s32, UNARY, EXACT, ptx_vm__abs_s32)                                                       \
    X(MIN_U32, min_u32, COMMUTATIVE, EXACT, ptx_vm__min_u32)                                                 \
    X(MAX_U32, max_u32, COMMUTATIVE, EXACT, ptx_vm__max_u32)                                                 \
    X(MIN_S32, min_s32, COMMUTATIVE, EXACT, ptx_vm__min_s32)                                                 \
    X(MAX_S32, max_s32, COMMUTATIVE, EXACT, ptx_vm__max_s32)                                                 \
    X(MUL_HI_S32, mul_hi_s32, COMMUTATIVE, EXACT, ptx_vm__mul_hi_s32)                                        \
    X(SETP_LT_U32, setp_lt_u32, BINARY, EXACT, ptx_vm__setp_lt_u32)                                          \
    X(SETP_LE_U32, setp_le_u32, BINARY, EXACT, ptx_vm__setp_le_u32)                                          \
    X(SETP_GT_U32, setp_gt_u32, BINARY, EXACT, ptx_vm__setp_gt_u32)                                          \
    X(SETP_GE_U32, setp_ge_u32, BINARY, EXACT, ptx_vm__setp_ge_u32)                                          \
    X(SETP_LT_S32, setp_lt_s32, BINARY, EXACT, ptx_vm__setp_lt_s32)                                          \
    X(SETP_LE_S32, setp_le_s32, BINARY, EXACT, ptx_vm__setp_le_s32)                                          \
    X(SETP_GT_S32, setp_gt_s32, BINARY, EXACT, ptx_vm__setp_gt_s32)                                          \
    X(SETP_GE_S32, setp_ge_s32, BINARY, EXACT, ptx_vm__setp_ge_s32)                                          \
    X(F32_FROM_S32, f32_from_s32, UNARY, EXACT, ptx_vm__f32_from_s32)                                        \
    /* Not PTX. Quiet: subnormals flushed, NaNs quiet. Fix: NaN has PTX's bits. Truth: pred from 32 bits. */ \
    X(QUIET_F32, quiet_f32, UNARY, LOOSE_NAN, ptx_vm__quiet_f32)                                             \
    X(FIX_NAN_F32, fix_nan_f32, UNARY, EXACT, ptx_vm__fix_nan_f32)                                           \
    X(TRUTH, truth, UNARY, EXACT, ptx_vm__truth)                                                             \
    X(OUTPUT_BITS, output_bits, OUTPUT, EXACT, ptx_vm__same)                                                 \
    X(OUTPUT_F32, output_f32, OUTPUT, EXACT, ptx_vm__fix_nan_f32)                                            \
    X(OUTPUT_TRUTH, output_truth, OUTPUT, EXACT, ptx_vm__zero_or_one)                                        \
    X(SUM_F32, sum_f32, SUM, EXACT, unused)

#define PTX_VM__ENUMERATOR(enumerator, name, kind, nan, F) PTX_VM__##enumerator,
enum { PTX_VM__OPERATIONS(PTX_VM__ENUMERATOR) PTX_VM__NUM_OPERATIONS };

/* mov is no operation: its result is its operand. */
enum { PTX_VM__MOV = PTX_VM__NUM_OPERATIONS, PTX_VM__NO_OPERATION };

#endif /* PTX_VM_OPERATIONS_H */
