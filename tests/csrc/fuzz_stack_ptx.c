/*
 * Fuzz target: any words lower in every mode to a stub of its measured length, and stack_ptx_compile gives that of its mode.
 * fuzz.h says how to run it.
 */

#include "stack_ptx.h"

#include "stack_ptx_set.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 300u
#define MAX_ROUTINES 3u

#include "fuzz.h"

static const StackPtxRegister fuzz_registers[] = {
    {"a", F32}, {"b", F32},  {"z", F32},
    {"u", U32}, {"p", PRED}, {"t", TF32},
    {"s", S32}, {"a", F32},  {"a_name_that_is_longer_than_a_slot", F32},
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

static StackPtxHash check(const Subject* subject, size_t shortage) {
    StackPtxHash hash;
    check_stub(subject, shortage);
    REQUIRE(
        stack_ptx_hash(subject->language, &subject->lowered, subject->workspace, subject->workspace_bytes, &hash) ==
        STACK_PTX_SUCCESS
    );
    return hash;
}

/* stack_ptx_compile and the steps that it is made of give the same result and the same stub. */
static void check_compile(
    const StackPtxLanguageInfo* info, const StackPtxInstruction* words, StackPtxResult expected_result, const char* expected_text,
    size_t shortage
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
#define COMPILE(num_bytes, size)                                                                                                \
    stack_ptx_compile(                                                                                                          \
        &compiler_info, &stack_info, words, info->registers, info->num_registers, routines, info->num_routines, info->requests, \
        info->num_requests, info->limits.execution_limit, workspace, num_bytes, buffer, size, &length                           \
    )
    result = COMPILE(num_bytes, strlen(expected_text) + 1);
    REQUIRE(result == expected_result);
    if (result == STACK_PTX_SUCCESS) {
        REQUIRE(strcmp(buffer, expected_text) == 0 && length == strlen(expected_text));
        if (shortage <= length) REQUIRE(COMPILE(num_bytes, length - shortage) == STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        if (info->limits.max_frame_depth > 0) REQUIRE(COMPILE(num_bytes - 1, 0) == STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    }
#undef COMPILE
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
    hash_apart = check(&subject, shortage);
    num_nodes = subject.lowered.num_nodes;

    REQUIRE(lower(&subject, STACK_PTX_MODE_LENIENT, 0, num_words) == STACK_PTX_SUCCESS);
    hash = check(&subject, shortage);
    REQUIRE(memcmp(&hash, &hash_apart, sizeof hash) == 0);
    REQUIRE(subject.lowered.num_nodes <= num_nodes);
    num_nodes = subject.lowered.num_nodes;

    for (i = STACK_PTX_MODE_STRICT; i <= STACK_PTX_MODE_COMPATIBLE; ++i) {
        if (lower(&subject, (StackPtxMode)i, 0, num_words) == STACK_PTX_SUCCESS) {
            (void)check(&subject, shortage);
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
    check_compile(&info, words, result, text, shortage);

    free(text);
    free(subject.workspace);
    free(memory);
    free(words);
    for (i = 0; i < info.num_routines; ++i) free(routine_words[i]);
    return 0;
}
