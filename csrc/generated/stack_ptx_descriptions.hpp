/*
 * stack_ptx_descriptions.hpp - an instruction set of Stack PTX: 38 instructions on 9 stacks.
 *
 * Written by `python -m evo.instructions generate`; edit its input instead.
 */

#ifndef STACK_PTX_DESCRIPTIONS_HPP
#define STACK_PTX_DESCRIPTIONS_HPP

#include "stack_ptx.h"

namespace stack_ptx {

enum class StackType : uint16_t {
    F32 = 0,
    U32 = 1,
    S32 = 2,
    PRED = 3,
    TF32 = 4,
    F16 = 5,
    F16X2 = 6,
    U8 = 7,
    PHILOX = 8,
    NUM_ENUMS = 9
};

enum class ArgType : uint16_t {
    F32 = 0,
    TF32 = 1,
    V1_TF32 = 2,
    V2_TF32 = 3,
    V4_F32 = 4,
    S32 = 5,
    U32 = 6,
    V4_U32 = 7,
    PRED = 8,
    F16 = 9,
    F16X2 = 10,
    V2_F16 = 11,
    U8 = 12,
    V4_U8 = 13,
    PHILOX = 14,
    NUM_ENUMS = 15
};

enum class PtxInstruction : uint16_t {
    ADD_U32 = 0,
    SUB_U32 = 1,
    MUL_LO_U32 = 2,
    MAD_LO_U32 = 3,
    COPYSIGN_F32 = 4,
    ADD_FTZ_F32 = 5,
    SUB_FTZ_F32 = 6,
    MUL_FTZ_F32 = 7,
    FMA_RN_FTZ_F32 = 8,
    DIV_APPROX_FTZ_F32 = 9,
    ABS_FTZ_F32 = 10,
    NEG_FTZ_F32 = 11,
    MIN_FTZ_F32 = 12,
    MAX_FTZ_F32 = 13,
    RCP_APPROX_FTZ_F32 = 14,
    SQRT_APPROX_FTZ_F32 = 15,
    RSQRT_APPROX_FTZ_F32 = 16,
    SIN_APPROX_FTZ_F32 = 17,
    COS_APPROX_FTZ_F32 = 18,
    LG2_APPROX_FTZ_F32 = 19,
    EX2_APPROX_FTZ_F32 = 20,
    TANH_APPROX_F32 = 21,
    SETP_LT_FTZ_F32 = 22,
    SETP_EQ_U32 = 23,
    SETP_NE_U32 = 24,
    SELP_F32 = 25,
    CVT_RNA_TF32_F32 = 26,
    CVT_RN_F32_U32 = 27,
    MMA_SYNC_ALIGNED_M16N8K4_ROW_COL_F32_TF32_TF32_F32 = 28,
    F16X2_TO_V2_F16 = 29,
    F16_TO_F32 = 30,
    U32_TO_V4_U8 = 31,
    CVT_U32_U8 = 32,
    ADD_PHILOX = 33,
    XOR_PHILOX = 34,
    PHILOX_TO_U32 = 35,
    MUL_LO_PHILOX = 36,
    MUL_HI_PHILOX = 37,
    NUM_ENUMS = 38
};

enum class SpecialRegister : uint16_t {
    TID = 0,
    TID_X = 1,
    TID_Y = 2,
    TID_Z = 3,
    NTID = 4,
    NTID_X = 5,
    NTID_Y = 6,
    NTID_Z = 7,
    LANEID = 8,
    WARPID = 9,
    NWARPID = 10,
    CTAID = 11,
    CTAID_X = 12,
    CTAID_Y = 13,
    CTAID_Z = 14,
    NCTAID = 15,
    NCTAID_X = 16,
    NCTAID_Y = 17,
    NCTAID_Z = 18,
    SMID = 19,
    NSMID = 20,
    GRIDID = 21,
    LANEMASK_EQ = 22,
    LANEMASK_LE = 23,
    LANEMASK_LT = 24,
    LANEMASK_GE = 25,
    LANEMASK_GT = 26,
    CLOCK = 27,
    CLOCK_HI = 28,
    TOTAL_SMEM_SIZE = 29,
    AGGR_SMEM_SIZE = 30,
    DYNAMIC_SMEM_SIZE = 31,
    NUM_ENUMS = 32
};

/* For StackPtxRegister. */
constexpr uint16_t stack_idx(StackType stack) { return static_cast<uint16_t>(stack); }

/* Words, as expressions: for initialisers, static ones too, and for assignments. */
constexpr StackPtxInstruction encode_input(uint32_t idx) { return STACK_PTX__WORD(INPUT, 0, u, (uint32_t)(idx)); }
constexpr StackPtxInstruction encode_constant_f32(float value) { return STACK_PTX__WORD(CONSTANT, StackType::F32, f, (float)(value)); }
constexpr StackPtxInstruction encode_constant_u32(uint32_t value) { return STACK_PTX__WORD(CONSTANT, StackType::U32, u, (uint32_t)(value)); }
constexpr StackPtxInstruction encode_constant_philox(uint32_t value) { return STACK_PTX__WORD(CONSTANT, StackType::PHILOX, u, (uint32_t)(value)); }
constexpr StackPtxInstruction encode_store(StackType stack, uint32_t idx) { return STACK_PTX__WORD(STORE, stack, u, (uint32_t)(idx)); }
constexpr StackPtxInstruction encode_load(uint32_t idx) { return STACK_PTX__WORD(LOAD, 0, u, (uint32_t)(idx)); }
constexpr StackPtxInstruction encode_routine(uint32_t idx) { return STACK_PTX__WORD(ROUTINE, 0, u, (uint32_t)(idx)); }
constexpr StackPtxInstruction encode_return = STACK_PTX__WORD(RETURN, 0, u, 0);
constexpr StackPtxInstruction encode_meta_constant(uint32_t value) { return STACK_PTX__WORD(META_CONSTANT, 0, u, (uint32_t)(value)); }
constexpr StackPtxInstruction encode_meta_dup(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_DUP); }
constexpr StackPtxInstruction encode_meta_yank_dup(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_YANK_DUP); }
constexpr StackPtxInstruction encode_meta_swap(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_SWAP); }
constexpr StackPtxInstruction encode_meta_swap_with(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_SWAP_WITH); }
constexpr StackPtxInstruction encode_meta_replace(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_REPLACE); }
constexpr StackPtxInstruction encode_meta_drop(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_DROP); }
constexpr StackPtxInstruction encode_meta_clear(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_CLEAR); }
constexpr StackPtxInstruction encode_meta_rotate(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_ROTATE); }
constexpr StackPtxInstruction encode_meta_reverse(StackType stack) { return STACK_PTX__WORD(META, stack, u, STACK_PTX_META_INSTRUCTION_REVERSE); }
constexpr StackPtxInstruction encode_ptx_instruction(PtxInstruction idx) { return STACK_PTX__WORD(PTX, 0, u, static_cast<uint32_t>(idx)); }
constexpr StackPtxInstruction encode_ptx_instruction_add_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::ADD_U32);
constexpr StackPtxInstruction encode_ptx_instruction_sub_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SUB_U32);
constexpr StackPtxInstruction encode_ptx_instruction_mul_lo_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MUL_LO_U32);
constexpr StackPtxInstruction encode_ptx_instruction_mad_lo_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MAD_LO_U32);
constexpr StackPtxInstruction encode_ptx_instruction_copysign_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::COPYSIGN_F32);
constexpr StackPtxInstruction encode_ptx_instruction_add_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::ADD_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_sub_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SUB_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_mul_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MUL_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_fma_rn_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::FMA_RN_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_div_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::DIV_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_abs_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::ABS_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_neg_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::NEG_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_min_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MIN_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_max_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MAX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_rcp_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::RCP_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_sqrt_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SQRT_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_rsqrt_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::RSQRT_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_sin_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SIN_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_cos_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::COS_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_lg2_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::LG2_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_ex2_approx_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::EX2_APPROX_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_tanh_approx_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::TANH_APPROX_F32);
constexpr StackPtxInstruction encode_ptx_instruction_setp_lt_ftz_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SETP_LT_FTZ_F32);
constexpr StackPtxInstruction encode_ptx_instruction_setp_eq_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SETP_EQ_U32);
constexpr StackPtxInstruction encode_ptx_instruction_setp_ne_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SETP_NE_U32);
constexpr StackPtxInstruction encode_ptx_instruction_selp_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::SELP_F32);
constexpr StackPtxInstruction encode_ptx_instruction_cvt_rna_tf32_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::CVT_RNA_TF32_F32);
constexpr StackPtxInstruction encode_ptx_instruction_cvt_rn_f32_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::CVT_RN_F32_U32);
constexpr StackPtxInstruction encode_ptx_instruction_mma_sync_aligned_m16n8k4_row_col_f32_tf32_tf32_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MMA_SYNC_ALIGNED_M16N8K4_ROW_COL_F32_TF32_TF32_F32);
constexpr StackPtxInstruction encode_ptx_instruction_f16x2_to_v2_f16 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::F16X2_TO_V2_F16);
constexpr StackPtxInstruction encode_ptx_instruction_f16_to_f32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::F16_TO_F32);
constexpr StackPtxInstruction encode_ptx_instruction_u32_to_v4_u8 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::U32_TO_V4_U8);
constexpr StackPtxInstruction encode_ptx_instruction_cvt_u32_u8 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::CVT_U32_U8);
constexpr StackPtxInstruction encode_ptx_instruction_add_philox = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::ADD_PHILOX);
constexpr StackPtxInstruction encode_ptx_instruction_xor_philox = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::XOR_PHILOX);
constexpr StackPtxInstruction encode_ptx_instruction_philox_to_u32 = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::PHILOX_TO_U32);
constexpr StackPtxInstruction encode_ptx_instruction_mul_lo_philox = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MUL_LO_PHILOX);
constexpr StackPtxInstruction encode_ptx_instruction_mul_hi_philox = STACK_PTX__WORD(PTX, 0, u, (uint32_t)PtxInstruction::MUL_HI_PHILOX);
constexpr StackPtxInstruction encode_special_register(SpecialRegister idx) { return STACK_PTX__WORD(SPECIAL, 0, u, static_cast<uint32_t>(idx)); }
constexpr StackPtxInstruction encode_special_register_tid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::TID);
constexpr StackPtxInstruction encode_special_register_tid_x = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::TID_X);
constexpr StackPtxInstruction encode_special_register_tid_y = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::TID_Y);
constexpr StackPtxInstruction encode_special_register_tid_z = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::TID_Z);
constexpr StackPtxInstruction encode_special_register_ntid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NTID);
constexpr StackPtxInstruction encode_special_register_ntid_x = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NTID_X);
constexpr StackPtxInstruction encode_special_register_ntid_y = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NTID_Y);
constexpr StackPtxInstruction encode_special_register_ntid_z = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NTID_Z);
constexpr StackPtxInstruction encode_special_register_laneid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::LANEID);
constexpr StackPtxInstruction encode_special_register_warpid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::WARPID);
constexpr StackPtxInstruction encode_special_register_nwarpid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NWARPID);
constexpr StackPtxInstruction encode_special_register_ctaid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::CTAID);
constexpr StackPtxInstruction encode_special_register_ctaid_x = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::CTAID_X);
constexpr StackPtxInstruction encode_special_register_ctaid_y = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::CTAID_Y);
constexpr StackPtxInstruction encode_special_register_ctaid_z = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::CTAID_Z);
constexpr StackPtxInstruction encode_special_register_nctaid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NCTAID);
constexpr StackPtxInstruction encode_special_register_nctaid_x = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NCTAID_X);
constexpr StackPtxInstruction encode_special_register_nctaid_y = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NCTAID_Y);
constexpr StackPtxInstruction encode_special_register_nctaid_z = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NCTAID_Z);
constexpr StackPtxInstruction encode_special_register_smid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::SMID);
constexpr StackPtxInstruction encode_special_register_nsmid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::NSMID);
constexpr StackPtxInstruction encode_special_register_gridid = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::GRIDID);
constexpr StackPtxInstruction encode_special_register_lanemask_eq = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::LANEMASK_EQ);
constexpr StackPtxInstruction encode_special_register_lanemask_le = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::LANEMASK_LE);
constexpr StackPtxInstruction encode_special_register_lanemask_lt = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::LANEMASK_LT);
constexpr StackPtxInstruction encode_special_register_lanemask_ge = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::LANEMASK_GE);
constexpr StackPtxInstruction encode_special_register_lanemask_gt = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::LANEMASK_GT);
constexpr StackPtxInstruction encode_special_register_clock = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::CLOCK);
constexpr StackPtxInstruction encode_special_register_clock_hi = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::CLOCK_HI);
constexpr StackPtxInstruction encode_special_register_total_smem_size = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::TOTAL_SMEM_SIZE);
constexpr StackPtxInstruction encode_special_register_aggr_smem_size = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::AGGR_SMEM_SIZE);
constexpr StackPtxInstruction encode_special_register_dynamic_smem_size = STACK_PTX__WORD(SPECIAL, 0, u, (uint32_t)SpecialRegister::DYNAMIC_SMEM_SIZE);

/* The word of each PTX instruction, by its index. */
static constexpr const StackPtxInstruction ptx_instructions[] = {
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

static constexpr const char* const literal_prefixes[] = {
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

static constexpr const StackPtxArgTypeInfo arg_type_info[] = {
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

static constexpr const char* const ptx_instruction_strings[] = {
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

static constexpr const char* const ptx_instruction_display_names[] = {
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

static constexpr const StackPtxPtxInstructionDescriptor ptx_instruction_descriptors[] = {
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

static constexpr const char* const special_register_strings[] = {
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

static constexpr const char* const special_register_display_names[] = {
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

static constexpr const StackPtxSpecialRegisterDescriptor special_register_descriptors[] = {
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

static constexpr const StackPtxInstructionTraits ptx_instruction_traits[] = {
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

static constexpr const uint8_t volatile_special_registers[] = {
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

static constexpr const uint8_t constant_types[] = {
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

static constexpr const StackPtxStackInfo stack_info = {
    ptx_instruction_strings, ptx_instruction_descriptors, (size_t)PtxInstruction::NUM_ENUMS,
    special_register_strings, special_register_descriptors, (size_t)SpecialRegister::NUM_ENUMS,
    literal_prefixes, (size_t)StackType::NUM_ENUMS,
    arg_type_info, (size_t)ArgType::NUM_ENUMS
};

/* For StackPtxLanguageInfo. */
static constexpr const StackPtxTraits traits = {
    ptx_instruction_traits, volatile_special_registers, constant_types
};

} /* namespace stack_ptx */

#endif /* STACK_PTX_DESCRIPTIONS_HPP */
