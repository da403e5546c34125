/*
 * stack_ptx.h - Stack PTX: programs for a typed stack machine, lowered to PTX.
 *
 * A program is a list of 8-byte words. Running it on stacks of *values* (not numbers) yields an expression graph; what
 * the requested registers need of that graph is the lowered program, which is printed as a PTX stub, hashed, or run.
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
 * or use stack_ptx_compile, which does all of it in one call.
 *
 * Options, defined before the implementation
 *
 *     STACK_PTX_DEBUG     an error becomes a failed assert at the place where it was found
 *
 * Memory and threads
 *
 * Nothing is allocated; the caller owns all memory, which may have any alignment and any contents. There is no global
 * state. A language is immutable once initialised and may be used by any number of threads; a workspace by one at a time.
 * No pointer may be NULL unless its comment says so; where one is, the answer is STACK_PTX_ERROR_INVALID_VALUE.
 *
 * Meaning of a program
 *
 * There is one stack per stack type and one meta stack; a push onto a full one is dropped. Words run until a RETURN of the
 * main program, its last word, or the execution limit. A word that cannot apply is a no-op.
 *
 *   INPUT, CONSTANT   push a register, or 32 bits onto the stack `aux`. Only stacks with a constant type have constants.
 *   SPECIAL           pushes a special register; of a vector one .x .y .z .w in this order, so that w ends on top.
 *   PTX               pops its operands, the top being the first; pushes its results so that the first is on top. With too
 *                     few values on any stack it does nothing. A vector has its elements in this order too.
 *   META_CONSTANT     pushes onto the meta stack.
 *   META              on the stack `aux`; depths and counts are popped off the meta stack even if nothing else happens:
 *                     DUP        copies the top
 *                     YANK_DUP   copies the value at a depth (0 is the top)
 *                     SWAP       exchanges the top two
 *                     SWAP_WITH  exchanges the top and the value at a depth, unless the stack is full
 *                     REPLACE    pops the top and writes it over the value at a depth (counted before the pop), unless full
 *                     DROP       removes n values where there are more than n
 *                     CLEAR      removes all
 *                     ROTATE     moves the top to the bottom
 *                     REVERSE    reverses the stack
 *   STORE, LOAD       pop the top of the stack `aux` into a slot; push a slot's value, if it has one, onto its own stack.
 *   ROUTINE           runs another word list on the same stacks.
 *   RETURN            ends a word list.
 *
 * Only what the requests need is kept. In order, each request pops a value off its register's stack.
 *
 * Modes: see StackPtxMode.
 */

#ifndef STACK_PTX_H
#define STACK_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_PTX_VERSION_MAJOR 1
#define STACK_PTX_VERSION_MINOR 1
#define STACK_PTX_VERSION_PATCH 0

/* Changes whenever a program's hash changes; part of every hash. */
#define STACK_PTX_HASH_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

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
   register, meta operation, routine or slot. */
typedef struct {
    uint16_t instruction_type;
    uint16_t aux;
    StackPtxPayload payload;
} StackPtxInstruction;

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

#define STACK_PTX_MAX_NUM_ARGS 4
#define STACK_PTX_MAX_NUM_RETS 2
#define STACK_PTX_MAX_NUM_VEC_ELEMS 8

/* An operand or result: a scalar of a stack (num_vec_elems 0), or a vector {a, b, ..} of that many of its values. */
typedef struct {
    uint16_t stack_idx;
    uint16_t num_vec_elems;
} StackPtxArgTypeInfo;

typedef struct {
    uint16_t stack_idx;
    uint16_t num_values;
} StackPtxPtxInstructionStackRequirement;

/* A PTX instruction. An unused slot of arg_types or ret_types holds num_arg_types, and so do all after it. The stack
   requirements follow from arg_types and are not read: they are part of the layout. */
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

/* An instruction set. Arrays run parallel to their counts; special registers are named without the percent sign. */
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

/* What a stack's constants are, given as 32 bits. The 64-bit types are widened: F64 from a float, U64 with zeros, S64 with the
   sign. Printed 0f3F800000, 0x00000001U, 0x00000001, 0d3FF0000000000000, 0x0000000000000001U, 0x0000000000000001. */
typedef enum {
    STACK_PTX_CONSTANT_TYPE_NONE = 0,
    STACK_PTX_CONSTANT_TYPE_F32 = 1,
    STACK_PTX_CONSTANT_TYPE_U32 = 2,
    STACK_PTX_CONSTANT_TYPE_S32 = 3,
    STACK_PTX_CONSTANT_TYPE_F64 = 4,
    STACK_PTX_CONSTANT_TYPE_U64 = 5,
    STACK_PTX_CONSTANT_TYPE_S64 = 6,
    STACK_PTX_CONSTANT_TYPE_NUM_ENUMS
} StackPtxConstantType;

typedef struct StackPtxInstructionTraits {
    uint8_t num_commutative; /* leading operands that may be swapped: 0 or 2; both scalars of one stack */
    uint8_t is_volatile;     /* may give another result each time: never merged by value numbering */
} StackPtxInstructionTraits;

/* What StackPtxStackInfo does not say about an instruction set. Each array runs parallel to one of its own. */
typedef struct StackPtxTraits {
    const StackPtxInstructionTraits* instructions; /* NULL: none commutes, none is volatile */
    const uint8_t* volatile_special_registers;     /* 0 or 1 each. NULL: none is volatile */
    const uint8_t* constant_types;                 /* StackPtxConstantType of each stack. NULL: the one named like its prefix */
} StackPtxTraits;

/* What stack_ptx_compile may use. */
typedef struct {
    size_t max_ast_size;                 /* values that a program may create */
    size_t max_ast_to_visit_stack_depth; /* not read: graphs are walked without a stack */
    size_t stack_size;                   /* values that a stack holds */
    size_t max_frame_depth;              /* word lists open at once, the main program included; 0 gives an empty stub */
    size_t store_size;                   /* slots of STORE and LOAD */
} StackPtxCompilerInfo;

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* "strict" marks what only the modes other than lenient report, at a word. */
typedef enum {
    STACK_PTX_SUCCESS = 0,
    STACK_PTX_ERROR_INTERNAL = 1,            /* never given: nothing here can fail halfway */
    STACK_PTX_ERROR_WRONG_TYPE_DISPATCH = 2, /* strict: a constant of a stack that has no constants */
    STACK_PTX_ERROR_INSUFFICIENT_BUFFER = 3, /* the text does not fit */
    STACK_PTX_ERROR_INVALID_VALUE = 4,       /* NULL, a bad name, limits out of range; strict: a depth out of range */
    STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE = 5,       /* strict: more values than max_nodes */
    STACK_PTX_ERROR_INSUFFICIENT_AST_VISIT_SIZE = 6, /* never given: graphs are walked without a stack */
    STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN = 7, /* strict: NONE, an internal or an unknown type */
    STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE = 8,
    STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS = 9,   /* strict */
    STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS = 10, /* strict */
    STACK_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS = 11,            /* never given: inputs are registers */
    STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS = 12,         /* strict: an INPUT; a request */
    STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS = 13, /* strict */
    STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS = 14,            /* strict: `aux`; the stack of a register or argument type */
    STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS = 15,              /* an argument type of an instruction or special register */
    STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS = 16,         /* strict */
    STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS = 17,            /* strict */
    STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS = 18,             /* strict */
    STACK_PTX_RESULT_NUM_ENUMS
} StackPtxResult;

/* The enumerator's name, or "STACK_PTX_RESULT_UNKNOWN". The text is static. */
const char* stack_ptx_result_to_string(StackPtxResult result);

/* ---- languages --------------------------------------------------------------------------------------------------- */

/* Part of a program's meaning. Any may be 0; all but execution_limit stay below 2^28. */
typedef struct StackPtxLimits {
    uint32_t stack_size;      /* values a stack holds; a push onto a full one is dropped */
    uint32_t max_nodes;       /* values a program may create, dropped and equal ones included; it ends at a word that would
                                 create more */
    uint32_t max_frame_depth; /* word lists open at once, the main program included; deeper calls are no-ops */
    uint32_t store_size;      /* slots of STORE and LOAD */
    uint32_t execution_limit; /* words run, RETURNs included */
} StackPtxLimits;

/* What programs are written in and connected to. The arrays and strings must stay as they are while the language is used. */
typedef struct StackPtxLanguageInfo {
    const StackPtxStackInfo* stack_info;        /* itself needed only by stack_ptx_language_init */
    const StackPtxTraits* traits;               /* NULL: the defaults of its fields. Needed only by stack_ptx_language_init */
    StackPtxLimits limits;
    const StackPtxRegister* registers;          /* NULL if there are none. A name may occur twice and is then one register */
    size_t num_registers;
    const size_t* requests;                     /* registers to write, in order. NULL if there are none */
    size_t num_requests;
    const StackPtxInstruction* const* routines; /* NULL if there are none */
    const size_t* routine_lengths;              /* words of each. NULL: each ends with a RETURN */
    size_t num_routines;
} StackPtxLanguageInfo;

/* The prepared form: strings measured and padded, operands resolved to stacks. It lies in the caller's memory. */
typedef struct StackPtxLanguage StackPtxLanguage;

/* SUCCESS if `name` may name a register: letters, digits, _ and $ (a percent sign comes before it), and neither a name
   that CUDA compilers give (f1, r2, rd3, p1, fd4, rs5, h6, hh7, b8, rc9, rq1, SP, SPL), nor a special register of PTX, nor
   one of this library's own (_s0_1). Else, or for NULL, INVALID_VALUE. */
StackPtxResult stack_ptx_check_name(const char* name);

/* Bytes that stack_ptx_language_init needs. Checks nothing but what it reads. */
StackPtxResult stack_ptx_language_size(const StackPtxLanguageInfo* info, size_t* bytes_out);

/* Prepares a language in `memory`, which the caller owns and keeps while it is used.
   Errors: INVALID_VALUE, INSUFFICIENT_WORKSPACE, and STACK, ARG or REGISTER _IDX_OUT_OF_BOUNDS. */
StackPtxResult stack_ptx_language_init(
    const StackPtxLanguageInfo* info,
    void* memory,
    size_t memory_bytes,
    const StackPtxLanguage** language_out
);

/* The instruction set of a language: a copy of the struct that it was made from. Valid as long as the language. */
const StackPtxStackInfo* stack_ptx_language_stack_info(const StackPtxLanguage* language);

/* ---- lowering ---------------------------------------------------------------------------------------------------- */

typedef enum {
    /* Every sequence of words is a program: what cannot apply is a no-op. At the node limit a program ends. A request that
       finds its stack empty is zero of its type, and requests are written as one parallel move, so that registers may be
       both inputs and requests. */
    STACK_PTX_MODE_LENIENT = 0,
    /* An error for unknown types, an index, depth or frame out of range, and for reaching the node limit. The rest is as in
       STACK_PTX_MODE_COMPATIBLE. */
    STACK_PTX_MODE_STRICT = 1,
    /* Strict, but a depth or frame out of range is a no-op: what stack_ptx_compile does. A request that finds its stack empty
       is not written, and requests are written one after the other. */
    STACK_PTX_MODE_COMPATIBLE = 2
} StackPtxMode;

/* Flags of stack_ptx_lower. */
#define STACK_PTX_FLAG_NO_VALUE_NUMBERING 1u /* keep equal values apart; an input is one node all the same */

typedef enum {
    STACK_PTX_NODE_INPUT,    /* payload: register index */
    STACK_PTX_NODE_CONSTANT, /* payload: 32 bits */
    STACK_PTX_NODE_SPECIAL,  /* payload: special register index, and in bits 16-31 the element of a vector one */
    STACK_PTX_NODE_PTX       /* payload: instruction index */
} StackPtxNodeKind;

typedef struct StackPtxNode {
    uint16_t kind;          /* StackPtxNodeKind */
    uint16_t stack_idx;     /* stack of its first value */
    uint16_t num_operands;  /* vector elements counted one by one */
    uint16_t num_values;    /* results; 1 for all but multi-result and vector instructions */
    uint32_t payload;
    uint32_t first_operand; /* into operands[] */
    uint32_t first_value;   /* id of its first result; the others follow */
} StackPtxNode;

#define STACK_PTX_NO_VALUE UINT32_MAX

/* The lowered program: nodes in evaluation order, those alone that requests need, each operand defined before its use. The
   arrays lie in the workspace and last until its next use by stack_ptx_lower. */
typedef struct StackPtxLowered {
    const StackPtxNode* nodes;
    const uint32_t* operands;       /* value ids in PTX operand order, vector elements one by one */
    const uint32_t* value_nodes;    /* node that defines each value */
    const uint16_t* value_stacks;   /* stack of each value */
    const uint32_t* request_values; /* value of each request; STACK_PTX_NO_VALUE where the stack was empty */
    uint32_t num_nodes;
    uint32_t num_operands;
    uint32_t num_values;
    uint32_t num_requests;
    uint32_t num_instructions;      /* nodes that are PTX instructions */
    StackPtxMode mode;
} StackPtxLowered;

#define STACK_PTX_MAIN_PROGRAM SIZE_MAX

/* Where a program is wrong. */
typedef struct StackPtxPlace {
    size_t routine_idx; /* STACK_PTX_MAIN_PROGRAM, or a routine */
    size_t word_idx;    /* within that word list */
} StackPtxPlace;

/* Bytes of workspace that programs of this language need. */
StackPtxResult stack_ptx_workspace_size(const StackPtxLanguage* language, size_t* bytes_out);

/* Lowers one program: num_words words, or fewer if a RETURN comes first. In lenient mode the only errors are
   INVALID_VALUE and INSUFFICIENT_WORKSPACE, which are the caller's. `words` may be NULL if num_words is 0. `place_out` may be
   NULL and is written only when a word is wrong. */
StackPtxResult stack_ptx_lower(
    const StackPtxLanguage* language,
    StackPtxMode mode,
    uint32_t flags,
    const StackPtxInstruction* words,
    size_t num_words,
    void* workspace,
    size_t workspace_bytes,
    StackPtxLowered* lowered_out,
    StackPtxPlace* place_out
);

/* Writes the PTX stub and a NUL, which bytes_written_out does not count. The workspace is the one that `lowered` lies in,
   or any other of the same language. With buffer NULL the length is only measured: a buffer needs one byte more. On
   INSUFFICIENT_BUFFER bytes_written_out is what a measurement gives, and the buffer's contents are of no use. A language
   whose max_frame_depth is 0 runs nothing: outside lenient mode its stub is empty. */
StackPtxResult stack_ptx_emit(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    void* workspace,
    size_t workspace_bytes,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
);

/* ---- canonical hash ---------------------------------------------------------------------------------------------- */

typedef struct StackPtxHash {
    uint64_t words[2];
} StackPtxHash;

/* The hash of what a lowered program computes: instructions by their text and the types of operands and results, constants
   by bits, inputs by register index and type, requests by type, and the limits. Operands that commute are ordered. Names of
   registers, dead code, the order of independent instructions and value numbering do not matter; volatile reads count by
   their order. The same on every machine. The workspace as for stack_ptx_emit. */
StackPtxResult stack_ptx_hash(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    void* workspace,
    size_t workspace_bytes,
    StackPtxHash* hash_out
);

/* ---- all in one call --------------------------------------------------------------------------------------------- */

/* Bytes of workspace that stack_ptx_compile needs, however many registers, routines and requests there are. */
StackPtxResult stack_ptx_compile_workspace_size(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    size_t* bytes_out
);

/* Compiles one program, in STACK_PTX_MODE_COMPATIBLE and without value numbering, to a stub and a NUL that
   bytes_written_out does not count. `instructions` and each routine end with a RETURN, or with the execution limit.
   `registers`, `routines` and `requests` may be NULL if there are none. Buffer and errors as for stack_ptx_emit and
   stack_ptx_lower. For many programs of one language, prepare it once and use those. */
StackPtxResult stack_ptx_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    const StackPtxInstruction* instructions,
    const StackPtxRegister* registers,
    size_t num_registers,
    const StackPtxInstruction** routines,
    size_t num_routines,
    const size_t* requests,
    size_t num_requests,
    size_t execution_limit,
    void* workspace,
    size_t workspace_bytes,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
);

#ifdef __cplusplus
}
#endif

#endif /* STACK_PTX_H */

/* ---- implementation ---------------------------------------------------------------------------------------------- */

#ifdef STACK_PTX_IMPLEMENTATION
#ifndef STACK_PTX_IMPLEMENTATION_ONCE
#define STACK_PTX_IMPLEMENTATION_ONCE

#include <string.h>

#ifdef STACK_PTX_DEBUG
#include <assert.h>
#define STACK_PTX__ERROR(code) (assert(0 && #code), (code))
#else
#define STACK_PTX__ERROR(code) (code)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What runs for every word is inlined whole, what runs rarely is kept out of it: worth a third of the time. */
#if defined(__GNUC__)
#define STACK_PTX__HOT static inline __attribute__((always_inline))
#define STACK_PTX__COLD static __attribute__((noinline, cold))
#else
#define STACK_PTX__HOT static inline
#define STACK_PTX__COLD static
#endif

#define STACK_PTX__ALIGNMENT 64u
#define STACK_PTX__MAX_COUNT ((size_t)1 << 28)
/* Unused values before the first stack: a plain op reads four values down from the top, be they there or not. */
#define STACK_PTX__STACKS_MARGIN 4u
#define STACK_PTX__MAX_OPERANDS (STACK_PTX_MAX_NUM_ARGS * STACK_PTX_MAX_NUM_VEC_ELEMS)
#define STACK_PTX__MAX_VALUES (STACK_PTX_MAX_NUM_RETS * STACK_PTX_MAX_NUM_VEC_ELEMS)

/* How a PTX instruction takes its operands. A plain one has up to four scalar operands, all from one stack, and one result; it
   takes them without a branch. */
typedef struct StackPtx__Op {
    uint32_t in_stack;
    uint32_t out_stack;
    uint32_t num_operands;
    uint32_t is_plain;
    uint64_t operand_masks[2]; /* of two operands each, all ones where there is one */
    uint64_t commutes;         /* all ones where the first two operands do */
    uint64_t padding[3];       /* to 64 bytes */
} StackPtx__Op;

/* What becomes of a value in the lowered program, by op: there is an op for each PTX instruction and each special register, and
   one for the inputs and one for the constants of each stack. */
typedef struct StackPtx__OpNode {
    StackPtxNode node; /* all but payload bits of the word, first_operand and first_value */
    uint8_t is_volatile;
    uint8_t is_simple_text; /* one scalar result, scalar operands, a short name */
    uint8_t is_ptx;
    uint8_t is_large;       /* more than four operands or one value */
    uint8_t padding[7];     /* to 32 bytes */
} StackPtx__OpNode;

/* Short texts are padded so that they can be copied by fixed sizes. */
typedef struct StackPtx__Text64 {
    char text[60];
    uint32_t length;
} StackPtx__Text64;

/* A value with the comma before it: ", %x", ", %_s0_12", ", 0f3F800000". A length of STACK_PTX__LONG says that it does not fit;
   of a temporary the text then holds the number. */
typedef struct StackPtx__Text16 {
    char text[15];
    uint8_t length;
} StackPtx__Text16;

#define STACK_PTX__LONG 255u

typedef struct StackPtx__Stack {
    StackPtxHash type_hash;
    uint32_t constant_type;
} StackPtx__Stack;

typedef struct StackPtx__Register {
    uint64_t head;          /* of its row */
    StackPtx__Text16 text;  /* ", %x" */
    uint32_t canonical;     /* first register of the same name */
    uint32_t first_request; /* first request that writes it; set on canonical registers */
} StackPtx__Register;

/* Byte offsets of the arrays in a workspace. */
typedef struct StackPtx__Layout {
    size_t stacks, stack_rows, meta, store, frames;
    size_t rows, table, live, value_ids;
    size_t nodes, operands, value_nodes, value_stacks, request_values;
    size_t moves, pending, scratch, sorted_nodes, num_temporaries, num_named;
    size_t bytes;
    uint32_t table_size; /* a power of two */
} StackPtx__Layout;

struct StackPtxLanguage {
    StackPtxStackInfo stack_info;
    StackPtxLimits limits;
    const StackPtxRegister* registers;
    const size_t* requests;
    const StackPtxInstruction* const* routines;
    const size_t* routine_lengths;
    size_t num_registers;
    size_t num_requests;
    size_t num_routines;

    StackPtx__Op* ops;
    StackPtx__OpNode* op_nodes;
    StackPtx__Text64* op_texts;
    StackPtx__Stack* stacks;
    StackPtx__Text16* stems; /* ", %_s0_" of each stack */
    uint32_t first_special;
    uint32_t first_input;
    uint32_t first_constant;
    uint32_t follower;     /* op of the second and further values of a node */
    uint32_t continuation; /* op of the rows of operands beyond the fourth */
    uint32_t num_ops;

    /* NULL in the bare form that stack_ptx_compile uses; it neither hashes nor moves in parallel. */
    StackPtxHash* op_hashes;
    StackPtx__Register* register_infos;
    StackPtxHash salt;


    StackPtx__Layout layout;
};

/* A value while the program runs; row 0 is no value. More than four operands continue in a row of their own, which stands for
   the last of the four. Second and further values of a node follow it, with it as their operand. */
typedef struct StackPtx__Row {
    uint64_t head;        /* op, and in the upper half the bits of a constant, an input's register, or a special register's
                             element << 16 */
    uint64_t operands[2]; /* two rows each, the first in the lower half; or 0 */
} StackPtx__Row;

typedef struct StackPtx__Frame {
    const StackPtxInstruction* words;
    size_t next;
    size_t length;
    size_t routine_idx;
} StackPtx__Frame;

typedef struct StackPtx__Slot {
    uint32_t row; /* 0: nothing stored */
    uint32_t stack_idx;
} StackPtx__Slot;

/* The stack of a type: rows from base up to but not at top. There is room for one more than fits, and for a plain op to read
   four down from any top. */
typedef struct StackPtx__Values {
    uint32_t* base;
    uint32_t* top;
    uint32_t* full; /* where top stops */
} StackPtx__Values;

typedef struct StackPtx__Temporary {
    uint32_t stack_idx;
    uint32_t number;
} StackPtx__Temporary;

typedef enum StackPtx__MoveKind {
    STACK_PTX__MOVE_VALUE,  /* value to register; STACK_PTX_NO_VALUE is zero */
    STACK_PTX__MOVE_SAVED,  /* temporary to register */
    STACK_PTX__MOVE_TO_SAVE /* register to temporary */
} StackPtx__MoveKind;

/* A line at the end of a stub. */
typedef struct StackPtx__Move {
    uint32_t kind;
    uint32_t request;
    uint32_t value;
    StackPtx__Temporary temporary;
} StackPtx__Move;

/* A request while a parallel move is put in order. Registers by their canonical index; UINT32_MAX is none. */
typedef struct StackPtx__Pending {
    uint32_t is_pending;
    uint32_t target;
    uint32_t source;
    uint32_t is_saved; /* the source, in a temporary */
    StackPtx__Temporary temporary;
} StackPtx__Pending;

typedef struct StackPtx__Work {
    StackPtx__Values* stacks;
    uint32_t* stack_rows;
    uint32_t* meta;
    StackPtx__Slot* store;
    StackPtx__Frame* frames;
    StackPtx__Row* rows;
    uint32_t* table;
    uint8_t* live;
    uint32_t* value_ids;
    StackPtxNode* nodes;
    uint32_t* operands;
    uint32_t* value_nodes;
    uint16_t* value_stacks;
    uint32_t* request_values;
    StackPtx__Move* moves;
    StackPtx__Pending* pending;
    void* scratch; /* one StackPtx__Text16 or StackPtxHash for each value */
    uint32_t* sorted_nodes;    /* those with temporaries, then the others backwards */
    uint32_t* num_temporaries; /* of each stack, in all */
    uint32_t* num_named;       /* of each stack, so far */

    /* State of the running program. */
    uint32_t num_rows;
    uint32_t num_created;
    uint32_t num_meta;
    uint32_t table_shift; /* 64 - log2 of the part of the table in use */
    uint32_t part_mask;   /* size of that part - 1 */
    uint32_t grow_at;     /* rows at which that part is enlarged */
    int is_numbering;     /* equal values are merged */
    int has_long_texts;   /* some value's text does not fit into its slot */
} StackPtx__Work;

/* ---- small things ---- */

const char* stack_ptx_result_to_string(StackPtxResult result) {
    switch (result) {
#define STACK_PTX__CASE(name) case name: return #name
        STACK_PTX__CASE(STACK_PTX_SUCCESS);
        STACK_PTX__CASE(STACK_PTX_ERROR_INTERNAL);
        STACK_PTX__CASE(STACK_PTX_ERROR_WRONG_TYPE_DISPATCH);
        STACK_PTX__CASE(STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        STACK_PTX__CASE(STACK_PTX_ERROR_INVALID_VALUE);
        STACK_PTX__CASE(STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE);
        STACK_PTX__CASE(STACK_PTX_ERROR_INSUFFICIENT_AST_VISIT_SIZE);
        STACK_PTX__CASE(STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN);
        STACK_PTX__CASE(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
        STACK_PTX__CASE(STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_INPUT_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS);
        STACK_PTX__CASE(STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS);
#undef STACK_PTX__CASE
        case STACK_PTX_RESULT_NUM_ENUMS: break;
    }
    return "STACK_PTX_RESULT_UNKNOWN";
}

STACK_PTX__HOT uint64_t stack_ptx__pair(uint32_t low, uint32_t high) {
    return low | (uint64_t)high << 32;
}

/* Length of the run of digits that starts at `text`. */
static size_t stack_ptx__num_digits(const char* text) {
    return strspn(text, "0123456789");
}

/* True for a prefix, one digit or more, and the end. */
static bool stack_ptx__is_numbered(const char* name, const char* prefix) {
    const size_t length = strlen(prefix);
    size_t num_digits;
    if (strncmp(name, prefix, length) != 0) {
        return false;
    }
    num_digits = stack_ptx__num_digits(name + length);
    return num_digits > 0 && name[length + num_digits] == '\0';
}

StackPtxResult stack_ptx_check_name(const char* name) {
    static const char* const identifier =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$";
    /* Names of NVVM's virtual registers, by class, and of its stack pointers. */
    static const char* const numbered[] = {"p", "rs", "r", "rd", "rq", "rc", "f", "fd", "h", "hh", "b", "envreg", "pm"};
    static const char* const whole[] = {
        "SP", "SPL", "tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid",
        "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank", "cluster_nctarank",
        "is_explicit_cluster", "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi",
        "total_smem_size", "aggr_smem_size", "dynamic_smem_size", "current_graph_exec",
    };
    static const char* const families[] = {"lanemask_", "reserved_smem_"};
    size_t i;

    if (name == NULL || name[0] == '\0' || name[strspn(name, identifier)] != '\0') {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < sizeof numbered / sizeof numbered[0]; ++i) {
        if (stack_ptx__is_numbered(name, numbered[i])) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    for (i = 0; i < sizeof whole / sizeof whole[0]; ++i) {
        if (strcmp(name, whole[i]) == 0) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    for (i = 0; i < sizeof families / sizeof families[0]; ++i) {
        if (strncmp(name, families[i], strlen(families[i])) == 0) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    if (name[0] == '_' && name[1] == 's') { /* _s<digits>_<digits> */
        const char* rest = name + 2;
        const size_t num_digits = stack_ptx__num_digits(rest);
        if (num_digits > 0 && stack_ptx__is_numbered(rest + num_digits, "_")) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return STACK_PTX_SUCCESS;
}

static char* stack_ptx__align(void* memory) {
    const uintptr_t address = (uintptr_t)memory;
    return (char*)memory + ((0u - address) & (STACK_PTX__ALIGNMENT - 1u));
}

/* Reserves an array and returns its offset. Counts are below 2^28 times a small factor, so that 64 bits do not overflow. */
static size_t stack_ptx__reserve(uint64_t* total, uint64_t count, uint64_t item_bytes) {
    const uint64_t offset = *total;
    *total = (offset + count * item_bytes + STACK_PTX__ALIGNMENT - 1u) & ~(uint64_t)(STACK_PTX__ALIGNMENT - 1u);
    return (size_t)offset;
}

/* ---- 128-bit mixing ----
   A state of two lanes absorbs blocks of two words. For a fixed state a step is a bijection of the block, and for a fixed
   block one of the state. */

#define STACK_PTX__MIX_1 UINT64_C(0x9E3779B97F4A7C15) /* 2^64 / golden ratio, odd */
#define STACK_PTX__MIX_2 UINT64_C(0xBF58476D1CE4E5B9) /* these two: the multipliers of SplitMix64 (Stafford's variant 13) */
#define STACK_PTX__MIX_3 UINT64_C(0x94D049BB133111EB)
#define STACK_PTX__MIX_4 UINT64_C(0xD6E8FEB86659FD93) /* multiplier of rrmxmx-like mixers, odd */

/* What a state is begun or ended with, so that different things of the same bits have different hashes. */
enum {
    STACK_PTX__TAG_INSTRUCTION = 1,
    STACK_PTX__TAG_SPECIAL,
    STACK_PTX__TAG_INPUT,
    STACK_PTX__TAG_CONSTANT,
    STACK_PTX__TAG_TYPE,
    STACK_PTX__TAG_PROGRAM,
    STACK_PTX__TAG_NODE,
    STACK_PTX__TAG_VOLATILE,
    STACK_PTX__TAG_RESULT,
    STACK_PTX__TAG_MISSING
};

STACK_PTX__HOT uint64_t stack_ptx__rotate(uint64_t x, unsigned count) {
    return (x << (count & 63u)) | (x >> ((0u - count) & 63u));
}

STACK_PTX__HOT void stack_ptx__absorb(StackPtxHash* state, uint64_t x, uint64_t y) {
    uint64_t a = (state->words[0] ^ x) * STACK_PTX__MIX_1;
    uint64_t b = (state->words[1] ^ y) * STACK_PTX__MIX_2;
    a ^= a >> 32;
    b ^= b >> 29;
    a += b;
    b = stack_ptx__rotate(b, 31) ^ a;
    a *= STACK_PTX__MIX_3;
    b *= STACK_PTX__MIX_4;
    state->words[0] = a ^ (a >> 31);
    state->words[1] = b ^ (b >> 33);
}

static StackPtxHash stack_ptx__hash_begin(uint64_t tag) {
    StackPtxHash state;
    state.words[0] = STACK_PTX__MIX_3 + tag;
    state.words[1] = STACK_PTX__MIX_1;
    stack_ptx__absorb(&state, tag, STACK_PTX_HASH_VERSION);
    return state;
}

/* Absorbs the characters of `text` and then those of `suffix`, as if they were one string. */
static void stack_ptx__absorb_text(StackPtxHash* state, const char* text, const char* suffix) {
    const size_t text_length = strlen(text);
    const size_t length = text_length + strlen(suffix);
    size_t i, k;
    for (i = 0; i < length; i += 8) {
        uint64_t word = 0;
        for (k = i; k < i + 8 && k < length; ++k) {
            const char character = k < text_length ? text[k] : suffix[k - text_length];
            word |= (uint64_t)(unsigned char)character << (8 * (k - i));
        }
        stack_ptx__absorb(state, word, i);
    }
    stack_ptx__absorb(state, length, STACK_PTX__TAG_TYPE);
}

/* ---- languages: description of an instruction ---- */

/* Elements of an operand or result: 1 for a scalar. */
static uint32_t stack_ptx__num_elems(const StackPtxStackInfo* info, uint32_t arg_type) {
    const uint32_t num_vec_elems = info->arg_type_info[arg_type].num_vec_elems;
    return num_vec_elems == 0 ? 1 : num_vec_elems;
}

static bool stack_ptx__is_vector(const StackPtxStackInfo* info, uint32_t arg_type) {
    return info->arg_type_info[arg_type].num_vec_elems != 0;
}

static uint32_t stack_ptx__num_args(const StackPtxStackInfo* info, const StackPtxPtxInstructionDescriptor* descriptor) {
    uint32_t n = 0;
    while (n < STACK_PTX_MAX_NUM_ARGS && descriptor->arg_types[n] < info->num_arg_types) {
        ++n;
    }
    return n;
}

static uint32_t stack_ptx__num_rets(const StackPtxStackInfo* info, const StackPtxPtxInstructionDescriptor* descriptor) {
    uint32_t n = 0;
    while (n < STACK_PTX_MAX_NUM_RETS && descriptor->ret_types[n] < info->num_arg_types) {
        ++n;
    }
    return n;
}

static StackPtxResult stack_ptx__check_arg_types(const uint16_t* arg_types, size_t count, size_t num_arg_types) {
    size_t i;
    for (i = 0; i < count; ++i) {
        if (arg_types[i] > num_arg_types) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
        }
        if (i > 0 && arg_types[i - 1] == num_arg_types && arg_types[i] != num_arg_types) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return STACK_PTX_SUCCESS;
}

static StackPtxResult stack_ptx__check_descriptor(
    const StackPtxStackInfo* info,
    const StackPtxPtxInstructionDescriptor* descriptor,
    const StackPtxInstructionTraits* traits
) {
    /* Copies, because the members of a packed struct have no alignment. */
    uint16_t arg_types[STACK_PTX_MAX_NUM_ARGS];
    uint16_t ret_types[STACK_PTX_MAX_NUM_RETS];
    StackPtxResult result;

    memcpy(arg_types, descriptor->arg_types, sizeof arg_types);
    memcpy(ret_types, descriptor->ret_types, sizeof ret_types);
    result = stack_ptx__check_arg_types(arg_types, STACK_PTX_MAX_NUM_ARGS, info->num_arg_types);
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__check_arg_types(ret_types, STACK_PTX_MAX_NUM_RETS, info->num_arg_types);
    }
    if (result == STACK_PTX_SUCCESS && traits != NULL && traits->num_commutative != 0) {
        if (traits->num_commutative != 2 || stack_ptx__num_args(info, descriptor) < 2 || arg_types[0] != arg_types[1] ||
            stack_ptx__is_vector(info, arg_types[0])) {
            result = STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return result;
}

static StackPtxResult stack_ptx__check_stack_info(const StackPtxStackInfo* info, const StackPtxTraits* traits) {
    size_t i;
    if ((info->num_ptx_instructions > 0 &&
         (info->ptx_instruction_strings == NULL || info->ptx_instruction_descriptors == NULL)) ||
        (info->num_special_registers > 0 &&
         (info->special_register_strings == NULL || info->special_register_descriptors == NULL)) ||
        (info->num_stacks > 0 && info->stack_literal_prefixes == NULL) ||
        (info->num_arg_types > 0 && info->arg_type_info == NULL) ||
        info->num_ptx_instructions >= STACK_PTX__MAX_COUNT || info->num_special_registers > UINT16_MAX ||
        info->num_stacks > UINT16_MAX || info->num_arg_types > UINT16_MAX) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < info->num_stacks; ++i) {
        if (info->stack_literal_prefixes[i] == NULL ||
            (traits != NULL && traits->constant_types != NULL &&
             traits->constant_types[i] >= STACK_PTX_CONSTANT_TYPE_NUM_ENUMS)) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    for (i = 0; i < info->num_arg_types; ++i) {
        if (info->arg_type_info[i].stack_idx >= info->num_stacks) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS);
        }
        if (info->arg_type_info[i].num_vec_elems > STACK_PTX_MAX_NUM_VEC_ELEMS) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    for (i = 0; i < info->num_ptx_instructions; ++i) {
        const StackPtxInstructionTraits* of_one =
            traits == NULL || traits->instructions == NULL ? NULL : &traits->instructions[i];
        StackPtxResult result;
        if (info->ptx_instruction_strings[i] == NULL) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
        result = stack_ptx__check_descriptor(info, &info->ptx_instruction_descriptors[i], of_one);
        if (result != STACK_PTX_SUCCESS) {
            return result;
        }
    }
    for (i = 0; i < info->num_special_registers; ++i) {
        const size_t arg_type = info->special_register_descriptors[i].arg_type_idx;
        if (arg_type >= info->num_arg_types) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
        }
        /* .x .y .z .w are all the elements that there are. */
        if (info->special_register_strings[i] == NULL || info->arg_type_info[arg_type].num_vec_elems > 4) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return STACK_PTX_SUCCESS;
}

static StackPtxResult stack_ptx__check_connections(const StackPtxLanguageInfo* info) {
    const StackPtxStackInfo* stack_info = info->stack_info;
    size_t i, k;
    for (i = 0; i < info->num_registers; ++i) {
        const StackPtxRegister* one = &info->registers[i];
        if (one->name == NULL) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
        if (one->stack_idx >= stack_info->num_stacks) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS);
        }
        if (stack_ptx_check_name(one->name) != STACK_PTX_SUCCESS) {
            return STACK_PTX_ERROR_INVALID_VALUE;
        }
        for (k = 0; k < i; ++k) {
            const StackPtxRegister* other = &info->registers[k];
            if (strcmp(one->name, other->name) == 0 &&
                strcmp(
                    stack_info->stack_literal_prefixes[one->stack_idx], stack_info->stack_literal_prefixes[other->stack_idx]
                ) != 0) {
                return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
            }
        }
    }
    for (i = 0; i < info->num_requests; ++i) {
        if (info->requests[i] >= info->num_registers) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS);
        }
    }
    for (i = 0; i < info->num_routines; ++i) {
        if (info->routines[i] == NULL && (info->routine_lengths == NULL || info->routine_lengths[i] > 0)) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return STACK_PTX_SUCCESS;
}

/* What stack_ptx_language_size relies on. */
static StackPtxResult stack_ptx__check_counts(const StackPtxLanguageInfo* info) {
    if (info == NULL || info->stack_info == NULL || (info->num_registers > 0 && info->registers == NULL) ||
        (info->num_requests > 0 && info->requests == NULL) || (info->num_routines > 0 && info->routines == NULL) ||
        info->num_registers >= STACK_PTX__MAX_COUNT || info->num_requests >= STACK_PTX__MAX_COUNT ||
        info->limits.stack_size >= STACK_PTX__MAX_COUNT || info->limits.max_nodes >= STACK_PTX__MAX_COUNT ||
        info->limits.max_frame_depth >= STACK_PTX__MAX_COUNT || info->limits.store_size >= STACK_PTX__MAX_COUNT ||
        info->stack_info->num_ptx_instructions >= STACK_PTX__MAX_COUNT ||
        info->stack_info->num_special_registers > UINT16_MAX || info->stack_info->num_stacks > UINT16_MAX ||
        STACK_PTX__STACKS_MARGIN + (uint64_t)info->stack_info->num_stacks * (info->limits.stack_size + 1u) > UINT32_MAX) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    return STACK_PTX_SUCCESS;
}

/* ---- languages: memory ---- */

/* Reserves the arrays of a language; with a base, sets its pointers to them. Returns the bytes, alignment included. */
static size_t stack_ptx__place_language(StackPtxLanguage* language, const StackPtxLanguageInfo* info, int is_bare, char* base) {
    const StackPtxStackInfo* stack_info = info->stack_info;
    const uint64_t num_ops =
        (uint64_t)stack_info->num_ptx_instructions + stack_info->num_special_registers + 2 * stack_info->num_stacks + 2;
    uint64_t total = 0;
    size_t ops, op_nodes, op_texts, stacks, stems, op_hashes, register_infos;

    (void)stack_ptx__reserve(&total, 1, sizeof(StackPtxLanguage));
    ops = stack_ptx__reserve(&total, stack_info->num_ptx_instructions, sizeof(StackPtx__Op));
    op_nodes = stack_ptx__reserve(&total, num_ops, sizeof(StackPtx__OpNode));
    op_texts = stack_ptx__reserve(&total, stack_info->num_ptx_instructions, sizeof(StackPtx__Text64));
    stacks = stack_ptx__reserve(&total, stack_info->num_stacks, sizeof(StackPtx__Stack));
    stems = stack_ptx__reserve(&total, stack_info->num_stacks, sizeof(StackPtx__Text16));
    op_hashes = stack_ptx__reserve(&total, is_bare ? 0 : num_ops, sizeof(StackPtxHash));
    register_infos = stack_ptx__reserve(&total, is_bare ? 0 : info->num_registers, sizeof(StackPtx__Register));
    if (base != NULL) {
        language->ops = (StackPtx__Op*)(void*)(base + ops);
        language->op_nodes = (StackPtx__OpNode*)(void*)(base + op_nodes);
        language->op_texts = (StackPtx__Text64*)(void*)(base + op_texts);
        language->stacks = (StackPtx__Stack*)(void*)(base + stacks);
        language->stems = (StackPtx__Text16*)(void*)(base + stems);
        language->op_hashes = is_bare ? NULL : (StackPtxHash*)(void*)(base + op_hashes);
        language->register_infos = is_bare ? NULL : (StackPtx__Register*)(void*)(base + register_infos);
    }
    total += STACK_PTX__ALIGNMENT;
    return total > SIZE_MAX / 2 ? SIZE_MAX : (size_t)total;
}

/* The most operands that an instruction has, vectors counted by elements. */
static uint32_t stack_ptx__max_operands(const StackPtxStackInfo* info) {
    uint32_t most = 0;
    size_t i;
    uint32_t k;
    for (i = 0; i < info->num_ptx_instructions; ++i) {
        const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[i];
        uint32_t count = 0;
        for (k = stack_ptx__num_args(info, descriptor); k > 0; --k) {
            count += stack_ptx__num_elems(info, descriptor->arg_types[k - 1]);
        }
        most = count > most ? count : most;
    }
    return most;
}

/* The arrays of a workspace for so many registers, requests and lines that write requests. */
static void stack_ptx__place_work(
    StackPtx__Layout* layout,
    const StackPtxLimits* limits,
    const StackPtxStackInfo* stack_info,
    size_t num_registers,
    size_t num_requests,
    size_t max_moves
) {
    const uint64_t num_stacks = stack_info->num_stacks;
    const uint64_t max_operands = stack_ptx__max_operands(stack_info);
    const uint64_t rows_per_node = 1 + (max_operands > 4 ? (max_operands - 2) / 3 : 0);
    const uint64_t max_rows = num_registers + limits->max_nodes * rows_per_node + 1;
    const uint64_t max_values = (uint64_t)num_registers + limits->max_nodes + 1;
    const uint64_t operands_per_node = max_operands > 4 ? max_operands : 4;
    uint64_t table_size = 16;
    uint64_t total = 0;

    while (table_size < 2 * max_rows) {
        table_size *= 2;
    }
    layout->table_size = (uint32_t)table_size;
    layout->stacks = stack_ptx__reserve(&total, num_stacks, sizeof(StackPtx__Values));
    layout->stack_rows = stack_ptx__reserve(
        &total, STACK_PTX__STACKS_MARGIN + num_stacks * ((uint64_t)limits->stack_size + 1), sizeof(uint32_t)
    );
    layout->meta = stack_ptx__reserve(&total, limits->stack_size, sizeof(uint32_t));
    layout->store = stack_ptx__reserve(&total, limits->store_size, sizeof(StackPtx__Slot));
    layout->frames = stack_ptx__reserve(&total, limits->max_frame_depth, sizeof(StackPtx__Frame));
    layout->rows = stack_ptx__reserve(&total, max_rows, sizeof(StackPtx__Row));
    layout->table = stack_ptx__reserve(&total, table_size, sizeof(uint32_t));
    layout->live = stack_ptx__reserve(&total, max_rows, sizeof(uint8_t));
    layout->value_ids = stack_ptx__reserve(&total, max_rows, sizeof(uint32_t));
    layout->nodes = stack_ptx__reserve(&total, max_values, sizeof(StackPtxNode));
    layout->operands = stack_ptx__reserve(&total, max_values * operands_per_node, sizeof(uint32_t));
    layout->value_nodes = stack_ptx__reserve(&total, max_values, sizeof(uint32_t));
    layout->value_stacks = stack_ptx__reserve(&total, max_values, sizeof(uint16_t));
    layout->request_values = stack_ptx__reserve(&total, num_requests, sizeof(uint32_t));
    layout->moves = stack_ptx__reserve(&total, max_moves, sizeof(StackPtx__Move));
    layout->pending = stack_ptx__reserve(&total, num_requests, sizeof(StackPtx__Pending));
    layout->scratch = stack_ptx__reserve(&total, max_values, sizeof(StackPtxHash));
    layout->sorted_nodes = stack_ptx__reserve(&total, max_values, sizeof(uint32_t));
    layout->num_temporaries = stack_ptx__reserve(&total, num_stacks, sizeof(uint32_t));
    layout->num_named = stack_ptx__reserve(&total, num_stacks, sizeof(uint32_t));
    total += STACK_PTX__ALIGNMENT;
    layout->bytes = total > SIZE_MAX / 2 ? SIZE_MAX : (size_t)total;
}

static void stack_ptx__open_work(const StackPtxLanguage* language, void* workspace, StackPtx__Work* work) {
    const StackPtx__Layout* layout = &language->layout;
    char* base = stack_ptx__align(workspace);
    work->stacks = (StackPtx__Values*)(void*)(base + layout->stacks);
    work->stack_rows = (uint32_t*)(void*)(base + layout->stack_rows);
    work->meta = (uint32_t*)(void*)(base + layout->meta);
    work->store = (StackPtx__Slot*)(void*)(base + layout->store);
    work->frames = (StackPtx__Frame*)(void*)(base + layout->frames);
    work->rows = (StackPtx__Row*)(void*)(base + layout->rows);
    work->table = (uint32_t*)(void*)(base + layout->table);
    work->live = (uint8_t*)(void*)(base + layout->live);
    work->value_ids = (uint32_t*)(void*)(base + layout->value_ids);
    work->nodes = (StackPtxNode*)(void*)(base + layout->nodes);
    work->operands = (uint32_t*)(void*)(base + layout->operands);
    work->value_nodes = (uint32_t*)(void*)(base + layout->value_nodes);
    work->value_stacks = (uint16_t*)(void*)(base + layout->value_stacks);
    work->request_values = (uint32_t*)(void*)(base + layout->request_values);
    work->moves = (StackPtx__Move*)(void*)(base + layout->moves);
    work->pending = (StackPtx__Pending*)(void*)(base + layout->pending);
    work->scratch = (void*)(base + layout->scratch);
    work->sorted_nodes = (uint32_t*)(void*)(base + layout->sorted_nodes);
    work->num_temporaries = (uint32_t*)(void*)(base + layout->num_temporaries);
    work->num_named = (uint32_t*)(void*)(base + layout->num_named);
}

/* ---- languages: contents ---- */

static const char stack_ptx__decimal_pairs[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

static const char stack_ptx__hex_pairs[] =
    "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"
    "202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F"
    "404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F"
    "606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F"
    "808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9F"
    "A0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBF"
    "C0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDF"
    "E0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF";

/* Decimal digits of a number, ten at most; returns how many. */
STACK_PTX__HOT uint32_t stack_ptx__format_decimal(uint32_t number, char* digits_out) {
    uint32_t num_digits = 1, rest = number;
    if (number < 10) {
        digits_out[0] = (char)('0' + number);
        return 1;
    }
    if (number < 100) {
        memcpy(digits_out, stack_ptx__decimal_pairs + 2 * number, 2);
        return 2;
    }
    if (number < 1000) {
        digits_out[0] = (char)('0' + number / 100);
        memcpy(digits_out + 1, stack_ptx__decimal_pairs + 2 * (number % 100), 2);
        return 3;
    }
    while (rest >= 10) {
        rest /= 10;
        ++num_digits;
    }
    for (rest = num_digits; rest > 0; --rest) {
        digits_out[rest - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    return num_digits;
}

/* Eight upper-case hexadecimal digits. */
STACK_PTX__HOT void stack_ptx__format_hex(uint32_t bits, char* digits_out) {
    memcpy(digits_out, stack_ptx__hex_pairs + 2 * (bits >> 24), 2);
    memcpy(digits_out + 2, stack_ptx__hex_pairs + 2 * (bits >> 16 & 255u), 2);
    memcpy(digits_out + 4, stack_ptx__hex_pairs + 2 * (bits >> 8 & 255u), 2);
    memcpy(digits_out + 6, stack_ptx__hex_pairs + 2 * (bits & 255u), 2);
}

/* The bits of the double that equals a float, without a floating-point unit's say in NaN payloads or subnormals. */
static uint64_t stack_ptx__widen_float(uint32_t bits) {
    const uint64_t sign = (uint64_t)(bits >> 31) << 63;
    uint32_t exponent = (bits >> 23) & 255u;
    uint64_t fraction = bits & 0x7FFFFFu;
    if (exponent == 255u) {
        return sign | UINT64_C(0x7FF) << 52 | fraction << 29;
    }
    if (exponent == 0) {
        if (fraction == 0) {
            return sign;
        }
        for (exponent = 1; (fraction & 0x800000u) == 0; --exponent) {
            fraction <<= 1;
        }
        fraction &= 0x7FFFFFu;
    }
    return sign | (uint64_t)(uint32_t)(exponent + 896u) << 52 | fraction << 29; /* 896 = 1023 - 127 */
}

#define STACK_PTX__MAX_LITERAL 19u

/* A literal; returns its length. A type without constants has 0 alone. */
STACK_PTX__HOT uint32_t stack_ptx__format_literal(uint32_t constant_type, uint32_t bits, char* literal_out) {
    uint32_t high = 0, low = bits;
    char letter = 'x';
    switch (constant_type) {
        case STACK_PTX_CONSTANT_TYPE_NONE:
            literal_out[0] = '0';
            return 1;
        case STACK_PTX_CONSTANT_TYPE_F32:
            letter = 'f';
            break;
        case STACK_PTX_CONSTANT_TYPE_F64:
            letter = 'd';
            high = (uint32_t)(stack_ptx__widen_float(bits) >> 32);
            low = (uint32_t)stack_ptx__widen_float(bits);
            break;
        case STACK_PTX_CONSTANT_TYPE_S64:
            high = (bits >> 31) != 0 ? UINT32_MAX : 0;
            break;
        default:
            break;
    }
    literal_out[0] = '0';
    literal_out[1] = letter;
    stack_ptx__format_hex(constant_type >= STACK_PTX_CONSTANT_TYPE_F64 ? high : low, literal_out + 2);
    if (constant_type < STACK_PTX_CONSTANT_TYPE_F64) {
        literal_out[10] = 'U';
        return constant_type == STACK_PTX_CONSTANT_TYPE_U32 ? 11 : 10;
    }
    stack_ptx__format_hex(low, literal_out + 10);
    literal_out[18] = 'U';
    return constant_type == STACK_PTX_CONSTANT_TYPE_U64 ? 19 : 18;
}

static uint32_t stack_ptx__constant_type_of_prefix(const char* prefix) {
    static const char* const prefixes[STACK_PTX_CONSTANT_TYPE_NUM_ENUMS] = {"", "f32", "u32", "s32", "f64", "u64", "s64"};
    uint32_t type;
    for (type = STACK_PTX_CONSTANT_TYPE_NUM_ENUMS - 1; type > 0; --type) {
        if (strcmp(prefix, prefixes[type]) == 0) {
            break;
        }
    }
    return type;
}

static void stack_ptx__prepare_stacks(StackPtxLanguage* language, const StackPtxTraits* traits) {
    size_t i;
    for (i = 0; i < language->stack_info.num_stacks; ++i) {
        StackPtx__Stack* stack = &language->stacks[i];
        StackPtx__Text16* stem = &language->stems[i];
        const char* prefix = language->stack_info.stack_literal_prefixes[i];
        memset(stack, 0, sizeof *stack);
        memset(stem, 0, sizeof *stem);
        stack->constant_type = traits != NULL && traits->constant_types != NULL ? traits->constant_types[i]
                                                                                : stack_ptx__constant_type_of_prefix(prefix);
        memcpy(stem->text, ", %_s", 5);
        stem->length = (uint8_t)(5 + stack_ptx__format_decimal((uint32_t)i, stem->text + 5));
        stem->text[stem->length++] = '_';
        stack->type_hash = stack_ptx__hash_begin(STACK_PTX__TAG_TYPE);
        stack_ptx__absorb_text(&stack->type_hash, prefix, "");
    }
}

/* An instruction with scalar operands and one scalar result: plain if the operands come from one stack. */
static void stack_ptx__prepare_plain_op(
    StackPtx__Op* op,
    uint32_t out_stack,
    const uint16_t* arg_stacks,
    uint32_t num_args
) {
    uint32_t i;
    op->is_plain = 1;
    op->out_stack = out_stack;
    op->in_stack = num_args > 0 ? arg_stacks[0] : out_stack;
    op->num_operands = num_args;
    for (i = 0; i < num_args; ++i) {
        op->operand_masks[i / 2] |= UINT64_C(0xFFFFFFFF) << (32 * (i % 2));
        op->is_plain &= arg_stacks[i] == op->in_stack;
    }
}

static void stack_ptx__prepare_ptx_op(StackPtxLanguage* language, uint32_t idx, const StackPtxInstructionTraits* traits) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[idx];
    const uint32_t num_args = stack_ptx__num_args(info, descriptor);
    const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
    const char* name = info->ptx_instruction_strings[idx];
    StackPtx__Op* op = &language->ops[idx];
    StackPtx__OpNode* op_node = &language->op_nodes[idx];
    StackPtx__Text64* text = &language->op_texts[idx];
    uint16_t arg_stacks[STACK_PTX_MAX_NUM_ARGS] = {0, 0, 0, 0};
    uint32_t num_operands = 0, num_values = 0, i;
    size_t name_length;
    bool is_scalar = num_rets == 1;

    for (i = 0; i < num_args; ++i) {
        arg_stacks[i] = info->arg_type_info[descriptor->arg_types[i]].stack_idx;
        num_operands += stack_ptx__num_elems(info, descriptor->arg_types[i]);
        is_scalar = is_scalar && !stack_ptx__is_vector(info, descriptor->arg_types[i]);
    }
    for (i = 0; i < num_rets; ++i) {
        num_values += stack_ptx__num_elems(info, descriptor->ret_types[i]);
        is_scalar = is_scalar && !stack_ptx__is_vector(info, descriptor->ret_types[i]);
    }
    op_node->node.kind = STACK_PTX_NODE_PTX;
    op_node->node.stack_idx = num_rets > 0 ? info->arg_type_info[descriptor->ret_types[0]].stack_idx : 0;
    op_node->node.num_operands = (uint16_t)num_operands;
    op_node->node.num_values = (uint16_t)num_values;
    op_node->node.payload = idx;
    op_node->is_ptx = 1;
    op_node->is_large = num_operands > 4 || num_values > 1;
    op_node->is_volatile = traits != NULL && traits->is_volatile != 0;
    op->commutes = traits != NULL && traits->num_commutative == 2 ? UINT64_MAX : 0;
    if (is_scalar && !op_node->is_volatile) {
        stack_ptx__prepare_plain_op(op, op_node->node.stack_idx, arg_stacks, num_args);
    }
    name_length = strlen(name);
    if (name_length < sizeof text->text) {
        memcpy(text->text, name, name_length);
        text->text[name_length] = ' ';
        text->length = (uint32_t)name_length + 1;
    }
    op_node->is_simple_text = is_scalar && text->length > 0;
}

static void stack_ptx__prepare_leaf(StackPtxLanguage* language, uint32_t op_idx, uint16_t kind, uint32_t stack_idx) {
    StackPtxNode* node = &language->op_nodes[op_idx].node;
    node->kind = kind;
    node->stack_idx = (uint16_t)stack_idx;
    node->num_values = 1;
}

static void stack_ptx__prepare_ops(StackPtxLanguage* language, const StackPtxTraits* traits) {
    const StackPtxStackInfo* info = &language->stack_info;
    uint32_t i;
    for (i = 0; i < (uint32_t)info->num_ptx_instructions; ++i) {
        stack_ptx__prepare_ptx_op(
            language, i, traits == NULL || traits->instructions == NULL ? NULL : &traits->instructions[i]
        );
    }
    for (i = 0; i < (uint32_t)info->num_special_registers; ++i) {
        const uint32_t op_idx = language->first_special + i;
        const uint32_t arg_type = info->special_register_descriptors[i].arg_type_idx;
        stack_ptx__prepare_leaf(language, op_idx, STACK_PTX_NODE_SPECIAL, info->arg_type_info[arg_type].stack_idx);
        language->op_nodes[op_idx].node.payload = i;
        language->op_nodes[op_idx].is_volatile =
            traits != NULL && traits->volatile_special_registers != NULL && traits->volatile_special_registers[i] != 0;
    }
    for (i = 0; i < (uint32_t)info->num_stacks; ++i) {
        stack_ptx__prepare_leaf(language, language->first_input + i, STACK_PTX_NODE_INPUT, i);
        stack_ptx__prepare_leaf(language, language->first_constant + i, STACK_PTX_NODE_CONSTANT, i);
    }
}

static void stack_ptx__absorb_type(StackPtxHash* state, const StackPtxLanguage* language, uint32_t arg_type) {
    const StackPtxArgTypeInfo* info = &language->stack_info.arg_type_info[arg_type];
    const StackPtxHash* type_hash = &language->stacks[info->stack_idx].type_hash;
    stack_ptx__absorb(state, type_hash->words[0], type_hash->words[1]);
    stack_ptx__absorb(state, info->num_vec_elems, STACK_PTX__TAG_TYPE);
}

/* Element x of %tid and %tid.x are the same: the suffix is part of the name. */
static StackPtxHash stack_ptx__hash_special(const StackPtxLanguage* language, uint32_t idx, const char* suffix) {
    const uint32_t arg_type = language->stack_info.special_register_descriptors[idx].arg_type_idx;
    const StackPtxHash* type_hash = &language->stacks[language->stack_info.arg_type_info[arg_type].stack_idx].type_hash;
    StackPtxHash hash = stack_ptx__hash_begin(STACK_PTX__TAG_SPECIAL);
    stack_ptx__absorb_text(&hash, language->stack_info.special_register_strings[idx], suffix);
    stack_ptx__absorb(&hash, type_hash->words[0], type_hash->words[1]);
    return hash;
}

static void stack_ptx__prepare_hashes(StackPtxLanguage* language) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxLimits* limits = &language->limits;
    uint32_t i, k;

    for (i = 0; i < (uint32_t)info->num_ptx_instructions; ++i) {
        const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[i];
        const uint32_t num_args = stack_ptx__num_args(info, descriptor);
        const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
        StackPtxHash* hash = &language->op_hashes[i];
        *hash = stack_ptx__hash_begin(STACK_PTX__TAG_INSTRUCTION);
        stack_ptx__absorb_text(hash, info->ptx_instruction_strings[i], "");
        stack_ptx__absorb(hash, num_args, num_rets);
        for (k = 0; k < num_args; ++k) {
            stack_ptx__absorb_type(hash, language, descriptor->arg_types[k]);
        }
        for (k = 0; k < num_rets; ++k) {
            stack_ptx__absorb_type(hash, language, descriptor->ret_types[k]);
        }
    }
    for (i = 0; i < (uint32_t)info->num_special_registers; ++i) {
        language->op_hashes[language->first_special + i] = stack_ptx__hash_special(language, i, "");
    }
    for (i = 0; i < (uint32_t)info->num_stacks; ++i) {
        const StackPtxHash* type_hash = &language->stacks[i].type_hash;
        StackPtxHash* input = &language->op_hashes[language->first_input + i];
        StackPtxHash* constant = &language->op_hashes[language->first_constant + i];
        *input = stack_ptx__hash_begin(STACK_PTX__TAG_INPUT);
        stack_ptx__absorb(input, type_hash->words[0], type_hash->words[1]);
        *constant = stack_ptx__hash_begin(STACK_PTX__TAG_CONSTANT);
        stack_ptx__absorb(constant, type_hash->words[0], type_hash->words[1]);
    }
    language->salt = stack_ptx__hash_begin(STACK_PTX__TAG_PROGRAM);
    stack_ptx__absorb(&language->salt, limits->stack_size, limits->max_nodes);
    stack_ptx__absorb(&language->salt, limits->max_frame_depth, limits->store_size);
    stack_ptx__absorb(&language->salt, limits->execution_limit, STACK_PTX__TAG_PROGRAM);
}

static void stack_ptx__format_register(StackPtx__Text16* text, const char* name) {
    const size_t length = strlen(name);
    text->length = STACK_PTX__LONG;
    if (length + 3 <= sizeof text->text) {
        memcpy(text->text, ", %", 3);
        memcpy(text->text + 3, name, length);
        text->length = (uint8_t)(length + 3);
    }
}

static void stack_ptx__prepare_connections(StackPtxLanguage* language) {
    size_t i;
    for (i = 0; i < language->num_registers; ++i) {
        StackPtx__Register* info = &language->register_infos[i];
        memset(info, 0, sizeof *info);
        while (strcmp(language->registers[info->canonical].name, language->registers[i].name) != 0) {
            ++info->canonical;
        }
        info->head = stack_ptx__pair(language->first_input + language->registers[i].stack_idx, (uint32_t)i);
        info->first_request = UINT32_MAX;
        stack_ptx__format_register(&info->text, language->registers[i].name);
    }
    for (i = language->num_requests; i > 0; --i) {
        language->register_infos[language->register_infos[language->requests[i - 1]].canonical].first_request = (uint32_t)i - 1;
    }
}

static StackPtxResult stack_ptx__init_language(
    const StackPtxLanguageInfo* info,
    int is_bare,
    void* memory,
    size_t memory_bytes,
    StackPtxLanguage** language_out
) {
    const StackPtxStackInfo* stack_info;
    StackPtxLanguage* language;
    StackPtxResult result = stack_ptx__check_counts(info);
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__check_stack_info(info->stack_info, info->traits);
    }
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__check_connections(info);
    }
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    stack_info = info->stack_info;
    if (memory_bytes < stack_ptx__place_language(NULL, info, is_bare, NULL)) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    }
    language = (StackPtxLanguage*)(void*)stack_ptx__align(memory);
    memset(language, 0, sizeof *language);
    (void)stack_ptx__place_language(language, info, is_bare, (char*)language);
    language->stack_info = *stack_info;
    language->limits = info->limits;
    language->registers = info->registers;
    language->requests = info->requests;
    language->routines = info->routines;
    language->routine_lengths = info->routine_lengths;
    language->num_registers = info->num_registers;
    language->num_requests = info->num_requests;
    language->num_routines = info->num_routines;
    language->first_special = (uint32_t)stack_info->num_ptx_instructions;
    language->first_input = language->first_special + (uint32_t)stack_info->num_special_registers;
    language->first_constant = language->first_input + (uint32_t)stack_info->num_stacks;
    language->follower = language->first_constant + (uint32_t)stack_info->num_stacks;
    language->continuation = language->follower + 1;
    language->num_ops = language->continuation + 1;
    memset(language->ops, 0, stack_info->num_ptx_instructions * sizeof *language->ops);
    memset(language->op_nodes, 0, language->num_ops * sizeof *language->op_nodes);
    memset(language->op_texts, 0, stack_info->num_ptx_instructions * sizeof *language->op_texts);

    stack_ptx__prepare_stacks(language, info->traits);
    stack_ptx__prepare_ops(language, info->traits);
    if (!is_bare) {
        stack_ptx__prepare_hashes(language);
        stack_ptx__prepare_connections(language);
        stack_ptx__place_work(
            &language->layout, &language->limits, stack_info, info->num_registers, info->num_requests, 2 * info->num_requests
        );
    }
    *language_out = language;
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_language_size(const StackPtxLanguageInfo* info, size_t* bytes_out) {
    StackPtxResult result;
    if (bytes_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    result = stack_ptx__check_counts(info);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    *bytes_out = stack_ptx__place_language(NULL, info, 0, NULL);
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_language_init(
    const StackPtxLanguageInfo* info,
    void* memory,
    size_t memory_bytes,
    const StackPtxLanguage** language_out
) {
    StackPtxLanguage* language = NULL;
    StackPtxResult result;
    if (memory == NULL || language_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    result = stack_ptx__init_language(info, 0, memory, memory_bytes, &language);
    if (result == STACK_PTX_SUCCESS) {
        *language_out = language;
    }
    return result;
}

const StackPtxStackInfo* stack_ptx_language_stack_info(const StackPtxLanguage* language) {
    return language == NULL ? NULL : &language->stack_info;
}

StackPtxResult stack_ptx_workspace_size(const StackPtxLanguage* language, size_t* bytes_out) {
    if (language == NULL || bytes_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    *bytes_out = language->layout.bytes;
    return STACK_PTX_SUCCESS;
}

/* ---- lowering: values ---- */

/* Where the search for a value begins; the same for both orders of operands that commute. Small indices, as most are, do not
   meet in the mix before it is multiplied. */
STACK_PTX__HOT uint32_t stack_ptx__slot_of(
    const StackPtx__Work* work,
    uint64_t head,
    uint64_t operands_0,
    uint64_t operands_1,
    uint64_t commutes
) {
    const uint64_t both_orders = operands_0 + (stack_ptx__rotate(operands_0, 32) & commutes);
    const uint64_t mix = head ^ stack_ptx__rotate(both_orders, 10) ^ stack_ptx__rotate(operands_1, 21);
    return (uint32_t)((mix * STACK_PTX__MIX_1) >> work->table_shift);
}

/* Takes a part of the table that is small enough to be cleared for each program. */
static void stack_ptx__open_table(const StackPtxLanguage* language, StackPtx__Work* work, uint64_t size) {
    uint64_t part = 16;
    work->table_shift = 60;
    while (part < size && part < language->layout.table_size) {
        part *= 2;
        --work->table_shift;
    }
    work->part_mask = (uint32_t)(part - 1);
    work->grow_at = part == language->layout.table_size ? UINT32_MAX : (uint32_t)(part / 2);
    memset(work->table, 0, part * sizeof *work->table);
}

STACK_PTX__HOT uint32_t stack_ptx__add_row(StackPtx__Work* work, uint64_t head, uint64_t operands_0, uint64_t operands_1) {
    StackPtx__Row* row = &work->rows[work->num_rows];
    row->head = head;
    row->operands[0] = operands_0;
    row->operands[1] = operands_1;
    return work->num_rows++;
}

static uint64_t stack_ptx__commutes(const StackPtxLanguage* language, uint32_t op_idx) {
    return op_idx < language->first_special ? language->ops[op_idx].commutes : 0;
}

/* Four times the part, with the rows that value numbering may find put in again. */
STACK_PTX__COLD void stack_ptx__grow_table(const StackPtxLanguage* language, StackPtx__Work* work) {
    uint32_t i;
    stack_ptx__open_table(language, work, 4 * ((uint64_t)work->part_mask + 1));
    for (i = 1; i < work->num_rows; ++i) {
        const StackPtx__Row* row = &work->rows[i];
        const uint32_t op_idx = (uint32_t)row->head;
        if (op_idx != language->follower && !language->op_nodes[op_idx].is_volatile) {
            const uint64_t commutes = stack_ptx__commutes(language, op_idx);
            uint32_t slot = stack_ptx__slot_of(work, row->head, row->operands[0], row->operands[1], commutes);
            while (work->table[slot] != 0) {
                slot = (slot + 1) & work->part_mask;
            }
            work->table[slot] = i;
        }
    }
}

/* The row of an equal value, or a new one. The search rarely takes more than one step, and its outcome is a branch and not a
   choice between values: a processor that guesses it need not wait. */
STACK_PTX__HOT uint32_t stack_ptx__find_row(
    const StackPtxLanguage* language,
    StackPtx__Work* work,
    uint64_t head,
    uint64_t operands_0,
    uint64_t operands_1,
    uint64_t commutes
) {
    uint32_t slot, found;
    if (work->num_rows >= work->grow_at) {
        if (!work->is_numbering) {
            return stack_ptx__add_row(work, head, operands_0, operands_1);
        }
        stack_ptx__grow_table(language, work);
    }
    slot = stack_ptx__slot_of(work, head, operands_0, operands_1, commutes);
    while ((found = work->table[slot]) != 0) {
        const StackPtx__Row* row = &work->rows[found];
        if (row->head == head && row->operands[1] == operands_1 &&
            (row->operands[0] == operands_0 || (stack_ptx__rotate(row->operands[0], 32) & commutes) == operands_0)) {
            return found;
        }
        slot = (slot + 1) & work->part_mask;
    }
    work->table[slot] = work->num_rows;
    return stack_ptx__add_row(work, head, operands_0, operands_1);
}

STACK_PTX__HOT void stack_ptx__push(StackPtx__Values* stack, uint32_t row) {
    *stack->top = row;
    stack->top += stack->top < stack->full;
}

/* 0 if the stack is empty. */
STACK_PTX__HOT uint32_t stack_ptx__pop(StackPtx__Values* stack) {
    return stack->top == stack->base ? 0 : *--stack->top;
}

STACK_PTX__HOT size_t stack_ptx__height(const StackPtx__Values* stack) {
    return (size_t)(stack->top - stack->base);
}

/* False where the node limit ends the program. */
STACK_PTX__HOT bool stack_ptx__count_values(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t count) {
    if (count > language->limits.max_nodes - work->num_created) {
        return false;
    }
    work->num_created += count;
    return true;
}

/* A PTX instruction with vectors, several results or operands from three stacks, or a volatile one. */
STACK_PTX__COLD bool stack_ptx__run_general_ptx(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t op_idx) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[op_idx];
    const StackPtx__OpNode* op_node = &language->op_nodes[op_idx];
    const uint32_t num_args = stack_ptx__num_args(info, descriptor);
    const uint32_t num_values = op_node->node.num_values;
    uint32_t operands[STACK_PTX__MAX_OPERANDS + 4] = {0};
    uint32_t i, k, row, num_operands = 0, first = 0;
    uint64_t pair_0, pair_1;

    for (i = 0; i < num_args; ++i) {
        const uint32_t stack_idx = info->arg_type_info[descriptor->arg_types[i]].stack_idx;
        uint32_t num_needed = 0;
        for (k = 0; k <= i; ++k) {
            if (info->arg_type_info[descriptor->arg_types[k]].stack_idx == stack_idx) {
                num_needed += stack_ptx__num_elems(info, descriptor->arg_types[k]);
            }
        }
        if (stack_ptx__height(&work->stacks[stack_idx]) < num_needed) {
            return true;
        }
    }
    if (!stack_ptx__count_values(language, work, num_values)) {
        return false;
    }
    for (i = 0; i < num_args; ++i) {
        const uint32_t stack_idx = info->arg_type_info[descriptor->arg_types[i]].stack_idx;
        for (k = stack_ptx__num_elems(info, descriptor->arg_types[i]); k > 0; --k) {
            operands[num_operands++] = stack_ptx__pop(&work->stacks[stack_idx]);
        }
    }
    if (num_values == 0) {
        return true;
    }
    /* Operands 3, 4, 5 and a fourth, then 6, 7, 8 and a fourth, ..: the last of these rows is made first. */
    if (num_operands > 4) {
        first = (num_operands - 2) / 3 * 3;
    }
    pair_0 = stack_ptx__pair(operands[first], operands[first + 1]);
    pair_1 = stack_ptx__pair(operands[first + 2], operands[first + 3]);
    for (; first > 0; first -= 3) {
        row = stack_ptx__find_row(language, work, language->continuation, pair_0, pair_1, 0);
        pair_0 = stack_ptx__pair(operands[first - 3], operands[first - 2]);
        pair_1 = stack_ptx__pair(operands[first - 1], row);
    }
    if (op_node->is_volatile) {
        row = stack_ptx__add_row(work, op_idx, pair_0, pair_1);
    } else {
        row = stack_ptx__find_row(language, work, op_idx, pair_0, pair_1, language->ops[op_idx].commutes);
    }
    if (row + 1 == work->num_rows) {
        for (i = 1; i < num_values; ++i) {
            (void)stack_ptx__add_row(work, language->follower, row, 0);
        }
    }
    row += num_values;
    for (i = stack_ptx__num_rets(info, descriptor); i > 0; --i) {
        const uint32_t ret_type = descriptor->ret_types[i - 1];
        for (k = stack_ptx__num_elems(info, ret_type); k > 0; --k) {
            stack_ptx__push(&work->stacks[info->arg_type_info[ret_type].stack_idx], --row);
        }
    }
    return true;
}

STACK_PTX__COLD bool stack_ptx__run_special(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t idx) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t arg_type = info->special_register_descriptors[idx].arg_type_idx;
    const uint32_t num_elems = stack_ptx__num_elems(info, arg_type);
    const uint32_t op_idx = language->first_special + idx;
    uint32_t i;
    if (!stack_ptx__count_values(language, work, num_elems)) {
        return false;
    }
    for (i = 0; i < num_elems; ++i) {
        const uint64_t head = stack_ptx__pair(op_idx, i << 16);
        const uint32_t row = language->op_nodes[op_idx].is_volatile ? stack_ptx__add_row(work, head, 0, 0)
                                                                    : stack_ptx__find_row(language, work, head, 0, 0, 0);
        stack_ptx__push(&work->stacks[info->arg_type_info[arg_type].stack_idx], row);
    }
    return true;
}

STACK_PTX__HOT bool stack_ptx__run_input(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t register_idx) {
    const uint32_t stack_idx = language->registers[register_idx].stack_idx;
    uint32_t row;
    if (!stack_ptx__count_values(language, work, 1)) {
        return false;
    }
    row = register_idx + 1;
    if (language->register_infos == NULL) {
        row = stack_ptx__add_row(work, stack_ptx__pair(language->first_input + stack_idx, register_idx), 0, 0);
    }
    stack_ptx__push(&work->stacks[stack_idx], row);
    return true;
}

STACK_PTX__HOT bool stack_ptx__run_constant(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t stack_idx, uint32_t bits) {
    if (!stack_ptx__count_values(language, work, 1)) {
        return false;
    }
    stack_ptx__push(
        &work->stacks[stack_idx],
        stack_ptx__find_row(language, work, stack_ptx__pair(language->first_constant + stack_idx, bits), 0, 0, 0)
    );
    return true;
}

/* A PTX instruction with scalar operands from one stack and one result. */
STACK_PTX__HOT bool stack_ptx__run_plain_ptx(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t op_idx) {
    const StackPtx__Op* op = &language->ops[op_idx];
    StackPtx__Values* in = &work->stacks[op->in_stack];
    const uint32_t* top = in->top;
    uint64_t pair_0, pair_1;

    if (stack_ptx__height(in) < op->num_operands) {
        return true;
    }
    if (!stack_ptx__count_values(language, work, 1)) {
        return false;
    }
    pair_0 = stack_ptx__pair(top[-1], top[-2]) & op->operand_masks[0];
    pair_1 = stack_ptx__pair(top[-3], top[-4]) & op->operand_masks[1];
    in->top -= op->num_operands;
    stack_ptx__push(&work->stacks[op->out_stack], stack_ptx__find_row(language, work, op_idx, pair_0, pair_1, op->commutes));
    return true;
}

/* False where a depth is out of range. */
static bool stack_ptx__run_meta(StackPtx__Work* work, StackPtx__Values* stack, uint32_t operation) {
    const size_t height = stack_ptx__height(stack);
    uint32_t* top = stack->top;
    uint32_t number = 0, value;

    if (operation == STACK_PTX_META_INSTRUCTION_YANK_DUP || operation == STACK_PTX_META_INSTRUCTION_SWAP_WITH ||
        operation == STACK_PTX_META_INSTRUCTION_REPLACE || operation == STACK_PTX_META_INSTRUCTION_DROP) {
        if (work->num_meta == 0) {
            return true;
        }
        number = work->meta[--work->num_meta];
        if (operation == STACK_PTX_META_INSTRUCTION_DROP) {
            stack->top -= height > number ? number : 0;
            return true;
        }
        if (number >= height) {
            return false;
        }
        if (operation != STACK_PTX_META_INSTRUCTION_YANK_DUP && top == stack->full) {
            return true;
        }
    }
    if (height == 0) {
        return true;
    }
    value = top[-1];
    switch (operation) {
        case STACK_PTX_META_INSTRUCTION_DUP:
            stack_ptx__push(stack, value);
            break;
        case STACK_PTX_META_INSTRUCTION_YANK_DUP:
            stack_ptx__push(stack, *(top - 1 - number));
            break;
        case STACK_PTX_META_INSTRUCTION_SWAP:
            if (height > 1) {
                top[-1] = top[-2];
                top[-2] = value;
            }
            break;
        case STACK_PTX_META_INSTRUCTION_SWAP_WITH:
            top[-1] = *(top - 1 - number);
            *(top - 1 - number) = value;
            break;
        case STACK_PTX_META_INSTRUCTION_REPLACE:
            *(top - 1 - number) = value;
            --stack->top;
            break;
        case STACK_PTX_META_INSTRUCTION_CLEAR:
            stack->top = stack->base;
            break;
        case STACK_PTX_META_INSTRUCTION_ROTATE:
            memmove(stack->base + 1, stack->base, (height - 1) * sizeof value);
            *stack->base = value;
            break;
        default: { /* REVERSE: the caller lets no other operation through */
            uint32_t* low = stack->base;
            while (low + 1 < top) {
                value = *low;
                *low++ = *--top;
                *top = value;
            }
            break;
        }
    }
    return true;
}

/* ---- lowering: the run ---- */

/* A ROUTINE or a RETURN: the caller's. */
#define STACK_PTX__LEAVE STACK_PTX_RESULT_NUM_ENUMS

/* Runs a word that stays in its word list, or answers STACK_PTX__LEAVE. What is wrong with it, if anything, is the result: SUCCESS also for a no-op of
   every mode. A depth out of range is INVALID_VALUE, the node limit INSUFFICIENT_AST_SIZE. */
STACK_PTX__HOT StackPtxResult stack_ptx__run_word(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxInstruction word) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t payload = word.payload.u;
    bool is_within_limit;
    switch (word.instruction_type) {
        case STACK_PTX_INSTRUCTION_TYPE_PTX:
            if (payload >= info->num_ptx_instructions) {
                return STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS;
            }
            is_within_limit = language->ops[payload].is_plain ? stack_ptx__run_plain_ptx(language, work, payload)
                                                              : stack_ptx__run_general_ptx(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_INPUT:
            if (payload >= language->num_registers) {
                return STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS;
            }
            is_within_limit = stack_ptx__run_input(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_CONSTANT:
            if (word.aux >= info->num_stacks) {
                return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            }
            if (language->stacks[word.aux].constant_type == STACK_PTX_CONSTANT_TYPE_NONE) {
                return STACK_PTX_ERROR_WRONG_TYPE_DISPATCH;
            }
            is_within_limit = stack_ptx__run_constant(language, work, word.aux, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_SPECIAL:
            if (payload >= info->num_special_registers) {
                return STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS;
            }
            is_within_limit = stack_ptx__run_special(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_META:
            if (word.aux >= info->num_stacks) {
                return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            }
            if (payload >= STACK_PTX_META_INSTRUCTION_NUM_ENUMS) {
                return STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS;
            }
            return stack_ptx__run_meta(work, &work->stacks[word.aux], payload) ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INVALID_VALUE;
        case STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT:
            if (work->num_meta < language->limits.stack_size) {
                work->meta[work->num_meta++] = payload;
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_STORE:
            if (word.aux >= info->num_stacks) {
                return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            }
            if (payload >= language->limits.store_size) {
                return STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS;
            }
            if (stack_ptx__height(&work->stacks[word.aux]) > 0) {
                work->store[payload].row = stack_ptx__pop(&work->stacks[word.aux]);
                work->store[payload].stack_idx = word.aux;
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_LOAD:
            if (payload >= language->limits.store_size) {
                return STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS;
            }
            if (work->store[payload].row != 0) {
                stack_ptx__push(&work->stacks[work->store[payload].stack_idx], work->store[payload].row);
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_ROUTINE:
        case STACK_PTX_INSTRUCTION_TYPE_RETURN:
            return STACK_PTX__LEAVE;
        default:
            return STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN;
    }
    return is_within_limit ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE;
}

static void stack_ptx__open_run(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t flags, size_t num_words) {
    size_t i;
    for (i = 0; i < language->stack_info.num_stacks; ++i) {
        StackPtx__Values* stack = &work->stacks[i];
        stack->base = work->stack_rows + STACK_PTX__STACKS_MARGIN + i * ((size_t)language->limits.stack_size + 1);
        stack->top = stack->base;
        stack->full = stack->base + language->limits.stack_size;
    }
    memset(work->store, 0, language->limits.store_size * sizeof *work->store);
    memset(&work->rows[0], 0, sizeof work->rows[0]);
    work->num_rows = 1;
    /* Inputs have rows of their own from the start, so that there is nothing to find; the unused ones are dead code. */
    if (language->register_infos != NULL) {
        for (i = 0; i < language->num_registers; ++i) {
            (void)stack_ptx__add_row(work, language->register_infos[i].head, 0, 0);
        }
    }
    work->num_created = 0;
    work->num_meta = 0;
    work->is_numbering = (flags & STACK_PTX_FLAG_NO_VALUE_NUMBERING) == 0;
    work->grow_at = 0;
    if (work->is_numbering) {
        /* At most a quarter full for most programs, so that most searches take one step. */
        stack_ptx__open_table(language, work, 4 * (uint64_t)(num_words < 1024 ? num_words : 1024));
    }
}

/* What a mode makes of what is wrong with a word: SUCCESS to go on, or an error, whose place is written. */
STACK_PTX__COLD StackPtxResult stack_ptx__judge(
    StackPtxMode mode,
    StackPtxResult of_word,
    size_t routine_idx,
    size_t word_idx,
    StackPtxPlace* place_out
) {
    if (mode == STACK_PTX_MODE_LENIENT || (mode == STACK_PTX_MODE_COMPATIBLE && of_word == STACK_PTX_ERROR_INVALID_VALUE)) {
        return STACK_PTX_SUCCESS;
    }
    if (place_out != NULL) {
        place_out->routine_idx = routine_idx;
        place_out->word_idx = word_idx;
    }
    return STACK_PTX__ERROR(of_word);
}

static StackPtxResult stack_ptx__run(
    const StackPtxLanguage* language,
    StackPtxMode mode,
    uint32_t flags,
    const StackPtxInstruction* words,
    size_t num_words,
    StackPtx__Work* work,
    StackPtxPlace* place_out
) {
    size_t budget = language->limits.execution_limit;
    size_t num_open = 1; /* word lists */
    size_t next = 0, length = num_words, routine_idx = STACK_PTX_MAIN_PROGRAM;

    stack_ptx__open_run(language, work, flags, num_words);
    if (language->limits.max_frame_depth == 0) {
        return STACK_PTX_SUCCESS;
    }
    for (;;) { /* once for each stretch of words between calls and returns */
        const size_t begin = next;
        const size_t stop = length - begin < budget ? length : begin + budget;
        StackPtxInstruction word = {STACK_PTX_INSTRUCTION_TYPE_NONE, 0, {0}};
        StackPtxResult of_word = STACK_PTX_SUCCESS;

        while (next < stop) {
            word = words[next++];
            of_word = stack_ptx__run_word(language, work, word);
            if (of_word != STACK_PTX_SUCCESS) {
                StackPtxResult result;
                if (of_word == STACK_PTX__LEAVE) {
                    break;
                }
                result = stack_ptx__judge(mode, of_word, routine_idx, next - 1, place_out);
                if (result != STACK_PTX_SUCCESS || of_word == STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE) {
                    return result;
                }
            }
        }
        budget -= next - begin;
        if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_ROUTINE) {
            if (word.payload.u >= language->num_routines) {
                of_word = STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS;
            } else if (num_open == language->limits.max_frame_depth) {
                of_word = STACK_PTX_ERROR_INVALID_VALUE;
            } else {
                StackPtx__Frame* frame = &work->frames[num_open++ - 1];
                frame->words = words;
                frame->next = next;
                frame->length = length;
                frame->routine_idx = routine_idx;
                words = language->routines[word.payload.u];
                next = 0;
                length = language->routine_lengths == NULL ? SIZE_MAX : language->routine_lengths[word.payload.u];
                routine_idx = word.payload.u;
                continue;
            }
            of_word = stack_ptx__judge(mode, of_word, routine_idx, next - 1, place_out);
            if (of_word != STACK_PTX_SUCCESS) {
                return of_word;
            }
        } else if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_RETURN || next == length) {
            const StackPtx__Frame* frame;
            if (--num_open == 0) {
                return STACK_PTX_SUCCESS;
            }
            frame = &work->frames[num_open - 1];
            words = frame->words;
            next = frame->next;
            length = frame->length;
            routine_idx = frame->routine_idx;
        } else {
            return STACK_PTX_SUCCESS; /* the execution limit */
        }
    }
}

/* ---- lowering: the result ---- */

/* Marks what the requests' rows need, and what that needs. */
static void stack_ptx__mark_live(StackPtx__Work* work, const uint32_t* request_rows, size_t num_requests) {
    const StackPtx__Row* rows = work->rows;
    uint8_t* live = work->live;
    size_t i;
    uint32_t r;
    memset(live, 0, work->num_rows);
    for (i = 0; i < num_requests; ++i) {
        live[request_rows[i]] = 1;
    }
    for (r = work->num_rows - 1; r > 0; --r) {
        if (live[r]) {
            const StackPtx__Row* row = &rows[r];
            live[(uint32_t)row->operands[0]] = 1;
            live[row->operands[0] >> 32] = 1;
            live[(uint32_t)row->operands[1]] = 1;
            live[row->operands[1] >> 32] = 1;
        }
    }
}

/* Operands of a node beyond the third, taken from the rows in which it continues. */
STACK_PTX__COLD void stack_ptx__collect_continued(const StackPtx__Work* work, const StackPtx__Row* row, uint32_t num_operands, uint32_t* operands) {
    while (num_operands > 4) {
        row = &work->rows[row->operands[1] >> 32];
        num_operands -= 3;
        operands += 3;
        operands[0] = work->value_ids[(uint32_t)row->operands[0]];
        operands[1] = work->value_ids[row->operands[0] >> 32];
        operands[2] = work->value_ids[(uint32_t)row->operands[1]];
        operands[3] = work->value_ids[row->operands[1] >> 32];
    }
}

/* The results of a node with more than one, which may lie on several stacks. */
STACK_PTX__COLD void stack_ptx__number_results(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t r, uint32_t node_idx) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[work->nodes[node_idx].payload];
    const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
    uint32_t value = work->nodes[node_idx].first_value;
    uint32_t i, k;
    for (i = 0; i < num_rets; ++i) {
        for (k = stack_ptx__num_elems(info, descriptor->ret_types[i]); k > 0; --k) {
            work->value_ids[r++] = value;
            work->value_nodes[value] = node_idx;
            work->value_stacks[value++] = info->arg_type_info[descriptor->ret_types[i]].stack_idx;
        }
    }
}

/* Numbers nodes and values anew, without the dead ones. */
static void stack_ptx__collect(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxLowered* lowered) {
    const uint8_t* live = work->live;
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const uint32_t num_rows = work->num_rows;
    uint32_t* value_ids = work->value_ids;
    uint32_t* value_nodes = work->value_nodes;
    uint16_t* value_stacks = work->value_stacks;
    StackPtxNode* node = work->nodes;
    uint32_t num_nodes = 0, num_operands = 0, num_values = 0, num_instructions = 0, r;

    value_ids[0] = 0;
    for (r = 1; r < num_rows; ++r) {
        const StackPtx__Row* row = &rows[r];
        const StackPtx__OpNode* op_node = &op_nodes[(uint32_t)row->head];
        uint32_t* operands = work->operands + num_operands;
        if (!live[r] || op_node->node.num_values == 0) {
            continue;
        }
        memcpy(node, &op_node->node, offsetof(StackPtxNode, payload));
        node->payload = op_node->node.payload | (uint32_t)(row->head >> 32);
        node->first_operand = num_operands;
        node->first_value = num_values;
        /* Where there are fewer the next node writes over them. */
        operands[0] = value_ids[(uint32_t)row->operands[0]];
        operands[1] = value_ids[row->operands[0] >> 32];
        operands[2] = value_ids[(uint32_t)row->operands[1]];
        operands[3] = value_ids[row->operands[1] >> 32];
        value_ids[r] = num_values;
        value_nodes[num_values] = num_nodes;
        value_stacks[num_values] = op_node->node.stack_idx;
        if (op_node->is_large) {
            stack_ptx__collect_continued(work, row, op_node->node.num_operands, operands);
            stack_ptx__number_results(language, work, r, num_nodes);
        }
        num_operands += op_node->node.num_operands;
        num_values += op_node->node.num_values;
        num_instructions += op_node->is_ptx;
        ++num_nodes;
        ++node;
    }
    lowered->nodes = work->nodes;
    lowered->operands = work->operands;
    lowered->value_nodes = work->value_nodes;
    lowered->value_stacks = work->value_stacks;
    lowered->num_nodes = num_nodes;
    lowered->num_operands = num_operands;
    lowered->num_values = num_values;
    lowered->num_instructions = num_instructions;
}

static StackPtxResult stack_ptx__check_work(
    const StackPtxLanguage* language,
    const void* workspace,
    size_t workspace_bytes
) {
    if (language == NULL || workspace == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    if (workspace_bytes < language->layout.bytes) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    }
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_lower(
    const StackPtxLanguage* language,
    StackPtxMode mode,
    uint32_t flags,
    const StackPtxInstruction* words,
    size_t num_words,
    void* workspace,
    size_t workspace_bytes,
    StackPtxLowered* lowered_out,
    StackPtxPlace* place_out
) {
    StackPtx__Work work;
    StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    size_t i;
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (lowered_out == NULL || (words == NULL && num_words > 0) || (unsigned)mode > STACK_PTX_MODE_COMPATIBLE ||
        (flags & ~STACK_PTX_FLAG_NO_VALUE_NUMBERING) != 0) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    result = stack_ptx__run(language, mode, flags, words, num_words, &work, place_out);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    for (i = 0; i < language->num_requests; ++i) {
        work.request_values[i] = stack_ptx__pop(&work.stacks[language->registers[language->requests[i]].stack_idx]);
    }
    stack_ptx__mark_live(&work, work.request_values, language->num_requests);
    stack_ptx__collect(language, &work, lowered_out);
    for (i = 0; i < language->num_requests; ++i) {
        const uint32_t row = work.request_values[i];
        work.request_values[i] = row == 0 ? STACK_PTX_NO_VALUE : work.value_ids[row];
    }
    lowered_out->request_values = work.request_values;
    lowered_out->num_requests = (uint32_t)language->num_requests;
    lowered_out->mode = mode;
    return STACK_PTX_SUCCESS;
}

/* ---- emission ---- */

/* Text under construction. `length` also counts what did not fit or was only measured. */
typedef struct StackPtx__Writer {
    char* buffer;
    size_t capacity; /* without the NUL */
    size_t length;
} StackPtx__Writer;

static void stack_ptx__write(StackPtx__Writer* writer, const char* text, size_t num_bytes) {
    if (writer->length + num_bytes <= writer->capacity) {
        memcpy(writer->buffer + writer->length, text, num_bytes);
    }
    writer->length += num_bytes;
}

static void stack_ptx__write_string(StackPtx__Writer* writer, const char* text) {
    stack_ptx__write(writer, text, strlen(text));
}

/* Inputs and constants are written as they are, instructions and special registers have temporaries for results. Lists the
   nodes of either kind, the latter from the front of the array and the former from its back, and counts temporaries: loops
   over one kind have nothing to guess. Returns how many have temporaries. */
static uint32_t stack_ptx__sort_nodes(const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work) {
    const StackPtxNode* nodes = lowered->nodes;
    const uint32_t num_nodes = lowered->num_nodes;
    uint32_t* front = work->sorted_nodes;
    uint32_t* back = work->sorted_nodes + num_nodes;
    uint32_t num_others = 0, i, k;
    memset(work->num_temporaries, 0, language->stack_info.num_stacks * sizeof *work->num_temporaries);
    for (i = 0; i < num_nodes; ++i) {
        const uint32_t is_front = nodes[i].kind >= STACK_PTX_NODE_SPECIAL;
        *front = i;
        back[-1] = i;
        front += is_front;
        back -= !is_front;
        /* One value on the first stack is the usual: those are counted by counting the others. */
        if (nodes[i].stack_idx != 0 || nodes[i].num_values > 1) {
            num_others += is_front;
            for (k = 0; k < nodes[i].num_values; ++k) {
                work->num_temporaries[lowered->value_stacks[nodes[i].first_value + k]] += is_front;
            }
        }
    }
    if (front != work->sorted_nodes) {
        work->num_temporaries[0] += (uint32_t)(front - work->sorted_nodes) - num_others;
    }
    return (uint32_t)(front - work->sorted_nodes);
}

STACK_PTX__HOT void stack_ptx__name_temporary(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t stack_idx, StackPtx__Text16* text) {
    const StackPtx__Text16* stem = &language->stems[stack_idx];
    const uint32_t number = work->num_named[stack_idx]++;
    *text = *stem;
    if (number < 1000) { /* ", %_s65535_999" fits */
        text->length = (uint8_t)(stem->length + stack_ptx__format_decimal(number, text->text + stem->length));
    } else {
        char digits[10];
        const uint32_t num_digits = stack_ptx__format_decimal(number, digits);
        if (stem->length + num_digits <= sizeof text->text) {
            memcpy(text->text + stem->length, digits, num_digits);
            text->length = (uint8_t)(stem->length + num_digits);
        } else {
            memcpy(text->text, &number, sizeof number);
            text->length = STACK_PTX__LONG;
            work->has_long_texts = 1;
        }
    }
}

/* Names the inputs and constants among the sorted nodes. */
static void stack_ptx__name_leaves(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    StackPtx__Work* work,
    const uint32_t* leaves,
    uint32_t num_leaves
) {
    uint32_t i;
    for (i = 0; i < num_leaves; ++i) {
        const StackPtxNode* node = &lowered->nodes[leaves[i]];
        StackPtx__Text16* text = (StackPtx__Text16*)work->scratch + node->first_value;
        const uint32_t constant_type = language->stacks[node->stack_idx].constant_type;
        text->length = STACK_PTX__LONG;
        if (node->kind == STACK_PTX_NODE_INPUT) {
            if (language->register_infos != NULL) {
                *text = language->register_infos[node->payload].text;
            } else {
                stack_ptx__format_register(text, language->registers[node->payload].name);
            }
        } else if (constant_type < STACK_PTX_CONSTANT_TYPE_F64) {
            memcpy(text->text, ", ", 2);
            text->length = (uint8_t)(2 + stack_ptx__format_literal(constant_type, node->payload, text->text + 2));
        }
        work->has_long_texts |= text->length == STACK_PTX__LONG;
    }
}

static void stack_ptx__write_temporary(
    const StackPtxLanguage* language,
    StackPtx__Writer* writer,
    StackPtx__Temporary temporary
) {
    const StackPtx__Text16* stem = &language->stems[temporary.stack_idx];
    char digits[10];
    stack_ptx__write(writer, stem->text + 2, stem->length - 2u);
    stack_ptx__write(writer, digits, stack_ptx__format_decimal(temporary.number, digits));
}

/* What follows the name of a special register whose node has this payload: the element of a vector one. */
static const char* stack_ptx__element_suffix(const StackPtxLanguage* language, uint32_t payload) {
    static const char* const suffixes[4] = {".x", ".y", ".z", ".w"};
    const StackPtxStackInfo* info = &language->stack_info;
    const bool is_vector =
        stack_ptx__is_vector(info, info->special_register_descriptors[payload & UINT16_MAX].arg_type_idx);
    return is_vector ? suffixes[payload >> 16] : "";
}

/* A value of any length, without the comma before it. */
static void stack_ptx__write_value(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    StackPtx__Writer* writer,
    uint32_t value
) {
    const StackPtxNode* node = &lowered->nodes[lowered->value_nodes[value]];
    const StackPtx__Text16* text = (const StackPtx__Text16*)work->scratch + value;
    if (text->length != STACK_PTX__LONG) {
        stack_ptx__write(writer, text->text + 2, text->length - 2u);
    } else if (node->kind == STACK_PTX_NODE_INPUT) {
        stack_ptx__write(writer, "%", 1);
        stack_ptx__write_string(writer, language->registers[node->payload].name);
    } else if (node->kind == STACK_PTX_NODE_CONSTANT) {
        char literal[STACK_PTX__MAX_LITERAL];
        const uint32_t constant_type = language->stacks[node->stack_idx].constant_type;
        stack_ptx__write(writer, literal, stack_ptx__format_literal(constant_type, node->payload, literal));
    } else {
        StackPtx__Temporary temporary;
        temporary.stack_idx = lowered->value_stacks[value];
        memcpy(&temporary.number, text->text, sizeof temporary.number);
        stack_ptx__write_temporary(language, writer, temporary);
    }
}

/* The values of an operand or result: one, or a vector in braces. */
static void stack_ptx__write_group(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    StackPtx__Writer* writer,
    uint32_t arg_type,
    const uint32_t* values, /* NULL: those from first_value on */
    uint32_t first_value
) {
    const uint32_t count = stack_ptx__num_elems(&language->stack_info, arg_type);
    const bool is_vector = stack_ptx__is_vector(&language->stack_info, arg_type);
    uint32_t i;
    if (is_vector) {
        stack_ptx__write(writer, "{", 1);
    }
    for (i = 0; i < count; ++i) {
        if (i > 0) {
            stack_ptx__write(writer, ", ", 2);
        }
        stack_ptx__write_value(language, lowered, work, writer, values != NULL ? values[i] : first_value + i);
    }
    if (is_vector) {
        stack_ptx__write(writer, "}", 1);
    }
}

/* The line of an instruction or special register, of any form. */
STACK_PTX__COLD void stack_ptx__write_node(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    StackPtx__Writer* writer,
    const StackPtxNode* node
) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t idx = node->payload & (node->kind == STACK_PTX_NODE_SPECIAL ? UINT16_MAX : UINT32_MAX);
    if (node->kind == STACK_PTX_NODE_SPECIAL) {
        stack_ptx__write(writer, "mov.", 4);
        stack_ptx__write_string(writer, info->stack_literal_prefixes[node->stack_idx]);
        stack_ptx__write(writer, " ", 1);
        stack_ptx__write_value(language, lowered, work, writer, node->first_value);
        stack_ptx__write(writer, ", %", 3);
        stack_ptx__write_string(writer, info->special_register_strings[idx]);
        stack_ptx__write_string(writer, stack_ptx__element_suffix(language, node->payload));
    } else {
        const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[idx];
        const uint32_t num_args = stack_ptx__num_args(info, descriptor);
        const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
        const uint32_t* operands = lowered->operands + node->first_operand;
        uint32_t value = node->first_value;
        uint32_t i;
        stack_ptx__write_string(writer, info->ptx_instruction_strings[idx]);
        for (i = 0; i < num_rets; ++i) {
            /* Two results are written p|q. */
            stack_ptx__write(writer, i == 0 ? " " : "|", 1);
            stack_ptx__write_group(language, lowered, work, writer, descriptor->ret_types[i], NULL, value);
            value += stack_ptx__num_elems(info, descriptor->ret_types[i]);
        }
        for (i = 0; i < num_args; ++i) {
            stack_ptx__write(writer, ", ", 2);
            stack_ptx__write_group(language, lowered, work, writer, descriptor->arg_types[i], operands, 0);
            operands += stack_ptx__num_elems(info, descriptor->arg_types[i]);
        }
    }
    stack_ptx__write(writer, ";\n", 2);
}

/* Bytes that the fast line may touch: the instruction's slot, a result, four operands, and an end. */
#define STACK_PTX__LINE_BYTES (64u + 5u * 16u + 2u)

/* The line of a simple instruction where there is room for all that is copied. Fixed sizes; lengths alone differ. */
STACK_PTX__HOT char* stack_ptx__write_simple(
    const StackPtx__Text64* instruction,
    const StackPtx__Text16* texts,
    const uint32_t* operands,
    const StackPtxNode* node,
    char* cursor
) {
    const uint32_t num_operands = node->num_operands;
    const StackPtx__Text16* text = &texts[node->first_value];
    uint32_t i;
    memcpy(cursor, instruction->text, 32);
    if (instruction->length > 32) {
        memcpy(cursor + 32, instruction->text + 32, sizeof instruction->text - 32);
    }
    cursor += instruction->length;
    memcpy(cursor, text->text + 2, 14);
    cursor += text->length - 2;
    for (i = 0; i < 3; ++i) {
        /* An operand that is not there is text 0 with length 0: cheaper than to guess how many there are. */
        const uint32_t is_there = 0u - (uint32_t)(i < num_operands);
        text = &texts[operands[i] & is_there];
        memcpy(cursor, text, 16);
        cursor += text->length & is_there;
    }
    if (num_operands > 3) {
        text = &texts[operands[3]];
        memcpy(cursor, text, 16);
        cursor += text->length;
    }
    memcpy(cursor, ";\n", 2);
    return cursor + 2;
}

/* Names the temporaries of the first sorted nodes, and writes these nodes. */
static void stack_ptx__write_nodes(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    StackPtx__Work* work,
    uint32_t num_with_temporaries,
    StackPtx__Writer* writer
) {
    StackPtx__Text16* texts = (StackPtx__Text16*)work->scratch;
    uint32_t i, k;
    memset(work->num_named, 0, language->stack_info.num_stacks * sizeof *work->num_named);
    for (i = 0; i < num_with_temporaries; ++i) {
        const StackPtxNode* node = &lowered->nodes[work->sorted_nodes[i]];
        stack_ptx__name_temporary(language, work, node->stack_idx, texts + node->first_value);
        for (k = 1; k < node->num_values; ++k) {
            stack_ptx__name_temporary(
                language, work, lowered->value_stacks[node->first_value + k], texts + node->first_value + k
            );
        }
        if (node->kind == STACK_PTX_NODE_PTX && language->op_nodes[node->payload].is_simple_text && !work->has_long_texts &&
            writer->length + STACK_PTX__LINE_BYTES <= writer->capacity) {
            char* line = writer->buffer + writer->length;
            const char* line_end = stack_ptx__write_simple(
                &language->op_texts[node->payload], texts, lowered->operands + node->first_operand, node, line
            );
            writer->length += (size_t)(line_end - line);
        } else {
            stack_ptx__write_node(language, lowered, work, writer, node);
        }
    }
}

static void stack_ptx__write_declarations(const StackPtxLanguage* language, const StackPtx__Work* work, StackPtx__Writer* writer) {
    const size_t num_stacks = language->stack_info.num_stacks;
    size_t i;
    for (i = 0; i < num_stacks; ++i) {
        const StackPtx__Text16* stem = &language->stems[i];
        char digits[10];
        if (work->num_temporaries[i] == 0) {
            continue;
        }
        stack_ptx__write(writer, ".reg .", 6);
        stack_ptx__write_string(writer, language->stack_info.stack_literal_prefixes[i]);
        stack_ptx__write(writer, stem->text + 1, stem->length - 1u);
        stack_ptx__write(writer, "<", 1);
        stack_ptx__write(writer, digits, stack_ptx__format_decimal(work->num_temporaries[i], digits));
        stack_ptx__write(writer, ">;\n", 3);
    }
}

/* ---- emission: requests ---- */

/* Register that a request's value is read from, by its canonical index; UINT32_MAX where it is no register. */
static uint32_t stack_ptx__source_of(const StackPtxLanguage* language, const StackPtxLowered* lowered, uint32_t request) {
    const uint32_t value = lowered->request_values[request];
    const StackPtxNode* node;
    if (value == STACK_PTX_NO_VALUE) {
        return UINT32_MAX;
    }
    node = &lowered->nodes[lowered->value_nodes[value]];
    return node->kind == STACK_PTX_NODE_INPUT ? language->register_infos[node->payload].canonical : UINT32_MAX;
}

static uint32_t stack_ptx__target_of(const StackPtxLanguage* language, uint32_t request) {
    return language->register_infos[language->requests[request]].canonical;
}

static void stack_ptx__add_move(
    StackPtx__Work* work,
    uint32_t* num_moves,
    StackPtx__MoveKind kind,
    uint32_t request,
    uint32_t value,
    const StackPtx__Temporary* temporary /* NULL: none */
) {
    StackPtx__Move* move = &work->moves[(*num_moves)++];
    move->kind = kind;
    move->request = request;
    move->value = value;
    if (temporary != NULL) {
        move->temporary = *temporary;
    }
}

/* One after the other. */
static uint32_t stack_ptx__plan_in_order(const StackPtxLowered* lowered, StackPtx__Work* work) {
    uint32_t num_moves = 0, i;
    for (i = 0; i < lowered->num_requests; ++i) {
        if (lowered->request_values[i] != STACK_PTX_NO_VALUE || lowered->mode == STACK_PTX_MODE_LENIENT) {
            stack_ptx__add_move(work, &num_moves, STACK_PTX__MOVE_VALUE, i, lowered->request_values[i], NULL);
        }
    }
    return num_moves;
}

/* True if a register that another pending request reads would be written too early. */
static bool stack_ptx__is_blocked(const StackPtx__Work* work, uint32_t num_requests, uint32_t request) {
    const uint32_t target = work->pending[request].target;
    uint32_t i;
    if (work->pending[request].source == target) {
        return false;
    }
    for (i = 0; i < num_requests; ++i) {
        if (i != request && work->pending[i].is_pending && work->pending[i].source == target) {
            return true;
        }
    }
    return false;
}

/* All at once: a register is written when nothing is to be read from it any more, and one on each cycle is saved first.
   Of requests for the same register the last counts. */
static uint32_t stack_ptx__plan_in_parallel(const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work) {
    StackPtx__Pending* pending = work->pending;
    const uint32_t num_requests = lowered->num_requests;
    uint32_t num_moves = 0, num_pending = 0, i, k;

    for (i = 0; i < num_requests; ++i) {
        memset(&pending[i], 0, sizeof pending[i]);
        pending[i].target = stack_ptx__target_of(language, i);
        pending[i].source = stack_ptx__source_of(language, lowered, i);
        pending[i].is_pending = 1;
        for (k = i + 1; k < num_requests; ++k) {
            pending[i].is_pending &= stack_ptx__target_of(language, k) != pending[i].target;
        }
        num_pending += pending[i].is_pending;
    }
    while (num_pending > 0) {
        const uint32_t num_before = num_pending;
        for (i = 0; i < num_requests; ++i) {
            if (pending[i].is_pending && !stack_ptx__is_blocked(work, num_requests, i)) {
                stack_ptx__add_move(
                    work, &num_moves, pending[i].is_saved ? STACK_PTX__MOVE_SAVED : STACK_PTX__MOVE_VALUE, i,
                    lowered->request_values[i], &pending[i].temporary
                );
                pending[i].is_pending = 0;
                --num_pending;
            }
        }
        if (num_pending == num_before) {
            StackPtx__Temporary temporary;
            for (i = 0; !pending[i].is_pending; ++i) {
            }
            temporary.stack_idx = language->registers[language->requests[i]].stack_idx;
            temporary.number = work->num_temporaries[temporary.stack_idx]++;
            stack_ptx__add_move(work, &num_moves, STACK_PTX__MOVE_TO_SAVE, i, STACK_PTX_NO_VALUE, &temporary);
            for (k = 0; k < num_requests; ++k) {
                if (pending[k].source == pending[i].target) {
                    pending[k].source = UINT32_MAX;
                    pending[k].is_saved = 1;
                    pending[k].temporary = temporary;
                }
            }
        }
    }
    return num_moves;
}

static uint32_t stack_ptx__plan_moves(const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work) {
    uint32_t i;
    if (lowered->mode == STACK_PTX_MODE_LENIENT) {
        for (i = 0; i < lowered->num_requests; ++i) {
            const uint32_t source = stack_ptx__source_of(language, lowered, i);
            if (source != UINT32_MAX && language->register_infos[source].first_request < i) {
                return stack_ptx__plan_in_parallel(language, lowered, work);
            }
        }
    }
    return stack_ptx__plan_in_order(lowered, work);
}

static void stack_ptx__write_moves(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    uint32_t num_moves,
    StackPtx__Writer* writer
) {
    uint32_t i;
    for (i = 0; i < num_moves; ++i) {
        const StackPtx__Move* move = &work->moves[i];
        const StackPtxRegister* target = &language->registers[language->requests[move->request]];
        const char* prefix = language->stack_info.stack_literal_prefixes[target->stack_idx];
        stack_ptx__write(writer, "mov.", 4);
        stack_ptx__write_string(writer, prefix);
        stack_ptx__write(writer, " ", 1);
        if (move->kind == STACK_PTX__MOVE_TO_SAVE) {
            stack_ptx__write_temporary(language, writer, move->temporary);
            stack_ptx__write(writer, ", ", 2);
        }
        stack_ptx__write(writer, "%", 1);
        stack_ptx__write_string(writer, target->name);
        if (move->kind != STACK_PTX__MOVE_TO_SAVE) {
            stack_ptx__write(writer, ", ", 2);
        }
        if (move->kind == STACK_PTX__MOVE_SAVED) {
            stack_ptx__write_temporary(language, writer, move->temporary);
        } else if (move->kind == STACK_PTX__MOVE_VALUE && move->value == STACK_PTX_NO_VALUE) {
            char literal[STACK_PTX__MAX_LITERAL];
            const uint32_t constant_type = stack_ptx__constant_type_of_prefix(prefix);
            stack_ptx__write(writer, literal, stack_ptx__format_literal(constant_type, 0, literal));
        } else if (move->kind == STACK_PTX__MOVE_VALUE) {
            stack_ptx__write_value(language, lowered, work, writer, move->value);
        }
        stack_ptx__write(writer, ";\n", 2);
    }
}

static StackPtxResult stack_ptx__emit(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    StackPtx__Work* work,
    uint32_t num_with_temporaries,
    uint32_t num_moves,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    StackPtx__Writer writer;
    writer.buffer = buffer;
    writer.capacity = buffer == NULL || buffer_size == 0 ? 0 : buffer_size - 1;
    writer.length = 0;
    if (language->limits.max_frame_depth > 0 || lowered->mode == STACK_PTX_MODE_LENIENT) {
        stack_ptx__write(&writer, "{\n", 2);
        stack_ptx__write_declarations(language, work, &writer);
        work->has_long_texts = 0;
        stack_ptx__name_leaves(
            language, lowered, work, work->sorted_nodes + num_with_temporaries, lowered->num_nodes - num_with_temporaries
        );
        stack_ptx__write_nodes(language, lowered, work, num_with_temporaries, &writer);
        stack_ptx__write_moves(language, lowered, work, num_moves, &writer);
        stack_ptx__write(&writer, "}", 1);
    }
    *bytes_written_out = writer.length;
    if (buffer != NULL) {
        if (buffer_size == 0 || writer.length > writer.capacity) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        }
        buffer[writer.length] = '\0';
    }
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_emit(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    void* workspace,
    size_t workspace_bytes,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    StackPtx__Work work;
    uint32_t num_with_temporaries, num_moves;
    const StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (lowered == NULL || bytes_written_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    num_with_temporaries = stack_ptx__sort_nodes(language, lowered, &work);
    num_moves = stack_ptx__plan_moves(language, lowered, &work);
    return stack_ptx__emit(
        language, lowered, &work, num_with_temporaries, num_moves, buffer, buffer_size, bytes_written_out
    );
}

/* ---- canonical hash ---- */

static int stack_ptx__is_less(const StackPtxHash* a, const StackPtxHash* b) {
    return a->words[0] != b->words[0] ? a->words[0] < b->words[0] : a->words[1] < b->words[1];
}

static uint32_t stack_ptx__op_of_node(const StackPtxLanguage* language, const StackPtxNode* node) {
    switch (node->kind) {
        case STACK_PTX_NODE_INPUT: return language->first_input + node->stack_idx;
        case STACK_PTX_NODE_CONSTANT: return language->first_constant + node->stack_idx;
        case STACK_PTX_NODE_SPECIAL: return language->first_special + (node->payload & UINT16_MAX);
        default: return node->payload;
    }
}

StackPtxResult stack_ptx_hash(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    void* workspace,
    size_t workspace_bytes,
    StackPtxHash* hash_out
) {
    StackPtx__Work work;
    StackPtxHash* hashes;
    StackPtxHash total;
    uint64_t num_volatile = 0;
    uint32_t i, k;
    const StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (lowered == NULL || hash_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    hashes = (StackPtxHash*)work.scratch;

    for (i = 0; i < lowered->num_nodes; ++i) {
        const StackPtxNode* node = &lowered->nodes[i];
        const uint32_t op_idx = stack_ptx__op_of_node(language, node);
        const uint32_t* operands = lowered->operands + node->first_operand;
        StackPtxHash hash = language->op_hashes[op_idx];

        if (node->kind == STACK_PTX_NODE_PTX) {
            uint32_t is_exchanged = 0;
            if (language->ops[op_idx].commutes != 0) {
                is_exchanged = (uint32_t)stack_ptx__is_less(&hashes[operands[1]], &hashes[operands[0]]);
            }
            for (k = 0; k < node->num_operands; ++k) {
                const StackPtxHash* operand = &hashes[operands[k < 2 ? k ^ is_exchanged : k]];
                stack_ptx__absorb(&hash, operand->words[0], operand->words[1]);
            }
        } else if (node->kind == STACK_PTX_NODE_SPECIAL) {
            const char* suffix = stack_ptx__element_suffix(language, node->payload);
            if (suffix[0] != '\0') {
                hash = stack_ptx__hash_special(language, node->payload & UINT16_MAX, suffix);
            }
        } else {
            stack_ptx__absorb(&hash, node->payload, STACK_PTX__TAG_NODE);
        }
        if (language->op_nodes[op_idx].is_volatile) {
            stack_ptx__absorb(&hash, ++num_volatile, STACK_PTX__TAG_VOLATILE);
        }
        hashes[node->first_value] = hash;
        for (k = 1; k < node->num_values; ++k) {
            hashes[node->first_value + k] = hash;
            stack_ptx__absorb(&hashes[node->first_value + k], k, STACK_PTX__TAG_RESULT);
        }
    }

    total = language->salt;
    for (i = 0; i < lowered->num_requests; ++i) {
        const uint32_t value = lowered->request_values[i];
        const StackPtxHash* type_hash =
            &language->stacks[language->registers[language->requests[i]].stack_idx].type_hash;
        stack_ptx__absorb(&total, type_hash->words[0], type_hash->words[1]);
        if (value == STACK_PTX_NO_VALUE) {
            stack_ptx__absorb(&total, i, STACK_PTX__TAG_MISSING);
        } else {
            stack_ptx__absorb(&total, hashes[value].words[0], hashes[value].words[1]);
        }
    }
    stack_ptx__absorb(&total, lowered->num_requests, STACK_PTX__TAG_PROGRAM);
    *hash_out = total;
    return STACK_PTX_SUCCESS;
}

/* ---- all in one call ---- */

static uint32_t stack_ptx__clamp(size_t value) {
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* A bare language takes no memory for registers, routines and requests, since their numbers are not known when the size is
   asked for. Requests that find a value are no more than stacks can hold. */
static StackPtxResult stack_ptx__place_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxLanguageInfo* info,
    StackPtx__Layout* layout,
    size_t* language_bytes_out
) {
    StackPtxResult result = stack_ptx__check_counts(info);
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__check_stack_info(info->stack_info, NULL);
    }
    if (result == STACK_PTX_SUCCESS) {
        const size_t max_values = info->stack_info->num_stacks * compiler_info->stack_size;
        stack_ptx__place_work(layout, &info->limits, info->stack_info, 0, max_values, max_values);
        *language_bytes_out = stack_ptx__place_language(NULL, info, 1, NULL);
        if (*language_bytes_out > SIZE_MAX / 2 || layout->bytes > SIZE_MAX / 2) {
            result = STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return result;
}

static void stack_ptx__describe_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    size_t execution_limit,
    StackPtxLanguageInfo* info_out
) {
    memset(info_out, 0, sizeof *info_out);
    info_out->stack_info = stack_info;
    info_out->limits.stack_size = stack_ptx__clamp(compiler_info->stack_size);
    info_out->limits.max_nodes = stack_ptx__clamp(compiler_info->max_ast_size);
    info_out->limits.max_frame_depth = stack_ptx__clamp(compiler_info->max_frame_depth);
    info_out->limits.store_size = stack_ptx__clamp(compiler_info->store_size);
    info_out->limits.execution_limit = stack_ptx__clamp(execution_limit);
}

StackPtxResult stack_ptx_compile_workspace_size(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    size_t* bytes_out
) {
    StackPtxLanguageInfo info;
    StackPtx__Layout layout;
    size_t language_bytes = 0;
    StackPtxResult result;
    if (compiler_info == NULL || stack_info == NULL || bytes_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__describe_compile(compiler_info, stack_info, 0, &info);
    result = stack_ptx__place_compile(compiler_info, &info, &layout, &language_bytes);
    if (result == STACK_PTX_SUCCESS) {
        *bytes_out = language_bytes + layout.bytes;
    }
    return result;
}

StackPtxResult stack_ptx_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    const StackPtxInstruction* instructions,
    const StackPtxRegister* registers,
    size_t num_registers,
    const StackPtxInstruction** routines,
    size_t num_routines,
    const size_t* requests,
    size_t num_requests,
    size_t execution_limit,
    void* workspace,
    size_t workspace_bytes,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    StackPtxLanguageInfo info;
    StackPtx__Layout layout;
    StackPtxLanguage* language = NULL;
    StackPtx__Work work;
    StackPtxLowered lowered;
    StackPtxResult result;
    size_t language_bytes = 0, i;
    uint32_t num_moves = 0;

    if (compiler_info == NULL || stack_info == NULL || instructions == NULL || workspace == NULL || bytes_written_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__describe_compile(compiler_info, stack_info, execution_limit, &info);
    info.registers = registers;
    info.num_registers = num_registers;
    info.routines = (const StackPtxInstruction* const*)routines;
    info.num_routines = num_routines;
    info.requests = requests;
    info.num_requests = num_requests;
    result = stack_ptx__place_compile(compiler_info, &info, &layout, &language_bytes);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (workspace_bytes < language_bytes + layout.bytes) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    }
    result = stack_ptx__init_language(&info, 1, workspace, language_bytes, &language);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    language->layout = layout;
    stack_ptx__open_work(language, (char*)workspace + language_bytes, &work);
    result = stack_ptx__run(
        language, STACK_PTX_MODE_COMPATIBLE, STACK_PTX_FLAG_NO_VALUE_NUMBERING, instructions, SIZE_MAX, &work, NULL
    );
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    for (i = 0; i < num_requests; ++i) {
        const uint32_t row = stack_ptx__pop(&work.stacks[registers[requests[i]].stack_idx]);
        if (row != 0) {
            work.request_values[num_moves] = row;
            stack_ptx__add_move(&work, &num_moves, STACK_PTX__MOVE_VALUE, (uint32_t)i, STACK_PTX_NO_VALUE, NULL);
        }
    }
    stack_ptx__mark_live(&work, work.request_values, num_moves);
    stack_ptx__collect(language, &work, &lowered);
    lowered.mode = STACK_PTX_MODE_COMPATIBLE;
    for (i = 0; i < num_moves; ++i) {
        work.moves[i].value = work.value_ids[work.request_values[i]];
    }
    return stack_ptx__emit(
        language, &lowered, &work, stack_ptx__sort_nodes(language, &lowered, &work), num_moves, buffer, buffer_size,
        bytes_written_out
    );
}

#ifdef __cplusplus
}
#endif

#endif /* STACK_PTX_IMPLEMENTATION_ONCE */
#endif /* STACK_PTX_IMPLEMENTATION */
