/*
 * ast_ptx.h - AST PTX: a postorder expression of f32 values, printed as a PTX stub.
 *
 * The small sibling of stack_ptx.h, for callers that already have an expression tree: one stack, one type, one result, and a
 * wrong program is an error, never a no-op.
 *
 * Usage
 *
 *     #define AST_PTX_IMPLEMENTATION        in exactly one C or C++ file
 *     #include "ast_ptx.h"
 *     #include "ast_ptx_instructions.h"     a table of 18 instructions; or bring your own
 *
 *     static const char* const inputs[] = {"x", "y"};
 *     static const AstPtxInstruction program[] = {
 *         ast_ptx_encode_input(0), ast_ptx_encode_input(1), ast_ptx_encode_ptx_instruction_mul_ftz_f32,
 *         ast_ptx_encode_constant(1.0f), ast_ptx_encode_ptx_instruction_add_ftz_f32, ast_ptx_encode_return
 *     };
 *     ast_ptx_compile(
 *         "z", inputs, 2, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args, AST_PTX_PTX_INSTRUCTION_NUM_ENUMS,
 *         NULL, 0, program, NULL, 0, &length
 *     );
 *     buffer = malloc(length + 1);          and again, with buffer and length + 1
 *
 * gives
 *
 *     {
 *     .reg .f32 %ast<2>;
 *     mul.ftz.f32 %ast0, %x, %y;
 *     add.ftz.f32 %ast1, %ast0, 0f3f800000;
 *     mov.f32 %z, %ast1;
 *     }
 *
 * Options, defined before the first inclusion, and the same in all files
 *
 *     AST_PTX_STACK_DEPTH           256     values on the stack, arguments of open routines included. A call takes 16 bytes of
 *                                           the C stack for each (ast_ptx_interpreter.h takes more)
 *     AST_PTX_ROUTINE_DEPTH         8       nested routine calls, not counting the program itself
 *     AST_PTX_MAX_INSTRUCTIONS      65536   words run, RETURNs included; those of a routine once for each call
 *     AST_PTX_MAX_INSTRUCTION_ARGS  4       operands of a PTX instruction
 *     AST_PTX_REGISTER_NAME         "ast"   prefix of the names of temporaries
 *     AST_PTX_DEBUG                         errors assert where they are found
 *     AST_PTX_STATIC                        functions are static; each including file also defines AST_PTX_IMPLEMENTATION
 *
 * Memory and threads
 *
 * Nothing is allocated or kept, and there is no global state: any function may be called from any number of threads. The cost
 * is linear in the names given and the words run. No pointer may be NULL unless its comment says so; a NULL gives
 * AST_PTX_ERROR_INVALID_VALUE.
 *
 * Meaning of a program
 *
 *   INPUT            pushes the input register payload.idx.
 *   CONSTANT         pushes payload.f; its bits, NaNs included, are printed unchanged.
 *   PTX_INSTRUCTION  pops `aux` values, its operands in the order in which they were pushed, and pushes its result. payload.idx
 *                    is its index in the table; `aux` must be its number of operands there.
 *   ROUTINE          pops `aux` values, runs the routine payload.idx with them as arguments, and pushes its result. A routine is
 *                    written out at each call. It cannot see the stack below its arguments.
 *   ROUTINE_ARG      in a routine: pushes argument payload.idx; 0 is the one that was pushed first.
 *   RETURN           ends the program or a routine, which must have left one value: the result.
 */

#ifndef AST_PTX_H
#define AST_PTX_H

#include <stddef.h>
#include <stdint.h>

#define AST_PTX_VERSION_MAJOR 1
#define AST_PTX_VERSION_MINOR 1
#define AST_PTX_VERSION_PATCH 0
#define AST_PTX_VERSION (10000 * AST_PTX_VERSION_MAJOR + 100 * AST_PTX_VERSION_MINOR + AST_PTX_VERSION_PATCH)
#define AST_PTX_VERSION_STRING "1.1.0"

/* Before each declaration. It sets the linkage of the definition too. */
#if !defined(AST_PTX_STATIC)
#define AST_PTX_API
#elif defined(__GNUC__)
#define AST_PTX_API static __attribute__((unused))
#else
#define AST_PTX_API static
#endif

#ifndef AST_PTX_STACK_DEPTH
#define AST_PTX_STACK_DEPTH 256
#endif
#ifndef AST_PTX_ROUTINE_DEPTH
#define AST_PTX_ROUTINE_DEPTH 8
#endif
#ifndef AST_PTX_MAX_INSTRUCTIONS
#define AST_PTX_MAX_INSTRUCTIONS 65536
#endif
#ifndef AST_PTX_MAX_INSTRUCTION_ARGS
#define AST_PTX_MAX_INSTRUCTION_ARGS 4
#endif
#ifndef AST_PTX_REGISTER_NAME
#define AST_PTX_REGISTER_NAME "ast"
#endif

#if AST_PTX_STACK_DEPTH < 1 || AST_PTX_MAX_INSTRUCTION_ARGS < 1
#error "AST_PTX_STACK_DEPTH and AST_PTX_MAX_INSTRUCTION_ARGS are at least 1"
#endif
#if AST_PTX_ROUTINE_DEPTH < 0 || AST_PTX_MAX_INSTRUCTIONS < 0 || AST_PTX_MAX_INSTRUCTIONS > 0x7fffffff
#error "AST_PTX_ROUTINE_DEPTH and AST_PTX_MAX_INSTRUCTIONS are not negative, and the latter is below 2^31"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t AstPtxIdx; /* the payload of a word: an index of any kind */

/* ---- words ------------------------------------------------------------------------------------------------------- */

typedef enum {
    AST_PTX_INSTRUCTION_TYPE_NONE = 0,
    AST_PTX_INSTRUCTION_TYPE_INPUT = 1,
    AST_PTX_INSTRUCTION_TYPE_CONSTANT = 2,
    AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION = 3,
    AST_PTX_INSTRUCTION_TYPE_ROUTINE = 4,
    AST_PTX_INSTRUCTION_TYPE_RETURN = 5,
    AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG = 6,
    AST_PTX_INSTRUCTION_TYPE_REGISTER = 7, /* internal to compilers; in a program an unknown type */
    AST_PTX_INSTRUCTION_TYPE_NUM_ENUMS
} AstPtxInstructionType;

typedef union {
    float f;
    uint32_t idx;
} AstPtxPayload;

/* One word. As a little-endian uint64: type in bits 0-15, aux in 16-31, payload in 32-63. `aux` is the number of operands of a
   PTX_INSTRUCTION and of arguments of a ROUTINE, and is not read otherwise. */
typedef struct {
    uint16_t instruction_type;
    uint16_t aux;
    AstPtxPayload payload;
} AstPtxInstruction;

#ifdef __cplusplus
} /* extern "C" */

/* C++ before 20 initialises only the first member of a union, except as an extension. */
constexpr AstPtxInstruction ast_ptx__encode(uint16_t type, uint16_t aux, uint32_t idx) {
    return AstPtxInstruction{type, aux, __extension__ AstPtxPayload{.idx = idx}};
}
constexpr AstPtxInstruction ast_ptx__encode_constant(float value) {
    return AstPtxInstruction{AST_PTX_INSTRUCTION_TYPE_CONSTANT, 0, {value}};
}

extern "C" {
#define AST_PTX__WORD(type, aux_value, idx_value)                                                                        \
    ast_ptx__encode(AST_PTX_INSTRUCTION_TYPE_##type, static_cast<uint16_t>(aux_value), static_cast<uint32_t>(idx_value))
#define ast_ptx_encode_constant(value) ast_ptx__encode_constant(static_cast<float>(value))
#else
#define AST_PTX__WORD(type, aux_value, idx_value)                                                \
    (AstPtxInstruction) {                                                                        \
        AST_PTX_INSTRUCTION_TYPE_##type, (uint16_t)(aux_value), { .idx = (uint32_t)(idx_value) } \
    }
#define ast_ptx_encode_constant(value)                           \
    (AstPtxInstruction) {                                        \
        AST_PTX_INSTRUCTION_TYPE_CONSTANT, 0, { (float)(value) } \
    }
#endif

/* Words as expressions, with ast_ptx_encode_constant(value) above. They may initialise static objects too. For C, gcc has that as
   an extension, of which -Wpedantic warns unless __extension__ begins the declaration. */
#define ast_ptx_encode_input(i) AST_PTX__WORD(INPUT, 0, i)
#define ast_ptx_encode_ptx_instruction(i, num_args) AST_PTX__WORD(PTX_INSTRUCTION, num_args, i)
#define ast_ptx_encode_routine(i, num_args) AST_PTX__WORD(ROUTINE, num_args, i)
#define ast_ptx_encode_routine_arg(i) AST_PTX__WORD(ROUTINE_ARG, 0, i)
#define ast_ptx_encode_return AST_PTX__WORD(RETURN, 0, 0)

/* ---- results ----------------------------------------------------------------------------------------------------- */

typedef enum {
    AST_PTX_SUCCESS = 0,
    AST_PTX_ERROR_INTERNAL = 1,            /* never given: a program that passed its check cannot fail */
    AST_PTX_ERROR_INSUFFICIENT_BUFFER = 2, /* the text does not fit */
    AST_PTX_ERROR_INVALID_VALUE = 3, /* NULL, a bad name; a number of operands other than the table's; more than one value at a
                                        RETURN */
    AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN = 4, /* NONE, REGISTER or an unknown type; more words run than
                                                              AST_PTX_MAX_INSTRUCTIONS; no RETURN within the length given */
    AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS = 5,
    AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS = 6, /* not given by interpreters, which have no table */
    AST_PTX_ERROR_STACK_OVERFLOW = 7,           /* more than AST_PTX_STACK_DEPTH values */
    AST_PTX_ERROR_STACK_UNDERFLOW = 8,          /* too few values for operands, arguments or a RETURN */
    AST_PTX_ERROR_TOO_MANY_ARGS = 9,            /* more operands than AST_PTX_MAX_INSTRUCTION_ARGS */
    AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION = 10, /* interpreters only: an instruction without a CPU meaning */
    AST_PTX_ERROR_ROUTINE_IDX_OUT_OF_BOUNDS = 11,
    AST_PTX_ERROR_ROUTINE_ARG_IDX_OUT_OF_BOUNDS = 12, /* also any ROUTINE_ARG of the program itself */
    AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED = 13,        /* more routines open than AST_PTX_ROUTINE_DEPTH */
    AST_PTX_RESULT_NUM_ELEMS
} AstPtxResult;

/* The enumerator's name, or "AST_PTX_RESULT_UNKNOWN". The text is static. */
AST_PTX_API const char* ast_ptx_result_to_string(AstPtxResult result);

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* SUCCESS if `name` may name a register: letters, digits, _ and $ (a percent sign comes before it), and neither a name that
   CUDA compilers give (f1, r2, rd3, p1, fd4, rs5, h6, hh7, b8, rc9, rq1, SP, SPL), nor a special register of PTX, nor one of
   this library's own (ast0). Otherwise, or for NULL, INVALID_VALUE. */
AST_PTX_API AstPtxResult ast_ptx_check_name(const char* name);

/* Writes the stub of a program and a NUL, which bytes_written_out does not count. `instructions` and each routine end with a
   RETURN: without one, memory past their end is read. With buffer NULL the length is only measured: a buffer needs one byte more.
   On INSUFFICIENT_BUFFER bytes_written_out is the measured length and the buffer's contents are undefined; on other errors
   neither is written.

   Registers are named without the percent sign and declared by the caller as .f32; the output may be an input too. The two
   tables of instructions run parallel and are NULL if there are none; an instruction's name may be any text.
   `input_register_names` and `routines` may be NULL if there are none. */
AST_PTX_API AstPtxResult ast_ptx_compile(
    const char* output_register_name,
    const char* const* input_register_names,
    size_t num_inputs,
    const char* const* ptx_instruction_names,
    const uint16_t* ptx_instruction_num_args,
    size_t num_ptx_instructions,
    const AstPtxInstruction* const* routines,
    size_t num_routines,
    const AstPtxInstruction* instructions,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
);

/* A program of known size: nothing past its end is read. */
typedef struct AstPtxProgram {
    const AstPtxInstruction* instructions;
    size_t num_instructions;
    const AstPtxInstruction* const* routines; /* NULL if there are none */
    const size_t* routine_lengths;            /* words of each. NULL: each ends with a RETURN */
    size_t num_routines;
} AstPtxProgram;

#define AST_PTX_MAIN_PROGRAM SIZE_MAX

/* Where a program is wrong. */
typedef struct AstPtxPlace {
    size_t routine_idx; /* AST_PTX_MAIN_PROGRAM, or a routine */
    size_t word_idx;    /* within that word list; its length if a RETURN is missing */
} AstPtxPlace;

/* As ast_ptx_compile, for a program of known size. `place_out` may be NULL and is written only when a word is wrong: an
   INVALID_VALUE that is not a word's fault leaves it unchanged. */
AST_PTX_API AstPtxResult ast_ptx_compile_program(
    const char* output_register_name,
    const char* const* input_register_names,
    size_t num_inputs,
    const char* const* ptx_instruction_names,
    const uint16_t* ptx_instruction_num_args,
    size_t num_ptx_instructions,
    const AstPtxProgram* program,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out,
    AstPtxPlace* place_out
);

#ifdef __cplusplus
}
#endif

#endif /* AST_PTX_H */

/* ---- shared by the implementations of this header and of ast_ptx_interpreter.h ------------------------------------ */

#if (defined(AST_PTX_IMPLEMENTATION) || defined(AST_PTX_INTERPRETER_H)) && !defined(AST_PTX_CHECK_ONCE)
#define AST_PTX_CHECK_ONCE

#include <string.h>

#ifdef AST_PTX_DEBUG
#include <assert.h>
#define AST_PTX__ERROR(code) (assert(0 && #code), (code))
#else
#define AST_PTX__ERROR(code) (code)
#endif

/* Code that runs for every word is fully inlined; rare code is kept out of line. */
#if defined(__GNUC__)
#define AST_PTX__HOT static inline __attribute__((always_inline))
#define AST_PTX__COLD static __attribute__((noinline, cold))
#else
#define AST_PTX__HOT static inline
#define AST_PTX__COLD static
#endif

/* What words are checked against. */
typedef struct AstPtx__Rules {
    size_t num_inputs;
    const uint16_t* ptx_instruction_num_args;
    size_t num_ptx_instructions;
    AstPtxResult unknown_instruction; /* the error for an index past them */
} AstPtx__Rules;

/* A word list that is being run. */
typedef struct AstPtx__Frame {
    const AstPtxInstruction* words;
    size_t length;
    size_t next;
    size_t routine_idx;
    size_t first_arg; /* where on the stack its arguments begin; its own values follow them */
    size_t num_args;
} AstPtx__Frame;

static void ast_ptx__open_program(const AstPtxProgram* program, AstPtx__Frame* frame_out) {
    frame_out->words = program->instructions;
    frame_out->length = program->num_instructions;
    frame_out->next = 0;
    frame_out->routine_idx = AST_PTX_MAIN_PROGRAM;
    frame_out->first_arg = 0;
    frame_out->num_args = 0;
}

static void ast_ptx__open_routine(const AstPtxProgram* program, AstPtxInstruction call, size_t height, AstPtx__Frame* frame_out) {
    const size_t routine_idx = call.payload.idx;
    frame_out->words = program->routines[routine_idx];
    frame_out->length = program->routine_lengths != NULL ? program->routine_lengths[routine_idx] : SIZE_MAX;
    frame_out->next = 0;
    frame_out->routine_idx = routine_idx;
    frame_out->first_arg = height - call.aux;
    frame_out->num_args = call.aux;
}

/* The error of a word alone; RETURN has none. `num_values` is the height of the stack of its own word list. */
AST_PTX__COLD AstPtxResult ast_ptx__check_word(
    const AstPtxProgram* program,
    const AstPtx__Rules* rules,
    const AstPtx__Frame* frame,
    size_t num_values,
    AstPtxInstruction word
) {
    const size_t idx = word.payload.idx;
    switch (word.instruction_type) {
        case AST_PTX_INSTRUCTION_TYPE_CONSTANT: return AST_PTX_SUCCESS;
        case AST_PTX_INSTRUCTION_TYPE_INPUT:
            return idx < rules->num_inputs ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS);
        case AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION:
            if (idx >= rules->num_ptx_instructions) {
                return AST_PTX__ERROR(rules->unknown_instruction);
            }
            if (word.aux > AST_PTX_MAX_INSTRUCTION_ARGS || rules->ptx_instruction_num_args[idx] > AST_PTX_MAX_INSTRUCTION_ARGS) {
                return AST_PTX__ERROR(AST_PTX_ERROR_TOO_MANY_ARGS);
            }
            if (word.aux != rules->ptx_instruction_num_args[idx]) {
                return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
            }
            return num_values >= word.aux ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_STACK_UNDERFLOW);
        case AST_PTX_INSTRUCTION_TYPE_ROUTINE:
            if (idx >= program->num_routines) {
                return AST_PTX__ERROR(AST_PTX_ERROR_ROUTINE_IDX_OUT_OF_BOUNDS);
            }
            if (program->routines[idx] == NULL) {
                return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
            }
            return num_values >= word.aux ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_STACK_UNDERFLOW);
        case AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG:
            return idx < frame->num_args ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_ROUTINE_ARG_IDX_OUT_OF_BOUNDS);
        default: return AST_PTX__ERROR(AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
    }
}

/* Runs a program, routines included, on the stack's height only: a program that passes cannot fail when it is compiled or
   interpreted. Returns the number of PTX instructions run. */
static AstPtxResult ast_ptx__check(
    const AstPtxProgram* program, const AstPtx__Rules* rules, uint32_t* num_ptx_instructions_out, AstPtxPlace* place_out
) {
    static const uint16_t no_args[1] = {0};
    const uint16_t* num_args = rules->num_ptx_instructions > 0 ? rules->ptx_instruction_num_args : no_args;
    AstPtx__Frame frames[AST_PTX_ROUTINE_DEPTH + 1];
    AstPtx__Frame* frame = frames;
    AstPtxResult result = AST_PTX_SUCCESS;
    size_t height = 0, num_run = 0;
    uint32_t num_ptx_instructions = 0;
    /* Indices that inputs, constants and PTX instructions may have; of other types none. */
    uint64_t num_indices[4];
    num_indices[AST_PTX_INSTRUCTION_TYPE_NONE] = 0;
    num_indices[AST_PTX_INSTRUCTION_TYPE_INPUT] = rules->num_inputs;
    num_indices[AST_PTX_INSTRUCTION_TYPE_CONSTANT] = (uint64_t)UINT32_MAX + 1;
    num_indices[AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION] = rules->num_ptx_instructions;

    if ((program->instructions == NULL && program->num_instructions > 0) ||
        (program->routines == NULL && program->num_routines > 0)) {
        return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    }
    ast_ptx__open_program(program, frame);
    for (;;) {
        const size_t own = frame->first_arg + frame->num_args;
        AstPtxInstruction word;
        if (frame->next >= frame->length || num_run >= AST_PTX_MAX_INSTRUCTIONS) {
            result = AST_PTX__ERROR(AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
            break;
        }
        word = frame->words[frame->next];
        ++num_run;
        if (word.instruction_type <= AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION) {
            /* Nearly all words: one branch for any error, and none for their type, which cannot be predicted. */
            const uint32_t is_ptx = word.instruction_type == AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION;
            const uint32_t num_operands = word.aux & (0u - is_ptx);
            const uint32_t is_known = word.payload.idx < num_indices[word.instruction_type];
            const uint32_t expected = num_args[word.payload.idx & (0u - (is_ptx & is_known))] & (0u - is_ptx);
            const uint32_t is_right = is_known & (num_operands == expected) & (expected <= AST_PTX_MAX_INSTRUCTION_ARGS) &
                (num_operands <= height - own) & (height - num_operands < AST_PTX_STACK_DEPTH);
            if (is_right) {
                height = height - num_operands + 1;
                num_ptx_instructions += is_ptx;
                ++frame->next;
                continue;
            }
        }
        if (word.instruction_type == AST_PTX_INSTRUCTION_TYPE_RETURN) {
            if (height != own + 1) {
                result =
                    height == own ? AST_PTX__ERROR(AST_PTX_ERROR_STACK_UNDERFLOW) : AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
                break;
            }
            if (frame == frames) {
                *num_ptx_instructions_out = num_ptx_instructions;
                return AST_PTX_SUCCESS;
            }
            height = frame->first_arg + 1;
            --frame;
            continue;
        }
        result = ast_ptx__check_word(program, rules, frame, height - own, word);
        if (result == AST_PTX_SUCCESS && word.instruction_type == AST_PTX_INSTRUCTION_TYPE_ROUTINE) {
            if (frame < frames + AST_PTX_ROUTINE_DEPTH) {
                ++frame->next;
                ++frame;
                ast_ptx__open_routine(program, word, height, frame);
                continue;
            }
            result = AST_PTX__ERROR(AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED);
        } else if (result == AST_PTX_SUCCESS && height < AST_PTX_STACK_DEPTH) { /* an argument */
            ++height;
            ++frame->next;
            continue;
        } else if (result == AST_PTX_SUCCESS) {
            result = AST_PTX__ERROR(AST_PTX_ERROR_STACK_OVERFLOW);
        }
        break;
    }
    if (place_out != NULL) {
        place_out->routine_idx = frame->routine_idx;
        place_out->word_idx = frame->next;
    }
    return result;
}

#endif /* AST_PTX_CHECK_ONCE */

/* ---- implementation ---------------------------------------------------------------------------------------------- */

#if defined(AST_PTX_IMPLEMENTATION) && !defined(AST_PTX_IMPLEMENTATION_ONCE)
#define AST_PTX_IMPLEMENTATION_ONCE

const char* ast_ptx_result_to_string(AstPtxResult result) {
    switch (result) {
#define AST_PTX__CASE(name) \
    case name: return #name
        AST_PTX__CASE(AST_PTX_SUCCESS);
        AST_PTX__CASE(AST_PTX_ERROR_INTERNAL);
        AST_PTX__CASE(AST_PTX_ERROR_INSUFFICIENT_BUFFER);
        AST_PTX__CASE(AST_PTX_ERROR_INVALID_VALUE);
        AST_PTX__CASE(AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
        AST_PTX__CASE(AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS);
        AST_PTX__CASE(AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS);
        AST_PTX__CASE(AST_PTX_ERROR_STACK_OVERFLOW);
        AST_PTX__CASE(AST_PTX_ERROR_STACK_UNDERFLOW);
        AST_PTX__CASE(AST_PTX_ERROR_TOO_MANY_ARGS);
        AST_PTX__CASE(AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION);
        AST_PTX__CASE(AST_PTX_ERROR_ROUTINE_IDX_OUT_OF_BOUNDS);
        AST_PTX__CASE(AST_PTX_ERROR_ROUTINE_ARG_IDX_OUT_OF_BOUNDS);
        AST_PTX__CASE(AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED);
#undef AST_PTX__CASE
        case AST_PTX_RESULT_NUM_ELEMS: break;
    }
    return "AST_PTX_RESULT_UNKNOWN";
}

/* ---- names ---- */

#define AST_PTX__STEM_LENGTH (sizeof AST_PTX_REGISTER_NAME - 1)

static int ast_ptx__is_digit(char c) { return c >= '0' && c <= '9'; }

/* The length of a valid name, otherwise 0. */
static size_t ast_ptx__check_name(const char* name) {
    /* Names of NVVM's virtual registers, by class, and of its stack pointers; special registers of PTX. */
    static const char* const numbered[] = {"p", "rs", "r", "rd", "rq", "rc", "f", "fd", "h", "hh", "b", "envreg", "pm"};
    static const char* const whole[] = {
        "SP",
        "SPL",
        "tid",
        "ntid",
        "ctaid",
        "nctaid",
        "laneid",
        "warpid",
        "nwarpid",
        "smid",
        "nsmid",
        "gridid",
        "clusterid",
        "nclusterid",
        "cluster_ctaid",
        "cluster_nctaid",
        "cluster_ctarank",
        "cluster_nctarank",
        "is_explicit_cluster",
        "clock",
        "clock_hi",
        "clock64",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    };
    static const char* const families[] = {
        "lanemask_",
        "reserved_smem_",
        "pm0_",
        "pm1_",
        "pm2_",
        "pm3_",
        "pm4_",
        "pm5_",
        "pm6_",
        "pm7_",
    };
    size_t length, stem_length, i;
    if (name == NULL) {
        return 0;
    }
    for (length = 0; name[length] != '\0'; ++length) {
        const char c = name[length];
        const char lower = (char)(c | 0x20);
        if (!(lower >= 'a' && lower <= 'z') && !ast_ptx__is_digit(c) && c != '_' && c != '$') {
            return 0;
        }
    }
    for (stem_length = length; stem_length > 0 && ast_ptx__is_digit(name[stem_length - 1]); --stem_length) {
    }
    for (i = 0; i < sizeof numbered / sizeof numbered[0] && stem_length < length; ++i) {
        if (strlen(numbered[i]) == stem_length && memcmp(name, numbered[i], stem_length) == 0) {
            return 0;
        }
    }
    for (i = 0; i < sizeof whole / sizeof whole[0]; ++i) {
        if (name[0] == whole[i][0] && strcmp(name, whole[i]) == 0) {
            return 0;
        }
    }
    for (i = 0; i < sizeof families / sizeof families[0]; ++i) {
        if (name[0] == families[i][0] && strncmp(name, families[i], strlen(families[i])) == 0) {
            return 0;
        }
    }
    /* The stem may itself end with digits. */
    if (length > AST_PTX__STEM_LENGTH && stem_length <= AST_PTX__STEM_LENGTH &&
        memcmp(name, AST_PTX_REGISTER_NAME, AST_PTX__STEM_LENGTH) == 0) {
        return 0;
    }
    return length;
}

AstPtxResult ast_ptx_check_name(const char* name) {
    return ast_ptx__check_name(name) > 0 ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
}

/* ---- values ---- */

/* A value as text with the comma before it: ", %x", ", %ast12", ", 0f3f800000"; padded, so that it is copied by its full size.
   A register whose name does not fit has the length AST_PTX__LONG, and its text is an AstPtx__Register. */
typedef struct AstPtx__Value {
    char text[15];
    uint8_t length;
} AstPtx__Value;

#define AST_PTX__LONG 255u

typedef struct AstPtx__Register {
    uint32_t is_temporary;
    uint32_t idx; /* of an input, or number of a temporary */
} AstPtx__Register;

static void ast_ptx__make_register(
    const char* name, size_t name_length, AstPtx__Register which, const char* digits, size_t num_digits, AstPtx__Value* value_out
) {
    if (3 + name_length + num_digits <= sizeof value_out->text) {
        memcpy(value_out->text, ", %", 3);
        memcpy(value_out->text + 3, name, name_length);
        memcpy(value_out->text + 3 + name_length, digits, num_digits);
        value_out->length = (uint8_t)(3 + name_length + num_digits);
    } else {
        memcpy(value_out->text, &which, sizeof which);
        value_out->length = AST_PTX__LONG;
    }
}

static void ast_ptx__make_input(const char* name, size_t name_length, uint32_t idx, AstPtx__Value* value_out) {
    AstPtx__Register which;
    which.is_temporary = 0;
    which.idx = idx;
    ast_ptx__make_register(name, name_length, which, "", 0, value_out);
}

/* Writes a number and returns how many digits it has, at most 10. */
static size_t ast_ptx__format_decimal(uint32_t number, char* digits_out) {
    char reversed[10];
    size_t num_digits = 0, i;
    do {
        reversed[num_digits++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (i = 0; i < num_digits; ++i) {
        digits_out[i] = reversed[num_digits - 1 - i];
    }
    return num_digits;
}

/* The first temporary. */
static void ast_ptx__make_temporary(AstPtx__Value* value_out) {
    AstPtx__Register which;
    which.is_temporary = 1;
    which.idx = 0;
    ast_ptx__make_register(AST_PTX_REGISTER_NAME, AST_PTX__STEM_LENGTH, which, "0", 1, value_out);
}

/* From one temporary to the next, whose number is given too: cheaper than to format each. */
static void ast_ptx__count_up(AstPtx__Value* value, uint32_t number) {
    const size_t first_digit = 3 + AST_PTX__STEM_LENGTH;
    if (value->length != AST_PTX__LONG) {
        size_t i = value->length;
        while (i > first_digit && value->text[i - 1] == '9') {
            value->text[--i] = '0';
        }
        if (i > first_digit) {
            ++value->text[i - 1];
            return;
        }
        if (value->length < sizeof value->text) { /* all were nines, and are zeros now */
            value->text[first_digit] = '1';
            value->text[value->length++] = '0';
            return;
        }
    }
    {
        AstPtx__Register which;
        which.is_temporary = 1;
        which.idx = number;
        memcpy(value->text, &which, sizeof which);
        value->length = AST_PTX__LONG;
    }
}

static void ast_ptx__make_constant(uint32_t bits, AstPtx__Value* value_out) {
    /* One nibble in each of eight bytes, all made digits at once: from '9' + 1 to 'a' it is 39. */
    uint64_t digits = bits;
    char* text = value_out->text + 4;
    digits = (digits | digits << 16) & UINT64_C(0x0000ffff0000ffff);
    digits = (digits | digits << 8) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits | digits << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    digits += UINT64_C(0x3030303030303030) +
        (((digits + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101)) * UINT64_C(39));
    memcpy(value_out->text, ", 0f", 4);
    /* Written out, so that compilers see one store. */
    text[0] = (char)(digits >> 56);
    text[1] = (char)(digits >> 48);
    text[2] = (char)(digits >> 40);
    text[3] = (char)(digits >> 32);
    text[4] = (char)(digits >> 24);
    text[5] = (char)(digits >> 16);
    text[6] = (char)(digits >> 8);
    text[7] = (char)digits;
    value_out->length = 12;
}

/* ---- text ---- */

/* Text under construction. `length` also counts what did not fit or was only measured. */
typedef struct AstPtx__Writer {
    char* buffer;
    size_t capacity; /* without the NUL */
    size_t length;
} AstPtx__Writer;

static void ast_ptx__write(AstPtx__Writer* writer, const char* text, size_t num_bytes) {
    if (writer->length <= writer->capacity && num_bytes <= writer->capacity - writer->length) {
        memcpy(writer->buffer + writer->length, text, num_bytes);
    }
    writer->length += num_bytes;
}

static void ast_ptx__write_string(AstPtx__Writer* writer, const char* text) { ast_ptx__write(writer, text, strlen(text)); }

/* A value of any length, without the comma before it. */
static void ast_ptx__write_value(AstPtx__Writer* writer, const char* const* input_register_names, const AstPtx__Value* value) {
    if (value->length != AST_PTX__LONG) {
        ast_ptx__write(writer, value->text + 2, value->length - 2u);
    } else {
        AstPtx__Register which;
        memcpy(&which, value->text, sizeof which);
        ast_ptx__write(writer, "%", 1);
        if (which.is_temporary) {
            char digits[10];
            ast_ptx__write(writer, AST_PTX_REGISTER_NAME, AST_PTX__STEM_LENGTH);
            ast_ptx__write(writer, digits, ast_ptx__format_decimal(which.idx, digits));
        } else {
            ast_ptx__write_string(writer, input_register_names[which.idx]);
        }
    }
}

/* The name of an instruction and a space, padded. Cached by the instruction's index, unless it is long. */
typedef struct AstPtx__Name {
    char text[47];
    uint8_t length;
} AstPtx__Name;

enum { AST_PTX__NUM_NAMES = 32, AST_PTX__NUM_INPUTS = 16 }; /* cached; powers of two */

/* All that writing a stub needs. */
typedef struct AstPtx__Work {
    AstPtx__Writer writer;
    const char* const* input_register_names;
    const char* const* ptx_instruction_names;
    AstPtx__Value inputs[AST_PTX__NUM_INPUTS]; /* the first ones */
    const char* name_sources[AST_PTX__NUM_NAMES]; /* what is cached; NULL: nothing */
    AstPtx__Name names[AST_PTX__NUM_NAMES];
    AstPtx__Frame frames[AST_PTX_ROUTINE_DEPTH + 1];
    AstPtx__Value stack[AST_PTX_STACK_DEPTH];
} AstPtx__Work;

/* The cached form of a name; NULL if it is too long. */
static const AstPtx__Name* ast_ptx__find_name(AstPtx__Work* work, uint32_t idx) {
    AstPtx__Name* name = &work->names[idx % AST_PTX__NUM_NAMES];
    const char* source = work->ptx_instruction_names[idx];
    if (work->name_sources[idx % AST_PTX__NUM_NAMES] != source) {
        const size_t length = strlen(source);
        if (length >= sizeof name->text) {
            return NULL;
        }
        memcpy(name->text, source, length);
        name->text[length] = ' ';
        name->length = (uint8_t)(length + 1);
        work->name_sources[idx % AST_PTX__NUM_NAMES] = source;
    }
    return name;
}

/* The line of an instruction of any form. */
AST_PTX__COLD void ast_ptx__write_any_line(
    AstPtx__Work* work, AstPtxInstruction word, const AstPtx__Value* result, const AstPtx__Value* operands
) {
    AstPtx__Writer* writer = &work->writer;
    size_t i;
    ast_ptx__write_string(writer, work->ptx_instruction_names[word.payload.idx]);
    ast_ptx__write(writer, " ", 1);
    ast_ptx__write_value(writer, work->input_register_names, result);
    for (i = 0; i < word.aux; ++i) {
        ast_ptx__write(writer, ", ", 2);
        ast_ptx__write_value(writer, work->input_register_names, &operands[i]);
    }
    ast_ptx__write(writer, ";\n", 2);
}

/* Bytes that the fast line may touch: a name, a result, three operands and an end. */
#define AST_PTX__LINE_BYTES (48u + 4u * 16u + 2u)

/* The line of an instruction. Texts are copied at full size and only lengths differ; a missing operand is the first one with
   length 0. That is cheaper than a branch on the number of operands. */
AST_PTX__HOT void ast_ptx__write_line(
    AstPtx__Work* work, AstPtxInstruction word, const AstPtx__Value* result, const AstPtx__Value* operands
) {
    AstPtx__Writer* writer = &work->writer;
    const AstPtx__Name* name = ast_ptx__find_name(work, word.payload.idx);
    const uint32_t has_second = 0u - (uint32_t)(word.aux > 1), has_third = 0u - (uint32_t)(word.aux > 2);
    const AstPtx__Value* second = &operands[1u & has_second];
    const AstPtx__Value* third = &operands[2u & has_third];
    size_t length;
    char* cursor;
    if (name == NULL || word.aux - 1u > 2u || result->length == AST_PTX__LONG || operands->length == AST_PTX__LONG ||
        second->length == AST_PTX__LONG || third->length == AST_PTX__LONG) {
        ast_ptx__write_any_line(work, word, result, operands);
        return;
    }
    length = (size_t)name->length + result->length + operands->length;
    length += (second->length & has_second) + (third->length & has_third);
    if (writer->length + AST_PTX__LINE_BYTES > writer->capacity) {
        if (writer->length + length > writer->capacity) {
            writer->length += length;
        } else {
            ast_ptx__write_any_line(work, word, result, operands);
        }
        return;
    }
    cursor = writer->buffer + writer->length;
    writer->length += length;
    memcpy(cursor, name->text, 32);
    if (name->length > 32) {
        memcpy(cursor + 32, name->text + 32, sizeof name->text - 32);
    }
    cursor += name->length;
    memcpy(cursor, result->text + 2, sizeof *result - 2);
    cursor += result->length - 2u;
    memcpy(cursor, operands->text, sizeof *operands);
    cursor += operands->length;
    memcpy(cursor, second->text, sizeof *second);
    cursor += second->length & has_second;
    memcpy(cursor, third->text, sizeof *third);
    cursor += third->length & has_third;
    memcpy(cursor, ";\n", 2);
}

/* The lines of a program that passed its check. Returns its value. */
static const AstPtx__Value* ast_ptx__write_lines(AstPtx__Work* work, const AstPtxProgram* program) {
    AstPtx__Frame* frame = work->frames;
    AstPtx__Value* top = work->stack;
    AstPtx__Value temporary;
    uint32_t num_temporaries = 0;
    ast_ptx__make_temporary(&temporary);
    ast_ptx__open_program(program, frame);
    for (;;) {
        const AstPtxInstruction word = frame->words[frame->next++];
        const uint32_t idx = word.payload.idx;
        switch (word.instruction_type) {
            case AST_PTX_INSTRUCTION_TYPE_INPUT:
                if (idx < AST_PTX__NUM_INPUTS) {
                    *top++ = work->inputs[idx];
                } else {
                    const char* name = work->input_register_names[idx];
                    ast_ptx__make_input(name, strlen(name), idx, top++);
                }
                break;
            case AST_PTX_INSTRUCTION_TYPE_CONSTANT: ast_ptx__make_constant(idx, top++); break;
            case AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION:
                top -= word.aux;
                ast_ptx__write_line(work, word, &temporary, top);
                *top++ = temporary;
                ast_ptx__count_up(&temporary, ++num_temporaries);
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE:
                ++frame;
                ast_ptx__open_routine(program, word, (size_t)(top - work->stack), frame);
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG: *top++ = work->stack[frame->first_arg + idx]; break;
            default: /* RETURN */
                if (frame == work->frames) {
                    return top - 1;
                }
                work->stack[frame->first_arg] = top[-1];
                top = work->stack + frame->first_arg + 1;
                --frame;
                break;
        }
    }
}

/* ---- compiling ---- */

AstPtxResult ast_ptx_compile_program(
    const char* output_register_name,
    const char* const* input_register_names,
    size_t num_inputs,
    const char* const* ptx_instruction_names,
    const uint16_t* ptx_instruction_num_args,
    size_t num_ptx_instructions,
    const AstPtxProgram* program,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out,
    AstPtxPlace* place_out
) {
    AstPtx__Work work;
    AstPtx__Rules rules;
    const AstPtx__Value* value;
    AstPtxResult result;
    uint32_t num_temporaries = 0;
    const size_t output_length = ast_ptx__check_name(output_register_name);
    size_t i;

    if (output_length == 0 || program == NULL || bytes_written_out == NULL || (input_register_names == NULL && num_inputs > 0) ||
        ((ptx_instruction_names == NULL || ptx_instruction_num_args == NULL) && num_ptx_instructions > 0)) {
        return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < num_inputs; ++i) {
        const size_t length = ast_ptx__check_name(input_register_names[i]);
        if (length == 0) {
            return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
        }
        if (i < AST_PTX__NUM_INPUTS) {
            ast_ptx__make_input(input_register_names[i], length, (uint32_t)i, &work.inputs[i]);
        }
    }
    for (i = 0; i < num_ptx_instructions; ++i) {
        if (ptx_instruction_names[i] == NULL) {
            return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
        }
    }
    rules.num_inputs = num_inputs;
    rules.ptx_instruction_num_args = ptx_instruction_num_args;
    rules.num_ptx_instructions = num_ptx_instructions;
    rules.unknown_instruction = AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS;
    result = ast_ptx__check(program, &rules, &num_temporaries, place_out);
    if (result != AST_PTX_SUCCESS) {
        return result;
    }

    for (i = 0; i < AST_PTX__NUM_NAMES; ++i) {
        work.name_sources[i] = NULL;
    }
    work.writer.buffer = buffer;
    work.writer.capacity = buffer == NULL || buffer_size == 0 ? 0 : buffer_size - 1;
    work.writer.length = 0;
    work.input_register_names = input_register_names;
    work.ptx_instruction_names = ptx_instruction_names;
    ast_ptx__write(&work.writer, "{\n", 2);
    if (num_temporaries > 0) {
        char digits[10];
        ast_ptx__write_string(&work.writer, ".reg .f32 %" AST_PTX_REGISTER_NAME "<");
        ast_ptx__write(&work.writer, digits, ast_ptx__format_decimal(num_temporaries, digits));
        ast_ptx__write(&work.writer, ">;\n", 3);
    }
    value = ast_ptx__write_lines(&work, program);
    ast_ptx__write(&work.writer, "mov.f32 %", 9);
    ast_ptx__write(&work.writer, output_register_name, output_length);
    ast_ptx__write(&work.writer, ", ", 2);
    ast_ptx__write_value(&work.writer, input_register_names, value);
    ast_ptx__write(&work.writer, ";\n}", 3);

    *bytes_written_out = work.writer.length;
    if (buffer != NULL) {
        if (buffer_size == 0 || work.writer.length > work.writer.capacity) {
            return AST_PTX__ERROR(AST_PTX_ERROR_INSUFFICIENT_BUFFER);
        }
        buffer[work.writer.length] = '\0';
    }
    return AST_PTX_SUCCESS;
}

AstPtxResult ast_ptx_compile(
    const char* output_register_name,
    const char* const* input_register_names,
    size_t num_inputs,
    const char* const* ptx_instruction_names,
    const uint16_t* ptx_instruction_num_args,
    size_t num_ptx_instructions,
    const AstPtxInstruction* const* routines,
    size_t num_routines,
    const AstPtxInstruction* instructions,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    AstPtxProgram program;
    program.instructions = instructions;
    program.num_instructions = SIZE_MAX;
    program.routines = routines;
    program.routine_lengths = NULL;
    program.num_routines = num_routines;
    return ast_ptx_compile_program(
        output_register_name,
        input_register_names,
        num_inputs,
        ptx_instruction_names,
        ptx_instruction_num_args,
        num_ptx_instructions,
        &program,
        buffer,
        buffer_size,
        bytes_written_out,
        NULL
    );
}

#endif /* AST_PTX_IMPLEMENTATION */
