/*
 * itll_features.h - what a program looks like to a model of itll.h, without running its task.
 *
 * A program is run at a few probe points: what it computes there tells more of it than its text ("phenotypic characterisation",
 * Hildebrandt & Branke 2015). Beside that stand counts of its instructions, of pairs of them, and its shape.
 *
 *     #define ITLL_FEATURES_IMPLEMENTATION  in exactly one C or C++ file, which also sees the headers below
 *     #include "itll_features.h"
 *
 *     ItllFeaturesInfo info = {stack_info, vm_set, level, inputs, num_registers, num_points, num_requests, 16, false};
 *     num_features = itll_features_count(&info);
 *     stack_ptx_lower(language, STACK_PTX_MODE_LENIENT, 0, words, num_words, .., &lowered, NULL);
 *     itll_features_of(&info, &lowered, memory, memory_bytes, &bytes, features);    once more, if `bytes` is more than there was
 *
 * The features, in this order:
 *
 *   outputs       (num_requests, num_points): y / (1 + |y|), so that all lie in [-1, 1]; NaN is 0. If is_scaled, a task that takes
 *                 the best a + b y sees no difference between y and 2 y + 1, so y is first taken in standard deviations from its mean
 *                 over the points, with the sign that makes the first of them positive. A program without CPU semantics has zeros.
 *   instructions  how often each instruction of the set occurs
 *   bigrams       how often an instruction reads the result of another, an input, a constant or a special register: num_bigrams
 *                 counts, among which a hash distributes the pairs
 *   statistics    ITLL_FEATURES_NUM_STATISTICS, see the enum
 *
 * All are finite. On x86-64 they are the same at every SIMD level, as the outputs of ptx_vm.h are. Nothing is allocated: memory, of
 * any alignment and contents, is the caller's. Threads may share an info, but not memory. Functions refuse NULL.
 * ITLL_FEATURES_STATIC, defined before: functions are static, and each including file also defines ITLL_FEATURES_IMPLEMENTATION.
 */

#ifndef ITLL_FEATURES_H
#define ITLL_FEATURES_H

#include "detail/arena.h"
#include "itll.h"
#include "ptx_vm.h"
#include "stack_ptx.h"

#define ITLL_FEATURES_API EVO__API(ITLL_FEATURES_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

/* The way programs are turned into features. Keep what it points to unchanged while it is used. */
typedef struct ItllFeaturesInfo {
    const StackPtxStackInfo* stack_info;
    const PtxVmSet* vm_set;
    PtxVmLevel level;
    const PtxVmInput* inputs; /* parallel to the registers that programs are lowered with: their values at the probe points */
    size_t num_inputs, num_points, num_requests, num_bigrams;
    bool is_scaled;
} ItllFeaturesInfo;

typedef enum {
    ITLL_FEATURES_NUM_INSTRUCTIONS, /* live ones */
    ITLL_FEATURES_DEPTH, /* instructions on the longest way from an input to a request */
    ITLL_FEATURES_NUM_INPUTS, /* registers and special registers that are read */
    ITLL_FEATURES_NUM_CONSTANTS, /* different ones */
    ITLL_FEATURES_CONSTANTS_MEAN, /* of c / (1 + |c|), as the next three; of f32 constants alone; 0 without any */
    ITLL_FEATURES_CONSTANTS_DEVIATION,
    ITLL_FEATURES_CONSTANTS_LEAST,
    ITLL_FEATURES_CONSTANTS_GREATEST,
    ITLL_FEATURES_USES, /* operands by values: more than one where values are used again */
    ITLL_FEATURES_NONFINITE, /* the share of outputs that are not finite */
    ITLL_FEATURES_NUM_STATISTICS
} ItllFeaturesStatistic;

/* The number of features of a program; 0 if info or its stack_info is NULL. */
ITLL_FEATURES_API size_t itll_features_count(const ItllFeaturesInfo* info);

/* Writes the features of one program, which was lowered in lenient mode. bytes_needed_out is written only on INSUFFICIENT_MEMORY, and
   tells how much to come back with; memory may be NULL if memory_bytes is 0. INVALID_VALUE: also an input that the program reads but
   that has no values, or no such SIMD level. */
ITLL_FEATURES_API ItllResult itll_features_of(
    const ItllFeaturesInfo* info, const StackPtxLowered* lowered, void* memory, size_t memory_bytes, size_t* bytes_needed_out,
    float* features_out
);

#ifdef __cplusplus
}
#endif

#endif /* ITLL_FEATURES_H */

#if defined(ITLL_FEATURES_IMPLEMENTATION) && !defined(ITLL_FEATURES_IMPLEMENTATION_INCLUDED)
#define ITLL_FEATURES_IMPLEMENTATION_INCLUDED

#include <math.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

size_t itll_features_count(const ItllFeaturesInfo* info) {
    if (info == NULL || info->stack_info == NULL) return 0;
    return info->num_requests * info->num_points + info->stack_info->num_ptx_instructions + info->num_bigrams +
        ITLL_FEATURES_NUM_STATISTICS;
}

/* y / (1 + |y|); NaN is 0. Without branches: of a program's outputs, any may be the first that is infinite. */
static float itll_features__squash(float number) {
    const float most = 3.4028234663852886e38f;
    float bounded = number < most ? number : most;
    bounded = bounded > -most ? bounded : -most;
    bounded = number == number ? bounded : 0.0f;
    return bounded / (1.0f + (bounded < 0.0f ? -bounded : bounded));
}

/* Values in standard deviations from their mean, the first that differs from it above; not finite ones stay what they are. */
static void itll_features__normalise(size_t num_points, float* values) {
    double sum = 0.0, squares = 0.0, count = 0.0, scale = 0.0, sign = 0.0;
    for (size_t i = 0; i < num_points; i++) {
        if (values[i] - values[i] != 0.0f) continue;
        sum += (double)values[i];
        count += 1.0;
    }
    const double mean = count > 0.0 ? sum / count : 0.0;
    for (size_t i = 0; i < num_points; i++)
        if (values[i] - values[i] == 0.0f) squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    if (count > 0.0 && squares / count > 1e-12 * mean * mean) scale = 1.0 / sqrt(squares / count);
    for (size_t i = 0; i < num_points; i++) {
        const double z = ((double)values[i] - mean) * scale;
        if (values[i] - values[i] != 0.0f) continue;
        if (sign == 0.0 && (z > 1e-3 || z < -1e-3)) sign = z < 0.0 ? -1.0 : 1.0;
        values[i] = (float)(sign < 0.0 ? -z : z);
    }
}

/* Squashes the outputs in place; those of another type than f32 become floats of their value. Returns the share that is not finite. */
static float itll_features__outputs(const ItllFeaturesInfo* info, const StackPtxLowered* lowered, float* values) {
    size_t num_nonfinite = 0;
    for (size_t i = 0; i < info->num_requests; i++, values += info->num_points) {
        const uint32_t value = lowered->request_values[i];
        const uint32_t stack = value == STACK_PTX_NO_VALUE ? 0 : lowered->value_stacks[value];
        const char* prefix = value == STACK_PTX_NO_VALUE ? "f32" : info->stack_info->stack_literal_prefixes[stack];
        const bool is_f32 = strcmp(prefix, "f32") == 0, is_signed = strcmp(prefix, "s32") == 0;
        for (size_t k = 0; k < info->num_points; k++) {
            uint32_t bits;
            memcpy(&bits, &values[k], sizeof bits);
            if (!is_f32) values[k] = is_signed ? (float)(int32_t)bits : (float)bits;
            num_nonfinite += (size_t)(values[k] - values[k] != 0.0f);
        }
        if (info->is_scaled) itll_features__normalise(info->num_points, values);
        for (size_t k = 0; k < info->num_points; k++) values[k] = itll_features__squash(values[k]);
    }
    const size_t num_outputs = info->num_requests * info->num_points;
    return num_outputs > 0 ? (float)num_nonfinite / (float)num_outputs : 0.0f;
}

/* A node's instruction, or a number past them for another kind, and the instructions on the longest way down from it. */
typedef struct ItllFeaturesNode {
    uint32_t operation, depth;
} ItllFeaturesNode;

/* `seen` has room for each node. The kinds of nodes are hard to predict, so there are few branches on them. */
static void itll_features__structure(
    const ItllFeaturesInfo* info, const StackPtxLowered* lowered, ItllFeaturesNode* seen, float* counts, float* bigrams,
    float* statistics
) {
    const uint32_t num_instructions = (uint32_t)info->stack_info->num_ptx_instructions;
    const uint64_t num_bigrams = info->num_bigrams;
    uint32_t greatest_depth = 0, num_kinds[STACK_PTX_NODE_PTX + 1] = {0, 0, 0, 0};
    float count = 0.0f, sum = 0.0f, squares = 0.0f, least = 1.0f, greatest = -1.0f, unused = 0.0f; /* of constants */
    for (uint32_t i = 0; i < lowered->num_nodes; i++) {
        const StackPtxNode* node = &lowered->nodes[i];
        const bool is_instruction = node->kind == STACK_PTX_NODE_PTX;
        uint32_t depth = 0;
        for (uint32_t k = 0; k < node->num_operands; k++) {
            const ItllFeaturesNode operand = seen[lowered->value_nodes[lowered->operands[node->first_operand + k]]];
            const uint32_t pair = (node->payload << 16 ^ operand.operation) * 0x9e3779b1u;
            *(num_bigrams > 0 ? &bigrams[(size_t)(pair * num_bigrams >> 32)] : &unused) += 1.0f;
            depth = operand.depth > depth ? operand.depth : depth;
        }
        depth += (uint32_t)is_instruction;
        greatest_depth = depth > greatest_depth ? depth : greatest_depth;
        num_kinds[node->kind]++;
        *(is_instruction ? &counts[node->payload] : &unused) += 1.0f;
        seen[i].operation = is_instruction ? node->payload : num_instructions + node->kind;
        seen[i].depth = depth;
        if (node->kind == STACK_PTX_NODE_CONSTANT &&
            strcmp(info->stack_info->stack_literal_prefixes[node->stack_idx], "f32") == 0) {
            float constant;
            memcpy(&constant, &node->payload, sizeof constant);
            constant = itll_features__squash(constant);
            count += 1.0f;
            sum += constant;
            squares += constant * constant;
            least = constant < least ? constant : least;
            greatest = constant > greatest ? constant : greatest;
        }
    }
    const float mean = count > 0.0f ? sum / count : 0.0f, variance = count > 0.0f ? squares / count - mean * mean : 0.0f;
    statistics[ITLL_FEATURES_NUM_INSTRUCTIONS] = (float)lowered->num_instructions;
    statistics[ITLL_FEATURES_DEPTH] = (float)greatest_depth;
    statistics[ITLL_FEATURES_NUM_INPUTS] = (float)(num_kinds[STACK_PTX_NODE_INPUT] + num_kinds[STACK_PTX_NODE_SPECIAL]);
    statistics[ITLL_FEATURES_NUM_CONSTANTS] = (float)num_kinds[STACK_PTX_NODE_CONSTANT];
    statistics[ITLL_FEATURES_USES] = lowered->num_values > 0 ? (float)lowered->num_operands / (float)lowered->num_values : 0.0f;
    statistics[ITLL_FEATURES_CONSTANTS_MEAN] = mean;
    statistics[ITLL_FEATURES_CONSTANTS_DEVIATION] = variance > 0.0f ? sqrtf(variance) : 0.0f;
    statistics[ITLL_FEATURES_CONSTANTS_LEAST] = count > 0.0f ? least : 0.0f;
    statistics[ITLL_FEATURES_CONSTANTS_GREATEST] = count > 0.0f ? greatest : 0.0f;
}

/* Runs the program at the probe points. Outputs are left as they are if it has no CPU semantics. */
static ItllResult itll_features__run(
    const ItllFeaturesInfo* info, const StackPtxLowered* lowered, EvoArena* arena, float* outputs
) {
    size_t num_bytes;
    const PtxVmProgram* program = NULL;
    void** pointers = (void**)evo__take(arena, info->num_requests, sizeof(void*));
    (void)ptx_vm_program_size(lowered, &num_bytes);
    void* memory = evo__take(arena, num_bytes, 1);
    if (memory == NULL) return ITLL_ERROR_INSUFFICIENT_MEMORY;
    const PtxVmResult result =
        ptx_vm_program_init(info->vm_set, info->level, PTX_VM_RUN_STORE, lowered, memory, num_bytes, &program, NULL);
    if (result != PTX_VM_SUCCESS) return result == PTX_VM_ERROR_NO_CPU_MEANING ? ITLL_SUCCESS : ITLL__ERROR(INVALID_VALUE);
    (void)ptx_vm_workspace_size(program, &num_bytes);
    memory = evo__take(arena, num_bytes, 1);
    if (memory == NULL) return ITLL_ERROR_INSUFFICIENT_MEMORY;
    for (size_t i = 0; i < info->num_requests; i++) pointers[i] = outputs + i * info->num_points;
    if (ptx_vm_store(program, info->inputs, info->num_inputs, info->num_points, pointers, memory, num_bytes) != PTX_VM_SUCCESS)
        return ITLL__ERROR(INVALID_VALUE);
    return ITLL_SUCCESS;
}

ItllResult itll_features_of(
    const ItllFeaturesInfo* info, const StackPtxLowered* lowered, void* memory, size_t memory_bytes, size_t* bytes_needed_out,
    float* features_out
) {
    if (info == NULL || lowered == NULL || bytes_needed_out == NULL || features_out == NULL || info->stack_info == NULL ||
        info->vm_set == NULL || (memory == NULL && memory_bytes > 0) || (info->inputs == NULL && info->num_inputs > 0) ||
        lowered->num_requests != info->num_requests)
        return ITLL__ERROR(INVALID_VALUE);
    float* counts = features_out + info->num_requests * info->num_points;
    float* bigrams = counts + info->stack_info->num_ptx_instructions;
    float* statistics = bigrams + info->num_bigrams;
    memset(features_out, 0, itll_features_count(info) * sizeof *features_out);
    EvoArena arena = evo__arena(memory, memory_bytes);
    ItllFeaturesNode* seen = (ItllFeaturesNode*)evo__take(&arena, lowered->num_nodes, sizeof *seen);
    const ItllResult result = itll_features__run(info, lowered, &arena, features_out);
    /* The workspace's size is not known before the program is prepared: twice as much is enough, most of the time. */
    if (result == ITLL_ERROR_INSUFFICIENT_MEMORY) *bytes_needed_out = 2 * arena.num_bytes;
    if (result != ITLL_SUCCESS) return result;
    statistics[ITLL_FEATURES_NONFINITE] = itll_features__outputs(info, lowered, features_out);
    itll_features__structure(info, lowered, seen, counts, bigrams, statistics);
    return ITLL_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif /* ITLL_FEATURES_IMPLEMENTATION */
