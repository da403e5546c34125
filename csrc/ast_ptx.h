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

#include "detail/result.h"

#define AST_PTX_VERSION_MAJOR 1
#define AST_PTX_VERSION_MINOR 1
#define AST_PTX_VERSION_PATCH 0
#define AST_PTX_VERSION (10000 * AST_PTX_VERSION_MAJOR + 100 * AST_PTX_VERSION_MINOR + AST_PTX_VERSION_PATCH)
#define AST_PTX_VERSION_STRING "1.1.0"

/* Before each declaration. It sets the linkage of the definition too. */
#define AST_PTX_API EVO__API(AST_PTX_STATIC)

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

#define AST_PTX__RESULTS(X)                                                                                    \
    X(AST_PTX_SUCCESS, 0)                                                                                      \
    X(AST_PTX_ERROR_INTERNAL, 1) /* never given: a program that passed its check cannot fail */                \
    X(AST_PTX_ERROR_INSUFFICIENT_BUFFER, 2) /* the text does not fit */                                        \
    X(AST_PTX_ERROR_INVALID_VALUE,                                                                             \
      3) /* NULL, a bad name, another number of operands than in the table, more than one value at a RETURN */ \
    X(AST_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN,                                                       \
      4) /* NONE, REGISTER or unknown; past AST_PTX_MAX_INSTRUCTIONS words; no RETURN */                       \
    X(AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS, 5)                                                                \
    X(AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS, 6) /* not given by interpreters, which have no table */ \
    X(AST_PTX_ERROR_STACK_OVERFLOW, 7) /* more than AST_PTX_STACK_DEPTH values */                              \
    X(AST_PTX_ERROR_STACK_UNDERFLOW, 8) /* too few values for operands, arguments or a RETURN */               \
    X(AST_PTX_ERROR_TOO_MANY_ARGS, 9) /* more operands than AST_PTX_MAX_INSTRUCTION_ARGS */                    \
    X(AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION, 10) /* interpreters only: an instruction without a CPU meaning */ \
    X(AST_PTX_ERROR_ROUTINE_IDX_OUT_OF_BOUNDS, 11)                                                             \
    X(AST_PTX_ERROR_ROUTINE_ARG_IDX_OUT_OF_BOUNDS, 12) /* also any ROUTINE_ARG of the program itself */        \
    X(AST_PTX_ERROR_ROUTINE_DEPTH_EXCEEDED, 13) /* more routines open than AST_PTX_ROUTINE_DEPTH */

typedef enum { AST_PTX__RESULTS(EVO__ENUMERATOR) AST_PTX_RESULT_NUM_ELEMS } AstPtxResult;

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
    const char* output_register_name, const char* const* input_register_names, size_t num_inputs,
    const char* const* ptx_instruction_names, const uint16_t* ptx_instruction_num_args, size_t num_ptx_instructions,
    const AstPtxInstruction* const* routines, size_t num_routines, const AstPtxInstruction* instructions, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
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

/* Position of an error in a program. */
typedef struct AstPtxPlace {
    size_t routine_idx; /* AST_PTX_MAIN_PROGRAM, or a routine */
    size_t word_idx;    /* within that word list; its length if a RETURN is missing */
} AstPtxPlace;

/* As ast_ptx_compile, for a program of known size. `place_out` may be NULL and is written only when a word is wrong: an
   INVALID_VALUE that is not a word's fault leaves it unchanged. */
AST_PTX_API AstPtxResult ast_ptx_compile_program(
    const char* output_register_name, const char* const* input_register_names, size_t num_inputs,
    const char* const* ptx_instruction_names, const uint16_t* ptx_instruction_num_args, size_t num_ptx_instructions,
    const AstPtxProgram* program, char* buffer, size_t buffer_size, size_t* bytes_written_out, AstPtxPlace* place_out
);

#ifdef __cplusplus
}
#endif

#endif /* AST_PTX_H */

/* ---- shared by the implementations of this header and of ast_ptx_interpreter.h ------------------------------------ */

#if (defined(AST_PTX_IMPLEMENTATION) || defined(AST_PTX_INTERPRETER_H)) && !defined(AST_PTX_CHECK_ONCE)
#define AST_PTX_CHECK_ONCE

#include "detail/ptx_text.h"

#define AST_PTX__ERROR(code) EVO__ERROR(AST_PTX_DEBUG, code)

/* Sets that words are checked against. */
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
PTX_TEXT__COLD AstPtxResult ast_ptx__check_word(
    const AstPtxProgram* program, const AstPtx__Rules* rules, const AstPtx__Frame* frame, size_t num_values,
    AstPtxInstruction word
) {
    const size_t idx = word.payload.idx;
    switch (word.instruction_type) {
        case AST_PTX_INSTRUCTION_TYPE_CONSTANT: return AST_PTX_SUCCESS;
        case AST_PTX_INSTRUCTION_TYPE_INPUT:
            return idx < rules->num_inputs ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS);
        case AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION:
            if (idx >= rules->num_ptx_instructions) return AST_PTX__ERROR(rules->unknown_instruction);
            if (word.aux > AST_PTX_MAX_INSTRUCTION_ARGS || rules->ptx_instruction_num_args[idx] > AST_PTX_MAX_INSTRUCTION_ARGS)
                return AST_PTX__ERROR(AST_PTX_ERROR_TOO_MANY_ARGS);
            if (word.aux != rules->ptx_instruction_num_args[idx]) return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
            return num_values >= word.aux ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_STACK_UNDERFLOW);
        case AST_PTX_INSTRUCTION_TYPE_ROUTINE:
            if (idx >= program->num_routines) return AST_PTX__ERROR(AST_PTX_ERROR_ROUTINE_IDX_OUT_OF_BOUNDS);
            if (program->routines[idx] == NULL) return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
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

const char* ast_ptx_result_to_string(AstPtxResult result) { EVO__RETURN_NAME(result, AST_PTX__RESULTS, "AST_PTX_RESULT_UNKNOWN") }

/* ---- names ---- */

/* The length of a valid name, otherwise 0. */
static size_t ast_ptx__name_length(const char* name) {
    const size_t length = name == NULL ? 0 : ptx_text__identifier_length(name);
    return length > 0 && !ptx_text__is_reserved(name, length) && !ptx_text__is_numbered(name, AST_PTX_REGISTER_NAME) ? length : 0;
}

AstPtxResult ast_ptx_check_name(const char* name) {
    return ast_ptx__name_length(name) > 0 ? AST_PTX_SUCCESS : AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
}

/* ---- text ---- */

/* A value whose text is too long for its padded form begins with this. */
typedef struct AstPtx__Long {
    uint32_t idx; /* number of a temporary, or of an input */
    char is_input;
} AstPtx__Long;

enum { AST_PTX__NUM_NAMES = 32, AST_PTX__NUM_INPUTS = 16 }; /* cached; powers of two */

/* All that writing a stub needs. */
typedef struct AstPtx__Work {
    PtxText__Writer writer;
    const char* const* input_register_names;
    const char* const* ptx_instruction_names;
    bool has_long_texts; /* some value's text is too long for its padded form */
    PtxText__Value stem; /* of temporaries */
    PtxText__Value inputs[AST_PTX__NUM_INPUTS]; /* the first ones */
    const char* name_sources[AST_PTX__NUM_NAMES]; /* what is cached, by index; NULL: nothing */
    PtxText__Name names[AST_PTX__NUM_NAMES];
    AstPtx__Frame frames[AST_PTX_ROUTINE_DEPTH + 1];
    PtxText__Value stack[AST_PTX_STACK_DEPTH];
} AstPtx__Work;

static void ast_ptx__make_input(AstPtx__Work* work, const char* name, size_t length, uint32_t idx, PtxText__Value* value_out) {
    ptx_text__make_register(name, length, value_out);
    if (value_out->length == PTX_TEXT__LONG) {
        const AstPtx__Long which = {idx, 1};
        memcpy(value_out->text, &which, sizeof which);
        work->has_long_texts = true;
    }
}

PTX_TEXT__HOT void ast_ptx__make_temporary(AstPtx__Work* work, uint32_t number, PtxText__Value* value_out) {
    if (work->stem.length == PTX_TEXT__LONG || ptx_text__make_temporary(&work->stem, number, value_out)) {
        const AstPtx__Long which = {number, 0};
        memcpy(value_out->text, &which, sizeof which);
        value_out->length = PTX_TEXT__LONG;
        work->has_long_texts = true;
    }
}

PTX_TEXT__HOT void ast_ptx__make_constant(uint32_t bits, PtxText__Value* value_out) {
    memcpy(value_out->text, ", 0f", 4);
    ptx_text__format_hex(bits, true, value_out->text + 4);
    value_out->length = 12;
}

/* A value of any length, without the comma before it. */
static void ast_ptx__write_value(AstPtx__Work* work, const PtxText__Value* value) {
    PtxText__Writer* writer = &work->writer;
    AstPtx__Long which;
    memcpy(&which, value->text, sizeof which);
    if (value->length != PTX_TEXT__LONG) {
        ptx_text__write(writer, value->text + 2, value->length - 2u);
    } else if (which.is_input) {
        ptx_text__write(writer, "%", 1);
        ptx_text__write_string(writer, work->input_register_names[which.idx]);
    } else {
        ptx_text__write_string(writer, "%" AST_PTX_REGISTER_NAME);
        ptx_text__write_decimal(writer, which.idx);
    }
}

/* The cached form of a name; NULL if it is too long. */
PTX_TEXT__HOT const PtxText__Name* ast_ptx__find_name(AstPtx__Work* work, uint32_t idx) {
    PtxText__Name* name = &work->names[idx % AST_PTX__NUM_NAMES];
    const char* source = work->ptx_instruction_names[idx];
    if (work->name_sources[idx % AST_PTX__NUM_NAMES] != source) {
        if (!ptx_text__make_name(source, strlen(source), name)) return NULL;
        work->name_sources[idx % AST_PTX__NUM_NAMES] = source;
    }
    return name;
}

/* The line of an instruction of any form. */
PTX_TEXT__COLD void ast_ptx__write_any_line(
    AstPtx__Work* work, AstPtxInstruction word, const PtxText__Value* result, const PtxText__Value* operands
) {
    ptx_text__write_string(&work->writer, work->ptx_instruction_names[word.payload.idx]);
    ptx_text__write(&work->writer, " ", 1);
    ast_ptx__write_value(work, result);
    for (size_t i = 0; i < word.aux; ++i) {
        ptx_text__write(&work->writer, ", ", 2);
        ast_ptx__write_value(work, &operands[i]);
    }
    ptx_text__write(&work->writer, ";\n", 2);
}

PTX_TEXT__HOT void ast_ptx__write_line(
    AstPtx__Work* work, AstPtxInstruction word, const PtxText__Value* result, const PtxText__Value* operands
) {
    static const PtxText__Value missing = {"", 0};
    const PtxText__Name* name = ast_ptx__find_name(work, word.payload.idx);
    PtxText__Writer* writer = &work->writer;
    if (name == NULL || work->has_long_texts || word.aux > 4) {
        ast_ptx__write_any_line(work, word, result, operands);
        return;
    }
    writer->length = ptx_text__write_line(
        writer->buffer, writer->capacity, writer->length, name, result, word.aux > 0 ? &operands[0] : &missing,
        word.aux > 1 ? &operands[1] : &missing, word.aux > 2 ? &operands[2] : &missing, word.aux > 3 ? &operands[3] : NULL
    );
}

/* The lines of a program that passed its check. Returns its value. */
static const PtxText__Value* ast_ptx__write_lines(AstPtx__Work* work, const AstPtxProgram* program) {
    AstPtx__Frame* frame = work->frames;
    PtxText__Value* top = work->stack;
    uint32_t num_temporaries = 0;
    ast_ptx__open_program(program, frame);
    for (;;) {
        const AstPtxInstruction word = frame->words[frame->next++];
        const uint32_t idx = word.payload.idx;
        PtxText__Value result;
        switch (word.instruction_type) {
            case AST_PTX_INSTRUCTION_TYPE_INPUT:
                if (idx < AST_PTX__NUM_INPUTS) {
                    *top++ = work->inputs[idx];
                } else {
                    const char* name = work->input_register_names[idx];
                    ast_ptx__make_input(work, name, strlen(name), idx, top++);
                }
                break;
            case AST_PTX_INSTRUCTION_TYPE_CONSTANT: ast_ptx__make_constant(idx, top++); break;
            case AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION:
                top -= word.aux;
                ast_ptx__make_temporary(work, num_temporaries++, &result);
                ast_ptx__write_line(work, word, &result, top);
                *top++ = result;
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE:
                ++frame;
                ast_ptx__open_routine(program, word, (size_t)(top - work->stack), frame);
                break;
            case AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG: *top++ = work->stack[frame->first_arg + idx]; break;
            default: /* RETURN */
                if (frame == work->frames) return top - 1;
                work->stack[frame->first_arg] = top[-1];
                top = work->stack + frame->first_arg + 1;
                --frame;
                break;
        }
    }
}

/* ---- compiling ---- */

AstPtxResult ast_ptx_compile_program(
    const char* output_register_name, const char* const* input_register_names, size_t num_inputs,
    const char* const* ptx_instruction_names, const uint16_t* ptx_instruction_num_args, size_t num_ptx_instructions,
    const AstPtxProgram* program, char* buffer, size_t buffer_size, size_t* bytes_written_out, AstPtxPlace* place_out
) {
    AstPtx__Work work;
    AstPtx__Rules rules;
    const PtxText__Value* value;
    AstPtxResult result;
    uint32_t num_temporaries = 0;
    const size_t output_length = ast_ptx__name_length(output_register_name);

    if (output_length == 0 || program == NULL || bytes_written_out == NULL || (input_register_names == NULL && num_inputs > 0) ||
        ((ptx_instruction_names == NULL || ptx_instruction_num_args == NULL) && num_ptx_instructions > 0)) {
        return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    }
    work.has_long_texts = false;
    for (size_t i = 0; i < num_inputs; ++i) {
        const size_t length = ast_ptx__name_length(input_register_names[i]);
        if (length == 0) return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
        if (i < AST_PTX__NUM_INPUTS) ast_ptx__make_input(&work, input_register_names[i], length, (uint32_t)i, &work.inputs[i]);
    }
    for (size_t i = 0; i < num_ptx_instructions; ++i)
        if (ptx_instruction_names[i] == NULL) return AST_PTX__ERROR(AST_PTX_ERROR_INVALID_VALUE);
    rules.num_inputs = num_inputs;
    rules.ptx_instruction_num_args = ptx_instruction_num_args;
    rules.num_ptx_instructions = num_ptx_instructions;
    rules.unknown_instruction = AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS;
    result = ast_ptx__check(program, &rules, &num_temporaries, place_out);
    if (result != AST_PTX_SUCCESS) return result;

    for (size_t i = 0; i < AST_PTX__NUM_NAMES; ++i) work.name_sources[i] = NULL;
    work.writer = ptx_text__open(buffer, buffer_size);
    work.input_register_names = input_register_names;
    work.ptx_instruction_names = ptx_instruction_names;
    ptx_text__make_register(AST_PTX_REGISTER_NAME, strlen(AST_PTX_REGISTER_NAME), &work.stem);
    ptx_text__write(&work.writer, "{\n", 2);
    if (num_temporaries > 0) {
        ptx_text__write_string(&work.writer, ".reg .f32 %" AST_PTX_REGISTER_NAME "<");
        ptx_text__write_decimal(&work.writer, num_temporaries);
        ptx_text__write(&work.writer, ">;\n", 3);
    }
    value = ast_ptx__write_lines(&work, program);
    ptx_text__write(&work.writer, "mov.f32 %", 9);
    ptx_text__write(&work.writer, output_register_name, output_length);
    ptx_text__write(&work.writer, ", ", 2);
    ast_ptx__write_value(&work, value);
    ptx_text__write(&work.writer, ";\n}", 3);
    return ptx_text__close(&work.writer, buffer_size, bytes_written_out) ? AST_PTX_SUCCESS
                                                                         : AST_PTX__ERROR(AST_PTX_ERROR_INSUFFICIENT_BUFFER);
}

AstPtxResult ast_ptx_compile(
    const char* output_register_name, const char* const* input_register_names, size_t num_inputs,
    const char* const* ptx_instruction_names, const uint16_t* ptx_instruction_num_args, size_t num_ptx_instructions,
    const AstPtxInstruction* const* routines, size_t num_routines, const AstPtxInstruction* instructions, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
) {
    AstPtxProgram program;
    program.instructions = instructions;
    program.num_instructions = SIZE_MAX;
    program.routines = routines;
    program.routine_lengths = NULL;
    program.num_routines = num_routines;
    return ast_ptx_compile_program(
        output_register_name, input_register_names, num_inputs, ptx_instruction_names, ptx_instruction_num_args,
        num_ptx_instructions, &program, buffer, buffer_size, bytes_written_out, NULL
    );
}

#endif /* AST_PTX_IMPLEMENTATION */
