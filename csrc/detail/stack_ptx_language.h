/*
 * stack_ptx_language.h - the structs behind stack_ptx.h, and the preparation of languages.
 *
 * Private: included only by stack_ptx.h, with STACK_PTX_IMPLEMENTATION. It owns the structs of a prepared language and of a
 * workspace, and all work done once per language: checks, texts, hashes of names.
 */

#ifndef STACK_PTX_LANGUAGE_H
#define STACK_PTX_LANGUAGE_H

#include "arena.h"
#include "ptx_text.h"

#define STACK_PTX__ERROR(code) EVO__ERROR(STACK_PTX_DEBUG, code)

#define STACK_PTX__ALIGNMENT 64u
#define STACK_PTX__MAX_COUNT ((size_t)1 << 28)
/* Unused values before the first stack: a plain op always reads four values down from the top. */
#define STACK_PTX__STACKS_MARGIN 4u
#define STACK_PTX__MAX_OPERANDS (STACK_PTX_MAX_NUM_ARGS * STACK_PTX_MAX_NUM_VEC_ELEMS)
/* Registers that fit into the workspace of a language prepared late. */
#define STACK_PTX__MAX_LATE_REGISTERS 64u

/* A plain word takes up to four scalars from one stack and pushes one value: most PTX instructions, constants and inputs. It runs
   without a branch, by its op. There is an op for each PTX instruction, for the constants of each stack, and for each input that
   has a row from the start. */
typedef struct StackPtx__Op {
    uint64_t operand_masks[2]; /* of two operands each, all ones for one that exists */
    uint64_t commutes;         /* all ones if the first two operands commute */
    uint32_t in_stack;
    uint32_t out_stack;
    uint32_t num_operands;
    uint32_t head;         /* lower half of the row's; the word's payload is the upper half */
    uint32_t row;          /* of an input; 0 if it makes a new one */
    uint32_t new_row_mask; /* all ones if it makes a new row, 0 for an input */
    uint32_t padding[4];   /* to 64 bytes */
} StackPtx__Op;

/* stack_ptx_compile, which has its language for one program, prepares an op at its first use: programs use few of them. */
enum { STACK_PTX__OP_UNPREPARED, STACK_PTX__OP_PLAIN, STACK_PTX__OP_GENERAL };

/* The ops of the words of a type: a table instead of an unpredictable branch. */
typedef struct StackPtx__WordForm {
    uint8_t* op_kinds;
    StackPtx__Op* ops;
    uint32_t num_ops;      /* 0: such words are never plain */
    uint32_t payload_mask; /* all ones if the payload is the index */
    uint32_t aux_mask;     /* all ones if aux is */
    uint32_t padding;      /* to 32 bytes */
} StackPtx__WordForm;

/* The node of a value in the lowered program, by op: one for each PTX instruction and special register, and for the inputs and
   the constants of each stack. */
typedef struct StackPtx__OpNode {
    StackPtxNode node; /* without the word's payload bits, first_operand and first_value */
    uint8_t is_volatile;
    uint8_t is_simple_text; /* an input or constant; or one scalar result, scalar operands, a short name */
    uint8_t is_ptx;
    uint8_t is_large;       /* more than four operands or one value */
    uint8_t registers_only;
    uint8_t rewrites;       /* bits of the operands that, if constant, make it another instruction */
    uint8_t padding[5];     /* to 32 bytes */
} StackPtx__OpNode;

typedef struct StackPtx__Stack {
    StackPtxHash type_hash;
    uint32_t constant_type;
} StackPtx__Stack;

typedef struct StackPtx__Register {
    PtxText__Value text;  /* ", %x" */
    uint32_t canonical;     /* first register of the same name */
    uint32_t first_request; /* first request that writes it; set on canonical registers */
} StackPtx__Register;

/* A value while the program runs; row 0 is no value. If there are more than four operands, the last of the four is a row with
   the rest. The second and later values of a node follow it, with it as their operand. */
typedef struct StackPtx__Row {
    uint64_t head;        /* op, and in the upper half the bits of a constant, an input's register, a special register's
                             element << 16, or a plain instruction's index */
    uint64_t operands[2]; /* two rows each, the first in the lower half; or 0 */
} StackPtx__Row;

typedef struct StackPtx__Frame {
    const StackPtxInstruction* words;
    size_t next;
    size_t length;
    size_t routine_idx;
} StackPtx__Frame;

typedef struct StackPtx__StoreEntry {
    uint32_t row; /* 0: nothing stored */
    uint32_t stack_idx;
} StackPtx__StoreEntry;

/* The stack of a type: rows from base up to, not including, top. There is room for one more than it holds, and a plain op may
   read four down from any top. */
typedef struct StackPtx__Values {
    uint32_t* base;
    uint32_t* top;
    uint32_t* full; /* the highest top */
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

/* A request while a parallel move is ordered. Registers by their canonical index; UINT32_MAX is none. */
typedef struct StackPtx__Pending {
    uint32_t is_pending;
    uint32_t target;
    uint32_t source;
    uint32_t is_saved; /* the source, in a temporary */
    StackPtx__Temporary temporary;
} StackPtx__Pending;

/* The arrays of a workspace: X(type, name, number of items). */
#define STACK_PTX__WORK_ARRAYS(X)                                                                             \
    X(StackPtx__Values, stacks, num_stacks)                                                                   \
    X(uint32_t, stack_rows, STACK_PTX__STACKS_MARGIN + num_stacks * (limits->stack_size + UINT64_C(1)))       \
    X(uint32_t, meta, limits->stack_size)                                                                     \
    X(StackPtx__StoreEntry, store, limits->store_size)                                                        \
    X(StackPtx__Frame, frames, limits->max_frame_depth)                                                       \
    X(StackPtx__Row, rows, max_rows)                                                                          \
    X(uint32_t, table, table_size)       /* rows by the hash of their contents; 0 is free */                  \
    X(uint8_t, live, max_rows)           /* 1 for rows that requests need; then, for constants moved */       \
    X(uint32_t, value_ids, max_rows)     /* of live rows in the lowered form; before, see folding */          \
    X(StackPtxNode, nodes, max_values)                                                                        \
    X(uint32_t, operands, max_values* operands_per_node)    /* no fewer than max_rows; before, see folding */ \
    X(uint32_t, value_nodes, max_values)                                                                      \
    X(uint16_t, value_stacks, max_values)                                                                     \
    X(uint32_t, request_values, num_requests)                                                                 \
    X(StackPtx__Move, moves, max_moves)                                                                       \
    X(StackPtx__Pending, pending, is_late ? 0 : num_requests)                                                 \
    X(PtxText__Value, texts, max_values + 1) /* of no value, then of each, for stack_ptx_emit */              \
    X(uint32_t, sorted_nodes, max_values)    /* those with temporaries, then the others backwards */          \
    X(uint32_t, num_temporaries, num_stacks) /* of each stack, in all */                                      \
    X(StackPtxInstruction, instance, template_length > 0 ? limits->execution_limit : 0)                       \
    X(char, derived, derived_bytes)                                                                           \
    X(uint32_t, derived_rows, derived_bytes > 0 ? max_values : 0) /* of values of a derived program */        \
    X(StackPtxHash, hashes, is_late ? 0 : max_values) /* of each value, for stack_ptx_hash */

/* Their offsets in bytes. */
typedef struct StackPtx__Layout {
#define STACK_PTX__FIELD(type, name, count) size_t name;
    STACK_PTX__WORK_ARRAYS(STACK_PTX__FIELD)
#undef STACK_PTX__FIELD
    size_t bytes;
    uint32_t table_size; /* a power of two */
} StackPtx__Layout;

/* A workspace in use. */
typedef struct StackPtx__Work {
#define STACK_PTX__FIELD(type, name, count) type* name;
    STACK_PTX__WORK_ARRAYS(STACK_PTX__FIELD)
#undef STACK_PTX__FIELD

    /* State of the running program. */
    uint32_t num_rows;
    uint32_t num_created;
    uint32_t num_meta;
    uint32_t table_shift; /* 64 - log2 of the part of the table in use */
    uint32_t part_mask;   /* size of that part - 1 */
    uint32_t grow_at;     /* rows at which that part is enlarged; 0 without value numbering */
    int is_numbering;     /* whether equal values are merged */
    int has_long_texts;   /* some value's text is too long for its padded form */
    const uint8_t* moved; /* by node, 1 for constants that are in registers; NULL if there are none */
} StackPtx__Work;

struct StackPtxLanguage {
    StackPtxStackInfo stack_info;
    StackPtxLimits limits;
    const StackPtxRegister* registers;
    const size_t* requests;
    const StackPtxInstruction* const* routines;
    const size_t* routine_lengths;
    StackPtxFolding folding;
    size_t num_registers;
    size_t num_requests;
    size_t num_routines;
    const StackPtxInstruction* template_words;
    size_t template_length;
    StackPtxDerivation derivation;
    size_t
        num_input_rows; /* registers with a row from the start: all of them, or none if they are too many for a language prepared late */

    StackPtx__WordForm word_forms[STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS];
    uint8_t* op_kinds; /* of ops */
    StackPtx__Op* ops; /* of PTX instructions, then of constants by stack, then of inputs */
    StackPtx__OpNode* op_nodes;
    PtxText__Name* op_texts;
    StackPtx__Stack* stacks;
    PtxText__Value* stems; /* ", %_s0_" of each stack */
    uint32_t first_special;
    uint32_t first_input;
    uint32_t first_constant;
    uint32_t follower; /* op of the second and further values of a node */
    uint32_t continuation; /* op of the rows of operands beyond the fourth */
    uint32_t num_ops;
    int has_registers_only; /* some instruction takes no constants, or those of some stack are moved */
    int has_rewrites; /* some instruction becomes another if an operand is constant */

    int is_late; /* ops are prepared at their first use; nothing is numbered, hashed or moved in parallel */
    StackPtxHash* op_hashes;
    StackPtx__Register* register_infos;
    StackPtxHash salt;

    StackPtx__Layout layout;
};

/* ---- small things ---- */

const char* stack_ptx_result_to_string(StackPtxResult result){
    EVO__RETURN_NAME(result, STACK_PTX__RESULTS, "STACK_PTX_RESULT_UNKNOWN")
}

PTX_TEXT__HOT uint64_t stack_ptx__pair(uint32_t low, uint32_t high) {
    return low | (uint64_t)high << 32;
}

/* True for a temporary of a stub: _s<digits>_<digits>. */
static bool stack_ptx__is_temporary(const char* name) {
    size_t num_digits;
    if (name[0] != '_' || name[1] != 's') return false;
    num_digits = strspn(name + 2, "0123456789");
    return num_digits > 0 && ptx_text__is_numbered(name + 2 + num_digits, "_");
}

StackPtxResult stack_ptx_check_name(const char* name) {
    const size_t length = name == NULL ? 0 : ptx_text__identifier_length(name);
    if (length == 0 || ptx_text__is_reserved(name, length) || stack_ptx__is_temporary(name))
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
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
#define STACK_PTX__MIX_4 UINT64_C(0xD6E8FEB86659FD93) /* odd, with well spread bits */

/* Begin or end a state, so that different things of the same bits have different hashes. */
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

PTX_TEXT__HOT uint64_t stack_ptx__rotate(uint64_t x, unsigned count) {
    return (x << (count & 63u)) | (x >> ((0u - count) & 63u));
}

PTX_TEXT__HOT void stack_ptx__absorb(StackPtxHash* state, uint64_t x, uint64_t y) {
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
    while (n < STACK_PTX_MAX_NUM_ARGS && descriptor->arg_types[n] < info->num_arg_types) ++n;
    return n;
}

static uint32_t stack_ptx__num_rets(const StackPtxStackInfo* info, const StackPtxPtxInstructionDescriptor* descriptor) {
    uint32_t n = 0;
    while (n < STACK_PTX_MAX_NUM_RETS && descriptor->ret_types[n] < info->num_arg_types) ++n;
    return n;
}

static StackPtxResult stack_ptx__check_arg_types(const uint16_t* arg_types, size_t count, size_t num_arg_types) {
    size_t i;
    for (i = 0; i < count; ++i) {
        if (arg_types[i] > num_arg_types) return STACK_PTX__ERROR(STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
        if (i > 0 && arg_types[i - 1] == num_arg_types && arg_types[i] != num_arg_types)
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    return STACK_PTX_SUCCESS;
}

static StackPtxResult stack_ptx__check_descriptor(
    const StackPtxStackInfo* info, const StackPtxPtxInstructionDescriptor* descriptor, const StackPtxInstructionTraits* traits
) {
    /* Copies, because the members of a packed struct have no alignment. */
    uint16_t arg_types[STACK_PTX_MAX_NUM_ARGS];
    uint16_t ret_types[STACK_PTX_MAX_NUM_RETS];
    StackPtxResult result;

    memcpy(arg_types, descriptor->arg_types, sizeof arg_types);
    memcpy(ret_types, descriptor->ret_types, sizeof ret_types);
    result = stack_ptx__check_arg_types(arg_types, STACK_PTX_MAX_NUM_ARGS, info->num_arg_types);
    if (result == STACK_PTX_SUCCESS) result = stack_ptx__check_arg_types(ret_types, STACK_PTX_MAX_NUM_RETS, info->num_arg_types);
    if (result == STACK_PTX_SUCCESS && traits != NULL && traits->num_commutative != 0) {
        if (traits->num_commutative != 2 || stack_ptx__num_args(info, descriptor) < 2 || arg_types[0] != arg_types[1] ||
            stack_ptx__is_vector(info, arg_types[0])) {
            result = STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return result;
}

/* Checks that all instructions and special registers of a set rely on. */
static StackPtxResult stack_ptx__check_types(const StackPtxStackInfo* info, const StackPtxTraits* traits) {
    size_t i;
    if ((info->num_ptx_instructions > 0 &&
         (info->ptx_instruction_strings == NULL || info->ptx_instruction_descriptors == NULL)) ||
        (info->num_special_registers > 0 &&
         (info->special_register_strings == NULL || info->special_register_descriptors == NULL)) ||
        (info->num_stacks > 0 && info->stack_literal_prefixes == NULL) ||
        (info->num_arg_types > 0 && info->arg_type_info == NULL) || info->num_ptx_instructions >= STACK_PTX__MAX_COUNT ||
        info->num_special_registers > UINT16_MAX || info->num_stacks > UINT16_MAX || info->num_arg_types > UINT16_MAX) {
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
        if (info->arg_type_info[i].stack_idx >= info->num_stacks)
            return STACK_PTX__ERROR(STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS);
        if (info->arg_type_info[i].num_vec_elems > STACK_PTX_MAX_NUM_VEC_ELEMS)
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    return STACK_PTX_SUCCESS;
}

static StackPtxResult stack_ptx__check_instruction(const StackPtxStackInfo* info, size_t idx, const StackPtxTraits* traits) {
    if (info->ptx_instruction_strings[idx] == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    return stack_ptx__check_descriptor(
        info, &info->ptx_instruction_descriptors[idx],
        traits == NULL || traits->instructions == NULL ? NULL : &traits->instructions[idx]
    );
}

static StackPtxResult stack_ptx__check_special(const StackPtxStackInfo* info, size_t idx) {
    const size_t arg_type = info->special_register_descriptors[idx].arg_type_idx;
    if (arg_type >= info->num_arg_types) return STACK_PTX__ERROR(STACK_PTX_ERROR_ARG_IDX_OUT_OF_BOUNDS);
    /* There are only the elements .x .y .z .w. */
    if (info->special_register_strings[idx] == NULL || info->arg_type_info[arg_type].num_vec_elems > 4)
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    return STACK_PTX_SUCCESS;
}

static StackPtxResult stack_ptx__check_stack_info(const StackPtxStackInfo* info, const StackPtxTraits* traits) {
    StackPtxResult result = stack_ptx__check_types(info, traits);
    size_t i;
    for (i = 0; i < info->num_ptx_instructions && result == STACK_PTX_SUCCESS; ++i)
        result = stack_ptx__check_instruction(info, i, traits);
    for (i = 0; i < info->num_special_registers && result == STACK_PTX_SUCCESS; ++i) result = stack_ptx__check_special(info, i);
    return result;
}

/* stack_ptx_compile, whose languages are prepared late, takes any names that make PTX, does not compare them, and needs none for
   registers that are neither read nor requested. */
static StackPtxResult stack_ptx__check_connections(const StackPtxLanguageInfo* info, int is_late) {
    const StackPtxStackInfo* stack_info = info->stack_info;
    size_t i, k;
    for (i = 0; i < info->num_registers; ++i) {
        const StackPtxRegister* one = &info->registers[i];
        if (one->stack_idx >= stack_info->num_stacks) return STACK_PTX__ERROR(STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS);
        if (is_late) {
            if (one->name != NULL && (ptx_text__identifier_length(one->name) == 0 || stack_ptx__is_temporary(one->name)))
                return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
            continue;
        }
        if (stack_ptx_check_name(one->name) != STACK_PTX_SUCCESS) return STACK_PTX_ERROR_INVALID_VALUE;
        for (k = 0; k < i; ++k) {
            const StackPtxRegister* other = &info->registers[k];
            if (one->name[0] == other->name[0] && strcmp(one->name, other->name) == 0 &&
                strcmp(
                    stack_info->stack_literal_prefixes[one->stack_idx], stack_info->stack_literal_prefixes[other->stack_idx]
                ) != 0) {
                return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
            }
        }
    }
    for (i = 0; i < info->num_requests; ++i) {
        if (info->requests[i] >= info->num_registers) return STACK_PTX__ERROR(STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS);
        if (info->registers[info->requests[i]].name == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < info->num_routines; ++i)
        if (info->routines[i] == NULL && (info->routine_lengths == NULL || info->routine_lengths[i] > 0))
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    return STACK_PTX_SUCCESS;
}

/* Checks that stack_ptx_language_size relies on. */
static StackPtxResult stack_ptx__check_counts(const StackPtxLanguageInfo* info) {
    if (info == NULL || info->stack_info == NULL || (info->num_registers > 0 && info->registers == NULL) ||
        (info->num_requests > 0 && info->requests == NULL) || (info->num_routines > 0 && info->routines == NULL) ||
        (info->template_length > 0 && info->template_words == NULL) || info->num_registers >= STACK_PTX__MAX_COUNT ||
        info->num_requests >= STACK_PTX__MAX_COUNT || info->limits.stack_size >= STACK_PTX__MAX_COUNT ||
        info->limits.max_nodes >= STACK_PTX__MAX_COUNT || info->limits.max_frame_depth >= STACK_PTX__MAX_COUNT ||
        info->limits.store_size >= STACK_PTX__MAX_COUNT || info->stack_info->num_ptx_instructions >= STACK_PTX__MAX_COUNT ||
        info->stack_info->num_special_registers > UINT16_MAX || info->stack_info->num_stacks > UINT16_MAX ||
        STACK_PTX__STACKS_MARGIN + (uint64_t)info->stack_info->num_stacks * (info->limits.stack_size + 1u) > UINT32_MAX) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    return STACK_PTX_SUCCESS;
}

/* ---- languages: memory ---- */

/* Lays a language and its arrays in the memory; the rest of the language is zeros. Returns the bytes needed; if there
   are fewer, language_out is not written. */
static size_t stack_ptx__place_language(
    const StackPtxLanguageInfo* info, int is_late, void* memory, size_t memory_bytes, StackPtxLanguage** language_out
) {
    const StackPtxStackInfo* stack_info = info->stack_info;
    const uint64_t num_ptx = stack_info->num_ptx_instructions, num_stacks = stack_info->num_stacks;
    const uint64_t num_ops = num_ptx + stack_info->num_special_registers + 2 * num_stacks + 2;
    const uint64_t num_plain_ops = num_ptx + num_stacks + (is_late ? STACK_PTX__MAX_LATE_REGISTERS : info->num_registers);
    EvoArena arena = evo__arena(memory, memory_bytes);
    StackPtxLanguage placed;
    StackPtxLanguage* language = (StackPtxLanguage*)evo__take(&arena, 1, sizeof *language);
    language = language != NULL ? language : &placed;
    memset(language, 0, sizeof *language);
    language->is_late = is_late;
    language->op_kinds = (uint8_t*)evo__take(&arena, num_plain_ops, sizeof(uint8_t));
    language->ops = (StackPtx__Op*)evo__take(&arena, num_plain_ops, sizeof(StackPtx__Op));
    language->op_nodes = (StackPtx__OpNode*)evo__take(&arena, num_ops, sizeof(StackPtx__OpNode));
    language->op_texts = (PtxText__Name*)evo__take(&arena, num_ptx, sizeof(PtxText__Name));
    language->stacks = (StackPtx__Stack*)evo__take(&arena, num_stacks, sizeof(StackPtx__Stack));
    language->stems = (PtxText__Value*)evo__take(&arena, num_stacks, sizeof(PtxText__Value));
    language->op_hashes = (StackPtxHash*)evo__take(&arena, is_late ? 0 : num_ops, sizeof(StackPtxHash));
    language->register_infos =
        (StackPtx__Register*)evo__take(&arena, is_late ? 0 : info->num_registers, sizeof(StackPtx__Register));
    if (arena.num_bytes <= memory_bytes) *language_out = language;
    return arena.num_bytes;
}

/* The most operands that an instruction has, vectors counted by elements. */
static uint32_t stack_ptx__max_operands(const StackPtxStackInfo* info) {
    uint32_t most = 0;
    size_t i;
    uint32_t k;
    for (i = 0; i < info->num_ptx_instructions; ++i) {
        const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[i];
        uint32_t count = 0;
        for (k = stack_ptx__num_args(info, descriptor); k > 0; --k)
            count += stack_ptx__num_elems(info, descriptor->arg_types[k - 1]);
        most = count > most ? count : most;
    }
    return most;
}

/* An upper bound, without a look at the instructions. */
static uint32_t stack_ptx__bound_operands(const StackPtxStackInfo* info) {
    uint32_t most = 1;
    size_t i;
    for (i = 0; i < info->num_arg_types; ++i) {
        const uint32_t count = info->arg_type_info[i].num_vec_elems;
        most = count > most ? count : most;
    }
    return STACK_PTX_MAX_NUM_ARGS * most;
}

/* The arrays of a workspace for this many registers, requests and lines that write requests. */
static void stack_ptx__place_work(
    StackPtx__Layout* layout, const StackPtxLimits* limits, const StackPtxStackInfo* stack_info, int is_late,
    uint64_t max_operands, size_t num_registers, size_t num_requests, size_t max_moves, size_t template_length,
    size_t derived_bytes
) {
    const uint64_t num_stacks = stack_info->num_stacks;
    const uint64_t rows_per_node = 1 + (max_operands > 4 ? (max_operands - 2) / 3 : 0);
    const uint64_t max_rows = num_registers + limits->max_nodes * rows_per_node + 1;
    const uint64_t max_values = (uint64_t)num_registers + limits->max_nodes + 1;
    const uint64_t operands_per_node = max_operands > 4 ? max_operands : 4;
    uint64_t table_size = 16;
    uint64_t total = 0;

    while (table_size < 2 * max_rows && !is_late) table_size *= 2;
    layout->table_size = (uint32_t)table_size;
#define STACK_PTX__PLACE(type, name, count) layout->name = stack_ptx__reserve(&total, (count), sizeof(type));
    STACK_PTX__WORK_ARRAYS(STACK_PTX__PLACE)
#undef STACK_PTX__PLACE
    total += STACK_PTX__ALIGNMENT;
    layout->bytes = total > SIZE_MAX / 2 ? SIZE_MAX : (size_t)total;
}

static void stack_ptx__open_work(const StackPtxLanguage* language, void* workspace, StackPtx__Work* work) {
    const StackPtx__Layout* layout = &language->layout;
    char* base = stack_ptx__align(workspace);
#define STACK_PTX__OPEN(type, name, count) work->name = (type*)(void*)(base + layout->name);
    STACK_PTX__WORK_ARRAYS(STACK_PTX__OPEN)
#undef STACK_PTX__OPEN
}

/* ---- languages: contents ---- */

/* The bits of the double that equals a float. Integer arithmetic, so that NaN payloads and subnormals are kept. */
static uint64_t stack_ptx__widen_float(uint32_t bits) {
    const uint64_t sign = (uint64_t)(bits >> 31) << 63;
    uint32_t exponent = (bits >> 23) & 255u;
    uint64_t fraction = bits & 0x7FFFFFu;
    if (exponent == 255u) return sign | UINT64_C(0x7FF) << 52 | fraction << 29;
    if (exponent == 0) {
        if (fraction == 0) return sign;
        for (exponent = 1; (fraction & 0x800000u) == 0; --exponent) fraction <<= 1;
        fraction &= 0x7FFFFFu;
    }
    return sign | (uint64_t)(uint32_t)(exponent + 896u) << 52 | fraction << 29; /* 896 = 1023 - 127 */
}

/* The nearest f16 of a float, ties to even. */
static uint32_t stack_ptx__narrow_to_f16(uint32_t bits) {
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu, exponent = magnitude >> 23;
    const uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
    if (magnitude > 0x7F800000u) return 0x7FFFu;
    if (exponent >= 143) return sign | 0x7C00u; /* from 2^16 on */
    if (exponent < 102) return sign; /* less than half of the least one, 2^-24 */
    {
        /* A unit of the result is 2^shift units of the fraction. */
        const uint32_t shift = exponent >= 113 ? 13 : 126 - exponent, whole = fraction >> shift;
        const uint32_t rest = fraction & ((1u << shift) - 1u), half = 1u << (shift - 1u);
        const uint32_t rounded = whole + (uint32_t)(rest > half || (rest == half && (whole & 1u) != 0));
        return sign | (exponent >= 113 ? rounded + ((exponent - 113) << 10) : rounded);
    }
}

/* The nearest bf16 of a float, ties to even. */
static uint32_t stack_ptx__narrow_to_bf16(uint32_t bits) {
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFFu;
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}

static bool stack_ptx__is_half(uint32_t constant_type) { return constant_type >= STACK_PTX_CONSTANT_TYPE_F16; }

#define STACK_PTX__MAX_LITERAL 19u

/* A literal; returns its length. A type without constants has only 0. */
PTX_TEXT__HOT uint32_t stack_ptx__format_literal(uint32_t constant_type, uint32_t bits, char* literal_out) {
    uint32_t high = 0, low = bits;
    char letter = 'x';
    if (stack_ptx__is_half(constant_type)) {
        char digits[8];
        low = constant_type == STACK_PTX_CONSTANT_TYPE_F16 ? stack_ptx__narrow_to_f16(bits) : stack_ptx__narrow_to_bf16(bits);
        ptx_text__format_hex(low, false, digits);
        memcpy(literal_out, "0x", 2);
        memcpy(literal_out + 2, digits + 4, 4);
        return 6;
    }
    switch (constant_type) {
        case STACK_PTX_CONSTANT_TYPE_NONE: literal_out[0] = '0'; return 1;
        case STACK_PTX_CONSTANT_TYPE_F32: letter = 'f'; break;
        case STACK_PTX_CONSTANT_TYPE_F64:
            letter = 'd';
            high = (uint32_t)(stack_ptx__widen_float(bits) >> 32);
            low = (uint32_t)stack_ptx__widen_float(bits);
            break;
        case STACK_PTX_CONSTANT_TYPE_S64: high = (bits >> 31) != 0 ? UINT32_MAX : 0; break;
        default: break;
    }
    literal_out[0] = '0';
    literal_out[1] = letter;
    ptx_text__format_hex(constant_type >= STACK_PTX_CONSTANT_TYPE_F64 ? high : low, false, literal_out + 2);
    if (constant_type < STACK_PTX_CONSTANT_TYPE_F64) {
        literal_out[10] = 'U';
        return constant_type == STACK_PTX_CONSTANT_TYPE_U32 ? 11 : 10;
    }
    ptx_text__format_hex(low, false, literal_out + 10);
    literal_out[18] = 'U';
    return constant_type == STACK_PTX_CONSTANT_TYPE_U64 ? 19 : 18;
}

static uint32_t stack_ptx__constant_type_of_prefix(const char* prefix) {
    const char letter = prefix[0];
    const bool is_32 = letter != '\0' && prefix[1] == '3' && prefix[2] == '2' && prefix[3] == '\0';
    const bool is_64 = letter != '\0' && prefix[1] == '6' && prefix[2] == '4' && prefix[3] == '\0';
    const uint32_t is_wide = is_64 ? STACK_PTX_CONSTANT_TYPE_F64 - STACK_PTX_CONSTANT_TYPE_F32 : 0;
    if ((letter != 'f' && letter != 'u' && letter != 's') || (!is_32 && !is_64)) return STACK_PTX_CONSTANT_TYPE_NONE;
    return is_wide +
        (letter == 'f'       ? STACK_PTX_CONSTANT_TYPE_F32
             : letter == 'u' ? STACK_PTX_CONSTANT_TYPE_U32
                             : STACK_PTX_CONSTANT_TYPE_S32);
}

static void stack_ptx__prepare_stacks(StackPtxLanguage* language, const StackPtxTraits* traits) {
    size_t i;
    for (i = 0; i < language->stack_info.num_stacks; ++i) {
        StackPtx__Stack* stack = &language->stacks[i];
        PtxText__Value* stem = &language->stems[i];
        const char* prefix = language->stack_info.stack_literal_prefixes[i];
        memset(stack, 0, sizeof *stack);
        memset(stem, 0, sizeof *stem);
        stack->constant_type = traits != NULL && traits->constant_types != NULL ? traits->constant_types[i]
                                                                                : stack_ptx__constant_type_of_prefix(prefix);
        memcpy(stem->text, ", %_s", 5);
        stem->length = (uint8_t)(5 + ptx_text__format_decimal((uint32_t)i, stem->text + 5));
        stem->text[stem->length++] = '_';
        if (!language->is_late) {
            stack->type_hash = stack_ptx__hash_begin(STACK_PTX__TAG_TYPE);
            stack_ptx__absorb_text(&stack->type_hash, prefix, "");
        }
    }
}

static void stack_ptx__prepare_ptx_op(const StackPtxLanguage* language, uint32_t idx, const StackPtxInstructionTraits* traits) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[idx];
    const StackPtxArgTypeInfo* types = info->arg_type_info;
    const uint32_t num_args = stack_ptx__num_args(info, descriptor);
    const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
    const uint32_t out_stack = num_rets > 0 ? types[descriptor->ret_types[0]].stack_idx : 0;
    const uint32_t in_stack = num_args > 0 ? types[descriptor->arg_types[0]].stack_idx : out_stack;
    const char* name = info->ptx_instruction_strings[idx];
    const size_t name_length = strlen(name);
    StackPtx__Op* op = &language->ops[idx];
    StackPtx__OpNode* op_node = &language->op_nodes[idx];
    PtxText__Name* text = &language->op_texts[idx];
    uint32_t num_operands = num_args, num_values = num_rets, other_stacks = 0, i;
    bool is_scalar;

    memset(op, 0, sizeof *op);
    memset(op_node, 0, sizeof *op_node);
    is_scalar = num_rets == 1;
    for (i = 0; i < num_rets; ++i) {
        const StackPtxArgTypeInfo* type = &types[descriptor->ret_types[i]];
        if (type->num_vec_elems > 0) {
            is_scalar = false;
            num_values += type->num_vec_elems - 1u;
        }
    }
    for (i = 0; i < num_args; ++i) {
        const StackPtxArgTypeInfo* type = &types[descriptor->arg_types[i]];
        other_stacks |= type->stack_idx ^ in_stack;
        if (type->num_vec_elems > 0) {
            is_scalar = false;
            num_operands += type->num_vec_elems - 1u;
        }
    }
    op->in_stack = in_stack;
    op->out_stack = out_stack;
    op->operand_masks[0] = stack_ptx__pair(0u - (num_args > 0), 0u - (num_args > 1));
    op->operand_masks[1] = stack_ptx__pair(0u - (num_args > 2), 0u - (num_args > 3));
    op->head = idx;
    op->new_row_mask = UINT32_MAX;
    op->num_operands = num_args;
    op->commutes = traits != NULL && traits->num_commutative == 2 ? UINT64_MAX : 0;
    op_node->node.kind = STACK_PTX_NODE_PTX;
    op_node->node.stack_idx = (uint16_t)out_stack;
    op_node->node.num_operands = (uint16_t)num_operands;
    op_node->node.num_values = (uint16_t)num_values;
    op_node->node.payload = idx;
    op_node->is_ptx = 1;
    op_node->is_large = num_operands > 4 || num_values > 1;
    op_node->is_volatile = traits != NULL && traits->is_volatile != 0;
    op_node->registers_only = traits != NULL && traits->registers_only != 0;
    language->op_kinds[idx] =
        is_scalar && other_stacks == 0 && !op_node->is_volatile ? STACK_PTX__OP_PLAIN : STACK_PTX__OP_GENERAL;
    /* Immediates follow the operands: not a simple text. */
    op_node->is_simple_text = is_scalar && ptx_text__make_name(name, name_length, text) && memchr(name, ' ', name_length) == NULL;
}

static void stack_ptx__prepare_leaf(const StackPtxLanguage* language, uint32_t op_idx, uint16_t kind, uint32_t stack_idx) {
    StackPtx__OpNode* op_node = &language->op_nodes[op_idx];
    memset(op_node, 0, sizeof *op_node);
    op_node->node.kind = kind;
    op_node->node.stack_idx = (uint16_t)stack_idx;
    op_node->node.num_values = 1;
    op_node->is_simple_text = kind != STACK_PTX_NODE_SPECIAL;
}

static void stack_ptx__prepare_special(const StackPtxLanguage* language, uint32_t idx, const StackPtxTraits* traits) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t op_idx = language->first_special + idx;
    const uint32_t arg_type = info->special_register_descriptors[idx].arg_type_idx;
    stack_ptx__prepare_leaf(language, op_idx, STACK_PTX_NODE_SPECIAL, info->arg_type_info[arg_type].stack_idx);
    language->op_nodes[op_idx].node.payload = idx;
    language->op_nodes[op_idx].is_volatile =
        traits != NULL && traits->volatile_special_registers != NULL && traits->volatile_special_registers[idx] != 0;
}

/* The op of a word that only pushes. */
static void stack_ptx__prepare_push(const StackPtx__WordForm* form, uint32_t idx, uint32_t head, uint32_t stack_idx) {
    StackPtx__Op* op = &form->ops[idx];
    memset(op, 0, sizeof *op);
    op->head = head;
    op->in_stack = stack_idx;
    op->out_stack = stack_idx;
    op->new_row_mask = UINT32_MAX;
    form->op_kinds[idx] = STACK_PTX__OP_PLAIN;
}

/* The constants of a stack with a constant type. */
static void stack_ptx__prepare_constant(const StackPtxLanguage* language, uint32_t stack_idx) {
    const StackPtx__WordForm* form = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_CONSTANT];
    const uint32_t head = language->first_constant + stack_idx;
    stack_ptx__prepare_leaf(language, head, STACK_PTX_NODE_CONSTANT, stack_idx);
    stack_ptx__prepare_push(form, stack_idx, head, stack_idx);
}

static void stack_ptx__prepare_input(const StackPtxLanguage* language, uint32_t register_idx) {
    const StackPtx__WordForm* form = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_INPUT];
    const uint32_t stack_idx = language->registers[register_idx].stack_idx;
    stack_ptx__prepare_push(form, register_idx, language->first_input + stack_idx, stack_idx);
    form->ops[register_idx].row = register_idx + 1;
    form->ops[register_idx].new_row_mask = 0;
}

/* The ops of inputs of each stack, and of rows that are no values. */
static void stack_ptx__prepare_leaves(const StackPtxLanguage* language) {
    uint32_t i;
    for (i = 0; i < (uint32_t)language->stack_info.num_stacks; ++i)
        stack_ptx__prepare_leaf(language, language->first_input + i, STACK_PTX_NODE_INPUT, i);
    memset(&language->op_nodes[language->follower], 0, sizeof *language->op_nodes);
    memset(&language->op_nodes[language->continuation], 0, sizeof *language->op_nodes);
}

/* Assigns ops, none of them prepared, to the words that may be plain. */
static void stack_ptx__place_word_forms(StackPtxLanguage* language) {
    const uint32_t num_ptx = (uint32_t)language->stack_info.num_ptx_instructions;
    const uint32_t num_stacks = (uint32_t)language->stack_info.num_stacks;
    StackPtx__WordForm* ptx = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_PTX];
    StackPtx__WordForm* constant = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_CONSTANT];
    StackPtx__WordForm* input = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_INPUT];
    ptx->op_kinds = language->op_kinds;
    ptx->ops = language->ops;
    ptx->num_ops = num_ptx;
    ptx->payload_mask = UINT32_MAX;
    constant->op_kinds = ptx->op_kinds + num_ptx;
    constant->ops = ptx->ops + num_ptx;
    constant->num_ops = num_stacks;
    constant->aux_mask = UINT32_MAX;
    input->op_kinds = constant->op_kinds + num_stacks;
    input->ops = constant->ops + num_stacks;
    input->num_ops = (uint32_t)language->num_input_rows;
    input->payload_mask = UINT32_MAX;
    memset(language->op_kinds, STACK_PTX__OP_UNPREPARED, num_ptx + num_stacks + language->num_input_rows);
}

static void stack_ptx__prepare_ops(StackPtxLanguage* language, const StackPtxTraits* traits) {
    uint32_t i;
    for (i = 0; i < (uint32_t)language->stack_info.num_ptx_instructions; ++i) {
        stack_ptx__prepare_ptx_op(language, i, traits == NULL || traits->instructions == NULL ? NULL : &traits->instructions[i]);
        language->has_registers_only |= language->op_nodes[i].registers_only;
    }
    for (i = 0; i < (uint32_t)language->stack_info.num_special_registers; ++i) stack_ptx__prepare_special(language, i, traits);
    for (i = 0; i < (uint32_t)language->stack_info.num_stacks; ++i) {
        if (language->stacks[i].constant_type != STACK_PTX_CONSTANT_TYPE_NONE) stack_ptx__prepare_constant(language, i);
        language->has_registers_only |= stack_ptx__is_half(language->stacks[i].constant_type);
    }
    for (i = 0; i < (uint32_t)language->num_input_rows; ++i) stack_ptx__prepare_input(language, i);
}

/* Asks the folding which instructions become others. */
static void stack_ptx__prepare_folding(StackPtxLanguage* language) {
    static const uint32_t zeros[4] = {0, 0, 0, 0};
    uint32_t i, k, result[3];
    for (i = 0; i < language->first_special && language->folding.fold != NULL; ++i) {
        StackPtx__OpNode* op_node = &language->op_nodes[i];
        for (k = 0; k < op_node->node.num_operands && !op_node->is_large && !op_node->is_volatile; ++k) {
            const StackPtxFoldKind kind = language->folding.fold(language->folding.context, i, 1u << k, zeros, result);
            op_node->rewrites = (uint8_t)(op_node->rewrites | (uint32_t)(kind == STACK_PTX_FOLD_INSTRUCTION) << k);
        }
        language->has_rewrites |= op_node->rewrites != 0;
    }
}

static void stack_ptx__absorb_type(StackPtxHash* state, const StackPtxLanguage* language, uint32_t arg_type) {
    const StackPtxArgTypeInfo* info = &language->stack_info.arg_type_info[arg_type];
    const StackPtxHash* type_hash = &language->stacks[info->stack_idx].type_hash;
    stack_ptx__absorb(state, type_hash->words[0], type_hash->words[1]);
    stack_ptx__absorb(state, info->num_vec_elems, STACK_PTX__TAG_TYPE);
}

/* Element x of %tid is %tid.x: the suffix is part of the name. */
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
        for (k = 0; k < num_args; ++k) stack_ptx__absorb_type(hash, language, descriptor->arg_types[k]);
        for (k = 0; k < num_rets; ++k) stack_ptx__absorb_type(hash, language, descriptor->ret_types[k]);
    }
    for (i = 0; i < (uint32_t)info->num_special_registers; ++i)
        language->op_hashes[language->first_special + i] = stack_ptx__hash_special(language, i, "");
    for (i = 0; i < (uint32_t)info->num_stacks; ++i) {
        const StackPtxHash* type_hash = &language->stacks[i].type_hash;
        StackPtxHash* input = &language->op_hashes[language->first_input + i];
        StackPtxHash* constant = &language->op_hashes[language->first_constant + i];
        *input = stack_ptx__hash_begin(STACK_PTX__TAG_INPUT);
        stack_ptx__absorb(input, type_hash->words[0], type_hash->words[1]);
        *constant = stack_ptx__hash_begin(STACK_PTX__TAG_CONSTANT);
        stack_ptx__absorb(constant, type_hash->words[0], type_hash->words[1]);
        /* The same 32 bits can be widened in three ways, and a prefix such as b64 does not say which. */
        if (language->stacks[i].constant_type >= STACK_PTX_CONSTANT_TYPE_F64)
            stack_ptx__absorb(constant, language->stacks[i].constant_type, STACK_PTX__TAG_CONSTANT);
    }
    language->salt = stack_ptx__hash_begin(STACK_PTX__TAG_PROGRAM);
    stack_ptx__absorb(&language->salt, limits->stack_size, limits->max_nodes);
    stack_ptx__absorb(&language->salt, limits->max_frame_depth, limits->store_size);
    stack_ptx__absorb(&language->salt, limits->execution_limit, STACK_PTX__TAG_PROGRAM);
}

static void stack_ptx__prepare_connections(StackPtxLanguage* language) {
    size_t i;
    for (i = 0; i < language->num_registers; ++i) {
        StackPtx__Register* info = &language->register_infos[i];
        memset(info, 0, sizeof *info);
        while (strcmp(language->registers[info->canonical].name, language->registers[i].name) != 0) ++info->canonical;
        info->first_request = UINT32_MAX;
        ptx_text__make_register(language->registers[i].name, strlen(language->registers[i].name), &info->text);
    }
    for (i = language->num_requests; i > 0; --i)
        language->register_infos[language->register_infos[language->requests[i - 1]].canonical].first_request = (uint32_t)i - 1;
}

/* Fills in a language that is placed and whose parts are checked, but for what may be prepared late. */
static void stack_ptx__open_language(const StackPtxLanguageInfo* info, StackPtxLanguage* language) {
    const StackPtxStackInfo* stack_info = info->stack_info;
    language->stack_info = *stack_info;
    language->limits = info->limits;
    language->registers = info->registers;
    language->requests = info->requests;
    language->routines = info->routines;
    language->routine_lengths = info->routine_lengths;
    language->folding = info->folding;
    language->template_words = info->template_words;
    language->template_length = info->template_length;
    language->derivation = info->derivation;
    language->num_registers = info->num_registers;
    language->num_requests = info->num_requests;
    language->num_routines = info->num_routines;
    language->num_input_rows = language->is_late && info->num_registers > STACK_PTX__MAX_LATE_REGISTERS ? 0 : info->num_registers;
    language->first_special = (uint32_t)stack_info->num_ptx_instructions;
    language->first_input = language->first_special + (uint32_t)stack_info->num_special_registers;
    language->first_constant = language->first_input + (uint32_t)stack_info->num_stacks;
    language->follower = language->first_constant + (uint32_t)stack_info->num_stacks;
    language->continuation = language->follower + 1;
    language->num_ops = language->continuation + 1;

    stack_ptx__prepare_stacks(language, info->traits);
    stack_ptx__prepare_leaves(language);
    stack_ptx__place_word_forms(language);
}

StackPtxResult stack_ptx_language_size(const StackPtxLanguageInfo* info, size_t* bytes_out) {
    StackPtxResult result;
    if (bytes_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    result = stack_ptx__check_counts(info);
    if (result != STACK_PTX_SUCCESS) return result;
    *bytes_out = stack_ptx__place_language(info, 0, NULL, 0, NULL);
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_language_init(
    const StackPtxLanguageInfo* info, void* memory, size_t memory_bytes, const StackPtxLanguage** language_out
) {
    StackPtxLanguage* language = NULL;
    StackPtxResult result;
    if (memory == NULL || language_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    result = stack_ptx__check_counts(info);
    if (result == STACK_PTX_SUCCESS) result = stack_ptx__check_stack_info(info->stack_info, info->traits);
    if (result == STACK_PTX_SUCCESS) result = stack_ptx__check_connections(info, 0);
    if (result != STACK_PTX_SUCCESS) return result;
    if (stack_ptx__place_language(info, 0, memory, memory_bytes, &language) > memory_bytes)
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    stack_ptx__open_language(info, language);
    stack_ptx__prepare_ops(language, info->traits);
    stack_ptx__prepare_folding(language);
    stack_ptx__prepare_hashes(language);
    stack_ptx__prepare_connections(language);
    stack_ptx__place_work(
        &language->layout, &language->limits, info->stack_info, 0, stack_ptx__max_operands(info->stack_info), info->num_registers,
        info->num_requests, 2 * info->num_requests, info->template_length,
        info->derivation.derive == NULL ? 0 : info->derivation.memory_bytes
    );
    *language_out = language;
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_workspace_size(const StackPtxLanguage* language, size_t* bytes_out) {
    if (language == NULL || bytes_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    *bytes_out = language->layout.bytes;
    return STACK_PTX_SUCCESS;
}

#endif /* STACK_PTX_LANGUAGE_H */
