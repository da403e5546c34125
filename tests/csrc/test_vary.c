/*
 * Tests of vary.h: exact tables, ranges and errors, sizes of memory, agreement of its code paths. tests/unit/native/vary tests
 * the laws of the operators by statistics.
 *
 * Allocations are exact, so that a sanitizer sees any access beyond rows, tables and outputs.
 */

#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#define VARY_IMPLEMENTATION
#include "vary.h"

#include "check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_PTX = 1, TYPE_CONSTANT = 2, TYPE_INPUT = 3, TYPE_META_CONSTANT = 6, TYPE_RETURN = 10 };
enum { F32 = 0, U32 = 1, S32 = 2 };

static uint64_t make_word(uint64_t type, uint64_t stack, uint64_t payload) { return type | stack << 16 | payload << 32; }

static void* allocate(size_t num_bytes) {
    void* memory = malloc(num_bytes);
    if (memory == NULL) {
        (void)fprintf(stderr, "no memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static VaryEntry make_entry(uint64_t word, double weight, uint32_t draw, double first, double second) {
    VaryEntry entry;
    memset(&entry, 0, sizeof entry);
    entry.word = word;
    entry.weight = weight;
    entry.draw = draw;
    entry.params[0] = first;
    entry.params[1] = second;
    entry.num_words = 1;
    return entry;
}

/* Literals of all kinds, and each way to draw. */
enum { NUM_ENTRIES = 8 };
static void fill_vocabulary(VaryEntry* entries) {
    entries[0] = make_entry(make_word(TYPE_PTX, 0, 5), 3.0, VARY_DRAW_LITERAL, 0.0, 0.0);
    entries[1] = make_entry(make_word(TYPE_PTX, 0, 7), 1.0, VARY_DRAW_LITERAL, 0.0, 0.0);
    entries[2] = make_entry(make_word(TYPE_INPUT, 0, 0), 2.0, VARY_DRAW_LITERAL, 0.0, 0.0);
    entries[3] = make_entry(make_word(TYPE_CONSTANT, F32, 0), 1.0, VARY_DRAW_GAUSSIAN, 0.5, 2.0);
    entries[4] = make_entry(make_word(TYPE_CONSTANT, F32, 0), 0.5, VARY_DRAW_UNIFORM, -1.0, 1.0);
    entries[5] = make_entry(make_word(TYPE_CONSTANT, U32, 0), 0.5, VARY_DRAW_INTEGER, 0.0, 10.0);
    entries[6] = make_entry(make_word(TYPE_CONSTANT, S32, 0), 0.25, VARY_DRAW_INTEGER, -3.0, 4.0);
    entries[7] = make_entry(make_word(TYPE_META_CONSTANT, 0, 0), 0.25, VARY_DRAW_INTEGER, 0.0, 4.0);
}

static VaryOptions make_options(void) {
    VaryOptions options;
    int i;
    vary_default_options(&options);
    for (i = 0; i < VARY_NUM_OPERATORS; i++) options.operator_weights[i] = 1.0;
    options.float_stacks = 1u << F32;
    options.unsigned_stacks = 1u << U32;
    options.signed_stacks = 1u << S32;
    options.initial_min_length = 0;
    options.initial_max_length = 40;
    options.rates[VARY_RATE_UMAD_ADDITION_RATE] = 0.09;
    options.rates[VARY_RATE_UMAD_DELETION_RATE] = 0.09 / 1.09;
    options.rates[VARY_RATE_ALTERNATION_RATE] = 0.1;
    options.rates[VARY_RATE_ALTERNATION_DEVIATION] = 10.0;
    options.rates[VARY_RATE_PERTURBATION_RATE] = 0.1;
    options.rates[VARY_RATE_PERTURBATION_RELATIVE] = 0.1;
    options.rates[VARY_RATE_PERTURBATION_ABSOLUTE] = 0.1;
    options.rates[VARY_RATE_REPLACEMENT_RATE] = 0.05;
    return options;
}

/* Tables in memory of exactly their size, aligned so that they begin with it; to be freed. */
static const VaryTables* make_tables(const VaryEntry* entries, size_t num_entries, const VaryOptions* options) {
    const VaryTables* tables = NULL;
    size_t num_bytes = 0;
    void* memory = NULL;
    CHECK_UINT(vary_tables_size(num_entries, &num_bytes), VARY_SUCCESS);
    CHECK_UINT(posix_memalign(&memory, 64, num_bytes), 0);
    memset(memory, 0xa5, num_bytes);
    CHECK_UINT(vary_init(entries, num_entries, options, memory, num_bytes, &tables), VARY_SUCCESS);
    CHECK((const void*)tables == memory);
    return tables;
}

static const VaryTables* make_default_tables(const VaryOptions* options) {
    VaryEntry entries[NUM_ENTRIES];
    fill_vocabulary(entries);
    return make_tables(entries, NUM_ENTRIES, options);
}

static void free_tables(const VaryTables* tables) { free((void*)(uintptr_t)(const void*)tables); }

static uint64_t* make_rows(size_t num_rows, uint32_t max_length) {
    uint64_t* rows = (uint64_t*)allocate(num_rows * max_length * sizeof(uint64_t));
    memset(rows, 0x5a, num_rows * max_length * sizeof(uint64_t));
    return rows;
}

/* FNV-1a over words, low byte first. */
static uint64_t hash_words(const uint64_t* words, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i;
    int byte;
    for (i = 0; i < count; i++)
        for (byte = 0; byte < 8; byte++) hash = (hash ^ (words[i] >> 8 * byte & 0xffu)) * UINT64_C(0x100000001b3);
    return hash;
}

static VaryBatch make_batch(
    uint32_t generation, const uint64_t* pool, size_t num_rows, uint32_t max_length, uint64_t* words, size_t num_offspring
) {
    VaryBatch batch;
    memset(&batch, 0, sizeof batch);
    batch.seed = 1;
    batch.generation = generation;
    batch.num_offspring = num_offspring;
    batch.max_length = max_length;
    batch.pool = pool;
    batch.num_rows = num_rows;
    batch.words_out = words;
    return batch;
}

static int is_valid_row(const uint64_t* row, uint32_t max_length) {
    uint32_t length = 0, i;
    while (length < max_length && (row[length] & 0xffffu) != TYPE_RETURN) length++;
    for (i = 0; i < length; i++) {
        const int is_f32_constant = (row[i] & 0xffffffffu) == make_word(TYPE_CONSTANT, F32, 0);
        if (is_f32_constant && (row[i] >> 32 & 0x7f800000u) == 0x7f800000u) return 0;
    }
    if (length < max_length && row[length] != TYPE_RETURN) return 0;
    for (i = length + 1; i < max_length; i++)
        if (row[i] != 0) return 0;
    return 1;
}

/* ---- random numbers ---- */

/* The known-answer vectors for philox4x32 with 10 rounds that come with Random123. */
TEST(test_philox_gives_the_published_answers) {
    static const char* const vectors[3] = {
        "00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8",
        "ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd",
        "243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1"
    };
    int i, word;
    for (i = 0; i < 3; i++) {
        char* at = (char*)(uintptr_t)vectors[i];
        uint32_t words[10], block[4]; /* counter, key, answer */
        for (word = 0; word < 10; word++) words[word] = (uint32_t)strtoul(at, &at, 16);
        vary_philox(words + 4, words, block);
        for (word = 0; word < 4; word++) CHECK_UINT(block[word], words[6 + word]);
    }
}

/* The tail probability of the result, by libm, is the one asked for: P(Z > z + e) = P(Z > z) - e p(z). */
TEST(test_gaussian_is_the_quantile_to_one_part_in_a_million) {
    uint32_t u, octave;
    for (octave = 0; octave < 31; octave++) {
        const uint32_t start = (1u << octave) - 1, step = 1 + (1u << octave) / 1009;
        for (u = start; u < 2 * start + 1; u += step) {
            const double z = (double)vary_gaussian(2 * u + 1), wanted = (2.0 * u + 1.0) / 8589934592.0;
            const double density = exp(-0.5 * z * z) * 0.3989422804014327;
            CHECK(fabs(0.5 * erfc(z * 0.7071067811865476) - wanted) <= 1.01e-6 * density);
            CHECK(vary_gaussian(2 * u) == -vary_gaussian(2 * u + 1));
        }
    }
}

/* ---- rows ---- */

TEST(test_length_is_the_first_return_or_the_row) {
    uint32_t max_length, place;
    for (max_length = 1; max_length < 150; max_length += 1 + max_length / 40) {
        uint64_t* row = make_rows(1, max_length);
        for (place = 0; place < max_length; place++) row[place] = make_word(TYPE_PTX, TYPE_RETURN, TYPE_RETURN);
        CHECK_UINT(vary_program_length(row, max_length), max_length);
        for (place = max_length; place-- > 0;) {
            row[place] = make_word(TYPE_RETURN, 3, 99);
            CHECK_UINT(vary_program_length(row, max_length), place);
        }
        free(row);
    }
}

/* Every length of row and every operator, in memory of exactly the size. A batch of one takes the paths that check every write, a
 * large one the unchecked ones: both give the same. */
TEST(test_every_row_is_valid_and_does_not_depend_on_its_batch) {
    enum { NUM_PROGRAMS = 37, NUM_OFFSPRING = 83 };
    static const double addition_rates[] = {0.09, 0.9};
    uint32_t max_length;
    int only, i;
    for (max_length = 1; max_length <= 140; max_length += 1 + max_length / 8) {
        for (only = -1; only < VARY_NUM_OPERATORS; only++) {
            VaryOptions options = make_options();
            uint64_t *pool = make_rows(NUM_PROGRAMS, max_length), *words = make_rows(NUM_OFFSPRING, max_length),
                     *row = make_rows(1, max_length);
            int64_t parents[2 * NUM_OFFSPRING], row_parents[2];
            uint8_t operators[NUM_OFFSPRING], row_operator;
            uint32_t row_length;
            VaryBatch batch = make_batch(1, pool, NUM_PROGRAMS, max_length, words, NUM_OFFSPRING);
            const VaryTables* tables;
            for (i = 0; only >= 0 && i < VARY_NUM_OPERATORS; i++) options.operator_weights[i] = i == only;
            options.rates[VARY_RATE_UMAD_ADDITION_RATE] = addition_rates[max_length % 2];
            options.initial_max_length = max_length;
            tables = make_default_tables(&options);
            CHECK_UINT(vary_random_programs(tables, 5, 0, 0, NUM_PROGRAMS, max_length, pool), VARY_SUCCESS);
            for (i = 0; i < NUM_PROGRAMS; i++) CHECK(is_valid_row(pool + (size_t)i * max_length, max_length));
            batch.first_slot = 1000;
            batch.parents_out = parents;
            batch.operators_out = operators;
            CHECK_UINT(vary_offspring(tables, &batch), VARY_SUCCESS);
            batch.num_offspring = 1;
            batch.words_out = row;
            for (i = 0; i < NUM_OFFSPRING; i++) {
                const uint64_t* whole = words + (size_t)i * max_length;
                CHECK(is_valid_row(whole, max_length));
                CHECK(parents[2 * i] >= 0 && parents[2 * i] < NUM_PROGRAMS);
                CHECK(parents[2 * i + 1] >= -1 && parents[2 * i + 1] < NUM_PROGRAMS && parents[2 * i + 1] != parents[2 * i]);
                CHECK((parents[2 * i + 1] == -1) == (vary__operators[operators[i]].num_parents == 1));
                CHECK(only < 0 || operators[i] == only || operators[i] == VARY_OPERATOR_UMAD);
                batch.first_slot = 1000 + (uint32_t)i;
                batch.parents_out = row_parents;
                batch.operators_out = &row_operator;
                batch.lengths_out = NULL;
                CHECK_UINT(vary_offspring(tables, &batch), VARY_SUCCESS);
                CHECK(memcmp(row, whole, max_length * sizeof *row) == 0);
                CHECK(memcmp(row_parents, parents + 2 * i, sizeof row_parents) == 0);
                CHECK_UINT(row_operator, operators[i]);
                batch.parents_out = NULL;
                batch.operators_out = NULL;
                batch.lengths_out = &row_length;
                CHECK_UINT(vary_offspring(tables, &batch), VARY_SUCCESS);
                CHECK_UINT(row_length, vary_program_length(whole, max_length));
                CHECK(memcmp(row, whole, row_length * sizeof *row) == 0);
            }
            free_tables(tables);
            free(pool);
            free(words);
            free(row);
        }
    }
}

/* ---- operators at the ends of their ranges ---- */

/* Offspring of one program by one operator. */
static void breed(
    const VaryOptions* options, int operator_code, const uint64_t* program, uint32_t max_length, size_t num_offspring,
    uint64_t* words, uint8_t* operators
) {
    VaryBatch batch = make_batch(1, program, 1, max_length, words, num_offspring);
    VaryOptions only = *options;
    const VaryTables* tables;
    int i;
    for (i = 0; i < VARY_NUM_OPERATORS; i++) only.operator_weights[i] = i == operator_code;
    tables = make_default_tables(&only);
    batch.operators_out = operators;
    CHECK_UINT(vary_offspring(tables, &batch), VARY_SUCCESS);
    free_tables(tables);
}

TEST(test_an_operator_with_nothing_to_act_on_gives_way_to_umad) {
    enum { ROW = 8, NUM_OFFSPRING = 10 };
    const VaryOptions options = make_options();
    uint64_t *program = make_rows(1, ROW), *words = make_rows(NUM_OFFSPRING, ROW);
    uint8_t operators[NUM_OFFSPRING];
    int operator_code, i;
    /* No program at all: one word. */
    program[0] = TYPE_RETURN;
    for (operator_code = 0; operator_code < VARY_NUM_OPERATORS; operator_code++) {
        breed(&options, operator_code, program, ROW, NUM_OFFSPRING, words, operators);
        for (i = 0; i < NUM_OFFSPRING; i++) {
            CHECK_UINT(operators[i], VARY_OPERATOR_UMAD);
            CHECK_UINT(vary_program_length(words + (size_t)i * ROW, ROW), 1);
        }
    }
    /* Neither a constant nor a second parent. */
    program[0] = make_word(TYPE_PTX, 0, 1);
    program[1] = make_word(TYPE_CONSTANT, 60, 1);
    program[2] = TYPE_RETURN;
    for (operator_code = VARY_OPERATOR_ALTERNATION; operator_code <= VARY_OPERATOR_PERTURBATION; operator_code++) {
        breed(&options, operator_code, program, ROW, NUM_OFFSPRING, words, operators);
        for (i = 0; i < NUM_OFFSPRING; i++) CHECK_UINT(operators[i], VARY_OPERATOR_UMAD);
    }
    breed(&options, VARY_OPERATOR_REPLACEMENT, program, ROW, NUM_OFFSPRING, words, operators);
    for (i = 0; i < NUM_OFFSPRING; i++) CHECK_UINT(operators[i], VARY_OPERATOR_REPLACEMENT);
    free(program);
    free(words);
}

static float payload_f32(uint64_t word) {
    const uint32_t bits = (uint32_t)(word >> 32);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TEST(test_perturbed_constants_stay_in_range_and_change) {
    enum { ROW = 8, NUM_OFFSPRING = 200 };
    /* Greatest f32, its negative, subnormal, infinity and NaN (as no operator makes them), u32 and s32 at their ends. */
    static const uint64_t payloads[ROW] = {0x7f7fffffu, 0xff7fffffu, 0x00000001u, 0x7f800000u,
                                           0x7fc00000u, 0xffffffffu, 0x00000000u, 0x80000000u};
    static const uint64_t stacks[ROW] = {F32, F32, F32, F32, F32, U32, U32, S32};
    int num_f32_at_edge = 0, num_s32_at_edge = 0;
    VaryOptions options = make_options();
    uint64_t *program = make_rows(1, ROW), *words = make_rows(NUM_OFFSPRING, ROW);
    int i, j;
    for (j = 0; j < ROW; j++) program[j] = make_word(TYPE_CONSTANT, stacks[j], payloads[j]);
    options.rates[VARY_RATE_PERTURBATION_RATE] = 1.0;
    options.rates[VARY_RATE_PERTURBATION_RELATIVE] = 0.5;
    options.rates[VARY_RATE_PERTURBATION_ABSOLUTE] = 0.25;
    breed(&options, VARY_OPERATOR_PERTURBATION, program, ROW, NUM_OFFSPRING, words, NULL);
    for (i = 0; i < NUM_OFFSPRING; i++) {
        const uint64_t* row = words + (size_t)i * ROW;
        CHECK(is_valid_row(row, ROW));
        for (j = 0; j < ROW; j++) {
            CHECK_UINT(row[j] & 0xffffffffu, program[j] & 0xffffffffu);
            if (j < 5) CHECK(isfinite(payload_f32(row[j])));
            if (j >= 2) CHECK(row[j] != program[j]);
        }
        for (j = 2; j < 5; j++) CHECK(fabsf(payload_f32(row[j])) <= 0.25f * 6.34f);
        CHECK(payload_f32(row[0]) > 0.0f || payload_f32(row[0]) < FLT_MAX * 6.0f);
    }
    /* A step that would leave the range ends at its edge: here half of the steps of f32, as their deviation stays finite, and all
     * steps of s32 but those with |z| < 0.02. */
    options.rates[VARY_RATE_PERTURBATION_RELATIVE] = 100.0;
    breed(&options, VARY_OPERATOR_PERTURBATION, program, ROW, NUM_OFFSPRING, words, NULL);
    for (i = 0; i < NUM_OFFSPRING; i++) {
        const uint64_t first = words[i * ROW] >> 32, last = words[i * ROW + 7] >> 32;
        CHECK(is_valid_row(words + (size_t)i * ROW, ROW));
        num_f32_at_edge += first == 0x7f7fffffu || first == 0xff7fffffu;
        num_s32_at_edge += last == 0x7fffffffu || last == 0x80000001u;
    }
    CHECK(num_f32_at_edge > NUM_OFFSPRING / 3);
    CHECK(num_s32_at_edge > NUM_OFFSPRING * 9 / 10);
    free(program);
    free(words);
}

/* ---- errors ---- */

static VaryResult init_result(const VaryEntry* entries, size_t num_entries, const VaryOptions* options) {
    const VaryTables* tables = NULL;
    size_t num_bytes = 0;
    VaryResult result = vary_tables_size(num_entries, &num_bytes);
    void* memory;
    if (result != VARY_SUCCESS) return result;
    memory = allocate(num_bytes);
    result = vary_init(entries, num_entries, options, memory, num_bytes, &tables);
    CHECK((tables != NULL) == (result == VARY_SUCCESS));
    free(memory);
    return result;
}

TEST(test_wrong_entries_are_refused_by_their_code) {
    static const struct {
        uint64_t word;
        double weight;
        uint32_t draw;
        double first, second;
        VaryResult result;
    } cases[] = {
        {TYPE_RETURN, 1.0, VARY_DRAW_LITERAL, 0, 0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_RETURN, 1.0, VARY_DRAW_INTEGER, 0, 4, VARY_ERROR_INVALID_ENTRY},
        {TYPE_PTX, -1.0, VARY_DRAW_LITERAL, 0, 0, VARY_ERROR_INVALID_WEIGHT},
        {TYPE_PTX, HUGE_VAL, VARY_DRAW_LITERAL, 0, 0, VARY_ERROR_INVALID_WEIGHT},
        {TYPE_PTX, 0.0, VARY_DRAW_LITERAL, 0, 0, VARY_ERROR_EMPTY_VOCABULARY},
        {TYPE_PTX, 1.0, VARY_NUM_DRAWS, 0, 0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_PTX, 1.0, VARY_DRAW_GAUSSIAN, 0, 1, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT | U32 << 16, 1.0, VARY_DRAW_GAUSSIAN, 0, 1, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT | 70 << 16, 1.0, VARY_DRAW_GAUSSIAN, 0, 1, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT, 1.0, VARY_DRAW_GAUSSIAN, 0, -1, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT, 1.0, VARY_DRAW_GAUSSIAN, HUGE_VAL, 1, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT, 1.0, VARY_DRAW_UNIFORM, 1, 0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT, 1.0, VARY_DRAW_UNIFORM, -3e38, 3e38, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT, 1.0, VARY_DRAW_INTEGER, 0, 4, VARY_ERROR_INVALID_ENTRY},
        {TYPE_META_CONSTANT, 1.0, VARY_DRAW_INTEGER, 0, 0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_META_CONSTANT, 1.0, VARY_DRAW_INTEGER, 0.5, 4, VARY_ERROR_INVALID_ENTRY},
        {TYPE_META_CONSTANT, 1.0, VARY_DRAW_INTEGER, -0.5, 4, VARY_ERROR_INVALID_ENTRY},
        {TYPE_META_CONSTANT, 1.0, VARY_DRAW_INTEGER, 0, 4294967297.0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_META_CONSTANT, 1.0, VARY_DRAW_INTEGER, -2147483648.0, 2147483649.0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_META_CONSTANT, 1.0, VARY_DRAW_INTEGER, 0, 4294967296.0, VARY_SUCCESS},
        {TYPE_CONSTANT | S32 << 16, 1.0, VARY_DRAW_INTEGER, -2147483648.0, 2147483648.0, VARY_SUCCESS},
        {TYPE_CONSTANT | (uint64_t)0x7f800000u << 32, 1.0, VARY_DRAW_LITERAL, 0, 0, VARY_ERROR_INVALID_ENTRY},
        {TYPE_CONSTANT | U32 << 16 | (uint64_t)0x7f800000u << 32, 1.0, VARY_DRAW_LITERAL, 0, 0, VARY_SUCCESS},
    };
    const VaryOptions options = make_options();
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        VaryEntry entry = make_entry(cases[i].word, cases[i].weight, cases[i].draw, cases[i].first, cases[i].second);
        const VaryResult result = init_result(&entry, 1, &options);
        if (result != cases[i].result) (void)fprintf(stderr, "case %u: ", (unsigned)i);
        CHECK_UINT(result, cases[i].result);
    }
    CHECK_UINT(init_result(NULL, 0, &options), VARY_ERROR_EMPTY_VOCABULARY);
    CHECK_UINT(init_result(NULL, VARY_MAX_ENTRIES + 1u, &options), VARY_ERROR_TOO_MANY_ENTRIES);
}

/* A phrase of eight words into rows of every length, with memory of exactly their size. */
TEST(test_phrases_are_cut_at_the_end_of_the_row) {
    enum { PHRASE = 8, NUM_ROWS = 40 };
    VaryOptions options = make_options();
    VaryEntry entries[PHRASE];
    const VaryTables* tables;
    uint32_t max_length, i, longest = 0;
    for (i = 0; i < PHRASE; i++) {
        const int is_constant = i % 2 == 1;
        entries[i] = is_constant ? make_entry(make_word(TYPE_CONSTANT, F32, 0), 0.0, VARY_DRAW_GAUSSIAN, 0.0, 1.0)
                                 : make_entry(make_word(TYPE_PTX, 0, i), i == 0 ? 1.0 : 0.0, VARY_DRAW_LITERAL, 0.0, 0.0);
    }
    entries[0].num_words = PHRASE;
    options.initial_max_length = 0;
    options.rates[VARY_RATE_UMAD_ADDITION_RATE] = 0.5;
    tables = make_tables(entries, PHRASE, &options);
    for (max_length = 1; max_length < 3 * PHRASE; max_length++) {
        uint64_t* pool = make_rows(NUM_ROWS, max_length);
        uint64_t* words = make_rows(NUM_ROWS, max_length);
        uint32_t generation;
        CHECK_UINT(vary_random_programs(tables, 1, 0, 0, NUM_ROWS, max_length, pool), VARY_SUCCESS);
        for (generation = 1; generation < 8; generation++) {
            const VaryBatch batch = make_batch(generation, pool, NUM_ROWS, max_length, words, NUM_ROWS);
            CHECK_UINT(vary_offspring(tables, &batch), VARY_SUCCESS);
            for (i = 0; i < NUM_ROWS; i++) {
                const uint64_t* row = words + (size_t)i * max_length;
                const uint32_t length = vary_program_length(row, max_length);
                CHECK(is_valid_row(row, max_length));
                if (generation == 1) CHECK_UINT(length, max_length < PHRASE ? max_length : PHRASE); /* of an empty program */
                if (length > longest) longest = length;
            }
            memcpy(pool, words, NUM_ROWS * max_length * sizeof *pool);
        }
        CHECK_UINT(longest, max_length);
        free(pool);
        free(words);
    }
    free_tables(tables);
}

TEST(test_wrong_options_are_refused_by_their_code) {
    const VaryOptions good = make_options();
    VaryEntry entries[NUM_ENTRIES];
    VaryOptions bad;
    VaryEffect effect = {2, 1, {0}};
    const uint8_t high_stack = 64;
    int i;
    fill_vocabulary(entries);
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &good), VARY_SUCCESS);
#define CHECK_BAD(field, value, code)                              \
    do {                                                           \
        bad = good;                                                \
        bad.field = (value);                                       \
        CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), code); \
    } while (0)
    CHECK_BAD(operator_weights[2], -1.0, VARY_ERROR_INVALID_WEIGHT);
    CHECK_BAD(operator_weights[2], HUGE_VAL - HUGE_VAL, VARY_ERROR_INVALID_WEIGHT);
    bad = good;
    for (i = 0; i < VARY_NUM_OPERATORS; i++) bad.operator_weights[i] = 0.0;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_ERROR_INVALID_WEIGHT);
    CHECK_BAD(rates[VARY_RATE_REPLACEMENT_RATE], HUGE_VAL - HUGE_VAL, VARY_ERROR_INVALID_RATE);
    CHECK_BAD(rates[VARY_RATE_REPLACEMENT_RATE], 1e-300, VARY_SUCCESS);
    bad = good;
    bad.rates[VARY_RATE_PERTURBATION_RELATIVE] = bad.rates[VARY_RATE_PERTURBATION_ABSOLUTE] = 0.0;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_ERROR_INVALID_SCALE);
    CHECK_BAD(unsigned_stacks, 3u, VARY_ERROR_INVALID_STACKS);
    CHECK_BAD(signed_stacks, 3u << 1, VARY_ERROR_INVALID_STACKS);
    bad = good;
    bad.effects = &effect;
    bad.num_effects = 1;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_SUCCESS);
    effect.stacks[2] = 64;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_ERROR_INVALID_STACKS);
    effect.stacks[2] = 63;
    effect.num_pushed = VARY_MAX_EFFECT_VALUES;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_ERROR_INVALID_STACKS);
    effect.num_popped = VARY_UNKNOWN_EFFECT;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_SUCCESS);
    bad.input_stacks = &high_stack;
    bad.num_inputs = 1;
    CHECK_UINT(init_result(entries, NUM_ENTRIES, &bad), VARY_ERROR_INVALID_STACKS);
    CHECK_BAD(initial_min_length, 41, VARY_ERROR_INVALID_LENGTH);
    CHECK_BAD(initial_max_length, VARY_MAX_LENGTH + 1u, VARY_ERROR_INVALID_LENGTH);
#undef CHECK_BAD
}

TEST(test_wrong_calls_are_refused_by_their_code_and_write_nothing) {
    const VaryOptions options = make_options();
    const VaryTables *tables = make_default_tables(&options), *anywhere = NULL, *unset = NULL;
    VaryEntry entries[NUM_ENTRIES];
    uint64_t *pool = make_rows(2, 40), *words = make_rows(2, 40);
    const uint32_t candidates[3] = {0, 1, 0};
    const VaryBatch good = make_batch(1, pool, 2, 40, words, 2);
    VaryBatch bad;
    size_t num_bytes = 0;
    char* memory;
    fill_vocabulary(entries);
    CHECK_UINT(vary_tables_size(NUM_ENTRIES, NULL), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_tables_size(NUM_ENTRIES, &num_bytes), VARY_SUCCESS);
    memory = (char*)allocate(num_bytes + 8);
    CHECK_UINT(vary_init(entries, NUM_ENTRIES, &options, memory, num_bytes - 1, &unset), VARY_ERROR_INSUFFICIENT_MEMORY);
    CHECK_UINT(vary_init(entries, NUM_ENTRIES, &options, memory + 3, num_bytes, &anywhere), VARY_SUCCESS);
    CHECK((const char*)anywhere > memory + 3 && (uintptr_t)anywhere % sizeof(uint64_t) == 0);
    CHECK_UINT(vary_init(NULL, NUM_ENTRIES, &options, memory, num_bytes, &unset), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_init(entries, NUM_ENTRIES, NULL, memory, num_bytes, &unset), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_init(entries, NUM_ENTRIES, &options, NULL, num_bytes, &unset), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_init(entries, NUM_ENTRIES, &options, memory, num_bytes, NULL), VARY_ERROR_INVALID_VALUE);
    CHECK(unset == NULL);
    free(memory);
    vary_default_options(NULL);
    CHECK_UINT(vary_program_length(NULL, 40), 0);

    CHECK_UINT(vary_random_programs(tables, 1, 0, 0, 2, 39, words), VARY_ERROR_INVALID_LENGTH);
    CHECK_UINT(vary_random_programs(tables, 1, 0, 0, 2, VARY_MAX_LENGTH + 1u, words), VARY_ERROR_INVALID_LENGTH);
    CHECK_UINT(vary_random_programs(tables, 1, 0, 0xffffffffu, 2, 40, words), VARY_ERROR_INVALID_RANGE);
    CHECK_UINT(vary_random_programs(NULL, 1, 0, 0, 2, 40, words), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_random_programs(tables, 1, 0, 0, 2, 40, NULL), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_offspring(NULL, &good), VARY_ERROR_INVALID_VALUE);
    CHECK_UINT(vary_offspring(tables, NULL), VARY_ERROR_INVALID_VALUE);
#define CHECK_BAD(field, value, code)                   \
    do {                                                \
        bad = good;                                     \
        bad.field = (value);                            \
        CHECK_UINT(vary_offspring(tables, &bad), code); \
    } while (0)
    CHECK_BAD(pool, NULL, VARY_ERROR_INVALID_VALUE);
    CHECK_BAD(words_out, NULL, VARY_ERROR_INVALID_VALUE);
    CHECK_BAD(num_rows, 0, VARY_ERROR_EMPTY_POOL);
    CHECK_BAD(num_rows, (size_t)VARY_MAX_ROWS + 1, VARY_ERROR_INVALID_RANGE);
    CHECK_BAD(max_length, 0, VARY_ERROR_INVALID_LENGTH);
    CHECK_BAD(max_length, VARY_MAX_LENGTH + 1u, VARY_ERROR_INVALID_LENGTH);
    CHECK_BAD(first_slot, 0xffffffffu, VARY_ERROR_INVALID_RANGE);
    CHECK_BAD(candidates, candidates, VARY_ERROR_EMPTY_POOL);
    bad.num_candidates = 3;
    CHECK_UINT(vary_offspring(tables, &bad), VARY_ERROR_INVALID_RANGE);
    CHECK_BAD(num_offspring, 0, VARY_SUCCESS);
#undef CHECK_BAD
    CHECK_UINT(words[0], UINT64_C(0x5a5a5a5a5a5a5a5a));
    CHECK_UINT(vary_random_programs(tables, 1, 0, 0xfffffffeu, 2, 40, words), VARY_SUCCESS);
    free_tables(tables);
    free(pool);
    free(words);
}

TEST(test_results_and_operators_have_names) {
    CHECK_TEXT(vary_result_to_string(VARY_ERROR_EMPTY_POOL), "VARY_ERROR_EMPTY_POOL");
    CHECK_TEXT(vary_result_to_string(VARY_RESULT_NUM_ENUMS), "unknown VaryResult");
    CHECK_TEXT(vary_operator_to_string(VARY_OPERATOR_UMAD), "umad");
    CHECK_TEXT(vary_operator_to_string(VARY_OPERATOR_REPLACEMENT), "replacement");
    CHECK(vary_operator_to_string(VARY_NUM_OPERATORS) == NULL);
}

TEST(test_rates_are_known_by_operator_and_name_and_accept_their_defaults_and_bounds) {
    VaryEntry entries[NUM_ENTRIES];
    VaryOptions options;
    uint32_t rate;
    fill_vocabulary(entries);
    for (rate = 0; rate < VARY_NUM_RATES; rate++) {
        const VaryRateInfo* info = vary_rate_info(rate);
        options = make_options();
        options.rates[rate] = info->default_value;
        CHECK_UINT(init_result(entries, NUM_ENTRIES, &options), VARY_SUCCESS);
        options.rates[rate] = info->highest;
        CHECK_UINT(init_result(entries, NUM_ENTRIES, &options), VARY_SUCCESS);
        options.rates[rate] = info->highest * 1.001;
        CHECK_UINT(init_result(entries, NUM_ENTRIES, &options), VARY_ERROR_INVALID_RATE);
        options.rates[rate] = info->lowest;
        CHECK_UINT(init_result(entries, NUM_ENTRIES, &options), info->is_lowest_refused ? VARY_ERROR_INVALID_RATE : VARY_SUCCESS);
        options.rates[rate] = info->lowest - 0.001;
        CHECK_UINT(init_result(entries, NUM_ENTRIES, &options), VARY_ERROR_INVALID_RATE);
    }
    CHECK_UINT(vary_rate_info(VARY_RATE_ALTERNATION_DEVIATION)->operator_code, VARY_OPERATOR_ALTERNATION);
    CHECK_TEXT(vary_rate_info(VARY_RATE_ALTERNATION_DEVIATION)->name, "deviation");
    CHECK(vary_rate_info(VARY_RATE_ALTERNATION_DEVIATION)->default_value == 10.0);
    CHECK(vary_rate_info(VARY_NUM_RATES) == NULL);
}

/* ---- bits that must not change ---- */

/* The same for every compiler, flag and platform. */
TEST(test_offspring_are_those_of_version_1) {
    static const uint64_t wanted[1 + VARY_NUM_OPERATORS] = {
        UINT64_C(0x60621346c0c9d036), /* random programs */
        UINT64_C(0x868a1ce2e335f013), /* umad */
        UINT64_C(0xa068fcc8fb3b3513), /* alternation */
        UINT64_C(0x48649cd90ca05997), /* crossover */
        UINT64_C(0x8b4a508b464ee6a8), /* perturbation */
        UINT64_C(0xbfc7a11ec74eb7ba), /* replacement */
        UINT64_C(0xc2553af739795815), /* subprogram */
    };
    enum { NUM_PROGRAMS = 50, NUM_OFFSPRING = 200, ROW = 48 };
    static const uint8_t input_stacks[] = {F32};
    uint64_t *pool = make_rows(NUM_PROGRAMS, ROW), *words = make_rows(NUM_OFFSPRING, ROW);
    uint8_t operators[NUM_OFFSPRING];
    VaryBatch batch = make_batch(1, pool, NUM_PROGRAMS, ROW, words, NUM_OFFSPRING);
    VaryEffect effects[8];
    int only, i;
    memset(effects, 0, sizeof effects);
    for (i = 0; i < 8; i++) effects[i].num_popped = effects[i].num_pushed = 1;
    effects[5].num_popped = 2; /* one of the vocabulary takes two values, the other one */
    batch.seed = UINT64_C(0x1234567890abcdef);
    batch.operators_out = operators;
    for (only = 0; only < VARY_NUM_OPERATORS; only++) {
        VaryOptions options = make_options();
        const VaryTables* tables;
        int num_acted = 0;
        for (i = 0; i < VARY_NUM_OPERATORS; i++) options.operator_weights[i] = i == only;
        options.effects = effects;
        options.num_effects = 8;
        options.input_stacks = input_stacks;
        options.num_inputs = 1;
        tables = make_default_tables(&options);
        CHECK_UINT(vary_random_programs(tables, batch.seed, 0, 0, NUM_PROGRAMS, ROW, pool), VARY_SUCCESS);
        CHECK_UINT(hash_words(pool, NUM_PROGRAMS * ROW), wanted[0]);
        CHECK_UINT(vary_offspring(tables, &batch), VARY_SUCCESS);
        CHECK_UINT(hash_words(words, NUM_OFFSPRING * ROW), wanted[1 + only]);
        for (i = 0; i < NUM_OFFSPRING; i++) num_acted += operators[i] == only;
        CHECK(num_acted > NUM_OFFSPRING / 2);
        free_tables(tables);
    }
    free(pool);
    free(words);
}
