/*
 * Fuzz target: any words give an error with its place, or a stub of its measured length; the interpreter refuses
 * the same programs with the same code at the same word.
 * fuzz.h says how to run it.
 */

#define AST_PTX_MAX_INSTRUCTIONS 2000 /* routines multiply: a program of 300 words may run very many */
#define AST_PTX_STACK_DEPTH 20        /* within reach */
#define AST_PTX_ROUTINE_DEPTH 3
#define AST_PTX_IMPLEMENTATION
#include "ast_ptx_interpreter.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 300u
#define MAX_ROUTINES 3u
#define NUM_POINTS 3u

#include "fuzz.h"

static const char* const inputs[] = {"x", "y", "an_input_with_a_long_name"};
enum { NUM_INPUTS = 3 };

static uint8_t next_byte(const uint8_t** data, size_t* size) {
    if (*size == 0) return 0;
    --*size;
    return *(*data)++;
}

/* Nine bytes: eight of a word, and one that says whether they are used unchanged or brought near existing indices. */
static AstPtxInstruction next_word(const uint8_t** data, size_t* size, size_t num_routines) {
    AstPtxInstruction word;
    uint8_t bytes[8];
    const uint8_t kind = next_byte(data, size);
    size_t i;
    for (i = 0; i < 8; ++i) bytes[i] = next_byte(data, size);
    memcpy(&word, bytes, sizeof word);
    if (kind % 64 == 63) return word;
    word.aux = (uint16_t)(word.aux % 3);
    if (kind % 4 < 2) {
        word.instruction_type = kind % 8 < 4 ? AST_PTX_INSTRUCTION_TYPE_INPUT : AST_PTX_INSTRUCTION_TYPE_CONSTANT;
    } else if (kind % 4 == 2) {
        word.instruction_type = AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION;
        word.payload.idx %= AST_PTX_PTX_INSTRUCTION_NUM_ENUMS;
        word.aux = ast_ptx_ptx_instruction_num_args[word.payload.idx];
    } else if (kind % 8 == 3) {
        word.instruction_type = AST_PTX_INSTRUCTION_TYPE_ROUTINE;
        word.payload.idx %= (uint32_t)num_routines + 1;
    } else {
        word.instruction_type = kind % 16 == 7 ? AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG : AST_PTX_INSTRUCTION_TYPE_RETURN;
        word.payload.idx %= 2;
    }
    if (word.instruction_type == AST_PTX_INSTRUCTION_TYPE_INPUT) word.payload.idx %= NUM_INPUTS;
    return word;
}

static void check_text(const AstPtxProgram* program, size_t length, size_t shortage) {
    size_t written = 0;
    /* Exactly the size, so that a sanitizer sees writes past the end. */
    char* buffer = (char*)malloc(length + 1);
    REQUIRE(buffer != NULL);
#define COMPILE(size)                                                                             \
    ast_ptx_compile_program(                                                                      \
        "z", inputs, NUM_INPUTS, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args, \
        AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, program, buffer, size, &written, NULL                  \
    )
    REQUIRE(COMPILE(length + 1) == AST_PTX_SUCCESS);
    REQUIRE(written == length && strlen(buffer) == length);
    free(buffer);
    if (shortage <= length) {
        const size_t too_small = length - shortage;
        buffer = (char*)malloc(too_small + (too_small == 0));
        REQUIRE(buffer != NULL);
        REQUIRE(COMPILE(too_small) == AST_PTX_ERROR_INSUFFICIENT_BUFFER);
        REQUIRE(written == length);
        free(buffer);
    }
#undef COMPILE
}

static void check_values(const AstPtxProgram* program, AstPtxResult expected, const AstPtxPlace* expected_place) {
    static const float points[NUM_INPUTS][NUM_POINTS] = {{0.5f, -3.0f, 1e30f}, {2.0f, 1e-40f, -0.0f}, {1.0f, 100.0f, -7.5f}};
    const float* arrays[NUM_INPUTS];
    float values[NUM_POINTS];
    AstPtxPlace place = {0, 0};
    AstPtxResult result;
    size_t i, k;
    for (i = 0; i < NUM_INPUTS; ++i) arrays[i] = points[i];
    result = ast_ptx_interpret_program(program, arrays, NUM_INPUTS, NUM_POINTS, values, &place);
    if (result == AST_PTX_ERROR_UNSUPPORTED_INSTRUCTION) result = AST_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS;
    REQUIRE(result == expected);
    if (result != AST_PTX_SUCCESS) {
        REQUIRE(place.routine_idx == expected_place->routine_idx && place.word_idx == expected_place->word_idx);
        return;
    }
    for (i = 0; i < NUM_POINTS; ++i) {
        float point[NUM_INPUTS];
        float value;
        for (k = 0; k < NUM_INPUTS; ++k) point[k] = points[k][i];
        REQUIRE(
            ast_ptx_interpret(program->instructions, program->routines, program->num_routines, point, NUM_INPUTS, &value) ==
            AST_PTX_SUCCESS
        );
        REQUIRE(memcmp(&value, &values[i], sizeof value) == 0);
    }
}

static AstPtxInstruction* read_words(const uint8_t** data, size_t* size, size_t num_words, size_t num_routines) {
    /* Exactly the size, so that a sanitizer sees reads past the end. */
    AstPtxInstruction* words = (AstPtxInstruction*)malloc(num_words * sizeof *words + (num_words == 0));
    size_t i;
    REQUIRE(words != NULL);
    for (i = 0; i < num_words; ++i) words[i] = next_word(data, size, num_routines);
    return words;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    AstPtxInstruction* words;
    AstPtxInstruction* routines[MAX_ROUTINES];
    size_t lengths[MAX_ROUTINES];
    AstPtxProgram program;
    AstPtxPlace place = {0, 0};
    AstPtxResult result;
    size_t i, length = 0;
    const size_t shortage = next_byte(&data, &size);

    program.num_routines = next_byte(&data, &size) % (MAX_ROUTINES + 1);
    for (i = 0; i < program.num_routines; ++i) {
        lengths[i] = next_byte(&data, &size) % 12;
        routines[i] = read_words(&data, &size, lengths[i], program.num_routines);
    }
    program.routines = (const AstPtxInstruction* const*)routines;
    program.routine_lengths = lengths;
    program.num_instructions = size / 9 < MAX_WORDS ? size / 9 : MAX_WORDS;
    words = read_words(&data, &size, program.num_instructions, program.num_routines);
    program.instructions = words;

    result = ast_ptx_compile_program(
        "z", inputs, NUM_INPUTS, ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args,
        AST_PTX_PTX_INSTRUCTION_NUM_ENUMS, &program, NULL, 0, &length, &place
    );
    if (result == AST_PTX_SUCCESS) {
        check_text(&program, length, shortage);
    } else {
        REQUIRE(result > AST_PTX_ERROR_INSUFFICIENT_BUFFER && result < AST_PTX_RESULT_NUM_ELEMS);
        if (place.routine_idx == AST_PTX_MAIN_PROGRAM)
            REQUIRE(place.word_idx <= program.num_instructions);
        else
            REQUIRE(place.routine_idx < program.num_routines && place.word_idx <= lengths[place.routine_idx]);
    }
    check_values(&program, result, &place);

    free(words);
    for (i = 0; i < program.num_routines; ++i) free(routines[i]);
    return 0;
}
