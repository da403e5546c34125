/*
 * device_code.h - lowered programs as code for a GPU kernel that interprets them.
 *
 * A kernel runs a program step by step at many points. Each value of the program is a vector, with a value for each point. The
 * latest one stays in registers, the accumulator; what is needed later is stored in a slot, which is used again as soon as its
 * value is no longer needed. Instructions are ordered as in ptx_vm.h, so that most values never leave the accumulator.
 *
 * Usage
 *
 *     #define DEVICE_CODE_IMPLEMENTATION         in exactly one C or C++ file
 *     #include "device_code.h"
 *
 *     device_code_workspace_size(&lowered, &bytes);                                             for each program
 *     device_code_encode(&kernel, &lowered, first_output, workspace, bytes, words, room, &num_words);
 *
 * Options, defined before the implementation
 *
 *     DEVICE_CODE_DEBUG   errors assert where they are found
 *     DEVICE_CODE_STATIC  functions are static; each including file also defines DEVICE_CODE_IMPLEMENTATION
 *
 * Memory and threads. Nothing is allocated; the caller owns all memory. There is no global state. A kernel's description may be
 * used by any number of threads; a workspace, by one at a time. No pointer may be NULL unless its comment says so.
 *
 * Format. A step is a word of 32 bits, and a second one if its case takes a constant, which is that word, or three operands from
 * vectors. The words of all threads of a warp come from one address: on a GPU such a load takes as long as one of as many different
 * words, so that code must be short. A step names the case of the step after it, so that a kernel can look up where to go on while
 * it waits for operands. A program begins with a step that does nothing else, and ends where the next case is DEVICE_CODE_CASE_END.
 * The result of a case is left in the accumulator; one with the bit DEVICE_CODE_STORES also stores it. Operands are in PTX's order,
 * but the first two of a commutative instruction may be swapped. A predicate is 0 or 1. Vectors are numbered by the kernel: inputs,
 * slots, outputs. A missing request is zero.
 *
 * Vectors may be registers of the kernel, which no step can name. A case then has one vector at most: the last of its operands from
 * vectors, or the one that it stores in. Steps before it load the other operands, the first into the accumulator unless it holds an
 * operand, then into the operand register; a step after it stores the result. A word is the next case alone, a second one a constant.
 */

#ifndef DEVICE_CODE_H
#define DEVICE_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "detail/result.h"
#include "stack_ptx.h"

#define DEVICE_CODE_VERSION_MAJOR 3
#define DEVICE_CODE_VERSION_MINOR 1
#define DEVICE_CODE_VERSION_PATCH 0

#define DEVICE_CODE_API EVO__API(DEVICE_CODE_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

#define DEVICE_CODE__RESULTS(X)                                                                                    \
    X(DEVICE_CODE_SUCCESS, 0)                                                                                      \
    X(DEVICE_CODE_ERROR_INVALID_VALUE, 1) /* NULL, or a request that has no vector */                              \
    X(DEVICE_CODE_ERROR_INSUFFICIENT_MEMORY, 2) /* less workspace than the size query returned */                  \
    X(DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER, 3) /* more words than there is room for */                            \
    X(DEVICE_CODE_ERROR_NO_CASE, 4) /* the kernel does not know an instruction, or a node is a special register */ \
    X(DEVICE_CODE_ERROR_TOO_MANY_SLOTS, 5) /* more values are needed at once than the kernel has slots */

typedef enum { DEVICE_CODE__RESULTS(EVO__ENUMERATOR) DEVICE_CODE_RESULT_NUM_ENUMS } DeviceCodeResult;

/* The enumerator's name, or "DEVICE_CODE_RESULT_UNKNOWN". The text is static. */
DEVICE_CODE_API const char* device_code_result_to_string(DeviceCodeResult result);

/* Source of an operand. */
enum { DEVICE_CODE_ACCUMULATOR = 0, DEVICE_CODE_SLOT = 1, DEVICE_CODE_CONSTANT = 2 };

/* The form of an instruction: the places of its operands as digits to base 3, the first operand's the lowest. */
#define DEVICE_CODE_NUM_FORMS 27
#define DEVICE_CODE_NO_CASE 0xFFFFu

/* Cases without an instruction: the program ends; the accumulator is stored; it is loaded from a vector or with a constant. */
typedef enum {
    DEVICE_CODE_CASE_END = 0,
    DEVICE_CODE_CASE_KEEP = 1,
    DEVICE_CODE_CASE_LOAD_SLOT = 2,
    DEVICE_CODE_CASE_LOAD_CONSTANT = 4
} DeviceCodeCase;

#define DEVICE_CODE_STORES 1u /* in the number of a case */

/* Cases of a kernel with registers in place of KEEP, LOAD_SLOT and LOAD_CONSTANT: the accumulator is loaded with a constant; and, one
   for each vector and so num_vectors apart, it is stored in the vector; it, or the operand register, is loaded from the vector.
   Those of instructions follow. */
#define DEVICE_CODE_REGISTER_CONSTANT 1u
#define DEVICE_CODE_STORE_REGISTER 2u
#define DEVICE_CODE_LOAD_REGISTER(num_vectors) (2u + (num_vectors))
#define DEVICE_CODE_LOAD_OPERAND(num_vectors) (2u + 2 * (num_vectors))

/* A step's word: the next case in the lowest bits, then the vector that the result is stored in, and those of the second and first
   operand from vectors. A third one is in the second word, in the bits of the first. */
#define DEVICE_CODE_CASE_BITS 14
#define DEVICE_CODE_RESULT_SHIFT 14
#define DEVICE_CODE_SECOND_SHIFT 20
#define DEVICE_CODE_FIRST_SHIFT 26
#define DEVICE_CODE_VECTOR_BITS 6

#define DEVICE_CODE_MAX_VECTORS 64

/* Facts about a kernel for the encoder. For an instruction that it knows, the kernel has the cases of all forms but these:
   swapped ones of a commutative instruction, where the first operand's place is above the second's; with two constants, or one in
   an instruction of a single operand; with the accumulator twice, if there are three operands. */
typedef struct DeviceCodeKernel {
    const uint16_t* cases; /* num_instructions times DEVICE_CODE_NUM_FORMS: even, of CASE_BITS, or NO_CASE without one */
    const uint8_t* num_commutative; /* of each instruction: 2 if the first two operands may be swapped, else 0 */
    size_t num_instructions;
    const uint8_t* register_vectors; /* vector of each register's values */
    size_t num_registers;
    uint32_t first_slot;
    uint32_t num_slots;
    uint32_t num_vectors; /* all that are registers, each with a case of its own from those in `cases` on; 0: steps name them */
} DeviceCodeKernel;

DEVICE_CODE_API DeviceCodeResult device_code_workspace_size(const StackPtxLowered* lowered, size_t* bytes_out);

/* The most words that a program of this many instructions and requests takes, and where vectors are registers. */
#define DEVICE_CODE_MAX_REGISTER_WORDS(num_instructions, num_requests) \
    (10 * (size_t)(num_instructions) + 4 * (size_t)(num_requests) + 1)
#define DEVICE_CODE_MAX_WORDS(num_instructions, num_requests) (6 * (size_t)(num_instructions) + 4 * (size_t)(num_requests) + 1)

/* Writes a program's code. Request i goes to vector first_output + i. On an error other than INVALID_VALUE, num_words_out is 0. */
DEVICE_CODE_API DeviceCodeResult device_code_encode(
    const DeviceCodeKernel* kernel, const StackPtxLowered* lowered, uint32_t first_output, void* workspace,
    size_t workspace_bytes, uint32_t* words, size_t max_words, size_t* num_words_out
);

#ifdef __cplusplus
}
#endif

#endif /* DEVICE_CODE_H */

/* ================================================================================================================== */

#if defined(DEVICE_CODE_IMPLEMENTATION) && !defined(DEVICE_CODE_IMPLEMENTATION_INCLUDED)
#define DEVICE_CODE_IMPLEMENTATION_INCLUDED

#include <stdbool.h>
#include <string.h>

#include "detail/arena.h"

#define DEVICE_CODE__ERROR(code) EVO__ERROR(DEVICE_CODE_DEBUG, DEVICE_CODE_ERROR_##code)

#define DEVICE_CODE__NONE UINT32_MAX
#define DEVICE_CODE__MAX_OPERANDS 3u

const char* device_code_result_to_string(DeviceCodeResult result) {
    EVO__RETURN_NAME(result, DEVICE_CODE__RESULTS, "DEVICE_CODE_RESULT_UNKNOWN")
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Kinds of values: an instruction's result, a constant's that some instruction wants in a vector (a result without operands),
   an input, a constant that is part of steps, and the operand that an instruction does not have. A kind divided by 4 is the place of
   such an operand, where it is not in the accumulator; that of NOTHING is the place of no operand in the number of a form. */
enum {
    DEVICE_CODE__RESULT = 4 * DEVICE_CODE_SLOT,
    DEVICE_CODE__LOADED,
    DEVICE_CODE__INPUT,
    DEVICE_CODE__CONSTANT = 4 * DEVICE_CODE_CONSTANT,
    DEVICE_CODE__NOTHING = 4 * DEVICE_CODE_ACCUMULATOR
};
#define DEVICE_CODE__IS_ORDERED(kind) (((kind) & ~1u) == DEVICE_CODE__RESULT) /* RESULT or LOADED */

/* Bits of `traits`: the first two operands may be swapped; there are two, so that both may be the accumulator. */
enum { DEVICE_CODE__IS_SWAPPABLE = 1, DEVICE_CODE__IS_PAIR = 2 };

/* It has 32 bytes, so that its address is a shift away. */
typedef struct DeviceCodeValue {
    uint8_t kind;
    uint8_t traits;
    uint8_t by_height; /* operands with the most results below them first: two bits each, from the lowest on */
    uint8_t vector; /* that holds it, or NO_VECTOR */
    uint32_t height; /* 1 + results on the longest way from it down; of NOTHING 0 */
    uint32_t operands[DEVICE_CODE__MAX_OPERANDS]; /* a constant's first one: its value in a vector, if there is one */
    uint32_t num_uses; /* as operands that are still to come */
    uint32_t num_pending; /* while ordering: as operands of values that are not ordered yet */
    uint32_t payload; /* instruction, or constant's bits */
} DeviceCodeValue;

#define DEVICE_CODE__NO_VECTOR 0xFFu

typedef struct DeviceCodeBuilder {
    const DeviceCodeKernel* kernel;
    DeviceCodeValue* values;
    uint32_t* numbers; /* of the lowered program's values */
    uint32_t* first_request; /* for each value, or NONE */
    uint32_t* requested; /* value of each request */
    uint32_t* next_request; /* for the same value, or NONE */
    uint32_t* order; /* results in order of evaluation */
    uint32_t* stack; /* values to order */
    uint32_t num_values, num_ordered, first_output;
    uint32_t* words;
    uint32_t* last; /* the first word of the latest step */
    size_t num_words, max_words;
    uint8_t free_vectors[DEVICE_CODE_MAX_VECTORS + 2]; /* a slot that is new, then those that are free again */
} DeviceCodeBuilder;

/* NOTHING for each operand, each value, constants again in a vector, and zero for missing requests. */
static size_t device_code__max_values(const StackPtxLowered* lowered) {
    return 2 * (size_t)lowered->num_values + DEVICE_CODE__MAX_OPERANDS + 1;
}

static void device_code__take_builder(EvoArena* arena, const StackPtxLowered* lowered, DeviceCodeBuilder* builder) {
    const size_t num_values = device_code__max_values(lowered);
    builder->values = (DeviceCodeValue*)evo__take(arena, num_values, sizeof(DeviceCodeValue));
    builder->numbers = (uint32_t*)evo__take(arena, lowered->num_values, sizeof(uint32_t));
    builder->first_request = (uint32_t*)evo__take(arena, num_values, sizeof(uint32_t));
    builder->requested = (uint32_t*)evo__take(arena, lowered->num_requests, sizeof(uint32_t));
    builder->next_request = (uint32_t*)evo__take(arena, lowered->num_requests, sizeof(uint32_t));
    builder->order = (uint32_t*)evo__take(arena, num_values, sizeof(uint32_t));
    builder->stack = (uint32_t*)evo__take(arena, 3 * num_values + 1, sizeof(uint32_t));
}

DeviceCodeResult device_code_workspace_size(const StackPtxLowered* lowered, size_t* bytes_out) {
    EvoArena arena = evo__arena(NULL, 0);
    DeviceCodeBuilder builder;
    if (lowered == NULL || bytes_out == NULL) return DEVICE_CODE__ERROR(INVALID_VALUE);
    device_code__take_builder(&arena, lowered, &builder);
    *bytes_out = arena.num_bytes;
    return DEVICE_CODE_SUCCESS;
}

static uint32_t device_code__add_value(DeviceCodeBuilder* builder, uint8_t kind, uint32_t payload) {
    const uint32_t number = builder->num_values++;
    DeviceCodeValue* value = &builder->values[number];
    memset(value, 0, sizeof *value); /* its operands are values that are NOTHING */
    value->kind = kind;
    value->vector = DEVICE_CODE__NO_VECTOR;
    value->height = kind != DEVICE_CODE__NOTHING;
    value->payload = payload;
    builder->first_request[number] = DEVICE_CODE__NONE;
    return number;
}

/* A constant as a value in a vector. */
static uint32_t device_code__load(DeviceCodeBuilder* builder, uint32_t number) {
    if (builder->values[number].operands[0] == 0) {
        const uint32_t loaded = device_code__add_value(builder, DEVICE_CODE__LOADED, builder->values[number].payload);
        builder->values[number].operands[0] = loaded;
    }
    return builder->values[number].operands[0];
}

/* Of an instruction's operands one may be a constant, and none if it is the only operand: others are loaded before. Branches on a
   program's structure are hard to predict: here and below there are few, and every instruction has three operands. */
static uint32_t device_code__add_instruction(
    DeviceCodeBuilder* builder, const StackPtxLowered* lowered, const StackPtxNode* node
) {
    uint32_t operands[DEVICE_CODE__MAX_OPERANDS], heights[DEVICE_CODE__MAX_OPERANDS], num_constants = 0, height = 0;
    for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) {
        const bool is_there = k < node->num_operands;
        const uint32_t number = builder->numbers[lowered->operands[node->first_operand + (is_there ? k : 0)]];
        operands[k] = is_there ? number : k;
        num_constants += builder->values[operands[k]].kind == DEVICE_CODE__CONSTANT;
    }
    for (uint32_t k = 0; num_constants > (node->num_operands > 1); k++) {
        if (builder->values[operands[k]].kind != DEVICE_CODE__CONSTANT) continue;
        operands[k] = device_code__load(builder, operands[k]);
        num_constants--;
    }
    const uint32_t number = device_code__add_value(builder, DEVICE_CODE__RESULT, node->payload);
    DeviceCodeValue* value = &builder->values[number];
    value->traits = (uint8_t)((builder->kernel->num_commutative[node->payload] == 2) | (node->num_operands == 2) << 1);
    for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) {
        DeviceCodeValue* used = &builder->values[operands[k]];
        value->operands[k] = operands[k];
        used->num_uses++;
        used->num_pending++;
        heights[k] = used->height;
        height = used->height > height ? used->height : height;
    }
    value->height = height + 1;
    /* The place of each operand is the number of those before it; of equals the first comes first. */
    const uint32_t second = (uint32_t)(heights[0] >= heights[1]) + (heights[2] > heights[1]);
    const uint32_t third = (uint32_t)(heights[0] >= heights[2]) + (heights[1] >= heights[2]);
    value->by_height = (uint8_t)(1u << 2 * second | 2u << 2 * third);
    return number;
}

static bool device_code__knows(const DeviceCodeKernel* kernel, const StackPtxNode* node) {
    if (node->kind != STACK_PTX_NODE_PTX || node->payload >= kernel->num_instructions) return false;
    if (node->num_operands == 0 || node->num_operands > DEVICE_CODE__MAX_OPERANDS || node->num_values != 1) return false;
    /* The form with all operands from slots is there if any is. */
    static const uint32_t all_slots[] = {0, 1, 4, 13};
    return kernel->cases[node->payload * DEVICE_CODE_NUM_FORMS + all_slots[node->num_operands]] != DEVICE_CODE_NO_CASE;
}

static bool device_code__add_nodes(DeviceCodeBuilder* builder, const StackPtxLowered* lowered) {
    for (uint32_t i = 0; i < lowered->num_nodes; i++) {
        const StackPtxNode* node = &lowered->nodes[i];
        uint32_t number;
        if (device_code__knows(builder->kernel, node)) {
            number = device_code__add_instruction(builder, lowered, node);
        } else if (node->kind == STACK_PTX_NODE_INPUT && node->payload < builder->kernel->num_registers) {
            number = device_code__add_value(builder, DEVICE_CODE__INPUT, 0);
            builder->values[number].vector = builder->kernel->register_vectors[node->payload];
        } else if (node->kind == STACK_PTX_NODE_CONSTANT) {
            number = device_code__add_value(builder, DEVICE_CODE__CONSTANT, node->payload);
        } else {
            return false;
        }
        builder->numbers[node->first_value] = number;
    }
    return true;
}

static void device_code__add_requests(DeviceCodeBuilder* builder, const StackPtxLowered* lowered) {
    uint32_t zero = DEVICE_CODE__NONE;
    for (uint32_t i = lowered->num_requests; i-- > 0;) {
        const uint32_t id = lowered->request_values[i];
        if (id == STACK_PTX_NO_VALUE && zero == DEVICE_CODE__NONE)
            zero = device_code__add_value(builder, DEVICE_CODE__CONSTANT, 0);
        builder->requested[i] = id == STACK_PTX_NO_VALUE ? zero : builder->numbers[id];
        uint32_t* first = &builder->first_request[builder->requested[i]];
        builder->next_request[i] = *first;
        *first = i;
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Orders results from the last to the first: a value comes right before the first of its users, so to speak as late as it can. The
   lowest of the operands that this makes possible comes last, to be taken from the accumulator, and those with more below them
   before, so that few slots are in use until then. */
static void device_code__order(DeviceCodeBuilder* builder, uint32_t depth) {
    DeviceCodeValue* values = builder->values;
    uint32_t *stack = builder->stack, *order = builder->order;
    uint32_t first = builder->num_values;
    while (depth > 0) {
        const uint32_t number = stack[--depth];
        const DeviceCodeValue* value = &values[number];
        order[--first] = number;
        for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) {
            const uint32_t operand = value->operands[value->by_height >> 2 * k & 3];
            const uint32_t is_last = --values[operand].num_pending == 0;
            stack[depth] = operand; /* the highest is taken off the stack last */
            depth += is_last & DEVICE_CODE__IS_ORDERED(values[operand].kind);
        }
    }
    builder->num_ordered = builder->num_values - first;
    builder->order += first;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Sources of a value's operands, in the order in which the kernel takes them. */
typedef struct DeviceCodeForm {
    uint32_t operands[DEVICE_CODE__MAX_OPERANDS];
    uint32_t places[DEVICE_CODE__MAX_OPERANDS];
    uint32_t num_taken; /* from the accumulator */
} DeviceCodeForm;

/* Here and below masks take the place of conditions, which compilers make branches that nobody can predict. */
static inline void device_code__choose_form(
    const DeviceCodeBuilder* builder, const DeviceCodeValue* value, uint32_t accumulator, DeviceCodeForm* form
) {
    const uint32_t is_pair = value->traits / DEVICE_CODE__IS_PAIR & 1u;
    form->num_taken = 0;
    for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) {
        const uint32_t operand = value->operands[k];
        const uint32_t is_taken = (uint32_t)(operand == accumulator) & ((uint32_t)(form->num_taken == 0) | is_pair);
        form->operands[k] = operand;
        form->places[k] = builder->values[operand].kind / 4u & (is_taken - 1);
        form->num_taken += is_taken;
    }
    const uint32_t swapped = 0u - (value->traits & DEVICE_CODE__IS_SWAPPABLE & (uint32_t)(form->places[0] > form->places[1]));
    const uint32_t operand = (form->operands[0] ^ form->operands[1]) & swapped;
    const uint32_t place = (form->places[0] ^ form->places[1]) & swapped;
    form->operands[0] ^= operand;
    form->operands[1] ^= operand;
    form->places[0] ^= place;
    form->places[1] ^= place;
}

/* A step as it is written: its case, its word but for the next case, and the second word, if it has one. num_slots: operands from
   vectors; num_taken: from the accumulator. */
typedef struct DeviceCodeStep {
    uint32_t case_number, word, extra, has_extra, num_slots, num_taken;
} DeviceCodeStep;

static bool device_code__add_words(
    DeviceCodeBuilder* builder, uint32_t case_number, uint32_t word, uint32_t extra, uint32_t has_extra
) {
    uint32_t* added = &builder->words[builder->num_words];
    if (builder->max_words - builder->num_words < 2) return false;
    *builder->last |= case_number;
    builder->last = added;
    added[0] = word;
    added[1] = extra; /* of a step that has none it is overwritten */
    builder->num_words += 1 + has_extra;
    return true;
}

/* A step where vectors are registers, with those that load and store. */
static bool device_code__add_register_steps(DeviceCodeBuilder* builder, const DeviceCodeStep* step, uint32_t vector) {
    const uint32_t count = builder->kernel->num_vectors, is_constant = step->has_extra & (uint32_t)(step->num_slots < 3);
    const uint32_t operands[] = {
        step->word >> DEVICE_CODE_FIRST_SHIFT, step->word >> DEVICE_CODE_SECOND_SHIFT & (DEVICE_CODE_MAX_VECTORS - 1),
        step->extra >> DEVICE_CODE_FIRST_SHIFT
    };
    uint32_t loads = step->num_taken == 0 ? DEVICE_CODE_LOAD_REGISTER(count) : DEVICE_CODE_LOAD_OPERAND(count);
    for (uint32_t k = 0; k + 1 < step->num_slots; k++, loads += count)
        if (!device_code__add_words(builder, loads + operands[k], 0, 0, 0)) return false;
    const bool is_slot = step->case_number == DEVICE_CODE_CASE_LOAD_SLOT;
    const bool is_loaded = step->case_number == DEVICE_CODE_CASE_LOAD_CONSTANT;
    const uint32_t first = is_slot ? DEVICE_CODE_LOAD_REGISTER(count)
        : is_loaded                ? DEVICE_CODE_REGISTER_CONSTANT
                                   : step->case_number;
    const uint32_t case_number = first + (step->num_slots == 0 ? 0 : operands[step->num_slots - 1]);
    const bool is_kept = step->case_number == DEVICE_CODE_CASE_KEEP; /* it is only stored */
    if (!is_kept && !device_code__add_words(builder, case_number, 0, step->extra, is_constant)) return false;
    return vector == DEVICE_CODE__NO_VECTOR || device_code__add_words(builder, DEVICE_CODE_STORE_REGISTER + vector, 0, 0, 0);
}

static bool device_code__add_step(DeviceCodeBuilder* builder, DeviceCodeStep step, uint32_t vector) {
    const uint32_t is_stored = vector != DEVICE_CODE__NO_VECTOR;
    const uint32_t result = (vector & (DEVICE_CODE_MAX_VECTORS - 1)) << DEVICE_CODE_RESULT_SHIFT & (0u - is_stored);
    const uint32_t case_number = step.case_number | is_stored * DEVICE_CODE_STORES;
    if (builder->kernel->num_vectors > 0) return device_code__add_register_steps(builder, &step, vector);
    return device_code__add_words(builder, case_number, step.word | result, step.extra, step.has_extra);
}

static DeviceCodeStep device_code__constant_step(uint32_t payload) {
    const DeviceCodeStep step = {DEVICE_CODE_CASE_LOAD_CONSTANT, 0, payload, 1, 0, 0};
    return step;
}

/* The step of an instruction. The operand that it does not have is not a slot and its payload is 0. */
static DeviceCodeStep device_code__step(
    const DeviceCodeBuilder* builder, const DeviceCodeValue* value, const DeviceCodeForm* form
) {
    static const uint32_t shifts[] = {DEVICE_CODE_FIRST_SHIFT, DEVICE_CODE_SECOND_SHIFT, DEVICE_CODE_FIRST_SHIFT};
    const uint32_t form_idx = form->places[0] + 3 * form->places[1] + 9 * form->places[2];
    uint32_t words[2] = {0, 0}, num_slots = 0, has_constant = 0;
    for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) {
        const DeviceCodeValue* operand = &builder->values[form->operands[k]];
        const uint32_t is_slot = form->places[k] & DEVICE_CODE_SLOT, is_constant = form->places[k] / DEVICE_CODE_CONSTANT;
        words[num_slots / 2] |= ((uint32_t)operand->vector << shifts[num_slots]) & (0u - is_slot);
        words[1] |= operand->payload & (0u - is_constant);
        num_slots += is_slot;
        has_constant |= is_constant;
    }
    const uint32_t case_number = builder->kernel->cases[value->payload * DEVICE_CODE_NUM_FORMS + form_idx];
    const uint32_t has_extra = has_constant | num_slots / DEVICE_CODE__MAX_OPERANDS;
    const DeviceCodeStep step = {case_number, words[0], words[1], has_extra, num_slots, form->num_taken};
    return step;
}

/* Requests of inputs and constants. */
static bool device_code__add_copies(DeviceCodeBuilder* builder, uint32_t number) {
    const DeviceCodeValue* value = &builder->values[number];
    DeviceCodeStep step = device_code__constant_step(value->payload);
    if (value->kind == DEVICE_CODE__INPUT) {
        const uint32_t word = (uint32_t)value->vector << DEVICE_CODE_FIRST_SHIFT;
        const DeviceCodeStep loaded = {DEVICE_CODE_CASE_LOAD_SLOT, word, 0, 0, 1, 0};
        step = loaded;
    }
    for (uint32_t i = builder->first_request[number]; i != DEVICE_CODE__NONE; i = builder->next_request[i])
        if (!device_code__add_step(builder, step, builder->first_output + i)) return false;
    return true;
}

/* Stores a value in the vector of its first request. Steps for the others follow its own. */
static bool device_code__add_kept(DeviceCodeBuilder* builder, uint32_t request) {
    const DeviceCodeStep step = {DEVICE_CODE_CASE_KEEP, 0, 0, 0, 0, 0};
    for (; request != DEVICE_CODE__NONE; request = builder->next_request[request])
        if (!device_code__add_step(builder, step, builder->first_output + request)) return false;
    return true;
}

static DeviceCodeResult device_code__add_steps(DeviceCodeBuilder* builder) {
    const uint32_t first_slot = builder->kernel->first_slot, num_slots = builder->kernel->num_slots;
    DeviceCodeForm forms[2];
    uint32_t num_free = 0, num_used = 0;
    if (builder->num_ordered > 0)
        device_code__choose_form(builder, &builder->values[builder->order[0]], DEVICE_CODE__NONE, &forms[0]);
    for (uint32_t i = 0; i < builder->num_ordered; i++) {
        const uint32_t number = builder->order[i];
        DeviceCodeValue* value = &builder->values[number];
        const bool is_loaded = value->kind == DEVICE_CODE__LOADED;
        const DeviceCodeStep step =
            is_loaded ? device_code__constant_step(value->payload) : device_code__step(builder, value, &forms[i % 2]);
        /* A slot is free right after its last use: a step reads all operands before it stores. Inputs and outputs stay. */
        for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) {
            DeviceCodeValue* used = &builder->values[value->operands[k]];
            builder->free_vectors[num_free + 1] = used->vector;
            num_free += (uint32_t)(--used->num_uses == 0) & (uint32_t)(used->vector - first_slot < num_slots);
        }
        /* A result is stored unless the next step takes it from the accumulator and is its only user. */
        uint32_t num_taken = 0;
        if (i + 1 < builder->num_ordered) {
            device_code__choose_form(builder, &builder->values[builder->order[i + 1]], number, &forms[(i + 1) % 2]);
            num_taken = forms[(i + 1) % 2].num_taken;
        }
        const uint32_t request = builder->first_request[number];
        if (request == DEVICE_CODE__NONE) {
            const uint32_t is_stored = value->num_uses > num_taken, is_new = num_free == 0;
            builder->free_vectors[0] = (uint8_t)(first_slot + num_used);
            value->vector = (uint8_t)(builder->free_vectors[num_free] | (is_stored - 1));
            num_free -= is_stored & (is_new ^ 1);
            num_used += is_stored & is_new;
            if (num_used > num_slots) return DEVICE_CODE_ERROR_TOO_MANY_SLOTS;
            if (!device_code__add_step(builder, step, value->vector)) return DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER;
        } else {
            value->vector = (uint8_t)(builder->first_output + request);
            if (!device_code__add_step(builder, step, value->vector)) return DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER;
            if (!device_code__add_kept(builder, builder->next_request[request])) return DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER;
        }
    }
    return DEVICE_CODE_SUCCESS;
}

DeviceCodeResult device_code_encode(
    const DeviceCodeKernel* kernel, const StackPtxLowered* lowered, uint32_t first_output, void* workspace,
    size_t workspace_bytes, uint32_t* words, size_t max_words, size_t* num_words_out
) {
    EvoArena arena = evo__arena(workspace, workspace_bytes);
    DeviceCodeBuilder builder;
    if (kernel == NULL || lowered == NULL || workspace == NULL || words == NULL || num_words_out == NULL)
        return DEVICE_CODE__ERROR(INVALID_VALUE);
    const uint32_t max_vectors = kernel->num_vectors > 0 ? kernel->num_vectors : DEVICE_CODE_MAX_VECTORS;
    if (first_output + lowered->num_requests > max_vectors) return DEVICE_CODE__ERROR(INVALID_VALUE);
    if (kernel->first_slot + kernel->num_slots > max_vectors) return DEVICE_CODE__ERROR(INVALID_VALUE);
    *num_words_out = 0;
    device_code__take_builder(&arena, lowered, &builder);
    if (workspace_bytes < arena.num_bytes) return DEVICE_CODE__ERROR(INSUFFICIENT_MEMORY);
    builder.kernel = kernel;
    builder.words = builder.last = words;
    builder.max_words = max_words;
    builder.first_output = first_output;
    builder.num_values = builder.num_ordered = 0;
    if (max_words == 0) return DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER;
    words[0] = 0;
    builder.num_words = 1;
    for (uint32_t k = 0; k < DEVICE_CODE__MAX_OPERANDS; k++) device_code__add_value(&builder, DEVICE_CODE__NOTHING, 0);
    if (!device_code__add_nodes(&builder, lowered)) return DEVICE_CODE_ERROR_NO_CASE;
    device_code__add_requests(&builder, lowered);
    uint32_t num_roots = 0;
    for (uint32_t i = 0; i < lowered->num_requests; i++) {
        const uint32_t number = builder.requested[i];
        const DeviceCodeValue* value = &builder.values[number];
        if (builder.first_request[number] != i) continue;
        if (DEVICE_CODE__IS_ORDERED(value->kind)) {
            builder.stack[num_roots] = number;
            num_roots += value->num_uses == 0; /* a value that is used as well comes before its users */
        } else if (!device_code__add_copies(&builder, number)) {
            return DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER;
        }
    }
    device_code__order(&builder, num_roots);
    const DeviceCodeResult result = device_code__add_steps(&builder);
    if (result == DEVICE_CODE_SUCCESS) *num_words_out = builder.num_words;
    return result;
}

#endif /* DEVICE_CODE_IMPLEMENTATION */
