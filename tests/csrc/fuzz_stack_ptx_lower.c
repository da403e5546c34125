/*
 * Fuzz target: any words lower, in every mode, to a valid lowered form, and its stub has its measured length.
 * fuzz.h says how to run it.
 */

#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"

#include "stack_ptx_set.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 300u
#define MAX_ROUTINES 3u

#define FUZZ_MAX_BYTES (32 + 9 * (MAX_WORDS + 32 * MAX_ROUTINES))
#include "fuzz.h"

static const StackPtxRegister fuzz_registers[] = {
    {"a", F32}, {"b", F32}, {"z", F32}, {"u", U32}, {"p", PRED}, {"t", TF32}, {"s", S32}, {"a", F32},
};
enum { NUM_FUZZ_REGISTERS = sizeof fuzz_registers / sizeof fuzz_registers[0] };

static uint8_t next_byte(const uint8_t** data, size_t* size) {
    if (*size == 0) return 0;
    --*size;
    return *(*data)++;
}

/* Nine bytes: eight of a word, and one that says whether they are used unchanged or brought near existing indices. */
static StackPtxInstruction next_word(const uint8_t** data, size_t* size) {
    StackPtxInstruction word;
    uint8_t bytes[8];
    uint8_t kind = next_byte(data, size);
    size_t i;
    for (i = 0; i < 8; ++i) bytes[i] = next_byte(data, size);
    memcpy(&word, bytes, sizeof word);
    if (kind % 16 != 0) {
        word.instruction_type = (uint16_t)(word.instruction_type % STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS);
        word.aux = (uint16_t)(word.aux % (NUM_STACKS + 1));
        word.payload.u %= (uint32_t)NUM_INSTRUCTIONS + 2;
    }
    if (kind % 4 == 1) word.instruction_type = kind % 8 == 1 ? STACK_PTX_INSTRUCTION_TYPE_PTX : STACK_PTX_INSTRUCTION_TYPE_INPUT;
    return word;
}

static uint32_t num_elements(uint32_t arg_type) {
    return arg_types[arg_type].num_vec_elems == 0 ? 1 : arg_types[arg_type].num_vec_elems;
}

static void check_operands(const StackPtxLowered* lowered, const StackPtxNode* node) {
    const StackPtxPtxInstructionDescriptor* descriptor = &descriptors[node->payload];
    uint32_t i, k, operand = node->first_operand, value = node->first_value;
    for (i = 0; i < STACK_PTX_MAX_NUM_ARGS && descriptor->arg_types[i] < NUM_ARGS; ++i) {
        for (k = 0; k < num_elements(descriptor->arg_types[i]); ++k, ++operand) {
            REQUIRE(lowered->operands[operand] < node->first_value);
            REQUIRE(lowered->value_stacks[lowered->operands[operand]] == arg_types[descriptor->arg_types[i]].stack_idx);
        }
    }
    REQUIRE(operand == node->first_operand + node->num_operands);
    for (i = 0; i < STACK_PTX_MAX_NUM_RETS && descriptor->ret_types[i] < NUM_ARGS; ++i)
        for (k = 0; k < num_elements(descriptor->ret_types[i]); ++k, ++value)
            REQUIRE(lowered->value_stacks[value] == arg_types[descriptor->ret_types[i]].stack_idx);
    REQUIRE(value == node->first_value + node->num_values);
}

static void check_lowered(const StackPtxLanguageInfo* info, const StackPtxLowered* lowered) {
    static uint8_t is_used[1u << 16];
    uint32_t i, k, num_values = 0, num_operands = 0, num_instructions = 0;
    REQUIRE(lowered->num_values <= info->limits.max_nodes && lowered->num_values <= sizeof is_used);
    REQUIRE(lowered->num_requests == info->num_requests);
    memset(is_used, 0, lowered->num_values);
    for (i = 0; i < lowered->num_requests; ++i) {
        const uint32_t value = lowered->request_values[i];
        if (value != STACK_PTX_NO_VALUE) {
            REQUIRE(value < lowered->num_values);
            REQUIRE(lowered->value_stacks[value] == info->registers[info->requests[i]].stack_idx);
            is_used[value] = 1;
        }
    }
    for (i = 0; i < lowered->num_nodes; ++i) {
        const StackPtxNode* node = &lowered->nodes[i];
        REQUIRE(node->first_value == num_values && node->num_values > 0);
        REQUIRE(node->first_operand == num_operands);
        for (k = 0; k < node->num_values; ++k) REQUIRE(lowered->value_nodes[num_values + k] == i);
        REQUIRE(lowered->value_stacks[num_values] == node->stack_idx);
        num_values += node->num_values;
        num_operands += node->num_operands;
        num_instructions += node->kind == STACK_PTX_NODE_PTX;
        for (k = node->first_operand; k < num_operands; ++k) is_used[lowered->operands[k]] = 1;
        if (node->kind == STACK_PTX_NODE_PTX)
            check_operands(lowered, node);
        else
            REQUIRE(node->num_operands == 0 && node->num_values == 1);
    }
    REQUIRE(num_values == lowered->num_values);
    REQUIRE(num_operands == lowered->num_operands);
    REQUIRE(num_instructions == lowered->num_instructions);
    /* Every node is needed by a request. */
    for (i = 0; i < lowered->num_nodes; ++i) {
        uint32_t is_needed = 0;
        for (k = 0; k < lowered->nodes[i].num_values; ++k) is_needed |= is_used[lowered->nodes[i].first_value + k];
        REQUIRE(is_needed);
    }
}

/* What is lowered, and where to. */
typedef struct Subject {
    const StackPtxLanguage* language;
    const StackPtxInstruction* words;
    void* workspace;
    size_t workspace_bytes;
    StackPtxLowered lowered;
    StackPtxPlace place;
} Subject;

static StackPtxResult lower(Subject* subject, StackPtxMode mode, uint32_t flags, size_t num_words) {
    return stack_ptx_lower(
        subject->language, mode, flags, subject->words, num_words, subject->workspace, subject->workspace_bytes,
        &subject->lowered, &subject->place
    );
}

static StackPtxResult emit(const Subject* subject, char* buffer, size_t size, size_t* length) {
    return stack_ptx_emit(
        subject->language, &subject->lowered, subject->workspace, subject->workspace_bytes, buffer, size, length
    );
}

static void check_stub(const Subject* subject, size_t shortage) {
    size_t length = 0, written = 0;
    char* buffer;
    REQUIRE(emit(subject, NULL, 0, &length) == STACK_PTX_SUCCESS);
    /* Exactly the size, so that a sanitizer sees writes past the end. */
    buffer = (char*)malloc(length + 1);
    REQUIRE(buffer != NULL);
    REQUIRE(emit(subject, buffer, length + 1, &written) == STACK_PTX_SUCCESS);
    REQUIRE(written == length && strlen(buffer) == length);
    if (shortage <= length) {
        REQUIRE(emit(subject, buffer, length - shortage, &written) == STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        REQUIRE(written == length);
    }
    free(buffer);
}

static StackPtxHash check(const StackPtxLanguageInfo* info, const Subject* subject, size_t shortage) {
    StackPtxHash hash;
    check_lowered(info, &subject->lowered);
    check_stub(subject, shortage);
    REQUIRE(
        stack_ptx_hash(subject->language, &subject->lowered, subject->workspace, subject->workspace_bytes, &hash) ==
        STACK_PTX_SUCCESS
    );
    return hash;
}

/* stack_ptx_compile and the steps that it is made of give the same result and the same stub. */
static void check_compile(
    const StackPtxLanguageInfo* info, const StackPtxInstruction* words, StackPtxResult expected_result, const char* expected_text
) {
    StackPtxCompilerInfo compiler_info;
    const StackPtxInstruction* routines[MAX_ROUTINES];
    size_t num_bytes = 0, length = 0, i;
    StackPtxResult result;
    void* workspace;
    char* buffer;
    compiler_info.max_ast_size = info->limits.max_nodes;
    compiler_info.max_ast_to_visit_stack_depth = 0;
    compiler_info.stack_size = info->limits.stack_size;
    compiler_info.max_frame_depth = info->limits.max_frame_depth;
    compiler_info.store_size = info->limits.store_size;
    for (i = 0; i < info->num_routines; ++i) routines[i] = info->routines[i];
    REQUIRE(stack_ptx_compile_workspace_size(&compiler_info, &stack_info, &num_bytes) == STACK_PTX_SUCCESS);
    workspace = malloc(num_bytes);
    buffer = (char*)malloc(strlen(expected_text) + 1);
    REQUIRE(workspace != NULL && buffer != NULL);
    result = stack_ptx_compile(
        &compiler_info, &stack_info, words, info->registers, info->num_registers, routines, info->num_routines, info->requests,
        info->num_requests, info->limits.execution_limit, workspace, num_bytes, buffer, strlen(expected_text) + 1, &length
    );
    REQUIRE(result == expected_result);
    REQUIRE(result != STACK_PTX_SUCCESS || strcmp(buffer, expected_text) == 0);
    free(buffer);
    free(workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    StackPtxInstruction* words;
    StackPtxInstruction* routine_words[MAX_ROUTINES];
    size_t routine_lengths[MAX_ROUTINES];
    size_t requests[4];
    StackPtxLanguageInfo info;
    Subject subject;
    StackPtxHash hash, hash_apart;
    StackPtxResult result;
    size_t i, k, num_words, length = 0, language_bytes = 0, shortage;
    uint32_t num_nodes;
    char* text;
    void* memory;

    memset(&info, 0, sizeof info);
    info.stack_info = &stack_info;
    info.traits = &traits;
    info.limits.stack_size = next_byte(&data, &size) % 24;
    info.limits.max_nodes = next_byte(&data, &size) * 4u;
    info.limits.max_frame_depth = next_byte(&data, &size) % 5;
    info.limits.store_size = next_byte(&data, &size) % 6;
    info.limits.execution_limit = next_byte(&data, &size) * 8u;
    shortage = next_byte(&data, &size);
    info.registers = fuzz_registers;
    info.num_registers = NUM_FUZZ_REGISTERS;
    info.num_requests = next_byte(&data, &size) % 5;
    for (i = 0; i < info.num_requests; ++i) requests[i] = next_byte(&data, &size) % NUM_FUZZ_REGISTERS;
    info.requests = requests;
    info.num_routines = next_byte(&data, &size) % (MAX_ROUTINES + 1);
    for (i = 0; i < info.num_routines; ++i) {
        routine_lengths[i] = next_byte(&data, &size) % 32;
        routine_words[i] = (StackPtxInstruction*)malloc((routine_lengths[i] + 1) * sizeof *routine_words[i]);
        REQUIRE(routine_words[i] != NULL);
        for (k = 0; k < routine_lengths[i]; ++k) routine_words[i][k] = next_word(&data, &size);
        /* For stack_ptx_compile, which knows no lengths. */
        memset(&routine_words[i][k], 0, sizeof routine_words[i][k]);
        routine_words[i][k].instruction_type = STACK_PTX_INSTRUCTION_TYPE_RETURN;
        ++routine_lengths[i];
    }
    info.routines = (const StackPtxInstruction* const*)routine_words;
    info.routine_lengths = routine_lengths;

    num_words = size / 9 < MAX_WORDS ? size / 9 : MAX_WORDS;
    /* Of exactly the size, and a RETURN for stack_ptx_compile. */
    words = (StackPtxInstruction*)malloc((num_words + 1) * sizeof *words);
    REQUIRE(words != NULL);
    for (i = 0; i < num_words; ++i) words[i] = next_word(&data, &size);
    memset(&words[num_words], 0, sizeof words[num_words]);
    words[num_words].instruction_type = STACK_PTX_INSTRUCTION_TYPE_RETURN;

    REQUIRE(stack_ptx_language_size(&info, &language_bytes) == STACK_PTX_SUCCESS);
    memory = malloc(language_bytes);
    REQUIRE(memory != NULL);
    REQUIRE(stack_ptx_language_init(&info, memory, language_bytes, &subject.language) == STACK_PTX_SUCCESS);
    REQUIRE(stack_ptx_workspace_size(subject.language, &subject.workspace_bytes) == STACK_PTX_SUCCESS);
    subject.words = words;
    subject.workspace = malloc(subject.workspace_bytes);
    REQUIRE(subject.workspace != NULL);

    REQUIRE(lower(&subject, STACK_PTX_MODE_LENIENT, STACK_PTX_FLAG_NO_VALUE_NUMBERING, num_words) == STACK_PTX_SUCCESS);
    hash_apart = check(&info, &subject, shortage);
    num_nodes = subject.lowered.num_nodes;

    REQUIRE(lower(&subject, STACK_PTX_MODE_LENIENT, 0, num_words) == STACK_PTX_SUCCESS);
    hash = check(&info, &subject, shortage);
    REQUIRE(memcmp(&hash, &hash_apart, sizeof hash) == 0);
    REQUIRE(subject.lowered.num_nodes <= num_nodes);
    num_nodes = subject.lowered.num_nodes;

    for (i = STACK_PTX_MODE_STRICT; i <= STACK_PTX_MODE_COMPATIBLE; ++i) {
        if (lower(&subject, (StackPtxMode)i, 0, num_words) == STACK_PTX_SUCCESS) {
            (void)check(&info, &subject, shortage);
            REQUIRE(subject.lowered.num_nodes == num_nodes);
        } else {
            const size_t routine = subject.place.routine_idx;
            REQUIRE(subject.place.word_idx < (routine == STACK_PTX_MAIN_PROGRAM ? num_words : routine_lengths[routine]));
        }
    }

    result = lower(&subject, STACK_PTX_MODE_COMPATIBLE, STACK_PTX_FLAG_NO_VALUE_NUMBERING, num_words + 1);
    if (result == STACK_PTX_SUCCESS) REQUIRE(emit(&subject, NULL, 0, &length) == STACK_PTX_SUCCESS);
    text = (char*)calloc(length + 1, 1);
    REQUIRE(text != NULL);
    if (result == STACK_PTX_SUCCESS) REQUIRE(emit(&subject, text, length + 1, &length) == STACK_PTX_SUCCESS);
    check_compile(&info, words, result, text);

    free(text);
    free(subject.workspace);
    free(memory);
    free(words);
    for (i = 0; i < info.num_routines; ++i) free(routine_words[i]);
    return 0;
}
