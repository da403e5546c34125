/*
 * stack_ptx_set.h - an instruction set with every kind of instruction, for tests: scalars of one, two and three stacks, vectors,
 * two results and none, volatile and commutative ones, and one (quad) that takes no constants. All but pick, split, quad and
 * discard exist in PTX.
 */

#ifndef STACK_PTX_SET_H
#define STACK_PTX_SET_H

#include "stack_ptx.h"

enum { F32, U32, S32, PRED, TF32, F64, NUM_STACKS };
enum { ARG_F32, ARG_U32, ARG_S32, ARG_PRED, ARG_V1_TF32, ARG_V2_TF32, ARG_V4_F32, ARG_V4_U32, NUM_ARGS };
enum { ADD, SUB, FMA, NEG, SETP, SELP, CVT, ADD_U32, MMA, SETP_2, ACTIVEMASK, PICK, SPLIT, QUAD, DISCARD, NUM_INSTRUCTIONS };
enum { TID, TID_X, TID_W, CLOCK, NUM_SPECIAL };

static const char* const prefixes[NUM_STACKS] = {"f32", "u32", "s32", "pred", "b32", "f64"};

static const StackPtxArgTypeInfo arg_types[NUM_ARGS] = {
    {F32, 0}, {U32, 0}, {S32, 0}, {PRED, 0}, {TF32, 1}, {TF32, 2}, {F32, 4}, {U32, 4},
};

static const char* const instruction_strings[NUM_INSTRUCTIONS] = {
    "add.ftz.f32",
    "sub.ftz.f32",
    "fma.rn.ftz.f32",
    "neg.ftz.f32",
    "setp.lt.ftz.f32",
    "selp.f32",
    "cvt.rn.f32.u32",
    "add.u32",
    "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
    "setp.lt.ftz.f32",
    "activemask.b32",
    "pick.s32",
    "split.b32",
    "quad.of.a.name.longer.than.half.a.slot.f32",
    "discard.f32"
};

#define NONE_ARG NUM_ARGS
#define UNREAD_REQUIREMENTS {{0, 0}, {0, 0}, {0, 0}, {0, 0}}

static const StackPtxPtxInstructionDescriptor descriptors[NUM_INSTRUCTIONS] = {
    {{ARG_F32, ARG_F32, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, ARG_F32, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, NONE_ARG, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, NONE_ARG, NONE_ARG}, {ARG_PRED, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, ARG_PRED, NONE_ARG}, {ARG_F32, NONE_ARG}, 2, false, UNREAD_REQUIREMENTS},
    {{ARG_U32, NONE_ARG, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_U32, ARG_U32, NONE_ARG, NONE_ARG}, {ARG_U32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_V2_TF32, ARG_V1_TF32, ARG_V4_F32, NONE_ARG}, {ARG_V4_F32, NONE_ARG}, 2, true, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, NONE_ARG, NONE_ARG}, {ARG_PRED, ARG_PRED}, 1, false, UNREAD_REQUIREMENTS},
    {{NONE_ARG, NONE_ARG, NONE_ARG, NONE_ARG}, {ARG_U32, NONE_ARG}, 0, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_U32, ARG_PRED, NONE_ARG}, {ARG_S32, NONE_ARG}, 3, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, NONE_ARG, NONE_ARG, NONE_ARG}, {ARG_V2_TF32, ARG_U32}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, ARG_F32, ARG_F32}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    {{ARG_F32, ARG_F32, NONE_ARG, NONE_ARG}, {NONE_ARG, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
};

static const StackPtxInstructionTraits instruction_traits[NUM_INSTRUCTIONS] = {
    {2, 0, 0}, {0, 0, 0}, {2, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {2, 0, 0},
    {0, 0, 0}, {0, 0, 0}, {0, 1, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 1}, {0, 0, 0},
};

static const char* const special_strings[NUM_SPECIAL] = {"tid", "tid.x", "tid.w", "clock"};
static const StackPtxSpecialRegisterDescriptor special_descriptors[NUM_SPECIAL] = {
    {ARG_V4_U32},
    {ARG_U32},
    {ARG_U32},
    {ARG_U32},
};
static const uint8_t volatile_special[NUM_SPECIAL] = {0, 0, 0, 1};

static const StackPtxStackInfo stack_info = {instruction_strings, descriptors, NUM_INSTRUCTIONS, special_strings,
                                             special_descriptors, NUM_SPECIAL, prefixes,         NUM_STACKS,
                                             arg_types,           NUM_ARGS};
static const StackPtxTraits traits = {instruction_traits, volatile_special, NULL};

#endif /* STACK_PTX_SET_H */
