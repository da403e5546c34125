/*
 * derive.h - derivatives of a lowered program, as a lowered program.
 *
 * In: a lowered program (StackPtxLowered of stack_ptx.h), one of its requests, and some of its constants, the parameters. Out: a
 * lowered program with the requests y, dy/dp0, dy/dp1, ... It can be emitted or run like any other.
 *
 * Usage
 *
 *     #define DERIVE_IMPLEMENTATION         in exactly one C or C++ file
 *     #include "derive.h"
 *
 *     derive_set_size(&stack_info, &bytes);                                once for an instruction set
 *     derive_set_init(&stack_info, malloc(bytes), bytes, &set);
 *
 *     derive_constants(set, &lowered, 0, memory, bytes, nodes, 8, &count); for each program: the constants that matter
 *     derive_size(&lowered, count, &bytes);
 *     derive_program(set, &lowered, 0, nodes, count, num_registers, memory, bytes, &derived);
 *
 * Parameters can become inputs of the derived program: registers that follow those of the program. So it is prepared once and run
 * with many values of the parameters. Otherwise they stay constants.
 *
 * Method. Reverse mode: the nodes are copied and then visited from the request back to the parameters, adding up in each value's
 * adjoint what the request gains per unit of that value. Only values that depend on a parameter have adjoints. New nodes are
 * numbered by value together with the copied ones, so that cos(x) is computed once if the program has it and its derivative
 * needs it.
 *
 * Rules, with w the adjoint of the result y. Instructions that are not listed pass none: their operands count as constants. So do
 * those with a missing instruction: a set needs add, sub, mul, fma and neg for any derivative, and what the table names
 * besides.
 *
 *     add, sub, mul, fma, neg    as in calculus
 *     div.approx a, b            w / b to a, -(w / b) y to b
 *     rcp.approx a               -(w y) y
 *     sqrt.approx a              (w / 2) / y: infinite at 0; needs div
 *     rsqrt.approx a             -((w / 2) y) / a; needs div
 *     sin.approx, cos.approx     w cos(a), -w sin(a); need each other
 *     lg2.approx a               (w / ln 2) / a; needs div
 *     ex2.approx a               (w ln 2) y
 *     tanh.approx a              w (1 - y y)
 *     abs a                      w with the sign of a, also at 0 and -0; needs copysign
 *     min, max a, b              w to the operand that is the result; to b if they are equal in min, to a if they are equal in
 *                                max. If b is NaN, min passes to b and max to a; needs setp.lt and selp
 *     copysign a, b              to b: w, or -w if the signs of a and b differ. None to a, which gives only its sign
 *     selp a, b, p               w to a if p, otherwise to b. None to p
 *
 * All are the .ftz.f32 forms of the default set (copysign, tanh and selp: .f32), with scalars of one stack.
 *
 * Memory and threads. Nothing is allocated; the caller owns all memory, which may have any alignment and any contents. There is
 * no global state. A set is immutable and may be used by any number of threads. No pointer may be NULL unless its comment says
 * so.
 *
 * Options, defined before the implementation
 *
 *     DERIVE_DEBUG        errors assert where they are found
 */

#ifndef DERIVE_H
#define DERIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail/result.h"
#include "stack_ptx.h"

#define DERIVE_VERSION_MAJOR 1
#define DERIVE_VERSION_MINOR 0
#define DERIVE_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

#define DERIVE__RESULTS(X)                                                                                                    \
    X(DERIVE_SUCCESS, 0)                                                                                                      \
    X(DERIVE_ERROR_INVALID_VALUE, 1) /* NULL, an index out of range, a parameter that is no f32 constant or is given twice */ \
    X(DERIVE_ERROR_INSUFFICIENT_MEMORY, 2) /* less memory than the size query returned */

typedef enum { DERIVE__RESULTS(EVO__ENUMERATOR) DERIVE_RESULT_NUM_ENUMS } DeriveResult;

/* The enumerator's name, or "DERIVE_RESULT_UNKNOWN". The text is static. */
const char* derive_result_to_string(DeriveResult result);

/* The rule of each instruction of a set, found by its PTX name. It lies in the caller's memory and does not refer to
   stack_info. */
typedef struct DeriveSet DeriveSet;

DeriveResult derive_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out);

DeriveResult derive_set_init(const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const DeriveSet** set_out);

/* Whether the instruction passes derivatives to its operands; false for an index out of range. */
bool derive_set_has_rule(const DeriveSet* set, size_t instruction_idx);

/* Bytes that derive_program needs for this many parameters; enough for derive_constants too. */
DeriveResult derive_size(const StackPtxLowered* lowered, size_t num_parameters, size_t* bytes_out);

/* The constants whose derivative is not zero by the rules above, as node indices in evaluation order: the first max_nodes of
   them. num_nodes_out is how many were written. */
DeriveResult derive_constants(
    const DeriveSet* set,
    const StackPtxLowered* lowered,
    size_t request_idx,
    void* memory,
    size_t memory_bytes,
    uint32_t* nodes_out,
    size_t max_nodes,
    size_t* num_nodes_out
);

/* As first_register: parameters stay constants. */
#define DERIVE_KEEP_CONSTANTS UINT32_MAX

/* The derived program; its arrays lie in `memory`. `parameters` are node indices of f32 constants. Parameter k becomes an input
   of register first_register + k, or stays a constant with DERIVE_KEEP_CONSTANTS. The requests are y and then the derivative by
   each parameter. A derivative that is zero everywhere is STACK_PTX_NO_VALUE, which is zero in lenient mode, the mode of
   the result. */
DeriveResult derive_program(
    const DeriveSet* set,
    const StackPtxLowered* lowered,
    size_t request_idx,
    const uint32_t* parameters,
    size_t num_parameters,
    uint32_t first_register,
    void* memory,
    size_t memory_bytes,
    StackPtxLowered* derived_out
);

#ifdef __cplusplus
}
#endif

#endif /* DERIVE_H */

/* ================================================================================================================== */

#if defined(DERIVE_IMPLEMENTATION) && !defined(DERIVE_IMPLEMENTATION_INCLUDED)
#define DERIVE_IMPLEMENTATION_INCLUDED

#include <string.h>

#include "detail/arena.h"
#include "detail/signature.h"

#ifdef DERIVE_DEBUG
#include <assert.h>
#define DERIVE__ERROR(code) (assert(0 && #code), DERIVE_ERROR_##code)
#else
#define DERIVE__ERROR(code) DERIVE_ERROR_##code
#endif

#ifdef __cplusplus
extern "C" {
#endif

const char* derive_result_to_string(DeriveResult result){EVO__RETURN_NAME(result, DERIVE__RESULTS, "DERIVE_RESULT_UNKNOWN")}

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

/* Operations: enumerator, PTX, signature (result, then operands; f or p for a predicate), what its rule needs besides add, sub,
   mul, fma and neg (bits of operations). */
#define DERIVE__BIT(operation) (1u << DERIVE__##operation)
#define DERIVE__OPERATIONS(X)                                                                   \
    X(ADD, "add.ftz.f32", "fff", 0)                                                             \
    X(SUB, "sub.ftz.f32", "fff", 0)                                                             \
    X(MUL, "mul.ftz.f32", "fff", 0)                                                             \
    X(FMA, "fma.rn.ftz.f32", "ffff", 0)                                                         \
    X(NEG, "neg.ftz.f32", "ff", 0)                                                              \
    X(DIV, "div.approx.ftz.f32", "fff", 0)                                                      \
    X(RCP, "rcp.approx.ftz.f32", "ff", 0)                                                       \
    X(SQRT, "sqrt.approx.ftz.f32", "ff", DERIVE__BIT(DIV))                                      \
    X(RSQRT, "rsqrt.approx.ftz.f32", "ff", DERIVE__BIT(DIV))                                    \
    X(SIN, "sin.approx.ftz.f32", "ff", DERIVE__BIT(COS))                                        \
    X(COS, "cos.approx.ftz.f32", "ff", DERIVE__BIT(SIN))                                        \
    X(LG2, "lg2.approx.ftz.f32", "ff", DERIVE__BIT(DIV))                                        \
    X(EX2, "ex2.approx.ftz.f32", "ff", 0)                                                       \
    X(TANH, "tanh.approx.f32", "ff", 0)                                                         \
    X(ABS, "abs.ftz.f32", "ff", DERIVE__BIT(COPYSIGN))                                          \
    X(MIN, "min.ftz.f32", "fff", DERIVE__BIT(SETP_LT) | DERIVE__BIT(SELP))                      \
    X(MAX, "max.ftz.f32", "fff", DERIVE__BIT(SETP_LT) | DERIVE__BIT(SELP))                      \
    X(COPYSIGN, "copysign.f32", "fff", 0)                                                       \
    X(SELP, "selp.f32", "fffp", 0)                                                              \
    X(SETP_LT, "setp.lt.ftz.f32", "pff", DERIVE__BIT(NONE)) /* serves rules, and passes none */

#define DERIVE__ENUMERATOR(enumerator, ptx, signature, needs) DERIVE__##enumerator,
enum {
    DERIVE__OPERATIONS(DERIVE__ENUMERATOR) DERIVE__NONE
};

#define DERIVE__ROW(enumerator, ptx, signature, needs) {ptx, signature, sizeof signature - 2, needs},
static const struct {
    const char* ptx;
    const char* signature;
    uint16_t num_operands;
    uint32_t needs;
} derive__operations[] = {DERIVE__OPERATIONS(DERIVE__ROW)};

static const uint32_t derive__always_needed =
    DERIVE__BIT(ADD) | DERIVE__BIT(SUB) | DERIVE__BIT(MUL) | DERIVE__BIT(FMA) | DERIVE__BIT(NEG);

struct DeriveSet {
    size_t num_instructions;
    uint32_t has_rule; /* bit for each operation */
    uint16_t stack_idx; /* of the scalars that have derivatives */
    uint16_t predicate_stack_idx;
    uint32_t instructions[DERIVE__NONE]; /* index of each operation */
    uint8_t* operations; /* of each instruction */
};

static uint8_t derive__operation(const StackPtxStackInfo* info, const char* letters, size_t instruction_idx) {
    uint8_t i = 0;
    while (i < DERIVE__NONE && strcmp(info->ptx_instruction_strings[instruction_idx], derive__operations[i].ptx) != 0) {
        i++;
    }
    return i < DERIVE__NONE && evo__has_signature(info, letters, instruction_idx, derive__operations[i].signature)
        ? i
        : (uint8_t)DERIVE__NONE;
}

/* The first stack of a type, which gets its letter; one past the last if there is none. */
static uint16_t derive__stack_of(const StackPtxStackInfo* info, char letter, char* letters) {
    uint16_t i = 0;
    while (i < info->num_stacks && evo__letter(info->stack_literal_prefixes[i]) != letter) {
        i++;
    }
    if (i < info->num_stacks) {
        letters[i] = letter;
    }
    return i;
}

/* `letters`: of the two stacks that rules know. */
static DeriveSet* derive__take_set(EvoArena* arena, const StackPtxStackInfo* info, uint8_t** operations, char** letters) {
    DeriveSet* set = (DeriveSet*)evo__take(arena, 1, sizeof(DeriveSet));
    *operations = (uint8_t*)evo__take(arena, info->num_ptx_instructions, 1);
    *letters = (char*)evo__take(arena, info->num_stacks, 1);
    return set;
}

DeriveResult derive_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out) {
    if (stack_info == NULL || bytes_out == NULL) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    EvoArena arena = evo__arena(NULL, 0);
    uint8_t* operations;
    char* letters;
    derive__take_set(&arena, stack_info, &operations, &letters);
    *bytes_out = arena.num_bytes;
    return DERIVE_SUCCESS;
}

DeriveResult derive_set_init(const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const DeriveSet** set_out) {
    if (stack_info == NULL || memory == NULL || set_out == NULL) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    EvoArena arena = evo__arena(memory, memory_bytes);
    uint8_t* operations;
    char* letters;
    DeriveSet* set = derive__take_set(&arena, stack_info, &operations, &letters);
    if (memory_bytes < arena.num_bytes) {
        return DERIVE__ERROR(INSUFFICIENT_MEMORY);
    }
    uint32_t found = 0;
    memset(set, 0, sizeof *set);
    memset(letters, 0, stack_info->num_stacks);
    set->num_instructions = stack_info->num_ptx_instructions;
    set->operations = operations;
    set->stack_idx = derive__stack_of(stack_info, 'f', letters);
    set->predicate_stack_idx = derive__stack_of(stack_info, 'p', letters);
    for (size_t i = set->num_instructions; i-- > 0;) {
        const uint8_t operation = derive__operation(stack_info, letters, i);
        operations[i] = operation;
        if (operation != DERIVE__NONE) {
            found |= 1u << operation;
            set->instructions[operation] = (uint32_t)i;
        }
    }
    for (uint32_t i = 0; i < DERIVE__NONE; i++) {
        const uint32_t needed = derive__operations[i].needs | derive__always_needed | 1u << i;
        set->has_rule |= (uint32_t)((found & needed) == needed) << i;
    }
    *set_out = set;
    return DERIVE_SUCCESS;
}

bool derive_set_has_rule(const DeriveSet* set, size_t instruction_idx) {
    return set != NULL && instruction_idx < set->num_instructions && set->operations[instruction_idx] != DERIVE__NONE &&
        (set->has_rule >> set->operations[instruction_idx] & 1u) != 0;
}

/* The rule of a node, or DERIVE__NONE. */
static uint8_t derive__rule(const DeriveSet* set, const StackPtxNode* node) {
    if (node->kind != STACK_PTX_NODE_PTX || !derive_set_has_rule(set, node->payload)) {
        return DERIVE__NONE;
    }
    return set->operations[node->payload];
}

/* Whether a rule passes a derivative to this operand. */
static bool derive__passes_to(uint8_t rule, uint32_t operand) {
    return rule == DERIVE__COPYSIGN ? operand == 1 : rule == DERIVE__SELP ? operand < 2 : true;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Nodes that a rule may add, constants and sums of adjoints included. */
#define DERIVE__MAX_RULE_NODES 8u
#define DERIVE__NO_PARAMETER UINT32_MAX

/* What the request gains per unit of a value. */
enum { DERIVE__ZERO, DERIVE__ONE, DERIVE__VALUE };
typedef struct DeriveAdjoint {
    uint8_t kind;
    uint8_t is_negative; /* the adjoint is minus one, or minus the value */
    uint32_t value; /* id, if it is a VALUE */
} DeriveAdjoint;

typedef struct DeriveBuilder {
    const DeriveSet* set;
    StackPtxNode* nodes;
    uint32_t* operands;
    uint32_t* value_nodes;
    uint16_t* value_stacks;
    uint32_t* request_values;
    uint32_t num_nodes, num_operands, num_values, num_instructions;
    uint8_t* is_live; /* nodes of the program that the request needs */
    uint32_t* parameter_of; /* its nodes: which parameter, or NO_PARAMETER */
    uint32_t* new_values; /* its values: ids in the derived program */
    uint8_t* is_active; /* copied values: depends on a parameter */
    DeriveAdjoint* adjoints; /* of copied values */
    uint32_t* table; /* of nodes by what they compute: 1 + index, or 0 */
    uint32_t table_mask;
} DeriveBuilder;

static void derive__take_builder(EvoArena* arena, const StackPtxLowered* lowered, size_t num_parameters, DeriveBuilder* builder) {
    const size_t num_added = (size_t)DERIVE__MAX_RULE_NODES * lowered->num_nodes + 2 * num_parameters;
    const size_t num_nodes = lowered->num_nodes + num_added;
    size_t table_size = 64;
    while (table_size < 2 * num_nodes) {
        table_size *= 2;
    }
    builder->nodes = (StackPtxNode*)evo__take(arena, num_nodes, sizeof(StackPtxNode));
    builder->operands = (uint32_t*)evo__take(arena, lowered->num_operands + 3 * num_added, sizeof(uint32_t));
    builder->value_nodes = (uint32_t*)evo__take(arena, lowered->num_values + num_added, sizeof(uint32_t));
    builder->value_stacks = (uint16_t*)evo__take(arena, lowered->num_values + num_added, sizeof(uint16_t));
    builder->request_values = (uint32_t*)evo__take(arena, 1 + num_parameters, sizeof(uint32_t));
    builder->is_live = (uint8_t*)evo__take(arena, lowered->num_nodes, 1);
    builder->parameter_of = (uint32_t*)evo__take(arena, lowered->num_nodes, sizeof(uint32_t));
    builder->new_values = (uint32_t*)evo__take(arena, lowered->num_values, sizeof(uint32_t));
    builder->is_active = (uint8_t*)evo__take(arena, lowered->num_values, 1);
    builder->adjoints = (DeriveAdjoint*)evo__take(arena, lowered->num_values, sizeof(DeriveAdjoint));
    builder->table = (uint32_t*)evo__take(arena, table_size, sizeof(uint32_t));
    builder->table_mask = (uint32_t)(table_size - 1);
}

DeriveResult derive_size(const StackPtxLowered* lowered, size_t num_parameters, size_t* bytes_out) {
    if (lowered == NULL || bytes_out == NULL) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    EvoArena arena = evo__arena(NULL, 0);
    DeriveBuilder builder;
    derive__take_builder(&arena, lowered, num_parameters, &builder);
    *bytes_out = arena.num_bytes;
    return DERIVE_SUCCESS;
}

static DeriveResult derive__check(
    const DeriveSet* set,
    const StackPtxLowered* lowered,
    size_t request_idx,
    size_t num_parameters,
    const void* memory,
    size_t memory_bytes
) {
    size_t num_bytes;
    if (set == NULL || lowered == NULL || memory == NULL || request_idx >= lowered->num_requests) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    derive_size(lowered, num_parameters, &num_bytes);
    return memory_bytes < num_bytes ? DERIVE__ERROR(INSUFFICIENT_MEMORY) : DERIVE_SUCCESS;
}

/* ---- programs: new nodes ---- */

/* Where the search for a node begins; the same for both orders of operands that commute. */
static uint32_t derive__entry_of(const DeriveBuilder* builder, const StackPtxNode* node, const uint32_t* operands) {
    uint64_t mix = (uint64_t)node->payload << 8 ^ node->kind;
    const uint32_t a = node->num_operands > 0 ? operands[0] + 1 : 0, b = node->num_operands > 1 ? operands[1] + 1 : 0;
    const uint32_t c = node->num_operands > 2 ? operands[2] + 1 : 0;
    mix ^= (uint64_t)(a + b) << 20 ^ (uint64_t)(a ^ b) << 34 ^ (uint64_t)c << 47;
    return (uint32_t)((mix * 0x9e3779b97f4a7c15u) >> 32) & builder->table_mask;
}

static bool derive__commutes(uint8_t operation) {
    return operation == DERIVE__ADD || operation == DERIVE__MUL || operation == DERIVE__FMA;
}

static bool derive__computes_same(
    const DeriveBuilder* builder, const StackPtxNode* node, const StackPtxNode* other, const uint32_t* operands
) {
    const uint32_t* others = builder->operands + other->first_operand;
    if (node->kind != other->kind || node->payload != other->payload || node->stack_idx != other->stack_idx) {
        return false;
    }
    if (memcmp(others, operands, node->num_operands * sizeof *operands) == 0) {
        return true;
    }
    return node->kind == STACK_PTX_NODE_PTX && derive__commutes(builder->set->operations[node->payload]) &&
        operands[0] == others[1] && operands[1] == others[0] && (node->num_operands < 3 || operands[2] == others[2]);
}

/* The entry of the node that computes this, or the free entry for it. */
static uint32_t* derive__find(const DeriveBuilder* builder, const StackPtxNode* node, const uint32_t* operands) {
    uint32_t entry = derive__entry_of(builder, node, operands);
    while (builder->table[entry] != 0 &&
           !derive__computes_same(builder, node, &builder->nodes[builder->table[entry] - 1], operands)) {
        entry = (entry + 1) & builder->table_mask;
    }
    return &builder->table[entry];
}

/* Appends a node whose operands already lie at the end of the others, with its first value. */
static void derive__append(DeriveBuilder* builder, StackPtxNode node) {
    node.first_operand = builder->num_operands;
    node.first_value = builder->num_values;
    builder->num_operands += node.num_operands;
    builder->num_instructions += node.kind == STACK_PTX_NODE_PTX;
    builder->value_nodes[builder->num_values] = builder->num_nodes;
    builder->value_stacks[builder->num_values] = node.stack_idx;
    builder->num_values += node.num_values;
    builder->nodes[builder->num_nodes++] = node;
}

/* The value of a node that computes this. */
static uint32_t derive__value_of(DeriveBuilder* builder, const StackPtxNode* node, const uint32_t* operands) {
    uint32_t* entry = derive__find(builder, node, operands);
    if (*entry == 0) {
        memcpy(builder->operands + builder->num_operands, operands, node->num_operands * sizeof *operands);
        derive__append(builder, *node);
        *entry = builder->num_nodes;
    }
    return builder->nodes[*entry - 1].first_value;
}

static uint32_t derive__constant(DeriveBuilder* builder, float number) {
    StackPtxNode node = {STACK_PTX_NODE_CONSTANT, builder->set->stack_idx, 0, 1, 0, 0, 0};
    const uint32_t no_operand = 0;
    memcpy(&node.payload, &number, sizeof node.payload);
    return derive__value_of(builder, &node, &no_operand);
}

static uint32_t derive__apply(DeriveBuilder* builder, uint8_t operation, uint32_t a, uint32_t b, uint32_t c) {
    const DeriveSet* set = builder->set;
    const uint32_t operands[3] = {a, b, c};
    StackPtxNode node = {STACK_PTX_NODE_PTX, set->stack_idx, 0, 1, set->instructions[operation], 0, 0};
    node.num_operands = derive__operations[operation].num_operands;
    if (operation == DERIVE__SETP_LT) {
        node.stack_idx = set->predicate_stack_idx;
    }
    return derive__value_of(builder, &node, operands);
}

static uint32_t derive__unary(DeriveBuilder* builder, uint8_t operation, uint32_t a) {
    return derive__apply(builder, operation, a, 0, 0);
}

static uint32_t derive__binary(DeriveBuilder* builder, uint8_t operation, uint32_t a, uint32_t b) {
    return derive__apply(builder, operation, a, b, 0);
}

/* ---- programs: adjoints ---- */

/* The adjoint as a value, without its sign. */
static uint32_t derive__magnitude(DeriveBuilder* builder, DeriveAdjoint adjoint) {
    return adjoint.kind == DERIVE__ONE ? derive__constant(builder, 1.0f) : adjoint.value;
}

static DeriveAdjoint derive__of_value(uint32_t value, uint8_t is_negative) {
    DeriveAdjoint adjoint = {DERIVE__VALUE, 0, 0};
    adjoint.is_negative = is_negative;
    adjoint.value = value;
    return adjoint;
}

/* The adjoint times a value. */
static DeriveAdjoint derive__times(DeriveBuilder* builder, DeriveAdjoint adjoint, uint32_t factor) {
    if (adjoint.kind == DERIVE__ONE) {
        return derive__of_value(factor, adjoint.is_negative);
    }
    return derive__of_value(derive__binary(builder, DERIVE__MUL, adjoint.value, factor), adjoint.is_negative);
}

static DeriveAdjoint derive__scaled(DeriveBuilder* builder, DeriveAdjoint adjoint, float factor) {
    return derive__times(builder, adjoint, derive__constant(builder, factor));
}

static DeriveAdjoint derive__over(DeriveBuilder* builder, DeriveAdjoint adjoint, uint32_t divisor) {
    const uint32_t dividend = derive__magnitude(builder, adjoint);
    return derive__of_value(derive__binary(builder, DERIVE__DIV, dividend, divisor), adjoint.is_negative);
}

static DeriveAdjoint derive__negated(DeriveAdjoint adjoint) {
    adjoint.is_negative = !adjoint.is_negative;
    return adjoint;
}

/* Adds to the adjoint of a value, if it has one. */
static void derive__add(DeriveBuilder* builder, uint32_t value, DeriveAdjoint term) {
    DeriveAdjoint* sum = &builder->adjoints[value];
    if (!builder->is_active[value]) {
        return;
    }
    if (sum->kind == DERIVE__ZERO) {
        *sum = term;
        return;
    }
    const uint32_t a = derive__magnitude(builder, *sum), b = derive__magnitude(builder, term);
    if (sum->is_negative == term.is_negative) {
        *sum = derive__of_value(derive__binary(builder, DERIVE__ADD, a, b), sum->is_negative);
    } else if (sum->is_negative) {
        *sum = derive__of_value(derive__binary(builder, DERIVE__SUB, b, a), 0);
    } else {
        *sum = derive__of_value(derive__binary(builder, DERIVE__SUB, a, b), 0);
    }
}

/* Adds the product of an adjoint and a value. */
static void derive__add_product(DeriveBuilder* builder, uint32_t value, DeriveAdjoint adjoint, uint32_t factor) {
    DeriveAdjoint* sum = &builder->adjoints[value];
    if (!builder->is_active[value]) {
        return;
    }
    if (adjoint.kind == DERIVE__ONE || sum->kind == DERIVE__ZERO || sum->is_negative != adjoint.is_negative) {
        derive__add(builder, value, derive__times(builder, adjoint, factor));
        return;
    }
    sum->value = derive__apply(builder, DERIVE__FMA, adjoint.value, factor, derive__magnitude(builder, *sum));
    sum->kind = DERIVE__VALUE;
}

/* Gives the adjoint to a where the predicate holds, to b elsewhere. */
static void derive__add_selected(DeriveBuilder* builder, DeriveAdjoint w, uint32_t a, uint32_t b, uint32_t predicate) {
    const uint32_t magnitude = derive__magnitude(builder, w), zero = derive__constant(builder, 0.0f);
    if (builder->is_active[a]) {
        const uint32_t part = derive__apply(builder, DERIVE__SELP, magnitude, zero, predicate);
        derive__add(builder, a, derive__of_value(part, w.is_negative));
    }
    if (builder->is_active[b]) {
        const uint32_t part = derive__apply(builder, DERIVE__SELP, zero, magnitude, predicate);
        derive__add(builder, b, derive__of_value(part, w.is_negative));
    }
}

/* Passes a node's adjoint on to its operands: the table at the top. */
static void derive__pass(DeriveBuilder* builder, uint8_t rule, const uint32_t* operands, uint32_t y, DeriveAdjoint w) {
    const float ln_2 = 0.693147181f, half = 0.5f;
    const uint32_t a = operands[0];
    switch (rule) {
        case DERIVE__ADD:
            derive__add(builder, a, w);
            derive__add(builder, operands[1], w);
            break;
        case DERIVE__SUB:
            derive__add(builder, a, w);
            derive__add(builder, operands[1], derive__negated(w));
            break;
        case DERIVE__FMA: derive__add(builder, operands[2], w); /* fall through */
        case DERIVE__MUL:
            derive__add_product(builder, a, w, operands[1]);
            derive__add_product(builder, operands[1], w, a);
            break;
        case DERIVE__NEG: derive__add(builder, a, derive__negated(w)); break;
        case DERIVE__DIV:
            w = derive__over(builder, w, operands[1]);
            derive__add(builder, a, w);
            derive__add_product(builder, operands[1], derive__negated(w), y);
            break;
        case DERIVE__RCP: derive__add_product(builder, a, derive__negated(derive__times(builder, w, y)), y); break;
        case DERIVE__SQRT: derive__add(builder, a, derive__over(builder, derive__scaled(builder, w, half), y)); break;
        case DERIVE__RSQRT:
            w = derive__times(builder, derive__scaled(builder, w, half), y);
            derive__add(builder, a, derive__negated(derive__over(builder, w, a)));
            break;
        case DERIVE__SIN: derive__add_product(builder, a, w, derive__unary(builder, DERIVE__COS, a)); break;
        case DERIVE__COS: derive__add_product(builder, a, derive__negated(w), derive__unary(builder, DERIVE__SIN, a)); break;
        case DERIVE__LG2: derive__add(builder, a, derive__over(builder, derive__scaled(builder, w, 1.0f / ln_2), a)); break;
        case DERIVE__EX2: derive__add_product(builder, a, derive__scaled(builder, w, ln_2), y); break;
        case DERIVE__TANH: {
            const uint32_t square = derive__binary(builder, DERIVE__MUL, y, y);
            const uint32_t slope = derive__binary(builder, DERIVE__SUB, derive__constant(builder, 1.0f), square);
            derive__add_product(builder, a, w, slope);
            break;
        }
        case DERIVE__ABS: {
            const uint32_t one = derive__constant(builder, 1.0f);
            derive__add_product(builder, a, w, derive__binary(builder, DERIVE__COPYSIGN, a, one));
            break;
        }
        case DERIVE__MIN:
        case DERIVE__MAX: {
            const uint32_t is_less = derive__binary(builder, DERIVE__SETP_LT, a, operands[1]);
            const bool is_min = rule == DERIVE__MIN;
            derive__add_selected(builder, w, operands[is_min ? 0 : 1], operands[is_min ? 1 : 0], is_less);
            break;
        }
        case DERIVE__COPYSIGN: {
            const uint32_t one = derive__constant(builder, 1.0f);
            const uint32_t sign_a = derive__binary(builder, DERIVE__COPYSIGN, a, one);
            const uint32_t sign_b = derive__binary(builder, DERIVE__COPYSIGN, operands[1], one);
            derive__add_product(builder, operands[1], w, derive__binary(builder, DERIVE__MUL, sign_a, sign_b));
            break;
        }
        default: /* SELP: the caller lets no other through */
            derive__add_selected(builder, w, a, operands[1], operands[2]);
            break;
    }
}

/* ---- programs: the whole ---- */

/* Marks the nodes that a request needs; through rules alone, only those that its derivative may depend on. */
static void derive__mark(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, bool through_rules, uint8_t* is_marked
) {
    const uint32_t value = lowered->request_values[request_idx];
    memset(is_marked, 0, lowered->num_nodes);
    if (value == STACK_PTX_NO_VALUE) {
        return;
    }
    is_marked[lowered->value_nodes[value]] = 1;
    for (uint32_t i = lowered->value_nodes[value] + 1; i-- > 0;) {
        const StackPtxNode* node = &lowered->nodes[i];
        const uint8_t rule = through_rules ? derive__rule(set, node) : (uint8_t)DERIVE__NONE;
        if (!is_marked[i] || (through_rules && rule == DERIVE__NONE)) {
            continue;
        }
        for (uint32_t k = 0; k < node->num_operands; k++) {
            const uint32_t operand_node = lowered->value_nodes[lowered->operands[node->first_operand + k]];
            is_marked[operand_node] |= (uint8_t)(!through_rules || derive__passes_to(rule, k));
        }
    }
}

DeriveResult derive_constants(
    const DeriveSet* set,
    const StackPtxLowered* lowered,
    size_t request_idx,
    void* memory,
    size_t memory_bytes,
    uint32_t* nodes_out,
    size_t max_nodes,
    size_t* num_nodes_out
) {
    const DeriveResult result = derive__check(set, lowered, request_idx, 0, memory, memory_bytes);
    if (result != DERIVE_SUCCESS) {
        return result;
    }
    if ((nodes_out == NULL && max_nodes > 0) || num_nodes_out == NULL) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    uint8_t* is_marked = (uint8_t*)memory;
    size_t count = 0;
    derive__mark(set, lowered, request_idx, true, is_marked);
    for (uint32_t i = 0; i < lowered->num_nodes && count < max_nodes; i++) {
        const StackPtxNode* node = &lowered->nodes[i];
        if (is_marked[i] && node->kind == STACK_PTX_NODE_CONSTANT && node->stack_idx == set->stack_idx) {
            nodes_out[count++] = i;
        }
    }
    *num_nodes_out = count;
    return DERIVE_SUCCESS;
}

static bool derive__take_parameters(
    DeriveBuilder* builder, const StackPtxLowered* lowered, const uint32_t* parameters, size_t num_parameters
) {
    for (uint32_t i = 0; i < lowered->num_nodes; i++) {
        builder->parameter_of[i] = DERIVE__NO_PARAMETER;
    }
    for (size_t k = 0; k < num_parameters; k++) {
        const uint32_t i = parameters[k];
        if (i >= lowered->num_nodes || lowered->nodes[i].kind != STACK_PTX_NODE_CONSTANT ||
            lowered->nodes[i].stack_idx != builder->set->stack_idx || builder->parameter_of[i] != DERIVE__NO_PARAMETER) {
            return false;
        }
        builder->parameter_of[i] = (uint32_t)k;
    }
    return true;
}

/* Copies the nodes that the request needs, with what depends on parameters. Parameters are never merged with other constants. */
static void derive__copy(DeriveBuilder* builder, const StackPtxLowered* lowered, uint32_t first_register) {
    const DeriveSet* set = builder->set;
    for (uint32_t i = 0; i < lowered->num_nodes; i++) {
        StackPtxNode node = lowered->nodes[i];
        const uint8_t rule = derive__rule(set, &node);
        const uint32_t parameter = builder->parameter_of[i];
        uint32_t* operands = builder->operands + builder->num_operands;
        uint8_t is_active = parameter != DERIVE__NO_PARAMETER;
        if (!builder->is_live[i]) {
            continue;
        }
        for (uint32_t k = 0; k < node.num_operands; k++) {
            operands[k] = builder->new_values[lowered->operands[node.first_operand + k]];
            is_active |= (uint8_t)(rule != DERIVE__NONE && derive__passes_to(rule, k) && builder->is_active[operands[k]]);
        }
        for (uint32_t k = 0; k < node.num_values; k++) {
            const uint32_t value = builder->num_values + k;
            builder->new_values[node.first_value + k] = value;
            builder->value_nodes[value] = builder->num_nodes;
            builder->value_stacks[value] = lowered->value_stacks[node.first_value + k];
            builder->is_active[value] = is_active;
            builder->adjoints[value].kind = DERIVE__ZERO;
        }
        if (parameter != DERIVE__NO_PARAMETER && first_register != DERIVE_KEEP_CONSTANTS) {
            node.kind = STACK_PTX_NODE_INPUT;
            node.payload = first_register + parameter;
        }
        const bool is_operation = node.kind == STACK_PTX_NODE_PTX && node.payload < set->num_instructions &&
            set->operations[node.payload] != DERIVE__NONE;
        if (is_operation || (node.kind == STACK_PTX_NODE_CONSTANT && parameter == DERIVE__NO_PARAMETER)) {
            uint32_t* entry = derive__find(builder, &node, operands);
            *entry = *entry == 0 ? builder->num_nodes + 1 : *entry;
        }
        derive__append(builder, node);
    }
}

DeriveResult derive_program(
    const DeriveSet* set,
    const StackPtxLowered* lowered,
    size_t request_idx,
    const uint32_t* parameters,
    size_t num_parameters,
    uint32_t first_register,
    void* memory,
    size_t memory_bytes,
    StackPtxLowered* derived_out
) {
    DeriveResult result = derive__check(set, lowered, request_idx, num_parameters, memory, memory_bytes);
    if (result != DERIVE_SUCCESS) {
        return result;
    }
    if ((parameters == NULL && num_parameters > 0) || derived_out == NULL) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    EvoArena arena = evo__arena(memory, memory_bytes);
    DeriveBuilder builder;
    memset(&builder, 0, sizeof builder);
    builder.set = set;
    derive__take_builder(&arena, lowered, num_parameters, &builder);
    memset(builder.table, 0, ((size_t)builder.table_mask + 1) * sizeof *builder.table);
    if (!derive__take_parameters(&builder, lowered, parameters, num_parameters)) {
        return DERIVE__ERROR(INVALID_VALUE);
    }
    derive__mark(set, lowered, request_idx, false, builder.is_live);
    derive__copy(&builder, lowered, first_register);

    const uint32_t old_y = lowered->request_values[request_idx];
    builder.request_values[0] = old_y == STACK_PTX_NO_VALUE ? old_y : builder.new_values[old_y];
    if (old_y != STACK_PTX_NO_VALUE && builder.is_active[builder.request_values[0]]) {
        builder.adjoints[builder.request_values[0]].kind = DERIVE__ONE;
        builder.adjoints[builder.request_values[0]].is_negative = 0;
    }
    for (uint32_t i = builder.num_nodes; i-- > 0;) {
        const StackPtxNode* node = &builder.nodes[i];
        const uint8_t rule = derive__rule(set, node);
        const uint32_t y = node->first_value;
        if (rule != DERIVE__NONE && builder.adjoints[y].kind != DERIVE__ZERO) {
            derive__pass(&builder, rule, builder.operands + node->first_operand, y, builder.adjoints[y]);
        }
    }
    for (size_t k = 0; k < num_parameters; k++) {
        uint32_t value = STACK_PTX_NO_VALUE;
        if (builder.is_live[parameters[k]]) {
            const DeriveAdjoint adjoint = builder.adjoints[builder.new_values[lowered->nodes[parameters[k]].first_value]];
            if (adjoint.kind == DERIVE__ONE) {
                value = derive__constant(&builder, adjoint.is_negative ? -1.0f : 1.0f);
            } else if (adjoint.kind == DERIVE__VALUE) {
                value = adjoint.is_negative ? derive__unary(&builder, DERIVE__NEG, adjoint.value) : adjoint.value;
            }
        }
        builder.request_values[1 + k] = value;
    }
    derived_out->nodes = builder.nodes;
    derived_out->operands = builder.operands;
    derived_out->value_nodes = builder.value_nodes;
    derived_out->value_stacks = builder.value_stacks;
    derived_out->request_values = builder.request_values;
    derived_out->num_nodes = builder.num_nodes;
    derived_out->num_operands = builder.num_operands;
    derived_out->num_values = builder.num_values;
    derived_out->num_requests = (uint32_t)(1 + num_parameters);
    derived_out->num_instructions = builder.num_instructions;
    derived_out->mode = STACK_PTX_MODE_LENIENT;
    return DERIVE_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif /* DERIVE_IMPLEMENTATION */
