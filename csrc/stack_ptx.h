/*
 * stack_ptx.h - Stack PTX: programs for a typed stack machine, lowered to PTX.
 *
 * A program is a list of 8-byte words. Running it on stacks of *values* (not numbers) yields an expression graph. The part
 * of that graph that the requested registers need is the lowered program. It is printed as a PTX stub, hashed, or run.
 *
 *     words -> stack_ptx_lower -> StackPtxLowered -> stack_ptx_emit   the stub's text
 *                                                 -> stack_ptx_hash   128 bits that equal programs share
 *                                                 -> ptx_vm.h         what it computes, on a CPU
 *
 * Usage
 *
 *     #define STACK_PTX_IMPLEMENTATION      in exactly one C or C++ file
 *     #include "stack_ptx.h"
 *
 *     StackPtxLanguageInfo info = {0};      what programs are written in: instruction set, registers, limits
 *     info.stack_info = &stack_info;
 *     info.registers = registers;           info.num_registers = 3;        x, y and z, all of them f32
 *     info.requests = requests;             info.num_requests = 1;         { 2 }: z
 *     info.limits = limits;
 *     stack_ptx_language_size(&info, &bytes);
 *     stack_ptx_language_init(&info, malloc(bytes), bytes, &language);
 *
 *     stack_ptx_workspace_size(language, &workspace_bytes);                once; then for each program:
 *     stack_ptx_lower(language, STACK_PTX_MODE_LENIENT, 0, words, num_words, workspace, workspace_bytes, &lowered, NULL);
 *     stack_ptx_emit(language, &lowered, workspace, workspace_bytes, buffer, buffer_size, &length);
 *
 * The words { input x, input y, mul.ftz.f32, constant 1.0, add.ftz.f32, return } give
 *
 *     {
 *     .reg .f32 %_s0_<2>;
 *     mul.ftz.f32 %_s0_0, %y, %x;
 *     add.ftz.f32 %_s0_1, 0f3F800000, %_s0_0;
 *     mov.f32 %z, %_s0_1;
 *     }
 *
 * stack_ptx_compile does all of this in one call.
 *
 * The implementation is in detail/stack_ptx_{language,run,fold,lower,emit}.h, which this file includes.
 *
 * Options, defined before this header is included
 *
 *     STACK_PTX_DEBUG     errors assert where they are found
 *     STACK_PTX_STATIC    functions are static; each including file also defines STACK_PTX_IMPLEMENTATION
 *
 * Memory and threads
 *
 * Nothing is allocated; the caller owns all memory, which may have any alignment and any contents. There is no global
 * state. A language is immutable once initialised and may be used by any number of threads; a workspace, by one at a time.
 * No pointer may be NULL unless its comment says so; a NULL gives STACK_PTX_ERROR_INVALID_VALUE.
 *
 * Meaning of a program
 *
 * There is one stack per stack type and one meta stack; a push onto a full one is dropped. Words run until a RETURN of the
 * main program, its last word, or the execution limit. A word that cannot apply is a no-op.
 *
 *   INPUT, CONSTANT   push a register, or 32 bits onto the stack `aux`. Only stacks with a constant type have constants.
 *   SPECIAL           pushes a special register; a vector one as .x .y .z .w in this order, so that w ends on top.
 *   PTX               pops its operands, the top being the first; pushes its results so that the first is on top. With too
 *                     few values on any stack it does nothing. A vector has its elements in this order too.
 *   META_CONSTANT     pushes onto the meta stack.
 *   META              on the stack `aux`; depths and counts are popped off the meta stack even if nothing else happens:
 *                     DUP        copies the top
 *                     YANK_DUP   copies the value at a depth (0 is the top)
 *                     SWAP       exchanges the top two
 *                     SWAP_WITH  exchanges the top and the value at a depth, unless the stack is full
 *                     REPLACE    pops the top and writes it over the value at a depth (counted before the pop), unless full
 *                     DROP       removes n values if there are more than n
 *                     CLEAR      removes all
 *                     ROTATE     moves the top below the next two; does nothing with fewer than three values
 *                     REVERSE    reverses the stack
 *   STORE, LOAD       pop the top of the stack `aux` into a store entry; push an entry's value, if any, onto its own stack.
 *   ROUTINE           runs another word list on the same stacks.
 *   RETURN            ends a word list.
 *
 * Only what the requests need is kept. In order, each request pops a value off its register's stack. It is written as a mov;
 * for 8-bit registers, which PTX's mov does not take, as a cvt.
 *
 * Modes: see StackPtxMode.
 */

#ifndef STACK_PTX_H
#define STACK_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail/result.h"

#define STACK_PTX_VERSION_MAJOR 1
#define STACK_PTX_VERSION_MINOR 1
#define STACK_PTX_VERSION_PATCH 0
#define STACK_PTX_VERSION (10000 * STACK_PTX_VERSION_MAJOR + 100 * STACK_PTX_VERSION_MINOR + STACK_PTX_VERSION_PATCH)
#define STACK_PTX_VERSION_STRING "1.1.0"

/* Changes whenever a program's hash or meaning changes; part of every hash. */
#define STACK_PTX_HASH_VERSION 3

#define STACK_PTX_ARRAY_NUM_ELEMS(array) (sizeof(array) / sizeof((array)[0]))

/* Before each declaration. It sets the linkage of the definition too. */
#define STACK_PTX_API EVO__API(STACK_PTX_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

typedef size_t StackPtxStackIdx;
typedef size_t StackPtxArgIdx;
typedef uint32_t StackPtxIdx; /* the payload of a word: an index of any kind */

/* ---- words ------------------------------------------------------------------------------------------------------- */

typedef enum {
    STACK_PTX_INSTRUCTION_TYPE_NONE = 0,
    STACK_PTX_INSTRUCTION_TYPE_PTX = 1,
    STACK_PTX_INSTRUCTION_TYPE_CONSTANT = 2,
    STACK_PTX_INSTRUCTION_TYPE_INPUT = 3,
    STACK_PTX_INSTRUCTION_TYPE_SPECIAL = 4,
    STACK_PTX_INSTRUCTION_TYPE_META = 5,
    STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT = 6,
    STACK_PTX_INSTRUCTION_TYPE_ROUTINE = 7,
    STACK_PTX_INSTRUCTION_TYPE_REGISTER = 8, /* internal to compilers; in a program an unknown type */
    STACK_PTX_INSTRUCTION_TYPE_AST_IDX = 9,  /* internal to compilers; in a program an unknown type */
    STACK_PTX_INSTRUCTION_TYPE_RETURN = 10,
    STACK_PTX_INSTRUCTION_TYPE_STORE = 11,
    STACK_PTX_INSTRUCTION_TYPE_LOAD = 12,
    STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS
} StackPtxInstructionType;

typedef enum {
    STACK_PTX_META_INSTRUCTION_DUP = 0,
    STACK_PTX_META_INSTRUCTION_YANK_DUP = 1,
    STACK_PTX_META_INSTRUCTION_SWAP = 2,
    STACK_PTX_META_INSTRUCTION_SWAP_WITH = 3,
    STACK_PTX_META_INSTRUCTION_REPLACE = 4,
    STACK_PTX_META_INSTRUCTION_DROP = 5,
    STACK_PTX_META_INSTRUCTION_CLEAR = 6,
    STACK_PTX_META_INSTRUCTION_ROTATE = 7,
    STACK_PTX_META_INSTRUCTION_REVERSE = 8,
    STACK_PTX_META_INSTRUCTION_NUM_ENUMS
} StackPtxMetaInstruction;

typedef union {
    uint32_t u;
    int32_t s;
    float f;
    uint32_t meta_constant;
    uint32_t reg;
    uint32_t ast_idx;
} StackPtxPayload;

#pragma pack(push, 1)

/* One word. As a little-endian uint64: type in bits 0-15, aux in 16-31, payload in 32-63. `aux` is a stack index for
   CONSTANT, META and STORE and is not read otherwise. `payload.u` is the index of a PTX instruction, input register, special
   register, meta operation, routine or store entry. */
typedef struct {
    uint16_t instruction_type;
    uint16_t aux;
    StackPtxPayload payload;
} StackPtxInstruction;

#pragma pack(pop)

/* STACK_PTX__WORD(type, aux, payload member, value): a word as an expression, which encoders expand to. It may initialise static
   objects too. For C, gcc has that as an extension, of which -Wpedantic warns unless __extension__ begins the declaration. */
#ifdef __cplusplus
} /* extern "C" */

/* C++ before 20 initialises only the first member of a union, except as an extension. */
constexpr StackPtxInstruction stack_ptx__word_u(uint16_t type, uint16_t aux, uint32_t value) {
    return StackPtxInstruction{type, aux, {value}};
}
constexpr StackPtxInstruction stack_ptx__word_s(uint16_t type, uint16_t aux, int32_t value) {
    return stack_ptx__word_u(type, aux, static_cast<uint32_t>(value));
}
constexpr StackPtxInstruction stack_ptx__word_f(uint16_t type, uint16_t aux, float value) {
    return StackPtxInstruction{type, aux, __extension__ StackPtxPayload{.f = value}};
}

extern "C" {
#define STACK_PTX__WORD(type, aux_value, member, value)                                                  \
    stack_ptx__word_##member(STACK_PTX_INSTRUCTION_TYPE_##type, static_cast<uint16_t>(aux_value), value)
#else
#define STACK_PTX__WORD(type, aux_value, member, value)                                 \
    (StackPtxInstruction) {                                                             \
        STACK_PTX_INSTRUCTION_TYPE_##type, (uint16_t)(aux_value), { .member = (value) } \
    }
#endif

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

#define STACK_PTX_MAX_NUM_ARGS 4
#define STACK_PTX_MAX_NUM_RETS 2
#define STACK_PTX_MAX_NUM_VEC_ELEMS 8

#pragma pack(push, 1)

/* An operand or result: a scalar of a stack (num_vec_elems 0), or a vector {a, b, ..} of that many of its values. */
typedef struct {
    uint16_t stack_idx;
    uint16_t num_vec_elems;
} StackPtxArgTypeInfo;

typedef struct {
    uint16_t stack_idx;
    uint16_t num_values;
} StackPtxPtxInstructionStackRequirement;

/* A PTX instruction. An unused element of arg_types or ret_types holds num_arg_types, and so do all after it. The stack
   requirements follow from arg_types; they are part of the layout and are not read. */
typedef struct {
    uint16_t arg_types[STACK_PTX_MAX_NUM_ARGS];
    uint16_t ret_types[STACK_PTX_MAX_NUM_RETS];
    uint16_t num_unique_stacks;
    bool is_aligned; /* all threads of a warp run it together; changes neither lowering nor text */
    StackPtxPtxInstructionStackRequirement unique_stacks[STACK_PTX_MAX_NUM_ARGS];
} StackPtxPtxInstructionDescriptor;

typedef struct {
    uint16_t arg_type_idx;
} StackPtxSpecialRegisterDescriptor;

#pragma pack(pop)

/* An instruction set. Arrays run parallel to their counts; special registers are named without the percent sign. Text
   after a space in an instruction's string is immediates, written after its operands: "lop3.b32 0x96". */
typedef struct {
    const char* const* ptx_instruction_strings;
    const StackPtxPtxInstructionDescriptor* ptx_instruction_descriptors;
    size_t num_ptx_instructions;
    const char* const* special_register_strings;
    const StackPtxSpecialRegisterDescriptor* special_register_descriptors;
    size_t num_special_registers;
    const char* const* stack_literal_prefixes; /* PTX register type of each stack: "f32", "pred" */
    size_t num_stacks;
    const StackPtxArgTypeInfo* arg_type_info;
    size_t num_arg_types;
} StackPtxStackInfo;

/* A register around the stub: `x` is written as %x. */
typedef struct {
    const char* name;
    uint16_t stack_idx;
} StackPtxRegister;

/* Type of a stack's constants, given as 32 bits. The 64-bit types are widened: F64 from a float, U64 with zeros, S64 with the
   sign. F16 and BF16 are the nearest of a float, ties to even. Printed 0f3F800000, 0x00000001U, 0x00000001, 0d3FF0000000000000,
   0x0000000000000001U, 0x0000000000000001, 0x3C00, 0x3F80. */
typedef enum {
    STACK_PTX_CONSTANT_TYPE_NONE = 0,
    STACK_PTX_CONSTANT_TYPE_F32 = 1,
    STACK_PTX_CONSTANT_TYPE_U32 = 2,
    STACK_PTX_CONSTANT_TYPE_S32 = 3,
    STACK_PTX_CONSTANT_TYPE_F64 = 4,
    STACK_PTX_CONSTANT_TYPE_U64 = 5,
    STACK_PTX_CONSTANT_TYPE_S64 = 6,
    STACK_PTX_CONSTANT_TYPE_F16 = 7, /* as operands, they are moved into registers: the assembler takes no others */
    STACK_PTX_CONSTANT_TYPE_BF16 = 8,
    STACK_PTX_CONSTANT_TYPE_NUM_ENUMS
} StackPtxConstantType;

typedef struct StackPtxInstructionTraits {
    uint8_t num_commutative; /* leading operands that may be swapped: 0 or 2; both scalars of one stack */
    uint8_t is_volatile;     /* may give a different result each time: never merged by value numbering */
    uint8_t registers_only; /* the assembler refuses constants as operands: each is moved into a register first */
} StackPtxInstructionTraits;

/* Facts about an instruction set beside StackPtxStackInfo. Each array runs parallel to one of its arrays. */
typedef struct StackPtxTraits {
    const StackPtxInstructionTraits* instructions; /* NULL: none commutes, none is volatile */
    const uint8_t* volatile_special_registers; /* 0 or 1 each. NULL: none is volatile */
    const uint8_t* constant_types; /* StackPtxConstantType of each stack. NULL: the one named like its prefix */
} StackPtxTraits;

/* Limits of stack_ptx_compile. */
typedef struct {
    size_t max_ast_size; /* values that a program may create */
    size_t max_ast_to_visit_stack_depth; /* not read: graphs are walked without a stack */
    size_t stack_size; /* values that a stack holds */
    size_t max_frame_depth; /* word lists open at once, the main program included; 0 gives an empty stub */
    size_t store_size; /* store entries */
} StackPtxCompilerInfo;

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* "strict" marks errors of a word that lenient mode does not report. */
#define STACK_PTX__RESULTS(X)                                                                                         \
    X(STACK_PTX_SUCCESS, 0)                                                                                           \
    X(STACK_PTX_ERROR_INTERNAL, 1) /* never given: nothing here can fail halfway */                                   \
    X(STACK_PTX_ERROR_WRONG_TYPE_DISPATCH, 2) /* strict: a constant of a stack that has no constants */               \
    X(STACK_PTX_ERROR_INSUFFICIENT_BUFFER, 3) /* the text does not fit */                                             \
    X(STACK_PTX_ERROR_INVALID_VALUE, 4) /* NULL, a bad name, limits out of range; strict: a depth out of range */     \
    X(STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE, 5) /* strict: more values than max_nodes */                              \
    X(STACK_PTX_ERROR_INSUFFICIENT_AST_VISIT_SIZE, 6) /* never given: graphs are walked without a stack */            \
    X(STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN, 7) /* strict: NONE, internal or unknown; past the limit */ \
    X(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE, 8)                                                                      \
    X(STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS, 9) /* strict */                                              \
    X(STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS, 10) /* strict */                                            \
    X(STACK_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS, 11) /* never given: inputs are registers */                            \
    X(STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS, 12) /* strict: an INPUT; a request */                               \
    X(STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS, 13) /* strict */                                            \
    X(STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS, 14) /* strict: `aux`; the stack of a register or argument type */      \
    X(STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS, 15) /* an argument type of an instruction or special register */         \
    X(STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS, 16) /* strict */                                                    \
    X(STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS, 17) /* strict */                                                       \
    X(STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS, 18) /* strict */

typedef enum { STACK_PTX__RESULTS(EVO__ENUMERATOR) STACK_PTX_RESULT_NUM_ELEMS } StackPtxResult;

/* The enumerator's name, or "STACK_PTX_RESULT_UNKNOWN". The text is static. */
STACK_PTX_API const char* stack_ptx_result_to_string(StackPtxResult result);

/* ---- languages --------------------------------------------------------------------------------------------------- */

/* Part of a program's meaning. Any may be 0; all but execution_limit must be below 2^28. */
typedef struct StackPtxLimits {
    uint32_t stack_size; /* values a stack holds; a push onto a full one is dropped */
    uint32_t max_nodes; /* values a program may create, dropped and equal ones included; it ends at a word that would
                                 create more */
    uint32_t max_frame_depth; /* word lists open at once, the main program included; deeper calls are no-ops */
    uint32_t store_size; /* store entries */
    uint32_t execution_limit; /* words run, RETURNs included */
} StackPtxLimits;

/* Static facts about an instruction, and the words that hold them. */
typedef enum {
    STACK_PTX_FOLD_NONE = 0, /* nothing: it stays */
    STACK_PTX_FOLD_CONSTANT = 1, /* its result is a constant: the bits */
    STACK_PTX_FOLD_OPERAND = 2, /* its result is one of its operands: the index */
    STACK_PTX_FOLD_INSTRUCTION = 3 /* it is another instruction on the same stacks, with another constant as one of its operands:
                                      the instruction, the operand's index, the bits */
} StackPtxFoldKind;

/* Computes instructions of constants while a program is lowered. An assembler does that too, with approximations of its own.

   `fold` gets an instruction with one result and up to four operands, of which bit k of `known` says whether operand k is the
   constant operands[k]; it writes up to three words. It is called for instructions that are not volatile and all of whose
   operands are known, or one of them on a stack without constants, such as a predicate. It is also called where one operand is
   known for which it gave FOLD_INSTRUCTION when the language was initialised, which asks about each operand alone, as a zero. It
   must depend on its arguments alone. ptx_vm_fold of ptx_vm.h is one. */
typedef StackPtxFoldKind (*StackPtxFoldFunction)(
    const void* context, uint32_t instruction_idx, uint32_t known, const uint32_t* operands, uint32_t* result_out
);

typedef struct StackPtxFolding {
    StackPtxFoldFunction fold; /* NULL: instructions of constants stay */
    const void* context;
} StackPtxFolding;

/* A template puts the functions of a program together. The words of a program up to its first META CLEAR, whatever the stack, are
   function 0, those up to the next one function 1, and so on; a function that the program lacks has no words. In a template, ROUTINE
   k with an `aux` of n stands for the words of function k, whose n arguments the template has put into the last store entries, the
   first into the last one: INPUT i becomes a LOAD of argument i modulo n, or is left out if n is 0. The template clears stacks
   between functions. A program whose instance would exceed the execution limit is empty. Places in an instance are those of its own
   words.

   In a template, a word of the type STACK_PTX_TEMPLATE_DERIVATIVE replaces the value y in the store entry `aux` by the derivative of
   y by the value x in the store entry `payload`, an input. The program ends there if that needs more nodes than there may be. */
#define STACK_PTX_TEMPLATE_DERIVATIVE STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS

struct StackPtxLowered;

/* The derivatives of templates. `derive` gets a lowered program with one request, y, all of whose nodes y needs, and the node of x, one
   of them. It writes a lowered program whose second request is the derivative. Its first nodes and values are those of the given one;
   the others are constants and plain instructions: not volatile, of at most four operands, with one result. It lies in `memory` and
   stays valid until the next call. Any result but SUCCESS means that there is not enough memory. It must depend on its arguments alone.
   derive_program of derive.h can do this. */
typedef StackPtxResult (*StackPtxDeriveFunction)(
    const void* context, const struct StackPtxLowered* lowered, uint32_t node, void* memory, size_t memory_bytes,
    struct StackPtxLowered* derived_out
);

typedef struct StackPtxDerivation {
    StackPtxDeriveFunction derive; /* NULL: the template has no derivative */
    const void* context;
    size_t memory_bytes; /* in each workspace, for a program of limits.max_nodes */
} StackPtxDerivation;

/* Instruction set and registers of programs. Keep the arrays and strings unchanged while the language is used. */
typedef struct StackPtxLanguageInfo {
    const StackPtxStackInfo* stack_info; /* the struct itself is needed only by stack_ptx_language_init */
    const StackPtxTraits* traits; /* NULL: all defaults. Needed only by stack_ptx_language_init */
    StackPtxLimits limits;
    const StackPtxRegister* registers; /* NULL if there are none. Registers of one name are one register */
    size_t num_registers;
    const size_t* requests; /* registers to write, in order. NULL if there are none */
    size_t num_requests;
    const StackPtxInstruction* const* routines; /* NULL if there are none */
    const size_t* routine_lengths; /* words of each. NULL: each ends with a RETURN */
    size_t num_routines;
    StackPtxFolding folding; /* zeros: none */
    const StackPtxInstruction* template_words; /* what runs instead of a program: see above. NULL: the program itself */
    size_t template_length;
    StackPtxDerivation derivation; /* zeros: none */
} StackPtxLanguageInfo;

/* The prepared form: strings measured and padded, operands resolved to stacks. It lies in the caller's memory. */
typedef struct StackPtxLanguage StackPtxLanguage;

/* SUCCESS if `name` may name a register: letters, digits, _ and $ (a percent sign comes before it), and neither a name
   that CUDA compilers give (f1, r2, rd3, p1, fd4, rs5, h6, hh7, b8, rc9, rq1, SP, SPL), nor a special register of PTX, nor
   one of this library's own (_s0_1). Otherwise, or for NULL, INVALID_VALUE. */
STACK_PTX_API StackPtxResult stack_ptx_check_name(const char* name);

/* Bytes that stack_ptx_language_init needs. Checks only what it reads. */
STACK_PTX_API StackPtxResult stack_ptx_language_size(const StackPtxLanguageInfo* info, size_t* bytes_out);

/* Prepares a language in `memory`, which the caller owns and must keep while the language is used.
   Errors: INVALID_VALUE, INSUFFICIENT_WORKSPACE, and STACK, ARG or REGISTER _IDX_OUT_OF_BOUNDS. */
STACK_PTX_API StackPtxResult stack_ptx_language_init(
    const StackPtxLanguageInfo* info, void* memory, size_t memory_bytes, const StackPtxLanguage** language_out
);

/* ---- lowering ---------------------------------------------------------------------------------------------------- */

typedef enum {
    /* Every sequence of words is a program: a word that cannot apply is a no-op. A program ends at either limit. A request that finds its stack empty is zero of its type. Requests are written as one parallel move, so a register may be both an
       input and a request. */
    STACK_PTX_MODE_LENIENT = 0,
    /* An unknown type, an index, depth or frame out of range, and words past the node limit or the execution limit are errors.
       The rest is as in STACK_PTX_MODE_COMPATIBLE. */
    STACK_PTX_MODE_STRICT = 1,
    /* Strict, but a depth or frame out of range is a no-op, and a program ends at the execution limit: what stack_ptx_compile
       does. A request that finds its stack empty is not written, and requests are written one after the other. */
    STACK_PTX_MODE_COMPATIBLE = 2
} StackPtxMode;

/* Flags of stack_ptx_lower. */
#define STACK_PTX_FLAG_NO_VALUE_NUMBERING 1u /* keep equal values apart; an input is still one node */
#define STACK_PTX_FLAG_NO_FOLDING 2u /* keep instructions of constants although the language folds them */

typedef enum {
    STACK_PTX_NODE_INPUT, /* payload: register index */
    STACK_PTX_NODE_CONSTANT, /* payload: 32 bits */
    STACK_PTX_NODE_SPECIAL, /* payload: special register index, and in bits 16-31 the element of a vector one */
    STACK_PTX_NODE_PTX /* payload: instruction index */
} StackPtxNodeKind;

typedef struct StackPtxNode {
    uint16_t kind; /* StackPtxNodeKind */
    uint16_t stack_idx; /* stack of its first value */
    uint16_t num_operands; /* vector elements counted one by one */
    uint16_t num_values; /* results; 1 for all but multi-result and vector instructions */
    uint32_t payload;
    uint32_t first_operand; /* into operands[] */
    uint32_t first_value; /* id of its first result; the others follow */
} StackPtxNode;

#define STACK_PTX_NO_VALUE UINT32_MAX

/* The lowered program: only the nodes that requests need, in evaluation order, each operand defined before its use. The arrays
   lie in the workspace and are valid until its next use by stack_ptx_lower. */
typedef struct StackPtxLowered {
    const StackPtxNode* nodes;
    const uint32_t* operands; /* value ids in PTX operand order, vector elements one by one; then room for three more */
    const uint32_t* value_nodes; /* node that defines each value */
    const uint16_t* value_stacks; /* stack of each value */
    const uint32_t* request_values; /* value of each request; STACK_PTX_NO_VALUE if the stack was empty */
    uint32_t num_nodes;
    uint32_t num_operands;
    uint32_t num_values;
    uint32_t num_requests;
    uint32_t num_instructions; /* nodes that are PTX instructions */
    StackPtxMode mode;
} StackPtxLowered;

#define STACK_PTX_MAIN_PROGRAM SIZE_MAX

/* Position of an error in a program. */
typedef struct StackPtxPlace {
    size_t routine_idx; /* STACK_PTX_MAIN_PROGRAM, or a routine */
    size_t word_idx; /* within that word list */
} StackPtxPlace;

/* Bytes of workspace that programs of this language need. */
STACK_PTX_API StackPtxResult stack_ptx_workspace_size(const StackPtxLanguage* language, size_t* bytes_out);

/* Lowers one program: num_words words, or fewer if a RETURN comes first. In lenient mode the only errors are
   INVALID_VALUE and INSUFFICIENT_WORKSPACE, which are the caller's. `words` may be NULL if num_words is 0. `place_out` may be
   NULL and is written only when a word is wrong. */
STACK_PTX_API StackPtxResult stack_ptx_lower(
    const StackPtxLanguage* language, StackPtxMode mode, uint32_t flags, const StackPtxInstruction* words, size_t num_words,
    void* workspace, size_t workspace_bytes, StackPtxLowered* lowered_out, StackPtxPlace* place_out
);

/* Writes the PTX stub and a NUL, which bytes_written_out does not count. The workspace is the one that `lowered` lies in,
   or any other of the same language. With buffer NULL the length is only measured: a buffer needs one byte more. On
   INSUFFICIENT_BUFFER bytes_written_out is the measured length and the buffer's contents are undefined. A language whose
   max_frame_depth is 0 runs nothing: outside lenient mode its stub is empty. */
STACK_PTX_API StackPtxResult stack_ptx_emit(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, void* workspace, size_t workspace_bytes, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
);

/* ---- canonical hash ---------------------------------------------------------------------------------------------- */

typedef struct StackPtxHash {
    uint64_t words[2];
} StackPtxHash;

/* The hash of what a lowered program computes: instructions by their text and the types of operands and results, constants
   by bits, inputs by register index and type, requests by type, and the limits. Operands that commute are ordered. Names of
   registers, dead code, the order of independent instructions and value numbering do not matter; volatile reads count in
   their order. Compare hashes only of programs lowered in one mode: modes differ in what a missing request means. Hashes are the
   same on every machine. The workspace is as for stack_ptx_emit. */
STACK_PTX_API StackPtxResult stack_ptx_hash(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, void* workspace, size_t workspace_bytes,
    StackPtxHash* hash_out
);

/* ---- all in one call --------------------------------------------------------------------------------------------- */

/* Bytes of workspace that stack_ptx_compile needs, for any number of registers, routines and requests. Checks the whole
   instruction set; stack_ptx_compile checks only what its program uses. */
STACK_PTX_API StackPtxResult stack_ptx_compile_workspace_size(
    const StackPtxCompilerInfo* compiler_info, const StackPtxStackInfo* stack_info, size_t* bytes_out
);

/* Compiles one program, in STACK_PTX_MODE_COMPATIBLE and without value numbering, to a stub and a NUL that
   bytes_written_out does not count. `instructions` and each routine end with a RETURN, or with the execution limit.
   `registers`, `routines` and `requests` may be NULL if there are none. Registers may have the names of a compiler's registers,
   such as f1; the rest is as stack_ptx_check_name says; the name of one that is neither read nor requested may be NULL. With a
   max_frame_depth of 0 the stub is empty, and only compiler_info and bytes_written_out are read. Buffer and errors as for
   stack_ptx_emit and stack_ptx_lower. For many programs of one language, prepare the language once and call those. */
STACK_PTX_API StackPtxResult stack_ptx_compile(
    const StackPtxCompilerInfo* compiler_info, const StackPtxStackInfo* stack_info, const StackPtxInstruction* instructions,
    const StackPtxRegister* registers, size_t num_registers, const StackPtxInstruction** routines, size_t num_routines,
    const size_t* requests, size_t num_requests, size_t execution_limit, void* workspace, size_t workspace_bytes, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
);

#ifdef __cplusplus
}
#endif

#endif /* STACK_PTX_H */

#if defined(STACK_PTX_IMPLEMENTATION) && !defined(STACK_PTX_IMPLEMENTATION_ONCE)
#define STACK_PTX_IMPLEMENTATION_ONCE
#include "detail/stack_ptx_language.h"
#include "detail/stack_ptx_run.h"
#include "detail/stack_ptx_fold.h"
#include "detail/stack_ptx_lower.h"
#include "detail/stack_ptx_emit.h"
#endif
