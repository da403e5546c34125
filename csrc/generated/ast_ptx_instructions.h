/*
 * ast_ptx_instructions.h - the built-in instructions of AST PTX; include the header of this name in csrc/.
 *
 * Written by `python -m evo.instructions tables`; edit evo/instructions/instructions.json instead.
 */

#ifndef GENERATED_AST_PTX_INSTRUCTIONS_H
#define GENERATED_AST_PTX_INSTRUCTIONS_H

/* X(index, enumerator, PTX, operands) */
#define AST_PTX_PTX_INSTRUCTIONS(X)                                                                           \
    X(0, COPYSIGN_F32, "copysign.f32", 2)                                                                     \
    X(1, ADD_FTZ_F32, "add.ftz.f32", 2)                                                                       \
    X(2, SUB_FTZ_F32, "sub.ftz.f32", 2)                                                                       \
    X(3, MUL_FTZ_F32, "mul.ftz.f32", 2)                                                                       \
    X(4, FMA_RN_FTZ_F32, "fma.rn.ftz.f32", 3)                                                                 \
    X(5, DIV_APPROX_FTZ_F32, "div.approx.ftz.f32", 2)                                                         \
    X(6, ABS_FTZ_F32, "abs.ftz.f32", 1)                                                                       \
    X(7, NEG_FTZ_F32, "neg.ftz.f32", 1)                                                                       \
    X(8, MIN_FTZ_F32, "min.ftz.f32", 2)                                                                       \
    X(9, MAX_FTZ_F32, "max.ftz.f32", 2)                                                                       \
    X(10, RCP_APPROX_FTZ_F32, "rcp.approx.ftz.f32", 1)                                                        \
    X(11, SQRT_APPROX_FTZ_F32, "sqrt.approx.ftz.f32", 1)                                                      \
    X(12, RSQRT_APPROX_FTZ_F32, "rsqrt.approx.ftz.f32", 1)                                                    \
    X(13, SIN_APPROX_FTZ_F32, "sin.approx.ftz.f32", 1)                                                        \
    X(14, COS_APPROX_FTZ_F32, "cos.approx.ftz.f32", 1)                                                        \
    X(15, LG2_APPROX_FTZ_F32, "lg2.approx.ftz.f32", 1)                                                        \
    X(16, EX2_APPROX_FTZ_F32, "ex2.approx.ftz.f32", 1)                                                        \
    X(17, TANH_APPROX_F32, "tanh.approx.f32", 1)

/* Words, as expressions. */
#define ast_ptx_encode_ptx_instruction_copysign_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_COPYSIGN_F32, 2)
#define ast_ptx_encode_ptx_instruction_add_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_ADD_FTZ_F32, 2)
#define ast_ptx_encode_ptx_instruction_sub_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_SUB_FTZ_F32, 2)
#define ast_ptx_encode_ptx_instruction_mul_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_MUL_FTZ_F32, 2)
#define ast_ptx_encode_ptx_instruction_fma_rn_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32, 3)
#define ast_ptx_encode_ptx_instruction_div_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_DIV_APPROX_FTZ_F32, 2)
#define ast_ptx_encode_ptx_instruction_abs_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_ABS_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_neg_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_NEG_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_min_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_MIN_FTZ_F32, 2)
#define ast_ptx_encode_ptx_instruction_max_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_MAX_FTZ_F32, 2)
#define ast_ptx_encode_ptx_instruction_rcp_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_RCP_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_sqrt_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_SQRT_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_rsqrt_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_RSQRT_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_sin_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_cos_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_COS_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_lg2_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_LG2_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_ex2_approx_ftz_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_EX2_APPROX_FTZ_F32, 1)
#define ast_ptx_encode_ptx_instruction_tanh_approx_f32 \
    ast_ptx_encode_ptx_instruction(AST_PTX_PTX_INSTRUCTION_TANH_APPROX_F32, 1)

#endif /* GENERATED_AST_PTX_INSTRUCTIONS_H */
