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
 * Rules. The column `derivative` of evo/instructions/instructions.json says what an instruction passes to its operands: scalars of
 * one f32 stack, and of stacks of f16 and bf16. Adjoints are f32, and take values of halves as operands, as the virtual machine
 * does; such a program cannot be emitted. Instructions without a rule pass nothing: their operands count as constants. So do those
 * whose rule needs an instruction that the set lacks; add, sub, mul, fma and neg are needed for any derivative. Subgradients:
 *
 *     sqrt        infinite at 0
 *     abs         the sign of its operand, also at 0 and -0
 *     min, max    to the operand that is the result; to the second of two equal ones in min, to the first in max. If the second is
 *                 NaN, min passes to it and max to the first
 *     copysign    to the magnitude alone, none to the sign
 *     selp        to the operand that is chosen, none to the predicate
 *
 * Memory and threads. Nothing is allocated; the caller owns all memory, which may have any alignment and any contents. There is
 * no global state. A set is immutable and may be used by any number of threads. No pointer may be NULL unless its comment says
 * so.
 *
 * Options, defined before the implementation
 *
 *     DERIVE_DEBUG        errors assert where they are found
 *     DERIVE_STATIC       functions are static; each including file also defines DERIVE_IMPLEMENTATION
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

#define DERIVE_API EVO__API(DERIVE_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

#define DERIVE__RESULTS(X)                                                                                                       \
    X(DERIVE_SUCCESS, 0)                                                                                                         \
    X(DERIVE_ERROR_INVALID_VALUE, 1) /* NULL, an index out of range, a parameter that is neither constant nor input, or twice */ \
    X(DERIVE_ERROR_INSUFFICIENT_MEMORY, 2) /* less memory than the size query returned */

typedef enum { DERIVE__RESULTS(EVO__ENUMERATOR) DERIVE_RESULT_NUM_ENUMS } DeriveResult;

/* The enumerator's name, or "DERIVE_RESULT_UNKNOWN". The text is static. */
DERIVE_API const char* derive_result_to_string(DeriveResult result);

/* The rule of each instruction of a set, found by its PTX name. It lies in the caller's memory and does not refer to
   stack_info. */
typedef struct DeriveSet DeriveSet;

DERIVE_API DeriveResult derive_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out);

DERIVE_API DeriveResult
derive_set_init(const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const DeriveSet** set_out);

/* Whether the instruction passes derivatives to its operands; false for an index out of range. */
DERIVE_API bool derive_set_has_rule(const DeriveSet* set, size_t instruction_idx);

/* Bytes that derive_program needs for this many parameters; enough for derive_constants too. */
DERIVE_API DeriveResult derive_size(const StackPtxLowered* lowered, size_t num_parameters, size_t* bytes_out);

/* The constants whose derivative is not zero by the rules above, as node indices in evaluation order: the first max_nodes of
   them. num_nodes_out is how many were written. */
DERIVE_API DeriveResult derive_constants(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, void* memory, size_t memory_bytes,
    uint32_t* nodes_out, size_t max_nodes, size_t* num_nodes_out
);

/* As first_register: parameters stay constants. */
#define DERIVE_KEEP_CONSTANTS UINT32_MAX

/* The derived program; its arrays lie in `memory`. `parameters` are node indices of f32, f16 or bf16 constants or inputs. Parameter k
   becomes an input of register first_register + k, or stays what it is with DERIVE_KEEP_CONSTANTS. The first nodes and values are
   those of `lowered` that the request needs, in their order; the requests are y and then the derivative by each parameter. A
   derivative that is zero everywhere is STACK_PTX_NO_VALUE, which is zero in lenient mode, the mode of the result. */
DERIVE_API DeriveResult derive_program(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, const uint32_t* parameters, size_t num_parameters,
    uint32_t first_register, void* memory, size_t memory_bytes, StackPtxLowered* derived_out
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
#include "detail/instruction_row.h"

#define DERIVE__ERROR(code) EVO__ERROR(DERIVE_DEBUG, DERIVE_ERROR_##code)

const char* derive_result_to_string(DeriveResult result) { EVO__RETURN_NAME(result, DERIVE__RESULTS, "DERIVE_RESULT_UNKNOWN"); }

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

/* Operations of derivatives: enumerator, character in a rule (see evo/instructions/tables.py), operands, row of the table. */
#define DERIVE__OPERATORS(X)           \
    X(ADD, '+', 2, ADD_FTZ_F32)        \
    X(SUB, '-', 2, SUB_FTZ_F32)        \
    X(MUL, '*', 2, MUL_FTZ_F32)        \
    X(NEG, '~', 1, NEG_FTZ_F32)        \
    X(FMA, '@', 3, FMA_RN_FTZ_F32)     \
    X(DIV, '/', 2, DIV_APPROX_FTZ_F32) \
    X(SIN, 'S', 1, SIN_APPROX_FTZ_F32) \
    X(COS, 'C', 1, COS_APPROX_FTZ_F32) \
    X(COPYSIGN, '|', 2, COPYSIGN_F32)  \
    X(SELECT, '?', 3, SELP_F32)        \
    X(LESS, '<', 2, SETP_LT_FTZ_F32)

#define DERIVE__OPERATOR_ENUMERATOR(enumerator, character, num_operands, row) DERIVE__##enumerator,
enum { DERIVE__OPERATORS(DERIVE__OPERATOR_ENUMERATOR) DERIVE__NUM_OPERATORS };

#define DERIVE__OPERATOR(enumerator, character, num_operands, row) {character, num_operands, EVO__ROW_##row},
static const struct {
    char character;
    uint8_t num_operands, row;
} derive__operators[] = {DERIVE__OPERATORS(DERIVE__OPERATOR)};

#define DERIVE__ALWAYS_NEEDED "+-*~@" /* whatever the rule */

/* The part of a rule for one operand: text up to, not including, = or @. */
typedef struct DeriveFormula {
    const char* text;
    const char* end;
    uint32_t operand;
    uint32_t is_product; /* its last two values are to be multiplied */
} DeriveFormula;

/* Of an instruction. */
typedef struct DeriveRule {
    DeriveFormula formulas[3];
    uint8_t num_formulas; /* 0: it passes nothing */
    uint8_t passes_to;    /* bit k: operand k */
    uint8_t operation;    /* the operator that it is, or NUM_OPERATORS */
} DeriveRule;

struct DeriveSet {
    size_t num_instructions;
    uint16_t stack_idx; /* of f32 */
    uint16_t predicate_stack_idx;
    uint32_t instructions[DERIVE__NUM_OPERATORS]; /* index of each operator; UINT32_MAX if there is none */
    uint8_t operators[128]; /* of each character in a rule, or NUM_OPERATORS */
    DeriveRule* rules; /* of each instruction */
    char* letters; /* of each stack that rules know; 0 of others */
};

/* Whether the set has the operators among the characters of a text. */
static bool derive__has_operators(const DeriveSet* set, const char* text) {
    bool has = true;
    for (; *text != '\0'; text++) {
        const uint8_t operation = set->operators[(uint8_t)*text];
        has = has && (operation == DERIVE__NUM_OPERATORS || set->instructions[operation] != UINT32_MAX);
    }
    return has;
}

/* Takes a rule apart. */
static void derive__read_rule(const char* text, DeriveRule* rule) {
    while (*text != '\0') {
        DeriveFormula* formula = &rule->formulas[rule->num_formulas++];
        formula->text = text;
        formula->end = text + strcspn(text, "=@");
        formula->operand = (uint32_t)(formula->end[1] - 'a');
        formula->is_product = *formula->end == '@';
        rule->passes_to |= (uint8_t)(1u << formula->operand);
        text = formula->end + 2;
    }
}

/* The first stack of a type, or one past the last. Others of that type lose their letter. */
static uint16_t derive__stack_of(const StackPtxStackInfo* info, char letter, char* letters) {
    uint16_t first = 0;
    while (first < info->num_stacks && letters[first] != letter) first++;
    for (size_t i = (size_t)first + 1; i < info->num_stacks; i++)
        if (letters[i] == letter) letters[i] = '\0';
    return first;
}

/* Returns where the set is to lie. */
static DeriveSet* derive__take_set(EvoArena* arena, const StackPtxStackInfo* info, DeriveSet* set) {
    DeriveSet* place = (DeriveSet*)evo__take(arena, 1, sizeof(DeriveSet));
    set->rules = (DeriveRule*)evo__take(arena, info->num_ptx_instructions, sizeof(DeriveRule));
    set->letters = (char*)evo__take(arena, info->num_stacks, 1);
    return place;
}

DeriveResult derive_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out) {
    if (stack_info == NULL || bytes_out == NULL) return DERIVE__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    DeriveSet set;
    (void)derive__take_set(&arena, stack_info, &set);
    *bytes_out = arena.num_bytes;
    return DERIVE_SUCCESS;
}

DeriveResult derive_set_init(const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const DeriveSet** set_out) {
    if (stack_info == NULL || memory == NULL || set_out == NULL) return DERIVE__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(memory, memory_bytes);
    DeriveSet content, *set = derive__take_set(&arena, stack_info, &content);
    if (memory_bytes < arena.num_bytes) return DERIVE__ERROR(INSUFFICIENT_MEMORY);
    DeriveRule* rules = content.rules;
    char* letters = content.letters;
    set->rules = rules;
    set->letters = letters;
    evo__letters(stack_info, letters);
    for (size_t i = 0; i < stack_info->num_stacks; i++)
        if (letters[i] == 'i') letters[i] = '\0';
    memset(set->instructions, 0xff, sizeof set->instructions);
    memset(set->operators, DERIVE__NUM_OPERATORS, sizeof set->operators);
    for (uint8_t i = 0; i < DERIVE__NUM_OPERATORS; i++) set->operators[(uint8_t)derive__operators[i].character] = i;
    set->num_instructions = stack_info->num_ptx_instructions;
    set->stack_idx = derive__stack_of(stack_info, 'f', letters);
    set->predicate_stack_idx = derive__stack_of(stack_info, 'p', letters);
    memset(rules, 0, set->num_instructions * sizeof *rules);
    for (size_t i = set->num_instructions; i-- > 0;) {
        const size_t row = evo__find_row(stack_info, letters, i);
        if (row < EVO__NUM_ROWS) derive__read_rule(evo__rows[row].derivative, &rules[i]);
        while (rules[i].operation < DERIVE__NUM_OPERATORS && derive__operators[rules[i].operation].row != row)
            rules[i].operation++;
        if (rules[i].operation < DERIVE__NUM_OPERATORS) set->instructions[rules[i].operation] = (uint32_t)i;
    }
    for (size_t i = 0; i < set->num_instructions; i++) {
        const bool has_rule = rules[i].num_formulas > 0 && derive__has_operators(set, DERIVE__ALWAYS_NEEDED);
        if (!has_rule || !derive__has_operators(set, rules[i].formulas[0].text)) rules[i].num_formulas = rules[i].passes_to = 0;
    }
    *set_out = set;
    return DERIVE_SUCCESS;
}

bool derive_set_has_rule(const DeriveSet* set, size_t instruction_idx) {
    return set != NULL && instruction_idx < set->num_instructions && set->rules[instruction_idx].passes_to != 0;
}

/* Whether a node's value is of a type that programs can be derived by. */
static bool derive__is_float(const DeriveSet* set, const StackPtxNode* node) {
    const char letter = set->letters[node->stack_idx];
    return letter == 'f' || letter == 'h' || letter == 'b';
}

/* The rule of a node. */
static const DeriveRule* derive__rule(const DeriveSet* set, const StackPtxNode* node) {
    static const DeriveRule none = {{{NULL, NULL, 0, 0}, {NULL, NULL, 0, 0}, {NULL, NULL, 0, 0}}, 0, 0, DERIVE__NUM_OPERATORS};
    return node->kind == STACK_PTX_NODE_PTX && node->payload < set->num_instructions ? &set->rules[node->payload] : &none;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Nodes that a rule may add, constants and sums of adjoints included. */
#define DERIVE__MAX_RULE_NODES 8u
#define DERIVE__NO_PARAMETER UINT32_MAX

/* Derivative of the request by a value, and the operands of rules. */
enum { DERIVE__ZERO, DERIVE__ONE, DERIVE__VALUE, DERIVE__CONSTANT };
typedef struct DeriveAdjoint {
    uint8_t kind;
    uint8_t is_negative; /* the adjoint is minus one, or minus the value */
    uint32_t value; /* id of a VALUE, bits of a CONSTANT that is not a node yet */
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
    while (table_size < 2 * num_nodes) table_size *= 2;
    builder->nodes = (StackPtxNode*)evo__take(arena, num_nodes, sizeof(StackPtxNode));
    builder->operands = (uint32_t*)evo__take(arena, lowered->num_operands + 3 * (num_added + 1), sizeof(uint32_t));
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
    if (lowered == NULL || bytes_out == NULL) return DERIVE__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    DeriveBuilder builder;
    derive__take_builder(&arena, lowered, num_parameters, &builder);
    *bytes_out = arena.num_bytes;
    return DERIVE_SUCCESS;
}

static DeriveResult derive__check(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, size_t num_parameters, const void* memory,
    size_t memory_bytes
) {
    size_t num_bytes;
    if (set == NULL || lowered == NULL || memory == NULL || request_idx >= lowered->num_requests)
        return DERIVE__ERROR(INVALID_VALUE);
    derive_size(lowered, num_parameters, &num_bytes);
    return memory_bytes < num_bytes ? DERIVE__ERROR(INSUFFICIENT_MEMORY) : DERIVE_SUCCESS;
}

/* ---- programs: new nodes ---- */

/* First slot in the search for a node; the same for both orders of operands that commute. */
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
    if (node->kind != other->kind || node->payload != other->payload || node->stack_idx != other->stack_idx) return false;
    if (memcmp(others, operands, node->num_operands * sizeof *operands) == 0) return true;
    return node->kind == STACK_PTX_NODE_PTX && derive__commutes(builder->set->rules[node->payload].operation) &&
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

static uint32_t derive__constant(DeriveBuilder* builder, uint32_t bits) {
    StackPtxNode node = {STACK_PTX_NODE_CONSTANT, builder->set->stack_idx, 0, 1, 0, 0, 0};
    const uint32_t no_operand = 0;
    node.payload = bits;
    return derive__value_of(builder, &node, &no_operand);
}

static uint32_t derive__apply(DeriveBuilder* builder, uint8_t operation, uint32_t a, uint32_t b, uint32_t c) {
    const DeriveSet* set = builder->set;
    const uint32_t operands[3] = {a, b, c};
    StackPtxNode node = {STACK_PTX_NODE_PTX, set->stack_idx, 0, 1, set->instructions[operation], 0, 0};
    node.num_operands = derive__operators[operation].num_operands;
    if (operation == DERIVE__LESS) node.stack_idx = set->predicate_stack_idx;
    return derive__value_of(builder, &node, operands);
}

/* ---- programs: adjoints ---- */

#define DERIVE__BITS_OF_1 0x3f800000u

/* The constants of rules: 0, one half, ln 2 and 1 / ln 2. */
static uint32_t derive__bits_of(char character) {
    return character == '0' ? 0u : character == 'h' ? 0x3f000000u : character == 'l' ? 0x3f317218u : 0x3fb8aa3bu;
}

static DeriveAdjoint derive__adjoint(uint8_t kind, uint32_t value, uint8_t is_negative) {
    const DeriveAdjoint adjoint = {kind, is_negative, value};
    return adjoint;
}

static DeriveAdjoint derive__of_value(uint32_t value, uint8_t is_negative) {
    return derive__adjoint(DERIVE__VALUE, value, is_negative);
}

/* The adjoint as a value, without its sign. */
static uint32_t derive__magnitude(DeriveBuilder* builder, DeriveAdjoint adjoint) {
    if (adjoint.kind == DERIVE__VALUE) return adjoint.value;
    return derive__constant(builder, adjoint.kind == DERIVE__ONE ? DERIVE__BITS_OF_1 : adjoint.value);
}

/* The adjoint times a value. */
static DeriveAdjoint derive__times(DeriveBuilder* builder, DeriveAdjoint adjoint, uint32_t factor) {
    if (adjoint.kind == DERIVE__ONE) return derive__of_value(factor, adjoint.is_negative);
    const uint32_t magnitude = derive__magnitude(builder, adjoint);
    return derive__of_value(derive__apply(builder, DERIVE__MUL, magnitude, factor, 0), adjoint.is_negative);
}

/* Adds to the adjoint of a value. */
static void derive__add(DeriveBuilder* builder, uint32_t value, DeriveAdjoint term) {
    DeriveAdjoint* sum = &builder->adjoints[value];
    if (sum->kind == DERIVE__ZERO) {
        *sum = term;
        return;
    }
    const uint32_t a = derive__magnitude(builder, *sum), b = derive__magnitude(builder, term);
    const uint8_t operation = sum->is_negative == term.is_negative ? DERIVE__ADD : DERIVE__SUB;
    const bool is_swapped = sum->is_negative && !term.is_negative; /* -a + b = b - a */
    const uint32_t total = derive__apply(builder, operation, is_swapped ? b : a, is_swapped ? a : b, 0);
    *sum = derive__of_value(total, sum->is_negative & term.is_negative);
}

/* Adds the product of an adjoint and a value. */
static void derive__add_product(DeriveBuilder* builder, uint32_t value, DeriveAdjoint adjoint, uint32_t factor) {
    DeriveAdjoint* sum = &builder->adjoints[value];
    if (adjoint.kind == DERIVE__ONE || sum->kind == DERIVE__ZERO || sum->is_negative != adjoint.is_negative) {
        derive__add(builder, value, derive__times(builder, adjoint, factor));
        return;
    }
    sum->value = derive__apply(builder, DERIVE__FMA, adjoint.value, factor, derive__magnitude(builder, *sum));
    sum->kind = DERIVE__VALUE;
}

/* Applies an operator of a rule to the values at the end of a stack. Returns what takes their place. */
static DeriveAdjoint derive__operate(DeriveBuilder* builder, uint8_t operation, const DeriveAdjoint* first) {
    const uint32_t count = derive__operators[operation].num_operands;
    uint32_t values[3] = {0, 0, 0};
    uint8_t is_negative = 0;
    if (operation == DERIVE__MUL && first[0].kind == DERIVE__ONE)
        return derive__of_value(derive__magnitude(builder, first[1]), first[0].is_negative);
    for (uint32_t k = 0; k < count; k++) { /* a gain of 1 becomes a node before constants do */
        is_negative ^= first[k].is_negative;
        if (first[k].kind == DERIVE__ONE) (void)derive__magnitude(builder, first[k]);
    }
    for (uint32_t k = 0; k < count; k++) values[k] = derive__magnitude(builder, first[k]);
    if (operation == DERIVE__SELECT)  /* PTX has the condition last */
        return derive__of_value(derive__apply(builder, operation, values[1], values[2], values[0]), is_negative);
    return derive__of_value(derive__apply(builder, operation, values[0], values[1], 0), is_negative);
}

/* Evaluates a formula in postfix form, up to its end. Returns the last of what is on the stack then. */
static const DeriveAdjoint* derive__evaluate(
    DeriveBuilder* builder, const DeriveFormula* formula, const uint32_t* operands, uint32_t y, DeriveAdjoint w,
    DeriveAdjoint* stack
) {
    DeriveAdjoint* top = stack; /* one past it */
    for (const char* at = formula->text; at < formula->end; at++) {
        uint8_t operation;
        switch (*at) {
            case 'a':
            case 'b':
            case 'c': *top++ = derive__of_value(operands[*at - 'a'], 0); break;
            case 'w': *top++ = w; break;
            case 'y': *top++ = derive__of_value(y, 0); break;
            case '1': *top++ = derive__adjoint(DERIVE__ONE, 0, 0); break;
            case '0':
            case 'h':
            case 'l':
            case 'L': *top++ = derive__adjoint(DERIVE__CONSTANT, derive__bits_of(*at), 0); break;
            case '~': top[-1].is_negative = !top[-1].is_negative; break;
            default:
                operation = builder->set->operators[(uint8_t)*at];
                top -= derive__operators[operation].num_operands;
                *top = derive__operate(builder, operation, top);
                top++;
        }
    }
    return top - 1;
}

/* Passes a node's adjoint w on to those of its operands that have one. */
static void derive__pass(DeriveBuilder* builder, const DeriveRule* rule, const uint32_t* operands, uint32_t y, DeriveAdjoint w) {
    DeriveAdjoint stack[DERIVE__MAX_RULE_NODES];
    for (const DeriveFormula* formula = rule->formulas; formula < rule->formulas + rule->num_formulas; formula++) {
        const uint32_t operand = operands[formula->operand];
        if (!builder->is_active[operand]) continue;
        const DeriveAdjoint* last = derive__evaluate(builder, formula, operands, y, w, stack);
        if (formula->is_product)
            derive__add_product(builder, operand, last[-1], derive__magnitude(builder, *last));
        else
            derive__add(builder, operand, *last);
    }
}

/* ---- programs: the whole ---- */

/* Marks the nodes that a request needs; through rules alone, only those that its derivative may depend on. */
static void derive__mark(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, bool through_rules, uint8_t* is_marked
) {
    const uint32_t value = lowered->request_values[request_idx];
    const StackPtxNode* nodes = lowered->nodes; /* locals: marks might change the struct, for all that a compiler knows */
    const uint32_t* all_operands = lowered->operands;
    const uint32_t* value_nodes = lowered->value_nodes;
    memset(is_marked, 0, lowered->num_nodes);
    if (value == STACK_PTX_NO_VALUE) return;
    is_marked[value_nodes[value]] = 1;
    for (uint32_t i = value_nodes[value] + 1; i-- > 0;) {
        if (!is_marked[i]) continue;
        const uint32_t num_operands = nodes[i].num_operands;
        const uint32_t* operands = all_operands + nodes[i].first_operand;
        const uint64_t passes_to = through_rules ? derive__rule(set, &nodes[i])->passes_to : UINT64_MAX; /* of 32 at most */
        for (uint32_t k = 0; k < num_operands; k++) is_marked[value_nodes[operands[k]]] |= (uint8_t)(passes_to >> k & 1);
    }
}

DeriveResult derive_constants(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, void* memory, size_t memory_bytes,
    uint32_t* nodes_out, size_t max_nodes, size_t* num_nodes_out
) {
    const DeriveResult result = derive__check(set, lowered, request_idx, 0, memory, memory_bytes);
    if (result != DERIVE_SUCCESS) return result;
    if ((nodes_out == NULL && max_nodes > 0) || num_nodes_out == NULL) return DERIVE__ERROR(INVALID_VALUE);
    uint8_t* is_marked = (uint8_t*)memory;
    size_t count = 0;
    derive__mark(set, lowered, request_idx, true, is_marked);
    for (uint32_t i = 0; i < lowered->num_nodes && count < max_nodes; i++) {
        const StackPtxNode* node = &lowered->nodes[i];
        if (is_marked[i] && node->kind == STACK_PTX_NODE_CONSTANT && derive__is_float(set, node)) nodes_out[count++] = i;
    }
    *num_nodes_out = count;
    return DERIVE_SUCCESS;
}

static bool derive__take_parameters(
    DeriveBuilder* builder, const StackPtxLowered* lowered, const uint32_t* parameters, size_t num_parameters
) {
    for (uint32_t i = 0; i < lowered->num_nodes; i++) builder->parameter_of[i] = DERIVE__NO_PARAMETER;
    for (size_t k = 0; k < num_parameters; k++) {
        const uint32_t i = parameters[k];
        if (i >= lowered->num_nodes || builder->parameter_of[i] != DERIVE__NO_PARAMETER) return false;
        const StackPtxNode* node = &lowered->nodes[i];
        if (node->kind != STACK_PTX_NODE_CONSTANT && node->kind != STACK_PTX_NODE_INPUT) return false;
        if (!derive__is_float(builder->set, node)) return false;
        builder->parameter_of[i] = (uint32_t)k;
    }
    return true;
}

/* Copies the nodes that the request needs, with what depends on parameters. Parameters are never merged with other constants. */
static void derive__copy(DeriveBuilder* builder, const StackPtxLowered* lowered, uint32_t first_register) {
    uint32_t* new_values = builder->new_values;
    uint8_t* are_active = builder->is_active;
    for (uint32_t i = 0; i < lowered->num_nodes; i++) {
        if (!builder->is_live[i]) continue;
        StackPtxNode node = lowered->nodes[i];
        const DeriveRule* rule = derive__rule(builder->set, &node);
        const uint32_t parameter = builder->parameter_of[i];
        const uint32_t* old_operands = lowered->operands + node.first_operand;
        uint32_t* operands = builder->operands + builder->num_operands;
        uint8_t is_active = parameter != DERIVE__NO_PARAMETER;
        for (uint32_t k = 0; k < node.num_operands; k++) {
            operands[k] = new_values[old_operands[k]];
            is_active |= (uint8_t)((uint64_t)rule->passes_to >> k & are_active[operands[k]]);
        }
        for (uint32_t k = 0; k < node.num_values; k++) {
            const uint32_t value = builder->num_values + k;
            new_values[node.first_value + k] = value;
            builder->value_nodes[value] = builder->num_nodes;
            builder->value_stacks[value] = lowered->value_stacks[node.first_value + k];
            are_active[value] = is_active;
            builder->adjoints[value].kind = DERIVE__ZERO;
        }
        if (parameter != DERIVE__NO_PARAMETER && first_register != DERIVE_KEEP_CONSTANTS) {
            node.kind = STACK_PTX_NODE_INPUT;
            node.payload = first_register + parameter;
        }
        if (rule->operation != DERIVE__NUM_OPERATORS ||
            (node.kind == STACK_PTX_NODE_CONSTANT && parameter == DERIVE__NO_PARAMETER)) {
            uint32_t* entry = derive__find(builder, &node, operands);
            *entry = *entry == 0 ? builder->num_nodes + 1 : *entry;
        }
        derive__append(builder, node);
    }
}

DeriveResult derive_program(
    const DeriveSet* set, const StackPtxLowered* lowered, size_t request_idx, const uint32_t* parameters, size_t num_parameters,
    uint32_t first_register, void* memory, size_t memory_bytes, StackPtxLowered* derived_out
) {
    DeriveResult result = derive__check(set, lowered, request_idx, num_parameters, memory, memory_bytes);
    if (result != DERIVE_SUCCESS) return result;
    if ((parameters == NULL && num_parameters > 0) || derived_out == NULL) return DERIVE__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(memory, memory_bytes);
    DeriveBuilder builder;
    memset(&builder, 0, sizeof builder);
    builder.set = set;
    derive__take_builder(&arena, lowered, num_parameters, &builder);
    memset(builder.table, 0, ((size_t)builder.table_mask + 1) * sizeof *builder.table);
    if (!derive__take_parameters(&builder, lowered, parameters, num_parameters)) return DERIVE__ERROR(INVALID_VALUE);
    derive__mark(set, lowered, request_idx, false, builder.is_live);
    derive__copy(&builder, lowered, first_register);

    const uint32_t old_y = lowered->request_values[request_idx];
    builder.request_values[0] = old_y == STACK_PTX_NO_VALUE ? old_y : builder.new_values[old_y];
    if (old_y != STACK_PTX_NO_VALUE && builder.is_active[builder.request_values[0]])
        builder.adjoints[builder.request_values[0]] = derive__adjoint(DERIVE__ONE, 0, 0);
    for (uint32_t i = builder.num_nodes; i-- > 0;) {
        const StackPtxNode* node = &builder.nodes[i];
        const DeriveRule* rule = derive__rule(set, node);
        const uint32_t y = node->first_value;
        if (rule->passes_to != 0 && builder.adjoints[y].kind != DERIVE__ZERO)
            derive__pass(&builder, rule, builder.operands + node->first_operand, y, builder.adjoints[y]);
    }
    for (size_t k = 0; k < num_parameters; k++) {
        uint32_t value = STACK_PTX_NO_VALUE;
        if (builder.is_live[parameters[k]]) {
            const DeriveAdjoint adjoint = builder.adjoints[builder.new_values[lowered->nodes[parameters[k]].first_value]];
            const uint32_t bits = adjoint.kind == DERIVE__ONE ? DERIVE__BITS_OF_1 : adjoint.value;
            if (adjoint.kind == DERIVE__VALUE)
                value = adjoint.is_negative ? derive__apply(&builder, DERIVE__NEG, adjoint.value, 0, 0) : adjoint.value;
            else if (adjoint.kind != DERIVE__ZERO)
                value = derive__constant(&builder, bits ^ (uint32_t)adjoint.is_negative << 31);
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

#endif /* DERIVE_IMPLEMENTATION */
