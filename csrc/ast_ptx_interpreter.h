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
 *     AST_PTX_INTERPRETER_BLOCK  32   points computed together, at least; made a multiple of a vector's
 *     AST_PTX_DEBUG                   errors assert where they are found
 *     and the limits of ast_ptx.h
 *
 * Memory and threads. Nothing is allocated and there is no global state. A call takes 4 * AST_PTX_STACK_DEPTH *
 * AST_PTX_INTERPRETER_BLOCK bytes of the C stack (32 KiB). No pointer may be NULL unless its comment says so.
 *
 * Arithmetic is that of the PTX ISA, and bit by bit that of the virtual machine: ptx_vm.h says under "Meaning" how it uses the
 * freedom that the ISA leaves. On x86 with SSE2 (for 32 bits: -msse2 -mfpmath=sse) it is the same at each SIMD level that the
 * compiler's flags allow. On aarch64 bits may differ; no other machine is supported. A call sets the rounding mode and flags of its
 * thread and restores them. Do not compile with -ffast-math.
 */

#ifndef AST_PTX_INTERPRETER_H
#define AST_PTX_INTERPRETER_H

#include "ast_ptx.h"
#include "ast_ptx_instructions.h"

/* The value of a program at one point. `instructions` and each routine end with a RETURN: without one, memory past their end is
   read. `routines` and `inputs` may be NULL if there are none.
   Errors: those of ast_ptx_compile; UNSUPPORTED_INSTRUCTION for an index past the table's end. */
static inline AstPtxResult ast_ptx_interpret(
    const AstPtxInstruction* instructions, const AstPtxInstruction* const* routines, size_t num_routines, const float* inputs,
    size_t num_inputs, float* value_out
);

/* The values of a program of known size at many points. `inputs` holds an array of num_points values for each input; one that
   the program does not read may be NULL. values_out has num_points values and may be one of the inputs, but must not partly
   overlap one. `place_out` may be NULL and is written only when a word is wrong; a word that reads a NULL is INVALID_VALUE. */
static inline AstPtxResult ast_ptx_interpret_program(
    const AstPtxProgram* program, const float* const* inputs, size_t num_inputs, size_t num_points, float* values_out,
    AstPtxPlace* place_out
);

/* ---- implementation ---------------------------------------------------------------------------------------------- */

#include "detail/ptx_vm_functions.h"
#include "detail/ptx_vm_mode.h"
#include "detail/ptx_vm_operations.h"

#ifndef AST_PTX_INTERPRETER_BLOCK
#define AST_PTX_INTERPRETER_BLOCK 32
#endif

/* Whole vectors. */
#define AST_PTX__ROUNDED_UP(num_points) (((num_points) + PTX_VM__LANES - 1) / PTX_VM__LANES * PTX_VM__LANES)

enum { AST_PTX__BLOCK = AST_PTX__ROUNDED_UP(AST_PTX_INTERPRETER_BLOCK) };

/* ---- instructions ---- */

/* A function of three vectors for each operation, by its kind. A NaN that arithmetic gives has PTX's bits at once; minimum and
   maximum want their operands flushed and quiet. */
#define AST_PTX__UNARY(F) F(x)
#define AST_PTX__BINARY(F) F(x, y)
#define AST_PTX__COMMUTATIVE(F) F(x, y)
#define AST_PTX__EXTREME(F) F(ptx_vm__quiet_f32(x), ptx_vm__quiet_f32(y))
#define AST_PTX__MULTIPLY_ADD(F) F(x, y, z)
#define AST_PTX__SELECT(F) F(x, y, z)
#define AST_PTX__LOGIC(F) x /* no instruction of f32 */
#define AST_PTX__OUTPUT(F) x
#define AST_PTX__SUM(F) x
#define AST_PTX__NAN_LOOSE_NAN(value) ptx_vm__fix_nan_f32(value)
#define AST_PTX__NAN_PASSES_NAN(value) ptx_vm__fix_nan_f32(value)
#define AST_PTX__NAN_EXACT(value) (value)
#define AST_PTX__DEFINE(enumerator, name, kind, nan)                                      \
    PTX_VM__INLINE PtxVmV ast_ptx__operation_##enumerator(PtxVmV x, PtxVmV y, PtxVmV z) { \
        (void)y;                                                                          \
        (void)z;                                                                          \
        return AST_PTX__NAN_##nan(AST_PTX__##kind(ptx_vm__##name));                       \
    }
PTX_VM__OPERATIONS(AST_PTX__DEFINE)
#undef AST_PTX__DEFINE
#define ast_ptx__operation_MOV(x, y, z) (x)

#define AST_PTX__DEFINE(enumerator, ptx, signature, operation, derivative)                  \
    PTX_VM__INLINE PtxVmV ast_ptx__instruction_##enumerator(PtxVmV x, PtxVmV y, PtxVmV z) { \
        (void)y;                                                                            \
        (void)z;                                                                            \
        return ast_ptx__operation_##operation(x, y, z);                                     \
    }
INSTRUCTION_TABLE(AST_PTX__DEFINE)
#undef AST_PTX__DEFINE

/* ---- runs ---- */

/* Replaces the operands of an instruction by its result, at whole vectors of points. a, b and c are the first three values from the
   first operand up; those that are not operands are not used. */
static inline void ast_ptx__apply(uint32_t instruction_idx, float* a, const float* b, const float* c, size_t num_points) {
    size_t i;
    switch (instruction_idx) {
#define AST_PTX__CASE(index, enumerator, ptx, num_args)                                                                 \
    case index:                                                                                                         \
        for (i = 0; i < num_points; i += PTX_VM__LANES) {                                                               \
            ptx_vm__store(                                                                                              \
                a + i, ast_ptx__instruction_##enumerator(ptx_vm__load(a + i), ptx_vm__load(b + i), ptx_vm__load(c + i)) \
            );                                                                                                          \
        }                                                                                                               \
        break;
        AST_PTX_PTX_INSTRUCTIONS(AST_PTX__CASE)
#undef AST_PTX__CASE
        default: break; /* no program that passed its check contains it */
    }
}

/* Location of the inputs' values: an array for each, or one value each. */
typedef struct AstPtx__Inputs {
    const float* const* arrays; /* NULL: `values` is used, and the only point is the first */
    const float* values;
} AstPtx__Inputs;

/* Runs a program that passed its check at up to AST_PTX__BLOCK points from first_point on, in the mode of ptx_vm_mode.h; not inlined,
   so that no operation moves out of it. The only error is an input without values, INVALID_VALUE; `place_out` is then written. */
static __attribute__((noinline)) AstPtxResult ast_ptx__run_block(
    const AstPtxProgram* program, const AstPtx__Inputs* inputs, size_t first_point, size_t num_points, float* values_out,
    AstPtxPlace* place_out
) {
    float stack[AST_PTX_STACK_DEPTH + 2][AST_PTX__BLOCK]; /* instructions look two values past their first operand */
    AstPtx__Frame frames[AST_PTX_ROUTINE_DEPTH + 1];
    AstPtx__Frame* frame = frames;
    const size_t num_lanes = AST_PTX__ROUNDED_UP(num_points);
    size_t height = 0, i;
    ast_ptx__open_program(program, frame);
    for (;;) {
        const AstPtxInstruction word = frame->words[frame->next];
        const uint32_t idx = word.payload.idx;
        ++frame->next;
        switch (word.instruction_type) {
            case AST_PTX_INSTRUCTION_TYPE_INPUT: {
                const float* values = inputs->arrays != NULL ? inputs->arrays[idx] : inputs->values + idx;
                uint32_t bits;
                if (values == NULL) {
                    if (place_out != NULL) {
                        place_out->routine_idx = frame->routine_idx;
                        place_out->word_idx = frame->next - 1;
                    }
                    return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
                }
                if (num_points == 1) {
                    memcpy(&bits, values + first_point, sizeof bits);
                    ptx_vm__store(stack[height++], ptx_vm__set_bits(bits));
                } else {
                    memcpy(stack[height], values + first_point, num_points * sizeof(float));
                    memset(stack[height++] + num_points, 0, (num_lanes - num_points) * sizeof(float));
                }
                break;
            }
            case AST_PTX_INSTRUCTION_TYPE_CONSTANT:
                for (i = 0; i < num_lanes; i += PTX_VM__LANES) ptx_vm__store(&stack[height][i], ptx_vm__set_bits(idx));
                ++height;
                break;
            case AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION:
                height -= word.aux;
                ast_ptx__apply(idx, stack[height], stack[height + 1], stack[height + 2], num_lanes);
                ++height;
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE:
                ++frame;
                ast_ptx__open_routine(program, word, height, frame);
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG:
                memcpy(stack[height++], stack[frame->first_arg + idx], num_lanes * sizeof(float));
                break;
            default: /* RETURN */
                if (frame == frames) {
                    memcpy(values_out, stack[height - 1], num_points * sizeof(float));
                    return AST_PTX_SUCCESS;
                }
                if (height - 1 != frame->first_arg) memcpy(stack[frame->first_arg], stack[height - 1], num_lanes * sizeof(float));
                height = frame->first_arg + 1;
                --frame;
                break;
        }
    }
}

/* Checks a program and runs it at all points. */
static inline AstPtxResult ast_ptx__run(
    const AstPtxProgram* program, const AstPtx__Inputs* inputs, size_t num_inputs, size_t num_points, float* values_out,
    AstPtxPlace* place_out
) {
    AstPtx__Rules rules;
    AstPtxResult result;
    PtxVmMode mode;
    uint32_t num_run;
    size_t first;
    rules.num_inputs = num_inputs;
    rules.ptx_instruction_num_args = ast_ptx_ptx_instruction_num_args;
    rules.num_ptx_instructions = AST_PTX_PTX_INSTRUCTION_NUM_ENUMS;
    rules.unknown_instruction = AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION;
    result = ast_ptx__check(program, &rules, &num_run, place_out);
    mode = ptx_vm__set_mode();
    for (first = 0; result == AST_PTX_SUCCESS && first < num_points; first += AST_PTX__BLOCK) {
        const size_t left = num_points - first, block = AST_PTX__BLOCK;
        result = ast_ptx__run_block(program, inputs, first, left < block ? left : block, values_out + first, place_out);
    }
    ptx_vm__restore_mode(mode);
    return result;
}

static inline AstPtxResult ast_ptx_interpret(
    const AstPtxInstruction* instructions, const AstPtxInstruction* const* routines, size_t num_routines, const float* inputs,
    size_t num_inputs, float* value_out
) {
    AstPtxProgram program;
    AstPtx__Inputs values;
    if (value_out == NULL || (inputs == NULL && num_inputs > 0)) return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    program.instructions = instructions;
    program.num_instructions = SIZE_MAX;
    program.routines = routines;
    program.routine_lengths = NULL;
    program.num_routines = num_routines;
    values.arrays = NULL;
    values.values = inputs;
    return ast_ptx__run(&program, &values, num_inputs, 1, value_out, NULL);
}

static inline AstPtxResult ast_ptx_interpret_program(
    const AstPtxProgram* program, const float* const* inputs, size_t num_inputs, size_t num_points, float* values_out,
    AstPtxPlace* place_out
) {
    AstPtx__Inputs values;
    if (program == NULL || (inputs == NULL && num_inputs > 0) || (values_out == NULL && num_points > 0))
        return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    values.arrays = inputs;
    values.values = NULL;
    return ast_ptx__run(program, &values, num_inputs, num_points, values_out, place_out);
}

#endif /* AST_PTX_INTERPRETER_H */
