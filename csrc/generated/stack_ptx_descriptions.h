/*
 * stack_ptx_descriptions.h - an instruction set of Stack PTX: 38 instructions on 9 stacks.
 *
 * Written by `python -m evo.instructions generate`; edit its input instead.
 */

#ifndef STACK_PTX_DESCRIPTIONS_H
#define STACK_PTX_DESCRIPTIONS_H

#include "stack_ptx.h"

typedef enum {
    STACK_PTX_STACK_TYPE_F32 = 0,
    STACK_PTX_STACK_TYPE_U32 = 1,
    STACK_PTX_STACK_TYPE_S32 = 2,
    STACK_PTX_STACK_TYPE_PRED = 3,
    STACK_PTX_STACK_TYPE_TF32 = 4,
    STACK_PTX_STACK_TYPE_F16 = 5,
    STACK_PTX_STACK_TYPE_F16X2 = 6,
    STACK_PTX_STACK_TYPE_U8 = 7,
    STACK_PTX_STACK_TYPE_PHILOX = 8,
    STACK_PTX_STACK_TYPE_NUM_ENUMS = 9
} StackPtxStackType;

typedef enum {
    STACK_PTX_ARG_TYPE_F32 = 0,
    STACK_PTX_ARG_TYPE_TF32 = 1,
    STACK_PTX_ARG_TYPE_V1_TF32 = 2,
    STACK_PTX_ARG_TYPE_V2_TF32 = 3,
    STACK_PTX_ARG_TYPE_V4_F32 = 4,
    STACK_PTX_ARG_TYPE_S32 = 5,
    STACK_PTX_ARG_TYPE_U32 = 6,
    STACK_PTX_ARG_TYPE_V4_U32 = 7,
    STACK_PTX_ARG_TYPE_PRED = 8,
    STACK_PTX_ARG_TYPE_F16 = 9,
    STACK_PTX_ARG_TYPE_F16X2 = 10,
    STACK_PTX_ARG_TYPE_V2_F16 = 11,
    STACK_PTX_ARG_TYPE_U8 = 12,
    STACK_PTX_ARG_TYPE_V4_U8 = 13,
    STACK_PTX_ARG_TYPE_PHILOX = 14,
    STACK_PTX_ARG_TYPE_NUM_ENUMS = 15
} StackPtxArgType;

typedef enum {
    STACK_PTX_PTX_INSTRUCTION_ADD_U32 = 0,
    STACK_PTX_PTX_INSTRUCTION_SUB_U32 = 1,
    STACK_PTX_PTX_INSTRUCTION_MUL_LO_U32 = 2,
    STACK_PTX_PTX_INSTRUCTION_MAD_LO_U32 = 3,
    STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32 = 4,
    STACK_PTX_PTX_INSTRUCTION_ADD_FTZ_F32 = 5,
    STACK_PTX_PTX_INSTRUCTION_SUB_FTZ_F32 = 6,
    STACK_PTX_PTX_INSTRUCTION_MUL_FTZ_F32 = 7,
    STACK_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32 = 8,
    STACK_PTX_PTX_INSTRUCTION_DIV_APPROX_FTZ_F32 = 9,
    STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32 = 10,
    STACK_PTX_PTX_INSTRUCTION_NEG_FTZ_F32 = 11,
    STACK_PTX_PTX_INSTRUCTION_MIN_FTZ_F32 = 12,
    STACK_PTX_PTX_INSTRUCTION_MAX_FTZ_F32 = 13,
    STACK_PTX_PTX_INSTRUCTION_RCP_APPROX_FTZ_F32 = 14,
    STACK_PTX_PTX_INSTRUCTION_SQRT_APPROX_FTZ_F32 = 15,
    STACK_PTX_PTX_INSTRUCTION_RSQRT_APPROX_FTZ_F32 = 16,
    STACK_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32 = 17,
    STACK_PTX_PTX_INSTRUCTION_COS_APPROX_FTZ_F32 = 18,
    STACK_PTX_PTX_INSTRUCTION_LG2_APPROX_FTZ_F32 = 19,
    STACK_PTX_PTX_INSTRUCTION_EX2_APPROX_FTZ_F32 = 20,
    STACK_PTX_PTX_INSTRUCTION_TANH_APPROX_F32 = 21,
    STACK_PTX_PTX_INSTRUCTION_SETP_LT_FTZ_F32 = 22,
    STACK_PTX_PTX_INSTRUCTION_SETP_EQ_U32 = 23,
    STACK_PTX_PTX_INSTRUCTION_SETP_NE_U32 = 24,
    STACK_PTX_PTX_INSTRUCTION_SELP_F32 = 25,
    STACK_PTX_PTX_INSTRUCTION_CVT_RNA_TF32_F32 = 26,
    STACK_PTX_PTX_INSTRUCTION_CVT_RN_F32_U32 = 27,
    STACK_PTX_PTX_INSTRUCTION_MMA_SYNC_ALIGNED_M16N8K4_ROW_COL_F32_TF32_TF32_F32 = 28,
    STACK_PTX_PTX_INSTRUCTION_F16X2_TO_V2_F16 = 29,
    STACK_PTX_PTX_INSTRUCTION_F16_TO_F32 = 30,
    STACK_PTX_PTX_INSTRUCTION_U32_TO_V4_U8 = 31,
    STACK_PTX_PTX_INSTRUCTION_CVT_U32_U8 = 32,
    STACK_PTX_PTX_INSTRUCTION_ADD_PHILOX = 33,
    STACK_PTX_PTX_INSTRUCTION_XOR_PHILOX = 34,
    STACK_PTX_PTX_INSTRUCTION_PHILOX_TO_U32 = 35,
    STACK_PTX_PTX_INSTRUCTION_MUL_LO_PHILOX = 36,
    STACK_PTX_PTX_INSTRUCTION_MUL_HI_PHILOX = 37,
    STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS = 38
} StackPtxPtxInstruction;

typedef enum {
    STACK_PTX_SPECIAL_REGISTER_TID = 0,
    STACK_PTX_SPECIAL_REGISTER_TID_X = 1,
    STACK_PTX_SPECIAL_REGISTER_TID_Y = 2,
    STACK_PTX_SPECIAL_REGISTER_TID_Z = 3,
    STACK_PTX_SPECIAL_REGISTER_NTID = 4,
    STACK_PTX_SPECIAL_REGISTER_NTID_X = 5,
    STACK_PTX_SPECIAL_REGISTER_NTID_Y = 6,
    STACK_PTX_SPECIAL_REGISTER_NTID_Z = 7,
    STACK_PTX_SPECIAL_REGISTER_LANEID = 8,
    STACK_PTX_SPECIAL_REGISTER_WARPID = 9,
    STACK_PTX_SPECIAL_REGISTER_NWARPID = 10,
    STACK_PTX_SPECIAL_REGISTER_CTAID = 11,
    STACK_PTX_SPECIAL_REGISTER_CTAID_X = 12,
    STACK_PTX_SPECIAL_REGISTER_CTAID_Y = 13,
    STACK_PTX_SPECIAL_REGISTER_CTAID_Z = 14,
    STACK_PTX_SPECIAL_REGISTER_NCTAID = 15,
    STACK_PTX_SPECIAL_REGISTER_NCTAID_X = 16,
    STACK_PTX_SPECIAL_REGISTER_NCTAID_Y = 17,
    STACK_PTX_SPECIAL_REGISTER_NCTAID_Z = 18,
    STACK_PTX_SPECIAL_REGISTER_SMID = 19,
    STACK_PTX_SPECIAL_REGISTER_NSMID = 20,
    STACK_PTX_SPECIAL_REGISTER_GRIDID = 21,
    STACK_PTX_SPECIAL_REGISTER_LANEMASK_EQ = 22,
    STACK_PTX_SPECIAL_REGISTER_LANEMASK_LE = 23,
    STACK_PTX_SPECIAL_REGISTER_LANEMASK_LT = 24,
    STACK_PTX_SPECIAL_REGISTER_LANEMASK_GE = 25,
    STACK_PTX_SPECIAL_REGISTER_LANEMASK_GT = 26,
    STACK_PTX_SPECIAL_REGISTER_CLOCK = 27,
    STACK_PTX_SPECIAL_REGISTER_CLOCK_HI = 28,
    STACK_PTX_SPECIAL_REGISTER_TOTAL_SMEM_SIZE = 29,
    STACK_PTX_SPECIAL_REGISTER_AGGR_SMEM_SIZE = 30,
    STACK_PTX_SPECIAL_REGISTER_DYNAMIC_SMEM_SIZE = 31,
    STACK_PTX_SPECIAL_REGISTER_NUM_ENUMS = 32
} StackPtxSpecialRegister;

/* Words, as expressions: for initialisers, static ones too, and for assignments. */
#define stack_ptx_encode_input(idx) STACK_PTX__WORD(INPUT, 0, u, (uint32_t)(idx))
#define stack_ptx_encode_constant_f32(value) STACK_PTX__WORD(CONSTANT, STACK_PTX_STACK_TYPE_F32, f, (float)(value))
#define stack_ptx_encode_constant_u32(value) STACK_PTX__WORD(CONSTANT, STACK_PTX_STACK_TYPE_U32, u, (uint32_t)(value))
#define stack_ptx_encode_constant_philox(value) STACK_PTX__WORD(CONSTANT, STACK_PTX_STACK_TYPE_PHILOX, u, (uint32_t)(value))
#define stack_ptx_encode_store(stack, idx) STACK_PTX__WORD(STORE, stack, u, (uint32_t)(idx))
#define stack_ptx_encode_load(idx) STACK_PTX__WORD(LOAD, 0, u, (uint32_t)(idx))
#define stack_ptx_encode_routine(idx) STACK_PTX__WORD(ROUTINE, 0, u, (uint32_t)(idx))
#define stack_ptx_encode_return STACK_PTX__WORD(RETURN, 0, u, 0)
#define stack_ptx_encode_meta_constant(value) STACK_PTX__WORD(META_CONSTANT, 0, u, (uint32_t)(value))
#define stack_ptx_encode_meta_dup(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_DUP)
#define stack_ptx_encode_meta_yank_dup(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_YANK_DUP)
#define stack_ptx_encode_meta_swap(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_SWAP)
#define stack_ptx_encode_meta_swap_with(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_SWAP_WITH)
#define stack_ptx_encode_meta_replace(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_REPLACE)
#define stack_ptx_encode_meta_drop(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_DROP)
#define stack_ptx_encode_meta_clear(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_CLEAR)
#define stack_ptx_encode_meta_rotate(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_ROTATE)
#define stack_ptx_encode_meta_reverse(stack) STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_REVERSE)
#define stack_ptx_encode_ptx_instruction_add_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_ADD_U32)
#define stack_ptx_encode_ptx_instruction_sub_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SUB_U32)
#define stack_ptx_encode_ptx_instruction_mul_lo_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MUL_LO_U32)
#define stack_ptx_encode_ptx_instruction_mad_lo_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MAD_LO_U32)
#define stack_ptx_encode_ptx_instruction_copysign_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32)
#define stack_ptx_encode_ptx_instruction_add_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_ADD_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_sub_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SUB_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_mul_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MUL_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_fma_rn_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_div_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_DIV_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_abs_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_neg_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_NEG_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_min_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MIN_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_max_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MAX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_rcp_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_RCP_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_sqrt_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SQRT_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_rsqrt_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_RSQRT_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_sin_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_cos_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_COS_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_lg2_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_LG2_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_ex2_approx_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_EX2_APPROX_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_tanh_approx_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_TANH_APPROX_F32)
#define stack_ptx_encode_ptx_instruction_setp_lt_ftz_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SETP_LT_FTZ_F32)
#define stack_ptx_encode_ptx_instruction_setp_eq_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SETP_EQ_U32)
#define stack_ptx_encode_ptx_instruction_setp_ne_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SETP_NE_U32)
#define stack_ptx_encode_ptx_instruction_selp_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_SELP_F32)
#define stack_ptx_encode_ptx_instruction_cvt_rna_tf32_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_CVT_RNA_TF32_F32)
#define stack_ptx_encode_ptx_instruction_cvt_rn_f32_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_CVT_RN_F32_U32)
#define stack_ptx_encode_ptx_instruction_mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MMA_SYNC_ALIGNED_M16N8K4_ROW_COL_F32_TF32_TF32_F32)
#define stack_ptx_encode_ptx_instruction_f16x2_to_v2_f16 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_F16X2_TO_V2_F16)
#define stack_ptx_encode_ptx_instruction_f16_to_f32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_F16_TO_F32)
#define stack_ptx_encode_ptx_instruction_u32_to_v4_u8 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_U32_TO_V4_U8)
#define stack_ptx_encode_ptx_instruction_cvt_u32_u8 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_CVT_U32_U8)
#define stack_ptx_encode_ptx_instruction_add_philox STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_ADD_PHILOX)
#define stack_ptx_encode_ptx_instruction_xor_philox STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_XOR_PHILOX)
#define stack_ptx_encode_ptx_instruction_philox_to_u32 STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_PHILOX_TO_U32)
#define stack_ptx_encode_ptx_instruction_mul_lo_philox STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MUL_LO_PHILOX)
#define stack_ptx_encode_ptx_instruction_mul_hi_philox STACK_PTX__WORD(PTX, 0, u, (uint32_t)STACK_PTX_PTX_INSTRUCTION_MUL_HI_PHILOX)
#define stack_ptx_encode_special_register_tid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_TID)
#define stack_ptx_encode_special_register_tid_x STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_TID_X)
#define stack_ptx_encode_special_register_tid_y STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_TID_Y)
#define stack_ptx_encode_special_register_tid_z STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_TID_Z)
#define stack_ptx_encode_special_register_ntid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NTID)
#define stack_ptx_encode_special_register_ntid_x STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NTID_X)
#define stack_ptx_encode_special_register_ntid_y STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NTID_Y)
#define stack_ptx_encode_special_register_ntid_z STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NTID_Z)
#define stack_ptx_encode_special_register_laneid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_LANEID)
#define stack_ptx_encode_special_register_warpid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_WARPID)
#define stack_ptx_encode_special_register_nwarpid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NWARPID)
#define stack_ptx_encode_special_register_ctaid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_CTAID)
#define stack_ptx_encode_special_register_ctaid_x STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_CTAID_X)
#define stack_ptx_encode_special_register_ctaid_y STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_CTAID_Y)
#define stack_ptx_encode_special_register_ctaid_z STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_CTAID_Z)
#define stack_ptx_encode_special_register_nctaid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NCTAID)
#define stack_ptx_encode_special_register_nctaid_x STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NCTAID_X)
#define stack_ptx_encode_special_register_nctaid_y STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NCTAID_Y)
#define stack_ptx_encode_special_register_nctaid_z STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NCTAID_Z)
#define stack_ptx_encode_special_register_smid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_SMID)
#define stack_ptx_encode_special_register_nsmid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_NSMID)
#define stack_ptx_encode_special_register_gridid STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_GRIDID)
#define stack_ptx_encode_special_register_lanemask_eq STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_LANEMASK_EQ)
#define stack_ptx_encode_special_register_lanemask_le STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_LANEMASK_LE)
#define stack_ptx_encode_special_register_lanemask_lt STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_LANEMASK_LT)
#define stack_ptx_encode_special_register_lanemask_ge STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_LANEMASK_GE)
#define stack_ptx_encode_special_register_lanemask_gt STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_LANEMASK_GT)
#define stack_ptx_encode_special_register_clock STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_CLOCK)
#define stack_ptx_encode_special_register_clock_hi STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_CLOCK_HI)
#define stack_ptx_encode_special_register_total_smem_size STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_TOTAL_SMEM_SIZE)
#define stack_ptx_encode_special_register_aggr_smem_size STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_AGGR_SMEM_SIZE)
#define stack_ptx_encode_special_register_dynamic_smem_size STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)STACK_PTX_SPECIAL_REGISTER_DYNAMIC_SMEM_SIZE)

/* The word of each PTX instruction, by its index. */
static const StackPtxInstruction stack_ptx_ptx_instructions[] = {
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {0}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {1}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {2}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {3}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {4}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {5}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {6}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {7}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {8}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {9}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {10}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {11}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {12}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {13}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {14}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {15}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {16}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {17}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {18}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {19}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {20}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {21}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {22}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {23}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {24}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {25}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {26}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {27}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {28}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {29}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {30}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {31}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {32}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {33}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {34}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {35}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {36}},
    {STACK_PTX_INSTRUCTION_TYPE_PTX, 0, {37}},
};

static const char* const stack_ptx_literal_prefixes[] = {
    "f32",
    "u32",
    "s32",
    "pred",
    "b32",
    "b16",
    "b32",
    "u8",
    "u32",
};

static const StackPtxArgTypeInfo stack_ptx_arg_type_info[] = {
    {0, 0},
    {4, 0},
    {4, 1},
    {4, 2},
    {0, 4},
    {2, 0},
    {1, 0},
    {1, 4},
    {3, 0},
    {5, 0},
    {6, 0},
    {5, 2},
    {7, 0},
    {7, 4},
    {8, 0},
};

static const char* const stack_ptx_ptx_instruction_strings[] = {
    "add.u32",
    "sub.u32",
    "mul.lo.u32",
    "mad.lo.u32",
    "copysign.f32",
    "add.ftz.f32",
    "sub.ftz.f32",
    "mul.ftz.f32",
    "fma.rn.ftz.f32",
    "div.approx.ftz.f32",
    "abs.ftz.f32",
    "neg.ftz.f32",
    "min.ftz.f32",
    "max.ftz.f32",
    "rcp.approx.ftz.f32",
    "sqrt.approx.ftz.f32",
    "rsqrt.approx.ftz.f32",
    "sin.approx.ftz.f32",
    "cos.approx.ftz.f32",
    "lg2.approx.ftz.f32",
    "ex2.approx.ftz.f32",
    "tanh.approx.f32",
    "setp.lt.ftz.f32",
    "setp.eq.u32",
    "setp.ne.u32",
    "selp.f32",
    "cvt.rna.tf32.f32",
    "cvt.rn.f32.u32",
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
    "mov.b32",
    "cvt.f32.f16",
    "mov.b32",
    "cvt.u32.u8",
    "add.u32",
    "xor.b32",
    "mov.b32",
    "mul.lo.u32",
    "mul.hi.u32",
};

static const char* const stack_ptx_ptx_instruction_display_names[] = {
    "add.u32",
    "sub.u32",
    "mul.lo.u32",
    "mad.lo.u32",
    "copysign.f32",
    "add.ftz.f32",
    "sub.ftz.f32",
    "mul.ftz.f32",
    "fma.rn.ftz.f32",
    "div.approx.ftz.f32",
    "abs.ftz.f32",
    "neg.ftz.f32",
    "min.ftz.f32",
    "max.ftz.f32",
    "rcp.approx.ftz.f32",
    "sqrt.approx.ftz.f32",
    "rsqrt.approx.ftz.f32",
    "sin.approx.ftz.f32",
    "cos.approx.ftz.f32",
    "lg2.approx.ftz.f32",
    "ex2.approx.ftz.f32",
    "tanh.approx.f32",
    "setp.lt.ftz.f32",
    "setp.eq.u32",
    "setp.ne.u32",
    "selp.f32",
    "cvt.rna.tf32.f32",
    "cvt.rn.f32.u32",
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
    "mov.b32",
    "cvt.f32.f16",
    "mov.b32",
    "cvt.u32.u8",
    "add.u32",
    "xor.b32",
    "mov.b32",
    "mul.lo.u32",
    "mul.hi.u32",
};

static const StackPtxPtxInstructionDescriptor stack_ptx_ptx_instruction_descriptors[] = {
    {{6, 6, 15, 15}, {6, 15}, 1, false, {{1, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 6, 15, 15}, {6, 15}, 1, false, {{1, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 6, 15, 15}, {6, 15}, 1, false, {{1, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 6, 6, 15}, {6, 15}, 1, false, {{1, 3}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 0, 15}, {0, 15}, 1, false, {{0, 3}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {0, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {0, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 15, 15}, {8, 15}, 1, false, {{0, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 6, 15, 15}, {8, 15}, 1, false, {{1, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 6, 15, 15}, {8, 15}, 1, false, {{1, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{0, 0, 8, 15}, {0, 15}, 2, false, {{0, 2}, {3, 1}, {0, 0}, {0, 0}}},
    {{0, 15, 15, 15}, {1, 15}, 1, false, {{0, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 15, 15, 15}, {0, 15}, 1, false, {{1, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{3, 2, 4, 15}, {4, 15}, 2, true, {{4, 3}, {0, 4}, {0, 0}, {0, 0}}},
    {{10, 15, 15, 15}, {11, 15}, 1, false, {{6, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{9, 15, 15, 15}, {0, 15}, 1, false, {{5, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{6, 15, 15, 15}, {13, 15}, 1, false, {{1, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{12, 15, 15, 15}, {6, 15}, 1, false, {{7, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{14, 14, 15, 15}, {14, 15}, 1, false, {{8, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{14, 14, 15, 15}, {14, 15}, 1, false, {{8, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{14, 15, 15, 15}, {6, 15}, 1, false, {{8, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {{14, 14, 15, 15}, {14, 15}, 1, false, {{8, 2}, {0, 0}, {0, 0}, {0, 0}}},
    {{14, 14, 15, 15}, {14, 15}, 1, false, {{8, 2}, {0, 0}, {0, 0}, {0, 0}}},
};

static const char* const stack_ptx_special_register_strings[] = {
    "tid",
    "tid.x",
    "tid.y",
    "tid.z",
    "ntid",
    "ntid.x",
    "ntid.y",
    "ntid.z",
    "laneid",
    "warpid",
    "nwarpid",
    "ctaid",
    "ctaid.x",
    "ctaid.y",
    "ctaid.z",
    "nctaid",
    "nctaid.x",
    "nctaid.y",
    "nctaid.z",
    "smid",
    "nsmid",
    "gridid",
    "lanemask_eq",
    "lanemask_le",
    "lanemask_lt",
    "lanemask_ge",
    "lanemask_gt",
    "clock",
    "clock_hi",
    "total_smem_size",
    "aggr_smem_size",
    "dynamic_smem_size",
};

static const char* const stack_ptx_special_register_display_names[] = {
    "tid",
    "tid.x",
    "tid.y",
    "tid.z",
    "ntid",
    "ntid.x",
    "ntid.y",
    "ntid.z",
    "laneid",
    "warpid",
    "nwarpid",
    "ctaid",
    "ctaid.x",
    "ctaid.y",
    "ctaid.z",
    "nctaid",
    "nctaid.x",
    "nctaid.y",
    "nctaid.z",
    "smid",
    "nsmid",
    "gridid",
    "lanemask_eq",
    "lanemask_le",
    "lanemask_lt",
    "lanemask_ge",
    "lanemask_gt",
    "clock",
    "clock_hi",
    "total_smem_size",
    "aggr_smem_size",
    "dynamic_smem_size",
};

static const StackPtxSpecialRegisterDescriptor stack_ptx_special_register_descriptors[] = {
    {7},
    {6},
    {6},
    {6},
    {7},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {7},
    {6},
    {6},
    {6},
    {7},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
    {6},
};

static const StackPtxInstructionTraits stack_ptx_ptx_instruction_traits[] = {
    {2, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {2, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {2, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {2, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {2, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {2, 0, 0},
    {0, 0, 0},
    {2, 0, 0},
    {2, 0, 0},
};

static const uint8_t stack_ptx_volatile_special_registers[] = {
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    1,
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    1,
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    1,
    1,
    0,
    0,
    0,
};

static const uint8_t stack_ptx_constant_types[] = {
    STACK_PTX_CONSTANT_TYPE_F32,
    STACK_PTX_CONSTANT_TYPE_U32,
    STACK_PTX_CONSTANT_TYPE_NONE,
    STACK_PTX_CONSTANT_TYPE_NONE,
    STACK_PTX_CONSTANT_TYPE_NONE,
    STACK_PTX_CONSTANT_TYPE_NONE,
    STACK_PTX_CONSTANT_TYPE_NONE,
    STACK_PTX_CONSTANT_TYPE_NONE,
    STACK_PTX_CONSTANT_TYPE_U32,
};

static const StackPtxStackInfo stack_ptx_stack_info = {
    stack_ptx_ptx_instruction_strings, stack_ptx_ptx_instruction_descriptors, (size_t)STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS,
    stack_ptx_special_register_strings, stack_ptx_special_register_descriptors, (size_t)STACK_PTX_SPECIAL_REGISTER_NUM_ENUMS,
    stack_ptx_literal_prefixes, (size_t)STACK_PTX_STACK_TYPE_NUM_ENUMS,
    stack_ptx_arg_type_info, (size_t)STACK_PTX_ARG_TYPE_NUM_ENUMS
};

/* For StackPtxLanguageInfo. */
static const StackPtxTraits stack_ptx_traits = {
    stack_ptx_ptx_instruction_traits, stack_ptx_volatile_special_registers, stack_ptx_constant_types
};

#endif /* STACK_PTX_DESCRIPTIONS_H */
