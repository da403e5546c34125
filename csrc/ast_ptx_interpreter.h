/*
 * ast_ptx_interpreter.h - what an AST PTX program computes, on a CPU.
 *
 * Programs use the instructions of ast_ptx_instructions.h. Needs neither a GPU nor the implementation of ast_ptx.h, only libc
 * and libm. All functions are static: any number of files may include it.
 *
 * Usage
 *
 *     #include "ast_ptx_interpreter.h"
 *
 *     const float inputs[] = {3.0f, 4.0f};
 *     float value;
 *     ast_ptx_interpret(program, NULL, 0, inputs, 2, &value);
 *
 * Link with libm: -lm on Linux.
 *
 * Options, defined before the first inclusion
 *
 *     AST_PTX_INTERPRETER_BLOCK  32   points computed together
 *     AST_PTX_DEBUG                   errors assert where they are found
 *     and the limits of ast_ptx.h
 *
 * Memory and threads. Nothing is allocated and there is no global state. A call takes 4 * AST_PTX_STACK_DEPTH *
 * AST_PTX_INTERPRETER_BLOCK bytes of the C stack (32 KiB). No pointer may be NULL unless its comment says so.
 *
 * Arithmetic is that of the PTX ISA, version 9.1, with its freedom used as follows. It relies on the floating-point
 * environment that a C program starts with and on IEEE arithmetic: do not compile with -ffast-math.
 *
 *   .ftz           Subnormal operands and results become zeros of their sign. Results are tested after rounding.
 *                  copysign.f32 and tanh.approx.f32 have no .ftz and keep subnormals.
 *   NaN            A result that is NaN is 0x7fffffff; inputs, constants and results of copysign keep their bits.
 *   add, sub, mul, fma, abs, neg, min, max, copysign
 *                  are exact or correctly rounded. min and max: a number beats a NaN, -0 is less than +0. copysign takes the
 *                  sign of its first operand and the magnitude of its second.
 *   div            a times 1/b, each rounded: within 2 ulp for |b| up to 2^126, and 0 or NaN past that, as in the ISA.
 *   rcp, sqrt      correctly rounded.
 *   sin, cos       reduced as on the GPU: the fraction of x times 0.15915494 (1/2pi) in f32 rounded toward zero. They are within
 *                  the ISA's error; past 2^23 turns they are 0 and 1.
 *   rsqrt, lg2, ex2, tanh
 *                  the f64 function rounded to f32: within 0.6 ulp, far inside the ISA's errors.
 */

#ifndef AST_PTX_INTERPRETER_H
#define AST_PTX_INTERPRETER_H

#include "ast_ptx.h"
#include "ast_ptx_instructions.h"

/* The value of a program at one point. `instructions` and each routine end with a RETURN: without one, memory past their end is
   read. `routines` and `inputs` may be NULL if there are none.
   Errors: those of ast_ptx_compile; UNSUPPORTED_INSTRUCTION for an index past the table's end. */
static inline AstPtxResult ast_ptx_interpret(
    const AstPtxInstruction* instructions,
    const AstPtxInstruction* const* routines,
    size_t num_routines,
    const float* inputs,
    size_t num_inputs,
    float* value_out
);

/* The values of a program of known size at many points. `inputs` holds an array of num_points values for each input; one that
   the program does not read may be NULL. values_out has num_points values and may be one of the inputs, but must not partly
   overlap one. `place_out` may be NULL and is written only when a word is wrong; a word that reads a NULL is INVALID_VALUE. */
static inline AstPtxResult ast_ptx_interpret_program(
    const AstPtxProgram* program,
    const float* const* inputs,
    size_t num_inputs,
    size_t num_points,
    float* values_out,
    AstPtxPlace* place_out
);

/* ---- implementation ---------------------------------------------------------------------------------------------- */

#include <float.h>
#include <math.h>
#include <string.h>

#ifndef AST_PTX_INTERPRETER_BLOCK
#define AST_PTX_INTERPRETER_BLOCK 32
#endif

/* ---- bits ---- */

static uint32_t ast_ptx__bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float ast_ptx__from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t ast_ptx__bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double ast_ptx__from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A subnormal becomes zero of its sign. */
static float ast_ptx__flush(float x) {
    const uint32_t bits = ast_ptx__bits(x);
    return ast_ptx__from_bits((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

static float ast_ptx__fix_nan(float x) { return x == x ? x : ast_ptx__from_bits(0x7fffffffu); }

/* What an .ftz instruction gives for a result that is an f32 already. */
static float ast_ptx__result(float x) { return ast_ptx__fix_nan(ast_ptx__flush(x)); }

/* What an .ftz instruction gives for a result in f64, exact or rounded so that rounding it again does no harm. Without an end
   to exponents, what lies below 2^-126 - 2^-151 (half a step of 24 bits) is rounded to less than 2^-126, and flushed; the
   conversion, which knows subnormals and has larger steps there, would round some of it up to 2^-126. */
static float ast_ptx__round(double x) {
    const float rounded = (float)x;
    if (fabs(x) < FLT_MIN * (1.0 - 1.0 / 33554432.0)) {
        return ast_ptx__from_bits(ast_ptx__bits(rounded) & 0x80000000u);
    }
    return ast_ptx__result(rounded);
}

/* ---- instructions: operands as they are on the stack ---- */

static float ast_ptx__copysign(float a, float b) {
    return ast_ptx__from_bits((ast_ptx__bits(a) & 0x80000000u) | (ast_ptx__bits(b) & 0x7fffffffu));
}

static float ast_ptx__add(float a, float b) {
    /* A sum below 2^-126 is exact. */
    return ast_ptx__result(ast_ptx__flush(a) + ast_ptx__flush(b));
}

static float ast_ptx__sub(float a, float b) { return ast_ptx__result(ast_ptx__flush(a) - ast_ptx__flush(b)); }

static float ast_ptx__mul(float a, float b) {
    /* 24 by 24 bits: exact in 53. */
    return ast_ptx__round((double)ast_ptx__flush(a) * (double)ast_ptx__flush(b));
}

static float ast_ptx__fma(float a, float b, float c) {
    /* The product is exact, its sum with c is rounded to odd: the last bit then tells, as a sticky bit would, that something
       was lost, and rounding to f32 is right. The loss is Knuth's two-sum; fusing a product with a sum changes none of this. */
    const double product = (double)ast_ptx__flush(a) * (double)ast_ptx__flush(b);
    const double addend = (double)ast_ptx__flush(c);
    double sum = product + addend;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part); /* NaN if anything is infinite or NaN */
    if (lost > 0.0 || lost < 0.0) {
        const uint64_t bits = ast_ptx__bits_f64(sum);
        if ((bits & 1u) == 0) {
            sum = ast_ptx__from_bits_f64((lost > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1);
        }
    }
    return ast_ptx__round(sum);
}

static float ast_ptx__rcp(float a) { return ast_ptx__result(1.0f / ast_ptx__flush(a)); }

static float ast_ptx__div(float a, float b) { return ast_ptx__mul(a, ast_ptx__rcp(b)); }

static float ast_ptx__abs(float a) {
    return ast_ptx__fix_nan(ast_ptx__from_bits(ast_ptx__bits(ast_ptx__flush(a)) & 0x7fffffffu));
}

static float ast_ptx__neg(float a) {
    return ast_ptx__fix_nan(ast_ptx__from_bits(ast_ptx__bits(ast_ptx__flush(a)) ^ 0x80000000u));
}

/* 1 if the sign bit is set. */
static uint32_t ast_ptx__sign(float x) { return ast_ptx__bits(x) >> 31; }

static float ast_ptx__min(float a, float b) {
    a = ast_ptx__result(a);
    b = ast_ptx__result(b);
    if (a != a || b != b) {
        return a != a ? b : a;
    }
    return a < b || (a == b && ast_ptx__sign(a)) ? a : b;
}

static float ast_ptx__max(float a, float b) {
    a = ast_ptx__result(a);
    b = ast_ptx__result(b);
    if (a != a || b != b) {
        return a != a ? b : a;
    }
    return a > b || (a == b && !ast_ptx__sign(a)) ? a : b;
}

static float ast_ptx__sqrt(float a) { return ast_ptx__round(sqrt((double)ast_ptx__flush(a))); }

static float ast_ptx__rsqrt(float a) { return ast_ptx__round(1.0 / sqrt((double)ast_ptx__flush(a))); }

/* |x| in turns, less the nearest integer: in [-1/2, 1/2], NaN for what is not finite. */
static double ast_ptx__turns(float x) {
    const double magnitude = fabs((double)ast_ptx__flush(x));
    const double product = magnitude * (double)0.15915494f; /* exact */
    /* Toward zero to 24 bits; a flush follows. */
    const double turns = ast_ptx__from_bits_f64(ast_ptx__bits_f64(product) & ~(uint64_t)0x1fffffff);
    if (!(magnitude <= FLT_MAX)) {
        return magnitude - magnitude;
    }
    return turns < FLT_MIN ? 0.0 : turns - floor(turns + 0.5);
}

/* sin(2 pi r) for r in [-1/4, 1/4]. */
static double ast_ptx__sin_turns(double r) { return sin(6.283185307179586 * r); }

static float ast_ptx__sin(float a) {
    const double turns = ast_ptx__turns(a);
    const double r = turns > 0.25 ? 0.5 - turns : turns < -0.25 ? -0.5 - turns : turns;
    const float of_magnitude = ast_ptx__round(ast_ptx__sin_turns(r));
    return ast_ptx__sign(a) ? ast_ptx__neg(of_magnitude) : of_magnitude;
}

static float ast_ptx__cos(float a) { return ast_ptx__round(ast_ptx__sin_turns(0.25 - fabs(ast_ptx__turns(a)))); }

static float ast_ptx__lg2(float a) { return ast_ptx__round(log2((double)ast_ptx__flush(a))); }

static float ast_ptx__ex2(float a) { return ast_ptx__round(exp2((double)ast_ptx__flush(a))); }

static float ast_ptx__tanh(float a) {
    /* Small arguments are their own result: what tanh takes off is less than half an ulp. */
    return fabsf(a) < 0.000244140625f ? a : ast_ptx__fix_nan((float)tanh((double)a));
}

/* ---- runs ---- */

/* Replaces the operands of an instruction by its result, at each point. a, b and c are the first three values from the first
   operand up; those that are not operands are not read. */
static void ast_ptx__apply(uint32_t instruction_idx, float* a, const float* b, const float* c, size_t num_points) {
    size_t i;
#define AST_PTX__EACH(value)           \
    for (i = 0; i < num_points; ++i) { \
        a[i] = value;                  \
    }                                  \
    break
    switch ((AstPtxPtxInstruction)instruction_idx) {
        case AST_PTX_PTX_INSTRUCTION_COPYSIGN_F32: AST_PTX__EACH(ast_ptx__copysign(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_ADD_FTZ_F32: AST_PTX__EACH(ast_ptx__add(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_SUB_FTZ_F32: AST_PTX__EACH(ast_ptx__sub(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_MUL_FTZ_F32: AST_PTX__EACH(ast_ptx__mul(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32: AST_PTX__EACH(ast_ptx__fma(a[i], b[i], c[i]));
        case AST_PTX_PTX_INSTRUCTION_DIV_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__div(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_ABS_FTZ_F32: AST_PTX__EACH(ast_ptx__abs(a[i]));
        case AST_PTX_PTX_INSTRUCTION_NEG_FTZ_F32: AST_PTX__EACH(ast_ptx__neg(a[i]));
        case AST_PTX_PTX_INSTRUCTION_MIN_FTZ_F32: AST_PTX__EACH(ast_ptx__min(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_MAX_FTZ_F32: AST_PTX__EACH(ast_ptx__max(a[i], b[i]));
        case AST_PTX_PTX_INSTRUCTION_RCP_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__rcp(a[i]));
        case AST_PTX_PTX_INSTRUCTION_SQRT_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__sqrt(a[i]));
        case AST_PTX_PTX_INSTRUCTION_RSQRT_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__rsqrt(a[i]));
        case AST_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__sin(a[i]));
        case AST_PTX_PTX_INSTRUCTION_COS_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__cos(a[i]));
        case AST_PTX_PTX_INSTRUCTION_LG2_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__lg2(a[i]));
        case AST_PTX_PTX_INSTRUCTION_EX2_APPROX_FTZ_F32: AST_PTX__EACH(ast_ptx__ex2(a[i]));
        case AST_PTX_PTX_INSTRUCTION_TANH_APPROX_F32: AST_PTX__EACH(ast_ptx__tanh(a[i]));
        case AST_PTX_PTX_INSTRUCTION_NUM_ENUMS: break; /* no program that passed its check contains it */
    }
#undef AST_PTX__EACH
}

/* Where the values of the inputs lie: an array for each, or one value each. */
typedef struct AstPtx__Inputs {
    const float* const* arrays; /* NULL: `values` is used, and the only point is the first */
    const float* values;
} AstPtx__Inputs;

/* Runs a program that passed its check at up to AST_PTX_INTERPRETER_BLOCK points from first_point on. The only error is an
   input without values, INVALID_VALUE; `place_out` is then written. */
static AstPtxResult ast_ptx__run(
    const AstPtxProgram* program,
    const AstPtx__Inputs* inputs,
    size_t first_point,
    size_t num_points,
    float* values_out,
    AstPtxPlace* place_out
) {
    float stack[AST_PTX_STACK_DEPTH + 2][AST_PTX_INTERPRETER_BLOCK]; /* instructions look two values past their first operand */
    AstPtx__Frame frames[AST_PTX_ROUTINE_DEPTH + 1];
    AstPtx__Frame* frame = frames;
    const size_t num_bytes = num_points * sizeof(float);
    size_t height = 0, i;
    ast_ptx__open_program(program, frame);
    for (;;) {
        const AstPtxInstruction word = frame->words[frame->next];
        const uint32_t idx = word.payload.idx;
        ++frame->next;
        switch (word.instruction_type) {
            case AST_PTX_INSTRUCTION_TYPE_INPUT: {
                const float* values = inputs->arrays != NULL ? inputs->arrays[idx] : inputs->values + idx;
                if (values == NULL) {
                    if (place_out != NULL) {
                        place_out->routine_idx = frame->routine_idx;
                        place_out->word_idx = frame->next - 1;
                    }
                    return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
                }
                memcpy(stack[height++], values + first_point, num_bytes);
                break;
            }
            case AST_PTX_INSTRUCTION_TYPE_CONSTANT:
                for (i = 0; i < num_points; ++i) {
                    memcpy(&stack[height][i], &idx, sizeof idx);
                }
                ++height;
                break;
            case AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION:
                height -= word.aux;
                ast_ptx__apply(idx, stack[height], stack[height + 1], stack[height + 2], num_points);
                ++height;
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE:
                ++frame;
                ast_ptx__open_routine(program, word, height, frame);
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG: memcpy(stack[height++], stack[frame->first_arg + idx], num_bytes); break;
            default: /* RETURN */
                if (frame == frames) {
                    memcpy(values_out, stack[height - 1], num_bytes);
                    return AST_PTX_SUCCESS;
                }
                if (height - 1 != frame->first_arg) {
                    memcpy(stack[frame->first_arg], stack[height - 1], num_bytes);
                }
                height = frame->first_arg + 1;
                --frame;
                break;
        }
    }
}

static AstPtxResult ast_ptx__check_for_run(const AstPtxProgram* program, size_t num_inputs, AstPtxPlace* place_out) {
    AstPtx__Rules rules;
    uint32_t num_run;
    rules.num_inputs = num_inputs;
    rules.ptx_instruction_num_args = ast_ptx_ptx_instruction_num_args;
    rules.num_ptx_instructions = AST_PTX_PTX_INSTRUCTION_NUM_ENUMS;
    rules.unknown_instruction = AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION;
    return ast_ptx__check(program, &rules, &num_run, place_out);
}

static inline AstPtxResult ast_ptx_interpret(
    const AstPtxInstruction* instructions,
    const AstPtxInstruction* const* routines,
    size_t num_routines,
    const float* inputs,
    size_t num_inputs,
    float* value_out
) {
    AstPtxProgram program;
    AstPtx__Inputs values;
    AstPtxResult result;
    if (value_out == NULL || (inputs == NULL && num_inputs > 0)) {
        return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    }
    program.instructions = instructions;
    program.num_instructions = SIZE_MAX;
    program.routines = routines;
    program.routine_lengths = NULL;
    program.num_routines = num_routines;
    result = ast_ptx__check_for_run(&program, num_inputs, NULL);
    if (result != AST_PTX_SUCCESS) {
        return result;
    }
    values.arrays = NULL;
    values.values = inputs;
    return ast_ptx__run(&program, &values, 0, 1, value_out, NULL);
}

static inline AstPtxResult ast_ptx_interpret_program(
    const AstPtxProgram* program,
    const float* const* inputs,
    size_t num_inputs,
    size_t num_points,
    float* values_out,
    AstPtxPlace* place_out
) {
    AstPtx__Inputs values;
    AstPtxResult result;
    size_t first;
    if (program == NULL || (inputs == NULL && num_inputs > 0) || (values_out == NULL && num_points > 0)) {
        return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    }
    result = ast_ptx__check_for_run(program, num_inputs, place_out);
    values.arrays = inputs;
    values.values = NULL;
    for (first = 0; result == AST_PTX_SUCCESS && first < num_points; first += AST_PTX_INTERPRETER_BLOCK) {
        const size_t left = num_points - first;
        const size_t count = left < AST_PTX_INTERPRETER_BLOCK ? left : AST_PTX_INTERPRETER_BLOCK;
        result = ast_ptx__run(program, &values, first, count, values_out + first, place_out);
    }
    return result;
}

#endif /* AST_PTX_INTERPRETER_H */
