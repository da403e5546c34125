/*
 * instruction_table.h - the PTX instructions that a CPU can compute.
 *
 * Written by `python -m evo.instructions tables`; edit evo/instructions/instructions.json instead.
 */

#ifndef GENERATED_INSTRUCTION_TABLE_H
#define GENERATED_INSTRUCTION_TABLE_H

/* X(enumerator, PTX, signature, operation, derivative). Signature: types of result and operands, f, i, p, h or b.
   Derivative: in postfix form, see evo/instructions/tables.py; empty without one. */
#define INSTRUCTION_TABLE(X)                                                                                  \
    X(ADD_U32, "add.u32", "iii", ADD_U32, "")                                                                 \
    X(SUB_U32, "sub.u32", "iii", SUB_U32, "")                                                                 \
    X(MUL_LO_U32, "mul.lo.u32", "iii", MUL_LO_U32, "")                                                        \
    X(MAD_LO_U32, "mad.lo.u32", "iiii", MAD_LO_U32, "")                                                       \
    X(COPYSIGN_F32, "copysign.f32", "fff", COPYSIGN_F32, "wa1|b1|*@b")                                        \
    X(ADD_FTZ_F32, "add.ftz.f32", "fff", ADD_F32, "w=aw=b")                                                   \
    X(SUB_FTZ_F32, "sub.ftz.f32", "fff", SUB_F32, "w=aw~=b")                                                  \
    X(MUL_FTZ_F32, "mul.ftz.f32", "fff", MUL_F32, "wb@awa@b")                                                 \
    X(FMA_RN_FTZ_F32, "fma.rn.ftz.f32", "ffff", FMA_F32, "w=cwb@awa@b")                                       \
    X(DIV_APPROX_FTZ_F32, "div.approx.ftz.f32", "fff", DIV_F32, "wb/=awb/~y@b")                               \
    X(ABS_FTZ_F32, "abs.ftz.f32", "ff", ABS_F32, "wa1|@a")                                                    \
    X(NEG_FTZ_F32, "neg.ftz.f32", "ff", NEG_F32, "w~=a")                                                      \
    X(MIN_FTZ_F32, "min.ftz.f32", "fff", MIN_F32, "ab<w0?=aab<0w?=b")                                         \
    X(MAX_FTZ_F32, "max.ftz.f32", "fff", MAX_F32, "ab<w0?=bab<0w?=a")                                         \
    X(RCP_APPROX_FTZ_F32, "rcp.approx.ftz.f32", "ff", RCP_F32, "wy*~y@a")                                     \
    X(SQRT_APPROX_FTZ_F32, "sqrt.approx.ftz.f32", "ff", SQRT_F32, "wh*y/=a")                                  \
    X(RSQRT_APPROX_FTZ_F32, "rsqrt.approx.ftz.f32", "ff", RSQRT_F32, "wh*y*a/~=a")                            \
    X(SIN_APPROX_FTZ_F32, "sin.approx.ftz.f32", "ff", SIN_F32, "waC@a")                                       \
    X(COS_APPROX_FTZ_F32, "cos.approx.ftz.f32", "ff", COS_F32, "w~aS@a")                                      \
    X(LG2_APPROX_FTZ_F32, "lg2.approx.ftz.f32", "ff", LG2_F32, "wL*a/=a")                                     \
    X(EX2_APPROX_FTZ_F32, "ex2.approx.ftz.f32", "ff", EX2_F32, "wl*y@a")                                      \
    X(TANH_APPROX_F32, "tanh.approx.f32", "ff", TANH_F32, "w1yy*-@a")                                         \
    X(SETP_LT_FTZ_F32, "setp.lt.ftz.f32", "pff", SETP_LT_F32, "")                                             \
    X(SETP_EQ_U32, "setp.eq.u32", "pii", SETP_EQ_U32, "")                                                     \
    X(SETP_NE_U32, "setp.ne.u32", "pii", SETP_NE_U32, "")                                                     \
    X(SELP_F32, "selp.f32", "fffp", SELP_B32, "cw0?=ac0w?=b")                                                 \
    X(CVT_RN_F32_U32, "cvt.rn.f32.u32", "fi", F32_FROM_U32, "")                                               \
    X(CVT_F32_F16, "cvt.f32.f16", "fh", MOV, "w=a")                                                           \
    X(XOR_B32, "xor.b32", "iii", XOR_B32, "")                                                                 \
    X(MOV_B32, "mov.b32", "ii", MOV, "")                                                                      \
    X(MUL_HI_U32, "mul.hi.u32", "iii", MUL_HI_U32, "")                                                        \
    X(MIN_U32, "min.u32", "iii", MIN_U32, "")                                                                 \
    X(MAX_U32, "max.u32", "iii", MAX_U32, "")                                                                 \
    X(ADD_S32, "add.s32", "iii", ADD_U32, "")                                                                 \
    X(SUB_S32, "sub.s32", "iii", SUB_U32, "")                                                                 \
    X(MUL_LO_S32, "mul.lo.s32", "iii", MUL_LO_U32, "")                                                        \
    X(MUL_HI_S32, "mul.hi.s32", "iii", MUL_HI_S32, "")                                                        \
    X(MAD_LO_S32, "mad.lo.s32", "iiii", MAD_LO_U32, "")                                                       \
    X(ABS_S32, "abs.s32", "ii", ABS_S32, "")                                                                  \
    X(NEG_S32, "neg.s32", "ii", NEG_S32, "")                                                                  \
    X(MIN_S32, "min.s32", "iii", MIN_S32, "")                                                                 \
    X(MAX_S32, "max.s32", "iii", MAX_S32, "")                                                                 \
    X(AND_PRED, "and.pred", "ppp", AND_B32, "")                                                               \
    X(OR_PRED, "or.pred", "ppp", OR_B32, "")                                                                  \
    X(XOR_PRED, "xor.pred", "ppp", XOR_B32, "")                                                               \
    X(NOT_PRED, "not.pred", "pp", NOT_B32, "")                                                                \
    X(AND_B32, "and.b32", "iii", AND_B32, "")                                                                 \
    X(OR_B32, "or.b32", "iii", OR_B32, "")                                                                    \
    X(NOT_B32, "not.b32", "ii", NOT_B32, "")                                                                  \
    X(CNOT_B32, "cnot.b32", "ii", CNOT_B32, "")                                                               \
    X(SHL_B32, "shl.b32", "iii", SHL_B32, "")                                                                 \
    X(SHR_U32, "shr.u32", "iii", SHR_U32, "")                                                                 \
    X(SHR_S32, "shr.s32", "iii", SHR_S32, "")                                                                 \
    X(BFE_U32, "bfe.u32", "iiii", BFE_U32, "")                                                                \
    X(BFE_S32, "bfe.s32", "iiii", BFE_S32, "")                                                                \
    X(BFIND_U32, "bfind.u32", "ii", BFIND_U32, "")                                                            \
    X(BFIND_S32, "bfind.s32", "ii", BFIND_S32, "")                                                            \
    X(BFIND_SHIFTAMT_U32, "bfind.shiftamt.u32", "ii", BFIND_SHIFTAMT_U32, "")                                 \
    X(BFIND_SHIFTAMT_S32, "bfind.shiftamt.s32", "ii", BFIND_SHIFTAMT_S32, "")                                 \
    X(BREV_B32, "brev.b32", "ii", BREV_B32, "")                                                               \
    X(CLZ_B32, "clz.b32", "ii", CLZ_B32, "")                                                                  \
    X(POPC_B32, "popc.b32", "ii", POPC_B32, "")                                                               \
    X(SHF_L_CLAMP_B32, "shf.l.clamp.b32", "iiii", SHF_L_CLAMP_B32, "")                                        \
    X(SHF_L_WRAP_B32, "shf.l.wrap.b32", "iiii", SHF_L_WRAP_B32, "")                                           \
    X(SHF_R_CLAMP_B32, "shf.r.clamp.b32", "iiii", SHF_R_CLAMP_B32, "")                                        \
    X(SHF_R_WRAP_B32, "shf.r.wrap.b32", "iiii", SHF_R_WRAP_B32, "")                                           \
    X(SETP_LT_U32, "setp.lt.u32", "pii", SETP_LT_U32, "")                                                     \
    X(SETP_LE_U32, "setp.le.u32", "pii", SETP_LE_U32, "")                                                     \
    X(SETP_GT_U32, "setp.gt.u32", "pii", SETP_GT_U32, "")                                                     \
    X(SETP_GE_U32, "setp.ge.u32", "pii", SETP_GE_U32, "")                                                     \
    X(SETP_EQ_S32, "setp.eq.s32", "pii", SETP_EQ_U32, "")                                                     \
    X(SETP_NE_S32, "setp.ne.s32", "pii", SETP_NE_U32, "")                                                     \
    X(SETP_LT_S32, "setp.lt.s32", "pii", SETP_LT_S32, "")                                                     \
    X(SETP_LE_S32, "setp.le.s32", "pii", SETP_LE_S32, "")                                                     \
    X(SETP_GT_S32, "setp.gt.s32", "pii", SETP_GT_S32, "")                                                     \
    X(SETP_GE_S32, "setp.ge.s32", "pii", SETP_GE_S32, "")                                                     \
    X(SELP_U32, "selp.u32", "iiip", SELP_B32, "")                                                             \
    X(SELP_S32, "selp.s32", "iiip", SELP_B32, "")                                                             \
    X(ADD_F16, "add.f16", "hhh", ADD_F16, "w=aw=b")                                                           \
    X(SUB_F16, "sub.f16", "hhh", SUB_F16, "w=aw~=b")                                                          \
    X(MUL_F16, "mul.f16", "hhh", MUL_F16, "wb@awa@b")                                                         \
    X(FMA_RN_F16, "fma.rn.f16", "hhhh", FMA_F16, "w=cwb@awa@b")                                               \
    X(NEG_F16, "neg.f16", "hh", NEG_HALF, "w~=a")                                                             \
    X(ABS_F16, "abs.f16", "hh", ABS_HALF, "wa1|@a")                                                           \
    X(MIN_F16, "min.f16", "hhh", MIN_HALF, "ab<w0?=aab<0w?=b")                                                \
    X(MAX_F16, "max.f16", "hhh", MAX_HALF, "ab<w0?=bab<0w?=a")                                                \
    X(TANH_APPROX_F16, "tanh.approx.f16", "hh", TANH_F16, "w1yy*-@a")                                         \
    X(EX2_APPROX_F16, "ex2.approx.f16", "hh", EX2_F16, "wl*y@a")                                              \
    X(CVT_RN_F32_S32, "cvt.rn.f32.s32", "fi", F32_FROM_S32, "")                                               \
    X(CVT_RNI_FTZ_F32_F32, "cvt.rni.ftz.f32.f32", "ff", ROUND_F32, "")                                        \
    X(CVT_RMI_FTZ_F32_F32, "cvt.rmi.ftz.f32.f32", "ff", FLOOR_F32, "")                                        \
    X(CVT_RN_F16_F32, "cvt.rn.f16.f32", "hf", ROUND_F16, "w=a")                                               \
    X(MOV_B32_IF, "mov.b32", "if", MOV, "")                                                                   \
    X(MOV_B32_FI, "mov.b32", "fi", MOV, "")                                                                   \
    X(ADD_BF16, "add.bf16", "bbb", ADD_BF16, "w=aw=b")                                                        \
    X(SUB_BF16, "sub.bf16", "bbb", SUB_BF16, "w=aw~=b")                                                       \
    X(MUL_BF16, "mul.bf16", "bbb", MUL_BF16, "wb@awa@b")                                                      \
    X(FMA_RN_BF16, "fma.rn.bf16", "bbbb", FMA_BF16, "w=cwb@awa@b")                                            \
    X(NEG_BF16, "neg.bf16", "bb", NEG_HALF, "w~=a")                                                           \
    X(ABS_BF16, "abs.bf16", "bb", ABS_HALF, "wa1|@a")                                                         \
    X(MIN_BF16, "min.bf16", "bbb", MIN_HALF, "ab<w0?=aab<0w?=b")                                              \
    X(MAX_BF16, "max.bf16", "bbb", MAX_HALF, "ab<w0?=bab<0w?=a")                                              \
    X(TANH_APPROX_BF16, "tanh.approx.bf16", "bb", TANH_BF16, "w1yy*-@a")                                      \
    X(EX2_APPROX_FTZ_BF16, "ex2.approx.ftz.bf16", "bb", EX2_BF16, "wl*y@a")                                   \
    X(CVT_F32_BF16, "cvt.f32.bf16", "fb", MOV, "w=a")                                                         \
    X(CVT_RN_BF16_F32, "cvt.rn.bf16.f32", "bf", ROUND_BF16, "w=a")                                            \
    X(LOP3_B32, "lop3.b32", "iiii", LOP3_B32, "")                                                             \
    X(PRMT_B32, "prmt.b32", "iiii", PRMT_B32, "")                                                             \
    X(PRMT_B32_F4E, "prmt.b32.f4e", "iiii", PRMT_F4E, "")                                                     \
    X(PRMT_B32_B4E, "prmt.b32.b4e", "iiii", PRMT_B4E, "")                                                     \
    X(PRMT_B32_RC8, "prmt.b32.rc8", "iiii", PRMT_RC8, "")                                                     \
    X(PRMT_B32_ECL, "prmt.b32.ecl", "iiii", PRMT_ECL, "")                                                     \
    X(PRMT_B32_ECR, "prmt.b32.ecr", "iiii", PRMT_ECR, "")                                                     \
    X(PRMT_B32_RC16, "prmt.b32.rc16", "iiii", PRMT_RC16, "")                                                  \
    X(MAD_HI_U32, "mad.hi.u32", "iiii", MAD_HI_U32, "")                                                       \
    X(DP4A_U32_U32, "dp4a.u32.u32", "iiii", DP4A_U32_U32, "")                                                 \
    X(DP4A_S32_S32, "dp4a.s32.s32", "iiii", DP4A_S32_S32, "")                                                 \
    X(VABSDIFF4_U32_U32_U32_ADD, "vabsdiff4.u32.u32.u32.add", "iiii", VABSDIFF4_ADD, "")                      \
    X(ADD_RN_F32, "add.rn.f32", "iii", ADD_F32_BITS, "")                                                      \
    X(SUB_RN_F32, "sub.rn.f32", "iii", SUB_F32_BITS, "")                                                      \
    X(MUL_RN_F32, "mul.rn.f32", "iii", MUL_F32_BITS, "")                                                      \
    X(FMA_RN_F32, "fma.rn.f32", "iiii", FMA_F32_BITS, "")                                                     \
    X(MIN_F32, "min.f32", "iii", MIN_F32_BITS, "")                                                            \
    X(MAX_F32, "max.f32", "iii", MAX_F32_BITS, "")                                                            \
    X(ADD_RN_F16X2, "add.rn.f16x2", "iii", ADD_F16X2_BITS, "")                                                \
    X(SUB_RN_F16X2, "sub.rn.f16x2", "iii", SUB_F16X2_BITS, "")                                                \
    X(MUL_RN_F16X2, "mul.rn.f16x2", "iii", MUL_F16X2_BITS, "")                                                \
    X(FMA_RN_F16X2, "fma.rn.f16x2", "iiii", FMA_F16X2_BITS, "")                                               \
    X(ADD_RN_BF16X2, "add.rn.bf16x2", "iii", ADD_BF16X2_BITS, "")                                             \
    X(SUB_RN_BF16X2, "sub.rn.bf16x2", "iii", SUB_BF16X2_BITS, "")                                             \
    X(MUL_RN_BF16X2, "mul.rn.bf16x2", "iii", MUL_BF16X2_BITS, "")                                             \
    X(FMA_RN_BF16X2, "fma.rn.bf16x2", "iiii", FMA_BF16X2_BITS, "")                                            \
    X(MIN_F16X2, "min.f16x2", "iii", MIN_F16X2_BITS, "")                                                      \
    X(MAX_F16X2, "max.f16x2", "iii", MAX_F16X2_BITS, "")                                                      \
    X(MIN_BF16X2, "min.bf16x2", "iii", MIN_BF16X2_BITS, "")                                                   \
    X(MAX_BF16X2, "max.bf16x2", "iii", MAX_BF16X2_BITS, "")                                                   \
    X(CVT_RN_F16X2_F32, "cvt.rn.f16x2.f32", "iii", F16X2_FROM_F32, "")                                        \
    X(CVT_RN_BF16X2_F32, "cvt.rn.bf16x2.f32", "iii", BF16X2_FROM_F32, "")                                     \
    X(CVT_F32_F16_II, "cvt.f32.f16", "ii", F32_FROM_F16, "")                                                  \
    X(CVT_RN_F16X2_E4M3X2, "cvt.rn.f16x2.e4m3x2", "ii", F16X2_FROM_E4M3X2, "")                                \
    X(CVT_RN_F16X2_E5M2X2, "cvt.rn.f16x2.e5m2x2", "ii", F16X2_FROM_E5M2X2, "")                                \
    X(CVT_RN_SATFINITE_E4M3X2_F16X2, "cvt.rn.satfinite.e4m3x2.f16x2", "ii", E4M3X2_FROM_F16X2, "")            \
    X(CVT_RN_SATFINITE_E4M3X2_F32, "cvt.rn.satfinite.e4m3x2.f32", "iii", E4M3X2_FROM_F32, "")                 \
    X(CVT_RN_SATFINITE_E5M2X2_F16X2, "cvt.rn.satfinite.e5m2x2.f16x2", "ii", E5M2X2_FROM_F16X2, "")            \
    X(CVT_RN_SATFINITE_E5M2X2_F32, "cvt.rn.satfinite.e5m2x2.f32", "iii", E5M2X2_FROM_F32, "")                 \
    X(CVT_RNI_S32_F32, "cvt.rni.s32.f32", "ii", S32_FROM_F32, "")                                             \
    X(CVT_RN_F32_U32_II, "cvt.rn.f32.u32", "ii", F32_FROM_U32, "")                                            \
    X(CVT_RN_F32_S32_II, "cvt.rn.f32.s32", "ii", F32_FROM_S32, "")                                            \
    X(CVT_PACK_SAT_S8_S32_B32, "cvt.pack.sat.s8.s32.b32", "iiii", PACK_S8_S32, "")                            \
    X(CVT_PACK_SAT_U8_S32_B32, "cvt.pack.sat.u8.s32.b32", "iiii", PACK_U8_S32, "")

/* X(operation, name, kind, NaN), as detail/ptx_vm_operations.h has them. */
#define INSTRUCTION_OPERATIONS(X)                                                                             \
    X(ADD_U32, add_u32, COMMUTATIVE, EXACT)                                                                   \
    X(SUB_U32, sub_u32, BINARY, EXACT)                                                                        \
    X(MUL_LO_U32, mul_lo_u32, COMMUTATIVE, EXACT)                                                             \
    X(MAD_LO_U32, mad_lo_u32, MULTIPLY_ADD, EXACT)                                                            \
    X(COPYSIGN_F32, copysign_f32, BINARY, EXACT)                                                              \
    X(ADD_F32, add_f32, COMMUTATIVE, LOOSE_NAN)                                                               \
    X(SUB_F32, sub_f32, BINARY, LOOSE_NAN)                                                                    \
    X(MUL_F32, mul_f32, COMMUTATIVE, LOOSE_NAN)                                                               \
    X(FMA_F32, fma_f32, MULTIPLY_ADD, LOOSE_NAN)                                                              \
    X(DIV_F32, div_f32, BINARY, LOOSE_NAN)                                                                    \
    X(ABS_F32, abs_f32, UNARY, LOOSE_NAN)                                                                     \
    X(NEG_F32, neg_f32, UNARY, LOOSE_NAN)                                                                     \
    X(MIN_F32, min_f32, EXTREME, LOOSE_NAN)                                                                   \
    X(MAX_F32, max_f32, EXTREME, LOOSE_NAN)                                                                   \
    X(RCP_F32, rcp_f32, UNARY, LOOSE_NAN)                                                                     \
    X(SQRT_F32, sqrt_f32, UNARY, LOOSE_NAN)                                                                   \
    X(RSQRT_F32, rsqrt_f32, UNARY, LOOSE_NAN)                                                                 \
    X(SIN_F32, sin_f32, UNARY, LOOSE_NAN)                                                                     \
    X(COS_F32, cos_f32, UNARY, LOOSE_NAN)                                                                     \
    X(LG2_F32, lg2_f32, UNARY, PASSES_NAN)                                                                    \
    X(EX2_F32, ex2_f32, UNARY, PASSES_NAN)                                                                    \
    X(TANH_F32, tanh_f32, UNARY, PASSES_NAN)                                                                  \
    X(SETP_LT_F32, setp_lt_f32, BINARY, EXACT)                                                                \
    X(SETP_EQ_U32, setp_eq_u32, COMMUTATIVE, EXACT)                                                           \
    X(SETP_NE_U32, setp_ne_u32, COMMUTATIVE, EXACT)                                                           \
    X(SELP_B32, selp_b32, SELECT, EXACT)                                                                      \
    X(F32_FROM_U32, f32_from_u32, UNARY, EXACT)                                                               \
    X(XOR_B32, xor_b32, COMMUTATIVE, EXACT)                                                                   \
    X(MUL_HI_U32, mul_hi_u32, COMMUTATIVE, EXACT)                                                             \
    X(MIN_U32, min_u32, COMMUTATIVE, EXACT)                                                                   \
    X(MAX_U32, max_u32, COMMUTATIVE, EXACT)                                                                   \
    X(MUL_HI_S32, mul_hi_s32, COMMUTATIVE, EXACT)                                                             \
    X(ABS_S32, abs_s32, UNARY, EXACT)                                                                         \
    X(NEG_S32, neg_s32, UNARY, EXACT)                                                                         \
    X(MIN_S32, min_s32, COMMUTATIVE, EXACT)                                                                   \
    X(MAX_S32, max_s32, COMMUTATIVE, EXACT)                                                                   \
    X(AND_B32, and_b32, COMMUTATIVE, EXACT)                                                                   \
    X(OR_B32, or_b32, COMMUTATIVE, EXACT)                                                                     \
    X(NOT_B32, not_b32, UNARY, EXACT)                                                                         \
    X(CNOT_B32, cnot_b32, UNARY, EXACT)                                                                       \
    X(SHL_B32, shl_b32, BINARY, EXACT)                                                                        \
    X(SHR_U32, shr_u32, BINARY, EXACT)                                                                        \
    X(SHR_S32, shr_s32, BINARY, EXACT)                                                                        \
    X(BFE_U32, bfe_u32, SELECT, EXACT)                                                                        \
    X(BFE_S32, bfe_s32, SELECT, EXACT)                                                                        \
    X(BFIND_U32, bfind_u32, UNARY, EXACT)                                                                     \
    X(BFIND_S32, bfind_s32, UNARY, EXACT)                                                                     \
    X(BFIND_SHIFTAMT_U32, bfind_shiftamt_u32, UNARY, EXACT)                                                   \
    X(BFIND_SHIFTAMT_S32, bfind_shiftamt_s32, UNARY, EXACT)                                                   \
    X(BREV_B32, brev_b32, UNARY, EXACT)                                                                       \
    X(CLZ_B32, clz_b32, UNARY, EXACT)                                                                         \
    X(POPC_B32, popc_b32, UNARY, EXACT)                                                                       \
    X(SHF_L_CLAMP_B32, shf_l_clamp_b32, SELECT, EXACT)                                                        \
    X(SHF_L_WRAP_B32, shf_l_wrap_b32, SELECT, EXACT)                                                          \
    X(SHF_R_CLAMP_B32, shf_r_clamp_b32, SELECT, EXACT)                                                        \
    X(SHF_R_WRAP_B32, shf_r_wrap_b32, SELECT, EXACT)                                                          \
    X(SETP_LT_U32, setp_lt_u32, BINARY, EXACT)                                                                \
    X(SETP_LE_U32, setp_le_u32, BINARY, EXACT)                                                                \
    X(SETP_GT_U32, setp_gt_u32, BINARY, EXACT)                                                                \
    X(SETP_GE_U32, setp_ge_u32, BINARY, EXACT)                                                                \
    X(SETP_LT_S32, setp_lt_s32, BINARY, EXACT)                                                                \
    X(SETP_LE_S32, setp_le_s32, BINARY, EXACT)                                                                \
    X(SETP_GT_S32, setp_gt_s32, BINARY, EXACT)                                                                \
    X(SETP_GE_S32, setp_ge_s32, BINARY, EXACT)                                                                \
    X(ADD_F16, add_f16, COMMUTATIVE, LOOSE_NAN)                                                               \
    X(SUB_F16, sub_f16, BINARY, LOOSE_NAN)                                                                    \
    X(MUL_F16, mul_f16, COMMUTATIVE, LOOSE_NAN)                                                               \
    X(FMA_F16, fma_f16, MULTIPLY_ADD, LOOSE_NAN)                                                              \
    X(NEG_HALF, neg_half, UNARY, LOOSE_NAN)                                                                   \
    X(ABS_HALF, abs_half, UNARY, LOOSE_NAN)                                                                   \
    X(MIN_HALF, min_half, COMMUTATIVE, LOOSE_NAN)                                                             \
    X(MAX_HALF, max_half, COMMUTATIVE, LOOSE_NAN)                                                             \
    X(TANH_F16, tanh_f16, UNARY, LOOSE_NAN)                                                                   \
    X(EX2_F16, ex2_f16, UNARY, LOOSE_NAN)                                                                     \
    X(F32_FROM_S32, f32_from_s32, UNARY, EXACT)                                                               \
    X(ROUND_F32, round_f32, UNARY, LOOSE_NAN)                                                                 \
    X(FLOOR_F32, floor_f32, UNARY, LOOSE_NAN)                                                                 \
    X(ROUND_F16, round_f16, UNARY, LOOSE_NAN)                                                                 \
    X(ADD_BF16, add_bf16, COMMUTATIVE, LOOSE_NAN)                                                             \
    X(SUB_BF16, sub_bf16, BINARY, LOOSE_NAN)                                                                  \
    X(MUL_BF16, mul_bf16, COMMUTATIVE, LOOSE_NAN)                                                             \
    X(FMA_BF16, fma_bf16, MULTIPLY_ADD, LOOSE_NAN)                                                            \
    X(TANH_BF16, tanh_bf16, UNARY, LOOSE_NAN)                                                                 \
    X(EX2_BF16, ex2_bf16, UNARY, LOOSE_NAN)                                                                   \
    X(ROUND_BF16, round_bf16, UNARY, LOOSE_NAN)                                                               \
    X(LOP3_B32, lop3_b32, LOGIC, EXACT)                                                                       \
    X(PRMT_B32, prmt_b32, SELECT, EXACT)                                                                      \
    X(PRMT_F4E, prmt_f4e, SELECT, EXACT)                                                                      \
    X(PRMT_B4E, prmt_b4e, SELECT, EXACT)                                                                      \
    X(PRMT_RC8, prmt_rc8, SELECT, EXACT)                                                                      \
    X(PRMT_ECL, prmt_ecl, SELECT, EXACT)                                                                      \
    X(PRMT_ECR, prmt_ecr, SELECT, EXACT)                                                                      \
    X(PRMT_RC16, prmt_rc16, SELECT, EXACT)                                                                    \
    X(MAD_HI_U32, mad_hi_u32, MULTIPLY_ADD, EXACT)                                                            \
    X(DP4A_U32_U32, dp4a_u32_u32, MULTIPLY_ADD, EXACT)                                                        \
    X(DP4A_S32_S32, dp4a_s32_s32, MULTIPLY_ADD, EXACT)                                                        \
    X(VABSDIFF4_ADD, vabsdiff4_add, MULTIPLY_ADD, EXACT)                                                      \
    X(ADD_F32_BITS, add_f32_bits, COMMUTATIVE, EXACT)                                                         \
    X(SUB_F32_BITS, sub_f32_bits, BINARY, EXACT)                                                              \
    X(MUL_F32_BITS, mul_f32_bits, COMMUTATIVE, EXACT)                                                         \
    X(FMA_F32_BITS, fma_f32_bits, MULTIPLY_ADD, EXACT)                                                        \
    X(MIN_F32_BITS, min_f32_bits, COMMUTATIVE, EXACT)                                                         \
    X(MAX_F32_BITS, max_f32_bits, COMMUTATIVE, EXACT)                                                         \
    X(ADD_F16X2_BITS, add_f16x2_bits, COMMUTATIVE, EXACT)                                                     \
    X(SUB_F16X2_BITS, sub_f16x2_bits, BINARY, EXACT)                                                          \
    X(MUL_F16X2_BITS, mul_f16x2_bits, COMMUTATIVE, EXACT)                                                     \
    X(FMA_F16X2_BITS, fma_f16x2_bits, MULTIPLY_ADD, EXACT)                                                    \
    X(ADD_BF16X2_BITS, add_bf16x2_bits, COMMUTATIVE, EXACT)                                                   \
    X(SUB_BF16X2_BITS, sub_bf16x2_bits, BINARY, EXACT)                                                        \
    X(MUL_BF16X2_BITS, mul_bf16x2_bits, COMMUTATIVE, EXACT)                                                   \
    X(FMA_BF16X2_BITS, fma_bf16x2_bits, MULTIPLY_ADD, EXACT)                                                  \
    X(MIN_F16X2_BITS, min_f16x2_bits, COMMUTATIVE, EXACT)                                                     \
    X(MAX_F16X2_BITS, max_f16x2_bits, COMMUTATIVE, EXACT)                                                     \
    X(MIN_BF16X2_BITS, min_bf16x2_bits, COMMUTATIVE, EXACT)                                                   \
    X(MAX_BF16X2_BITS, max_bf16x2_bits, COMMUTATIVE, EXACT)                                                   \
    X(F16X2_FROM_F32, f16x2_from_f32, BINARY, EXACT)                                                          \
    X(BF16X2_FROM_F32, bf16x2_from_f32, BINARY, EXACT)                                                        \
    X(F32_FROM_F16, f32_from_f16, UNARY, EXACT)                                                               \
    X(F16X2_FROM_E4M3X2, f16x2_from_e4m3x2, UNARY, EXACT)                                                     \
    X(F16X2_FROM_E5M2X2, f16x2_from_e5m2x2, UNARY, EXACT)                                                     \
    X(E4M3X2_FROM_F16X2, e4m3x2_from_f16x2, UNARY, EXACT)                                                     \
    X(E4M3X2_FROM_F32, e4m3x2_from_f32, BINARY, EXACT)                                                        \
    X(E5M2X2_FROM_F16X2, e5m2x2_from_f16x2, UNARY, EXACT)                                                     \
    X(E5M2X2_FROM_F32, e5m2x2_from_f32, BINARY, EXACT)                                                        \
    X(S32_FROM_F32, s32_from_f32, UNARY, EXACT)                                                               \
    X(PACK_S8_S32, pack_s8_s32, SELECT, EXACT)                                                                \
    X(PACK_U8_S32, pack_u8_s32, SELECT, EXACT)

#endif /* GENERATED_INSTRUCTION_TABLE_H */
