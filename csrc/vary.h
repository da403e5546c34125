/* vary.h - variation on blocks of Stack PTX instruction words, in C99 and C++11, for gcc and clang.
 *
 * Makes random programs and offspring of programs: batches of fixed-width rows of 8-byte words in, rows out. Knows only the
 * type, stack and payload of a word; stack_ptx.h defines what programs mean.
 *
 * Usage. In exactly one C or C++ file:
 *
 *     #define VARY_IMPLEMENTATION
 *     #include "vary.h"
 *
 *     VaryEntry vocabulary[] = {
 *         {0x0000000000000003u, 1.0, {0.0, 0.0}, VARY_DRAW_LITERAL, 1},   // the word INPUT 0, unchanged
 *         {0x0000000000000002u, 0.5, {0.0, 1.0}, VARY_DRAW_GAUSSIAN, 1},  // a CONSTANT of stack 0, payload N(0, 1)
 *     };
 *     VaryOptions options;
 *     size_t num_bytes;
 *     const VaryTables* tables;
 *     vary_default_options(&options);
 *     options.float_stacks = 1;                                        // constants of stack 0 are f32
 *     vary_tables_size(2, &num_bytes);
 *     void* memory = malloc(num_bytes);
 *     vary_init(vocabulary, 2, &options, memory, num_bytes, &tables);
 *     vary_random_programs(tables, seed, 0, 0, 1000, max_length, pool);
 *
 *     VaryBatch batch = {0};                                           // 1,000 offspring of generation 1
 *     batch.seed = seed;
 *     batch.generation = 1;
 *     batch.num_offspring = batch.num_rows = 1000;
 *     batch.pool = pool;
 *     batch.max_length = max_length;
 *     batch.words_out = words;
 *     vary_offspring(tables, &batch);
 *
 * Options, before the include:
 *     VARY_IMPLEMENTATION   compile the functions in this file; otherwise they are only declared
 *     VARY_DEBUG            errors assert where they are found
 *     VARY_STATIC           functions are static; each including file also defines VARY_IMPLEMENTATION
 *
 * Rows. A program is a row of `max_length` words. Its length is the index of its first RETURN word, or max_length if it
 * has none. Output rows hold the program, a RETURN if the program is shorter than the row, then zeros. Words of a pool row
 * after its first RETURN are ignored. No operator makes a RETURN inside a program; words past max_length are cut off. Drawn
 * and perturbed f32 constants are finite and never subnormal; a constant that is only copied keeps its bits.
 *
 * Randomness. All of it is Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011): key = the 64-bit seed, low half first; counter = (generation, slot, draw, stream). A stream serves one purpose,
 * so more draws in one never shift another. An offspring depends only on (tables, seed, generation, slot, candidates),
 * not on its batch, on threads or on the platform. The k-th number of a stream is word k / 4 % 4 of the
 * block with draw 4 (k / 16) + k % 4: four blocks at a time, transposed. Arithmetic is on integers, or on doubles whose products
 * are exact (so fused multiply-adds change no bit); no libm. Default rounding is assumed.
 *
 * Errors. Functions return VARY_SUCCESS, or an error without writing anything; a NULL where a comment does not allow it is one.
 * No function allocates; only vary_init keeps pointers. Tables never change after vary_init: any number of threads may use them.
 */
#ifndef VARY_H
#define VARY_H

#include "detail/result.h"

#include <stddef.h>
#include <stdint.h>

#define VARY_VERSION_MAJOR 1
#define VARY_VERSION_MINOR 1
#define VARY_VERSION_PATCH 0

/* Before each declaration. It sets the linkage of the definition too. */
#define VARY_API EVO__API(VARY_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

/* Results: name, value. */
#define VARY__RESULTS(X)                                                                                                     \
    X(VARY_SUCCESS, 0)                                                                                                       \
    X(VARY_ERROR_EMPTY_VOCABULARY, 1) /* no entry, or all weights are zero */                                                \
    X(VARY_ERROR_TOO_MANY_ENTRIES, 2) /* more than VARY_MAX_ENTRIES */                                                       \
    X(VARY_ERROR_INVALID_WEIGHT, 3) /* negative or not finite; or no operator has a weight */                                \
    X(VARY_ERROR_INVALID_ENTRY, 4) /* a RETURN word, a draw that is unknown or not for the word, bad params, a bad phrase */ \
    X(VARY_ERROR_INVALID_RATE, 5) /* outside the bounds of VARY_RATES */                                                     \
    X(VARY_ERROR_INVALID_SCALE, 6) /* both deviations of perturbation are zero */                                            \
    X(VARY_ERROR_INVALID_STACKS, 7) /* a stack in two masks; an effect with too many values or stack 64 */                   \
    X(VARY_ERROR_INVALID_LENGTH, 8) /* lengths out of order or above max_length, 1 to VARY_MAX_LENGTH */                     \
    X(VARY_ERROR_EMPTY_POOL, 9)                                                                                              \
    X(VARY_ERROR_INVALID_RANGE, 10) /* slots past 2^32, too many rows, or more candidates than rows */                       \
    X(VARY_ERROR_INSUFFICIENT_MEMORY, 11) /* less than vary_tables_size */                                                   \
    X(VARY_ERROR_INVALID_VALUE, 12) /* NULL where a value is needed */
typedef enum { VARY__RESULTS(EVO__ENUMERATOR) VARY_RESULT_NUM_ENUMS } VaryResult;

#define VARY_MAX_ENTRIES 65535u
#define VARY_MAX_ROWS 0x7fffffffu
#define VARY_MAX_LENGTH 0xffffffu

/* Operators: NAME, name, parents, stream. The code of an operator is its index in this table, so append new ones. Each has its
 * own stream of random numbers (see VARY_STREAMS) and makes one program; "first" and "second" are the parents drawn.
 *
 * umad: uniform mutation by addition and deletion (Helmuth, McPhee and Spector, "Program synthesis using uniform mutation by
 *     addition and deletion", GECCO 2018). With the addition rate each word gets a new one before or after it, with equal
 *     odds; then each word, new ones included, is deleted with the deletion rate. Size-neutral for deletion = a / (1 + a). If
 *     nothing happens, one evenly drawn word is hit once, by the odds of addition and deletion. An empty program gets one new word.
 * alternation: (Spector and Helmuth, "Uniform linear transformation with repair and alternation in genetic programming",
 *     GPTP XI, 2013). Words are read from the first parent; before each, with the rate, reading switches to the other parent, at
 *     a position shifted by a rounded Gaussian of the deviation, in words (not below zero). It ends where the parent being read
 *     ends. If the first parent would be read to its end, the first switch is made at an evenly drawn place.
 * crossover: uniform crossover (Syswerda, "Uniform crossover in genetic algorithms", ICGA 1989). The offspring has the first
 *     parent's length; where the second has a word at that position too, either is taken with equal odds.
 * perturbation: each f32 constant c is, with the rate, replaced by a Gaussian of mean c and deviation relative * |c| + absolute,
 *     kept finite. Integers move by whole steps away from zero, at least one. If none is hit, one evenly
 *     drawn constant is. Constants on stacks in none of the masks are left alone. The two deviations are not both zero.
 * replacement: each word is, with the rate, replaced by one drawn from the vocabulary. If none is hit, one evenly drawn
 *     word is. Here and in umad a phrase counts as one new word, so it makes the program longer.
 * subprogram: subtree crossover (Koza, "Genetic Programming", 1992) on words. A subprogram is a stretch of words that leaves one
 *     value and takes nothing from the stacks, wherever it stands: the shortest that ends at a certain word, which pushes one
 *     value. Its words are inputs, constants, PTX instructions (VaryEffect) and the meta operations dup and swap. The
 *     subprogram at an evenly drawn word of the first parent is replaced by one of the second parent, at an evenly drawn word,
 *     that leaves its value on the same stack. Up to VARY_NUM_TRIES words are drawn for each.
 *
 * UMAD replaces an operator that cannot act, and is then the one reported: alternation, crossover and subprogram in a pool of one
 * row, perturbation without a constant, subprogram where the tries find none, every operator on an empty first parent. */
#define VARY_OPERATORS(X)               \
    X(UMAD, umad, 1, 2)                 \
    X(ALTERNATION, alternation, 2, 3)   \
    X(CROSSOVER, crossover, 2, 4)       \
    X(PERTURBATION, perturbation, 1, 5) \
    X(REPLACEMENT, replacement, 1, 6)   \
    X(SUBPROGRAM, subprogram, 2, 9)

/* Rates of the operators: OPERATOR, RATE, rate, default, lowest, highest, whether the lowest itself is refused. */
#define VARY_RATES(X)                                          \
    X(UMAD, ADDITION_RATE, addition_rate, 0.09, 0.0, 1.0, 1)   \
    X(UMAD, DELETION_RATE, deletion_rate, 0.0826, 0.0, 1.0, 0) \
    X(ALTERNATION, RATE, rate, 0.01, 0.0, 1.0, 1)              \
    X(ALTERNATION, DEVIATION, deviation, 10.0, 0.0, 1000.0, 0) \
    X(PERTURBATION, RATE, rate, 0.3, 0.0, 1.0, 1)              \
    X(PERTURBATION, RELATIVE, relative, 0.1, 0.0, 100.0, 0)    \
    X(PERTURBATION, ABSOLUTE, absolute, 0.01, 0.0, 1e6, 0)     \
    X(REPLACEMENT, RATE, rate, 0.05, 0.0, 1.0, 1)

/* Streams of random numbers that belong to no operator: NAME, stream. A stream is the last word of the Philox counter and serves
 * one purpose; its number never changes. Using a number twice, here or in VARY_OPERATORS, is a compile error. UMAD draws its
 * events from its own stream, and two numbers for each new word, also of a phrase, from UMAD_WORDS. */
#define VARY_STREAMS(X)    \
    X(PARENTS, 0)          \
    X(OPERATOR, 1)         \
    X(INITIAL_PROGRAMS, 7) \
    X(UMAD_WORDS, 8)

/* VARY_OPERATOR_UMAD = 0, ... */
#define VARY__ENUMERATOR(NAME, name, num_parents, stream) VARY_OPERATOR_##NAME,
typedef enum { VARY_OPERATORS(VARY__ENUMERATOR) VARY_NUM_OPERATORS } VaryOperator;
#undef VARY__ENUMERATOR

/* VARY_RATE_UMAD_ADDITION_RATE = 0, ... */
#define VARY__ENUMERATOR(OPERATOR, RATE, ...) VARY_RATE_##OPERATOR##_##RATE,
typedef enum { VARY_RATES(VARY__ENUMERATOR) VARY_NUM_RATES } VaryRate;
#undef VARY__ENUMERATOR

/* VARY_STREAM_UMAD = 2, ... */
#define VARY__ENUMERATOR(NAME, stream) VARY_STREAM_##NAME = (stream),
#define VARY__OPERATOR_ENUMERATOR(NAME, name, num_parents, stream) VARY_STREAM_##NAME = (stream),
typedef enum { VARY_STREAMS(VARY__ENUMERATOR) VARY_OPERATORS(VARY__OPERATOR_ENUMERATOR) } VaryStream;
#undef VARY__ENUMERATOR
#undef VARY__OPERATOR_ENUMERATOR

/* Words at which a subprogram is looked for. */
#define VARY_NUM_TRIES 8

/* Stack effect of a PTX instruction: values popped and pushed. */
#define VARY_UNKNOWN_EFFECT 255u /* as num_popped: instructions with more values or stacks than fit below */
#define VARY_MAX_EFFECT_VALUES 14
typedef struct VaryEffect {
    uint8_t num_popped;
    uint8_t num_pushed;
    uint8_t stacks[VARY_MAX_EFFECT_VALUES]; /* below 64, of each value: those popped, then those pushed */
} VaryEffect;

/* Rule for the payload of a word drawn from the vocabulary. */
typedef enum {
    VARY_DRAW_LITERAL = 0,  /* the word unchanged */
    VARY_DRAW_GAUSSIAN = 1, /* CONSTANT words: f32 of mean params[0] and deviation params[1] */
    VARY_DRAW_UNIFORM = 2,  /* CONSTANT words: f32, even in [params[0], params[1]] */
    VARY_DRAW_INTEGER = 3,  /* any word: integer, even in params[0] <= x < params[1], from -2^31 (two's complement) to 2^32 */
    VARY_NUM_DRAWS = 4
} VaryDraw;

/* Words of a phrase. */
#define VARY_MAX_PHRASE 16u

/* One choice for a new word, or for the first of a phrase: several words that are drawn, and put into a program, as one. The
 * others are the entries after it; with weight 0 they are drawn in no other way. Weights need not sum to one; probabilities are
 * kept to 2^-32. */
typedef struct VaryEntry {
    uint64_t word;
    double weight;
    double params[2];
    uint32_t draw;      /* VaryDraw */
    uint32_t num_words; /* of the phrase; 1: no phrase. From 1 to VARY_MAX_PHRASE */
} VaryEntry;

typedef struct VaryOptions {
    double operator_weights[VARY_NUM_OPERATORS]; /* by VaryOperator; need not sum to one */
    double rates[VARY_NUM_RATES];                /* by VaryRate, within the bounds of VARY_RATES */
    uint32_t initial_min_length;                 /* of random programs, in words, RETURN not counted */
    uint32_t initial_max_length;
    uint64_t float_stacks;    /* bit k: constants of stack k are f32 */
    uint64_t unsigned_stacks; /* bit k: constants of stack k are u32 */
    uint64_t signed_stacks;   /* bit k: constants of stack k are s32 */
    /* For subprogram, which cannot act without. Both arrays must outlive the tables. */
    const VaryEffect* effects; /* of the PTX instructions by index, or NULL */
    size_t num_effects;
    const uint8_t* input_stacks; /* of the inputs by index, or NULL */
    size_t num_inputs;
} VaryOptions;

/* Tables that vary_init prepares: alias tables of vocabulary and events. Lives in the caller's memory. */
typedef struct VaryTables VaryTables;

/* The enumerator's name, or "unknown VaryResult". The text is static. */
VARY_API const char* vary_result_to_string(VaryResult result);

/* A static name, such as "umad"; NULL for a number that is not an operator. */
VARY_API const char* vary_operator_to_string(uint32_t operator_code);

/* A row of VARY_RATES. */
typedef struct VaryRateInfo {
    uint32_t operator_code; /* VaryOperator */
    const char* name;       /* such as "addition_rate" */
    double default_value;
    double lowest;
    double highest;
    int is_lowest_refused;
} VaryRateInfo;

/* The row of a rate, in static storage; NULL for a number that is no VaryRate. */
VARY_API const VaryRateInfo* vary_rate_info(uint32_t rate);

/* The default rates, only UMAD, no stack with constants, lengths 1 to 64. Does nothing for NULL. */
VARY_API void vary_default_options(VaryOptions* options_out);

/* Bytes that vary_init needs for a vocabulary of this many entries. */
VARY_API VaryResult vary_tables_size(size_t num_entries, size_t* num_bytes_out);

/* Checks everything and builds the tables in `memory`, which has any alignment, is owned by the caller and must outlive them. Entries
 * and options are copied. There is nothing to release. */
VARY_API VaryResult vary_init(
    const VaryEntry* entries, size_t num_entries, const VaryOptions* options, void* memory, size_t memory_bytes,
    const VaryTables** tables_out
);

/* Random programs for the slots first_slot, first_slot + 1, ...: lengths even over the initial lengths, words from
 * the vocabulary. words_out: num_programs rows of max_length words. */
VARY_API VaryResult vary_random_programs(
    const VaryTables* tables, uint64_t seed, uint32_t generation, uint32_t first_slot, size_t num_programs, uint32_t max_length,
    uint64_t* words_out
);

/* Offspring for the slots first_slot, first_slot + 1, ... of a generation. */
typedef struct VaryBatch {
    uint64_t seed;
    uint32_t generation;
    uint32_t first_slot;
    size_t num_offspring;
    uint32_t max_length;
    const uint64_t* pool; /* num_rows rows of max_length words; must not overlap the output */
    size_t num_rows;
    const uint32_t* candidates; /* num_candidates different row indices; the content of other rows does not matter. NULL: all
                                   rows, and num_candidates is ignored */
    size_t num_candidates;
    uint64_t* words_out;    /* num_offspring rows */
    uint32_t* lengths_out; /* the length of each, or NULL. If it is not, rows are not cleared after their RETURN, which takes long
                               where rows are much longer than programs */
    int64_t* parents_out; /* two row indices each, the second -1 if the operator has only one parent; or NULL */
    uint8_t* operators_out; /* the VaryOperator that was applied; or NULL */
} VaryBatch;

/* Makes a batch. The first parent is drawn evenly from the candidates, the second evenly from the others; then the operator, by
 * weight. Equal programs in the same order of candidates give equal offspring, wherever in the pool they are. */
VARY_API VaryResult vary_offspring(const VaryTables* tables, const VaryBatch* batch);

/* The index of the first RETURN word, or max_length; 0 for NULL. */
VARY_API uint32_t vary_program_length(const uint64_t* words, uint32_t max_length);

/* One Philox 4x32-10 block. counter and block_out may be the same; none may be NULL. */
VARY_API void vary_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t block_out[4]);

/* The standard Gaussian of 32 random bits, by inversion of the distribution: bit 0 is the sign, the others, u = 0 .. 2^31 - 1,
 * give the tail probability (2 u + 1) / 2^33. Within 1e-6 of the quantile; at most 6.34. */
VARY_API float vary_gaussian(uint32_t bits);

#ifdef __cplusplus
}
#endif

#endif /* VARY_H */

/* ------------------------------------------------------------------------------------------------------------------ */
#if defined(VARY_IMPLEMENTATION) && !defined(VARY_IMPLEMENTATION_DONE)
#define VARY_IMPLEMENTATION_DONE

#include <string.h>

#include "detail/arena.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define VARY__ERROR(code) EVO__ERROR(VARY_DEBUG, VARY_ERROR_##code)

#define VARY__INLINE static inline __attribute__((always_inline))

/* The word format (bits 0-15 type, 16-31 stack, 32-63 payload), as far as this file needs it. */
enum {
    VARY__TYPE_PTX = 1,
    VARY__TYPE_CONSTANT = 2,
    VARY__TYPE_INPUT = 3,
    VARY__TYPE_META = 5,
    VARY__TYPE_RETURN = 10,
    VARY__DUP = 0, /* meta operations */
    VARY__SWAP = 2,
    VARY__NUM_MASKED_STACKS = 64
};

/* The rows of VARY_OPERATORS. */
static const struct {
    const char* name;
    uint32_t num_parents, stream;
} vary__operators[VARY_NUM_OPERATORS] = {
#define VARY__ROW(NAME, name, num_parents, stream) {#name, num_parents, stream},
    VARY_OPERATORS(VARY__ROW)
#undef VARY__ROW
};

/* No two purposes share a stream: a case that stands twice does not compile. */
static inline int vary__is_stream(uint32_t stream) {
#define VARY__CASE(NAME, stream) case stream:
#define VARY__OPERATOR_CASE(NAME, name, num_parents, stream) case stream:
    switch (stream) {
        VARY_STREAMS(VARY__CASE) VARY_OPERATORS(VARY__OPERATOR_CASE) return 1;
        default: return 0;
    }
#undef VARY__CASE
#undef VARY__OPERATOR_CASE
}

/* ---- Philox ---- */

#define VARY__PHILOX_MULTIPLIER_0 0xD2511F53u
#define VARY__PHILOX_MULTIPLIER_1 0xCD9E8D57u
#define VARY__PHILOX_WEYL_0 0x9E3779B9u
#define VARY__PHILOX_WEYL_1 0xBB67AE85u
enum { VARY__PHILOX_ROUNDS = 10, VARY__LANES = 4, VARY__GROUP = 16 /* numbers of four blocks */ };

void vary_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t block_out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < VARY__PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)VARY__PHILOX_MULTIPLIER_0 * c0;
        uint64_t p1 = (uint64_t)VARY__PHILOX_MULTIPLIER_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += VARY__PHILOX_WEYL_0;
        k1 += VARY__PHILOX_WEYL_1;
    }
    block_out[0] = c0;
    block_out[1] = c1;
    block_out[2] = c2;
    block_out[3] = c3;
}

/* Four blocks of a stream: of draws from `draw` on of one slot, or of that draw of four slots. Word w of block b is number
 * 4 w + b. */
enum { VARY__OF_DRAWS = 0, VARY__OF_SLOTS = 1 };

static void vary__philox_group(
    uint64_t seed, uint32_t generation, uint32_t slot, uint32_t draw, uint32_t stream, int of_slots, uint32_t* numbers_out
) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t block, word;
#if defined(__SSE2__)
    /* A block to each 64 bits, a word in the low half: the multiplier reads only that, so the high halves may hold anything. A
     * processor multiplies four at a time here, and one at a time below. */
    const __m128i multiplier_0 = _mm_set1_epi32((int)VARY__PHILOX_MULTIPLIER_0);
    const __m128i multiplier_1 = _mm_set1_epi32((int)VARY__PHILOX_MULTIPLIER_1);
    __m128i counter[4][2];
    for (block = 0; block < 2; block++) {
        const __m128i blocks = _mm_set_epi32(0, (int)(2 * block + 1), 0, (int)(2 * block)), none = _mm_setzero_si128();
        counter[0][block] = _mm_set1_epi32((int)generation);
        counter[1][block] = _mm_add_epi32(_mm_set1_epi32((int)slot), of_slots ? blocks : none);
        counter[2][block] = _mm_add_epi32(_mm_set1_epi32((int)draw), of_slots ? none : blocks);
        counter[3][block] = _mm_set1_epi32((int)stream);
    }
    for (uint32_t round = 0; round < VARY__PHILOX_ROUNDS; round++) {
        const __m128i key_0 = _mm_set1_epi32((int)(key[0] + round * VARY__PHILOX_WEYL_0));
        const __m128i key_1 = _mm_set1_epi32((int)(key[1] + round * VARY__PHILOX_WEYL_1));
        for (block = 0; block < 2; block++) {
            const __m128i p0 = _mm_mul_epu32(counter[0][block], multiplier_0);
            const __m128i p1 = _mm_mul_epu32(counter[2][block], multiplier_1);
            counter[0][block] = _mm_xor_si128(_mm_srli_epi64(p1, 32), _mm_xor_si128(counter[1][block], key_0));
            counter[2][block] = _mm_xor_si128(_mm_srli_epi64(p0, 32), _mm_xor_si128(counter[3][block], key_1));
            counter[1][block] = p1;
            counter[3][block] = p0;
        }
    }
    for (word = 0; word < 4; word++) {
        const __m128 low = _mm_castsi128_ps(counter[word][0]), high = _mm_castsi128_ps(counter[word][1]);
        _mm_storeu_si128((__m128i*)(void*)(numbers_out + 4 * word), _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)));
    }
#else
    for (block = 0; block < VARY__LANES; block++) {
        uint32_t counter[4];
        counter[0] = generation;
        counter[1] = of_slots ? slot + block : slot;
        counter[2] = of_slots ? draw : draw + block;
        counter[3] = stream;
        vary_philox(key, counter, counter);
        for (word = 0; word < 4; word++) numbers_out[4 * word + block] = counter[word];
    }
#endif
}

/* The numbers of one stream of one slot, in order, a group at a time. */
enum { VARY__GROUP_MASK = VARY__GROUP - 1 };
typedef struct Vary__Numbers {
    uint32_t group[VARY__GROUP];
    uint64_t seed;
    uint32_t generation, slot, stream;
    uint32_t num_made, num_used;
} Vary__Numbers;

/* Replaces the group by the next one. */
static void vary__numbers_fill(Vary__Numbers* numbers) {
    vary__philox_group(
        numbers->seed, numbers->generation, numbers->slot, numbers->num_made / 4, numbers->stream, VARY__OF_DRAWS, numbers->group
    );
    numbers->num_made += VARY__GROUP;
}

static inline void vary__numbers_start(
    Vary__Numbers* numbers, uint64_t seed, uint32_t generation, uint32_t slot, uint32_t stream
) {
    numbers->seed = seed;
    numbers->generation = generation;
    numbers->slot = slot;
    numbers->stream = stream;
    numbers->num_made = numbers->num_used = 0;
}

static inline uint32_t vary__next(Vary__Numbers* numbers) {
    if (numbers->num_used == numbers->num_made) vary__numbers_fill(numbers);
    return numbers->group[numbers->num_used++ & VARY__GROUP_MASK];
}

/* Even in [0, bound), off by at most bound / 2^32. */
static inline uint32_t vary__scale(uint32_t number, uint32_t bound) { return (uint32_t)(((uint64_t)number * bound) >> 32); }

/* Even in [0, bound), off by at most bound / 2^64: the high word of a 64 x 32 bit product. */
static inline uint32_t vary__scale_64(uint32_t high, uint32_t low, uint32_t bound) {
    return (uint32_t)(((uint64_t)high * bound + (((uint64_t)low * bound) >> 32)) >> 32);
}

/* ---- Alias tables (Walker 1977; Vose 1991), on integers: every outcome has exactly its weight in 2^-32 ---- */

typedef struct Vary__Column {
    uint32_t threshold; /* below it outcome 0, the column's own; otherwise 1 */
    uint16_t outcomes[2];
} Vary__Column;

#define VARY__ONE_Q32 ((uint64_t)1 << 32)

/* weights: 2^log2_columns integers that sum to 2^32; overwritten. */
static void vary__alias_build(uint64_t* weights, uint32_t log2_columns, Vary__Column* columns_out) {
    const uint32_t num_columns = 1u << log2_columns;
    const uint64_t capacity = VARY__ONE_Q32 >> log2_columns;
    uint32_t scan, small, large;
    for (uint32_t i = 0; i < num_columns; i++) {
        columns_out[i].threshold = 0;
        columns_out[i].outcomes[0] = (uint16_t)i;
        columns_out[i].outcomes[1] = (uint16_t)i;
    }
    /* Each small outcome's column is filled up from the current large one. When that becomes small itself and the scan is already
     * past it, it is filled up next. Weights sum to the capacity, so while a small one is left there is a large one. */
    large = 0;
    while (large < num_columns && weights[large] <= capacity) large++;
    for (scan = 0; scan < num_columns && large < num_columns; scan++) {
        if (weights[scan] >= capacity) continue;
        small = scan;
        do {
            columns_out[small].threshold = (uint32_t)(weights[small] << log2_columns);
            columns_out[small].outcomes[1] = (uint16_t)large;
            weights[large] -= capacity - weights[small];
            weights[small] = capacity;
            small = large;
            while (large < num_columns && weights[large] <= capacity) large++;
        } while (small < scan && weights[small] < capacity && large < num_columns);
    }
}

static inline uint32_t vary__alias_draw(const Vary__Column* columns, uint32_t log2_columns, uint32_t number) {
    const Vary__Column* column = columns + (number >> (32 - log2_columns));
    /* An index, not a condition: compilers could make an unpredictable branch of a condition. */
    return column->outcomes[(uint32_t)(number << log2_columns) >= column->threshold];
}

/* ---- Events: where along a program an operator acts ---- */

/* Words are hit independently with one probability, so gaps between hits are geometric. One number draws how many words are
 * left unchanged and what happens to the next one. A gap beyond the table is the outcome "the longest gap, and no hit", after
 * which one draws again: the geometric law has no memory, so nothing is cut off. */
enum { VARY__LOG2_EVENT_COLUMNS = 8, VARY__EVENT_COLUMNS = 256, VARY__MAX_KINDS = 4 };

/* Change of the word after the gap: how many of the old and the new word there are then (0 to 2), and whether the new one
 * comes first. Operators with one kind of event use DELETE for it. NONE: the gap is longer than the table reaches. */
enum {
    VARY__NEW_FIRST = 1,
    VARY__NEW = 2,
    VARY__COUNT_SHIFT = 2,
    VARY__KIND_BITS = 4,
    VARY__KIND_MASK = 15,
    VARY__DELETE = 0 << VARY__COUNT_SHIFT,
    VARY__NONE = 1 << VARY__COUNT_SHIFT,
    VARY__REPLACE = 1 << VARY__COUNT_SHIFT | VARY__NEW | VARY__NEW_FIRST,
    VARY__ADD_BEFORE = 2 << VARY__COUNT_SHIFT | VARY__NEW | VARY__NEW_FIRST,
    VARY__ADD_AFTER = 2 << VARY__COUNT_SHIFT | VARY__NEW
};

typedef struct Vary__Events {
    Vary__Column columns[VARY__EVENT_COLUMNS]; /* outcomes are gap << VARY__KIND_BITS | kind */
    uint32_t kind_bounds[VARY__MAX_KINDS]; /* cumulative Q31 probabilities of the kinds of a hit */
    const uint8_t* kinds; /* of static storage */
} Vary__Events;

#define VARY__ONE_Q31 ((uint64_t)1 << 31)

static uint64_t vary__rate_q31(double rate) {
    uint64_t rate_q31 = (uint64_t)(rate * 2147483648.0 + 0.5);
    return rate > 0.0 && rate_q31 == 0 ? 1 : rate_q31;
}

static uint64_t vary__multiply_q31(uint64_t a, uint64_t b_q31) {
    return (a >> 31) * b_q31 + (((a & (VARY__ONE_Q31 - 1)) * b_q31) >> 31);
}

/* kind_rates_q31: the probability of each kind, per word; their sum is above zero and at most one. */
static void vary__events_build(
    const uint64_t* kind_rates_q31, const uint8_t* kinds, uint32_t num_kinds, Vary__Events* events_out
) {
    const uint32_t num_gaps = (VARY__EVENT_COLUMNS - 1) / num_kinds;
    uint64_t weights[VARY__EVENT_COLUMNS];
    uint64_t hit_q31 = 0, below_q31 = 0, survival_q63 = (uint64_t)1 << 63;
    memset(weights, 0, sizeof weights);
    for (uint32_t kind = 0; kind < num_kinds; kind++) hit_q31 += kind_rates_q31[kind];
    for (uint32_t kind = 0; kind < num_kinds; kind++) {
        below_q31 += kind_rates_q31[kind];
        events_out->kind_bounds[kind] = (uint32_t)((below_q31 << 31) / hit_q31);
    }
    events_out->kinds = kinds;
    /* Each weight is the difference of two rounded cumulative ones: no error adds up, and the sum is 2^32 exactly. */
    for (uint32_t gap = 0; gap < num_gaps; gap++) {
        uint64_t next_q63 = vary__multiply_q31(survival_q63, VARY__ONE_Q31 - hit_q31);
        uint64_t gap_weight = ((survival_q63 + (VARY__ONE_Q31 >> 1)) >> 31) - ((next_q63 + (VARY__ONE_Q31 >> 1)) >> 31);
        uint64_t below = 0;
        for (uint32_t kind = 0; kind < num_kinds; kind++) {
            uint64_t up_to = (gap_weight * events_out->kind_bounds[kind]) >> 31;
            weights[gap * num_kinds + kind] = up_to - below;
            below = up_to;
        }
        survival_q63 = next_q63;
    }
    weights[num_gaps * num_kinds] = (survival_q63 + (VARY__ONE_Q31 >> 1)) >> 31;
    vary__alias_build(weights, VARY__LOG2_EVENT_COLUMNS, events_out->columns);
    for (uint32_t column = 0; column < VARY__EVENT_COLUMNS; column++) {
        uint16_t* outcomes = events_out->columns[column].outcomes;
        for (int i = 0; i < 2; i++) {
            uint32_t outcome = outcomes[i];
            uint32_t code = outcome < num_gaps * num_kinds ? (outcome / num_kinds) << VARY__KIND_BITS | kinds[outcome % num_kinds]
                                                           : (num_gaps - 1) << VARY__KIND_BITS | VARY__NONE;
            outcomes[i] = (uint16_t)code;
        }
    }
}

static inline uint32_t vary__event(const Vary__Events* events, uint32_t number) {
    return vary__alias_draw(events->columns, VARY__LOG2_EVENT_COLUMNS, number);
}

/* The kind of a hit, without its gap. */
static uint32_t vary__event_kind(const Vary__Events* events, uint32_t number) {
    uint32_t kind = 0;
    while (number >> 1 >= events->kind_bounds[kind]) kind++; /* the last bound is 1 */
    return events->kinds[kind];
}

/* With one kind of events: the index of the first hit at or after `index`, or a number >= end. */
VARY__INLINE uint64_t vary__next_hit(const Vary__Events* events, Vary__Numbers* numbers, uint64_t index, uint64_t end) {
    while (index < end) {
        uint32_t event = vary__event(events, vary__next(numbers));
        index += event >> VARY__KIND_BITS;
        if ((event & VARY__KIND_MASK) != VARY__NONE) break;
        index++;
    }
    return index;
}

/* ---- Gaussian ---- */

/* Row k: the quantile if the odd number v = 2 u + 1 has its highest bit at k, that is for tail probabilities
 * (1 + t) 2^(k - 33), as a polynomial in x = t - 1/2, coefficients rounded to 2^-28: interpolation at the seven Chebyshev
 * nodes, repeated by tests/unit/native/vary/test_random_numbers.py. */
enum { VARY__GAUSSIAN_DEGREE = 6 };
static const int32_t vary__gaussian_table[32][VARY__GAUSSIAN_DEGREE + 1] = {
    {1684478900, -27843882, 9061775, -3960998, 1964113, -1209993, 674235},
    {1655288320, -28312104, 9206744, -4022935, 1994372, -1228385, 684398},
    {1625598586, -28804402, 9358779, -4087821, 2026048, -1247627, 695026},
    {1595383590, -29322893, 9518466, -4155894, 2059256, -1267786, 706157},
    {1564614880, -29869964, 9686460, -4227419, 2094121, -1288937, 717830},
    {1533261369, -30448315, 9863498, -4302696, 2130784, -1311162, 730091},
    {1501288974, -31061016, 10050412, -4382059, 2169403, -1334555, 742989},
    {1468660201, -31711570, 10248141, -4465887, 2210156, -1359219, 756582},
    {1435333651, -32404000, 10457754, -4554607, 2253243, -1385273, 770933},
    {1401263430, -33142951, 10680473, -4648709, 2298893, -1412850, 786113},
    {1366398438, -33933815, 10917699, -4748747, 2347365, -1442103, 802205},
    {1330681513, -34782894, 11171049, -4855364, 2398958, -1473203, 819303},
    {1294048377, -35697608, 11442402, -4969299, 2454016, -1506352, 837513},
    {1256426348, -36686758, 11733950, -5091411, 2512935, -1541780, 856959},
    {1217732725, -37760880, 12048271, -5222705, 2576180, -1579754, 877785},
    {1177872762, -38932696, 12388421, -5364364, 2644294, -1620588, 900157},
    {1136737086, -40217743, 12758043, -5517791, 2717918, -1664650, 924273},
    {1094198355, -41635209, 13161527, -5684661, 2797817, -1712378, 950365},
    {1050106886, -43209117, 13604203, -5866996, 2884908, -1764293, 978711},
    {1004284811, -44969990, 14092608, -6067251, 2980298, -1821026, 1009644},
    {956518138, -46957285, 14634846, -6288445, 3085343, -1883341, 1043567},
    {906545701, -49223024, 15241068, -6534325, 3201714, -1952179, 1080976},
    {854043404, -51837400, 15924127, -6809590, 3331498, -2028706, 1122483},
    {798601046, -54897735, 16700450, -7120206, 3477324, -2114386, 1168853},
    {739687018, -58543465, 17591161, -7473828, 3642548, -2211076, 1221055},
    {676592162, -62982508, 18623306, -7880370, 3831496, -2321159, 1280326},
    {608335627, -68540843, 19830443, -8352765, 4049797, -2447725, 1348266},
    {533496111, -75763677, 21249275, -8907956, 4304797, -2594804, 1426962},
    {449881644, -85645549, 22898094, -9568692, 4606016, -2767663, 1519140},
    {353800856, -100238500, 24667243, -10372882, 4964941, -2973136, 1628343},
    {238141591, -124665680, 25681716, -11481153, 5379565, -3221829, 1758784},
    {85534103, -176978965, 18590366, -15364461, 5090576, -3785413, 1829471},
};

VARY__INLINE float vary__gaussian(uint32_t bits) {
    const uint32_t v = bits | 1u, shift = (uint32_t)__builtin_clz(v);
    const int64_t x_q31 = (int64_t)(v << shift & 0x7fffffffu) - 0x40000000;
    const int32_t* coefficients = vary__gaussian_table[31 - shift];
    int64_t z_q28 = coefficients[VARY__GAUSSIAN_DEGREE];
    for (int i = VARY__GAUSSIAN_DEGREE - 1; i >= 0; i--) {
        /* The product, below 2^62, is made positive, since C does not define the shift of negative numbers. */
        const uint64_t product_q59 = (uint64_t)(z_q28 * x_q31) + ((uint64_t)1 << 62);
        z_q28 = coefficients[i] - ((int64_t)1 << 31) + (int64_t)(product_q59 >> 31);
    }
    return (float)(bits & 1u ? z_q28 : -z_q28) * (1.0f / 268435456.0f);
}

float vary_gaussian(uint32_t bits) { return vary__gaussian(bits); }

/* ---- Constants ---- */

#define VARY__FLOAT_MAX 3.4028234663852886e38
#define VARY__FLOAT_MIN_NORMAL 1.1754943508222875e-38

static float vary__float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int vary__is_finite_f32(uint32_t bits) { return (bits & 0x7f800000u) != 0x7f800000u; }

static int vary__is_normal_f32(uint32_t bits) { return vary__is_finite_f32(bits) && (bits & 0x7f800000u) != 0; }

/* The nearest f32, finite, with zero for a subnormal in every flush mode of the processor. */
VARY__INLINE uint32_t vary__constant_of_double(double value) {
    uint32_t bits;
    if (value > VARY__FLOAT_MAX) value = VARY__FLOAT_MAX;
    if (value < -VARY__FLOAT_MAX) value = -VARY__FLOAT_MAX;
    if (value < VARY__FLOAT_MIN_NORMAL && value > -VARY__FLOAT_MIN_NORMAL) return 0;
    float rounded = (float)value;
    memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

/* The nearest integer, halves up. |value| < 2^52. */
static int64_t vary__round(double value) {
    const double shifted = value + 0.5;
    const int64_t truncated = (int64_t)shifted;
    return truncated - ((double)truncated > shifted);
}

/* ---- Tables ---- */

typedef struct Vary__Payload {
    double first; /* Gaussian: mean; uniform: low end */
    uint64_t num_values; /* integer */
    float factor; /* Gaussian: deviation; uniform: width. Kept in f32: its product with a drawn f32 is exact in double. */
    uint32_t lowest; /* integer */
    uint32_t draw;
} Vary__Payload;

struct VaryTables {
    Vary__Events umad;
    Vary__Events alternation;
    Vary__Events perturbation;
    Vary__Events replacement;
    uint64_t operator_bounds[VARY_NUM_OPERATORS - 1]; /* Q32: operator k or below for a number below bound k */
    VaryOptions options;
    uint32_t log2_columns;
    Vary__Column* columns;
    uint64_t* words; /* payload zero unless literal */
    Vary__Payload* payloads;
    uint8_t* is_drawn; /* whether the payload is drawn */
    uint8_t* num_words; /* of the phrase */
    uint64_t* weights; /* of the columns; used only during vary_init */
    int has_phrases;
};

/* ---- New words ---- */

VARY__INLINE uint64_t vary__draw_payload(const VaryTables* tables, uint32_t entry, uint32_t number) {
    const Vary__Payload* payload = tables->payloads + entry;
    uint32_t bits;
    if (payload->draw == VARY_DRAW_INTEGER) {
        bits = payload->lowest + (uint32_t)((payload->num_values * number) >> 32);
    } else {
        const float factor =
            payload->draw == VARY_DRAW_GAUSSIAN ? vary__gaussian(number) : (float)(number >> 8) * (1.0f / 16777216.0f);
        bits = vary__constant_of_double(payload->first + (double)payload->factor * (double)factor);
    }
    return tables->words[entry] | (uint64_t)bits << 32;
}

/* Draws a word, or as many of a phrase as there is room for, which is at least one; returns their number. Takes one number for the
 * choice, and one for each payload that is drawn. */
VARY__INLINE uint32_t vary__draw_words(const VaryTables* tables, Vary__Numbers* numbers, uint64_t* out, uint32_t room) {
    const uint32_t first = vary__alias_draw(tables->columns, tables->log2_columns, vary__next(numbers));
    const uint32_t count = tables->num_words[first] < room ? tables->num_words[first] : room;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t entry = first + i;
        out[i] = tables->is_drawn[entry] ? vary__draw_payload(tables, entry, vary__next(numbers)) : tables->words[entry];
    }
    return count;
}

/* ---- Rows ---- */

static inline uint32_t vary__min(uint32_t a, uint32_t b) { return a < b ? a : b; }

static inline uint32_t vary__trailing_zeros(uint64_t bits) { return (uint32_t)__builtin_ctzll(bits); }

static inline uint32_t vary__count_bits(uint64_t bits) {
    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
    return (uint32_t)(((bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * UINT64_C(0x0101010101010101) >> 56);
}

/* Bit i: the low half of word i of `count` <= 64, seen through `mask`, is `value`. */
VARY__INLINE uint64_t vary__match(const uint64_t* words, uint32_t count, uint32_t mask, uint32_t value) {
    uint64_t matches = 0;
    uint32_t i = 0;
#if defined(__SSE2__)
    for (; i + 16 <= count; i += 16) {
        __m128i fours[4];
        for (uint32_t k = 0; k < 4; k++) {
            const __m128i low = _mm_loadu_si128((const __m128i*)(const void*)(words + i + 4 * k));
            const __m128i high = _mm_loadu_si128((const __m128i*)(const void*)(words + i + 4 * k + 2));
            const __m128 halves = _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0x88);
            const __m128i seen = _mm_and_si128(_mm_castps_si128(halves), _mm_set1_epi32((int)mask));
            fours[k] = _mm_cmpeq_epi32(seen, _mm_set1_epi32((int)value));
        }
        fours[0] = _mm_packs_epi16(_mm_packs_epi32(fours[0], fours[1]), _mm_packs_epi32(fours[2], fours[3]));
        matches |= (uint64_t)(uint32_t)_mm_movemask_epi8(fours[0]) << i;
    }
#endif
    for (; i < count; i++) matches |= (uint64_t)(((uint32_t)words[i] & mask) == value) << i;
    return matches;
}

VARY__INLINE uint32_t vary__length(const uint64_t* words, uint32_t max_length) {
    for (uint32_t start = 0; start < max_length; start += 64) {
        const uint32_t count = vary__min(max_length - start, 64);
        const uint64_t returns = vary__match(words + start, count, 0xffffu, VARY__TYPE_RETURN);
        if (returns) return start + vary__trailing_zeros(returns);
    }
    return max_length;
}

uint32_t vary_program_length(const uint64_t* words, uint32_t max_length) { return words ? vary__length(words, max_length) : 0; }

static inline void vary__copy(uint64_t* to, const uint64_t* from, uint32_t count) {
    memcpy(to, from, (size_t)count * sizeof *to);
}

enum { VARY__CHUNK = 16 };

/* Copies at least `count` words, in whole chunks and at least one: otherwise each short copy of unpredictable length
 * costs a mispredicted branch. Reads and writes up to VARY__CHUNK extra words. */
VARY__INLINE void vary__copy_chunks(uint64_t* to, const uint64_t* from, uint32_t count) {
    uint32_t copied = 0;
    do {
        memcpy(to + copied, from + copied, VARY__CHUNK * sizeof *to);
        copied += VARY__CHUNK;
    } while (copied < count);
}

VARY__INLINE void vary__copy_words(int has_room, uint64_t* to, const uint64_t* from, uint32_t count) {
    if (has_room)
        vary__copy_chunks(to, from, count);
    else
        vary__copy(to, from, count);
}

/* ---- Operators: each writes a program of at most max_length words to `out`, a row of that many, and returns its length.
 * Only UMAD takes an empty parent. ---- */

typedef struct Vary__Parent {
    const uint64_t* words;
    uint32_t length;
} Vary__Parent;

/* Writes what a hit leaves of `old` and the new words, up to the end of the row. Returns the new length. */
static inline uint32_t vary__write_hit(
    uint32_t kind, uint64_t old, const uint64_t* words, uint32_t num_words, uint64_t* out, uint32_t written, uint32_t max_length
) {
    const uint32_t is_new = kind / VARY__NEW & 1u;
    const uint32_t is_old = ((kind & VARY__KIND_MASK) >> VARY__COUNT_SHIFT) - is_new;
    if (is_old && !(kind & VARY__NEW_FIRST) && written < max_length) out[written++] = old;
    if (is_new) {
        const uint32_t count = vary__min(num_words, max_length - written);
        vary__copy(out + written, words, count);
        written += count;
    }
    if (is_old && (kind & VARY__NEW_FIRST) && written < max_length) out[written++] = old;
    return written;
}

/* One hit at an evenly drawn place. */
static uint32_t vary__umad_once(
    const VaryTables* tables, Vary__Numbers* words, Vary__Parent parent, uint32_t max_length, uint64_t* out
) {
    const uint32_t place = vary__scale(vary__next(words), parent.length);
    const uint32_t kind = vary__event_kind(&tables->umad, vary__next(words));
    uint64_t drawn[VARY_MAX_PHRASE];
    const uint32_t num_drawn = kind & VARY__NEW ? vary__draw_words(tables, words, drawn, VARY_MAX_PHRASE) : 0;
    vary__copy(out, parent.words, place);
    const uint32_t written = vary__write_hit(kind, parent.words[place], drawn, num_drawn, out, place, max_length);
    const uint32_t rest = vary__min(parent.length - place - 1, max_length - written);
    vary__copy(out + written, parent.words + place + 1, rest);
    return written + rest;
}

/* Adding and deleting are drawn together: a word keeps a new neighbour with a (1 - d) and is itself deleted with d. Events and
 * new words have two streams, so that no event waits for the lookup of the one before.
 *
 * has_room: `out` has room for two rows and a chunk, a chunk after the parent's words can be read, and there are no phrases. Then
 * nothing is checked or cut while copying, and words written past the row are garbage. */
VARY__INLINE uint32_t vary__umad(
    int has_room, const VaryTables* tables, Vary__Numbers* events, Vary__Numbers* words, Vary__Parent parent, uint32_t max_length,
    uint64_t* out
) {
    const Vary__Column* const columns = tables->columns;
    const uint64_t* const entries = tables->words;
    const uint8_t* const is_drawn = tables->is_drawn;
    const uint32_t log2_columns = tables->log2_columns;
    uint32_t num_events = 0, num_words = 0, read = 0, written = 0;
    if (parent.length == 0) return vary__draw_words(tables, words, out, max_length);
    for (;;) {
        uint64_t word, old, swap;
        if (num_events == events->num_made) vary__numbers_fill(events);
        const uint32_t event = vary__event(&tables->umad, events->group[num_events++ & VARY__GROUP_MASK]);
        const uint32_t gap = event >> VARY__KIND_BITS;
        if (gap >= parent.length - read) break;
        /* The kind cannot be predicted, so there is no branch on it: a new word is always looked up, and its two numbers are
         * consumed only if it is used. */
        if (num_words == words->num_made) vary__numbers_fill(words);
        const uint32_t is_new = event / VARY__NEW & 1u;
        const uint32_t entry = vary__alias_draw(columns, log2_columns, words->group[num_words & VARY__GROUP_MASK]);
        word = entries[entry];
        if (is_drawn[entry] & is_new) word = vary__draw_payload(tables, entry, words->group[(num_words & VARY__GROUP_MASK) + 1]);
        num_words += 2 * is_new;
        if (has_room) {
            vary__copy_chunks(out + written, parent.words + read, gap);
            read += gap;
            written += gap;
            old = parent.words[read++];
            swap = (old ^ word) & (0u - (uint64_t)(event & VARY__NEW_FIRST));
            out[written] = old ^ swap;
            out[written + 1] = word ^ swap;
            written += event >> VARY__COUNT_SHIFT & 3u;
        } else {
            const uint32_t count = vary__min(gap, max_length - written), num_drawn = tables->num_words[entry];
            uint64_t drawn[VARY_MAX_PHRASE];
            drawn[0] = word;
            for (uint32_t i = 1; i < num_drawn && is_new; i++, num_words += 2) {
                if (num_words == words->num_made) vary__numbers_fill(words);
                drawn[i] = is_drawn[entry + i]
                    ? vary__draw_payload(tables, entry + i, words->group[(num_words & VARY__GROUP_MASK) + 1])
                    : entries[entry + i];
            }
            vary__copy(out + written, parent.words + read, count);
            read += gap;
            written = vary__write_hit(event, parent.words[read], drawn, num_drawn, out, written + count, max_length);
            read++;
        }
    }
    if (num_words == 0 && written == read) return vary__umad_once(tables, words, parent, max_length, out);
    uint32_t rest = parent.length - read;
    if (has_room) {
        vary__copy_chunks(out + written, parent.words + read, rest);
    } else {
        rest = vary__min(rest, max_length - written);
        vary__copy(out + written, parent.words + read, rest);
    }
    return vary__min(written + rest, max_length);
}

VARY__INLINE uint32_t vary__alternation(
    int has_room, const VaryTables* tables, Vary__Numbers* numbers, Vary__Parent first, Vary__Parent second, uint32_t max_length,
    uint64_t* out
) {
    Vary__Parent reading = first, other = second, swapped;
    uint64_t gap = vary__next_hit(&tables->alternation, numbers, 0, first.length);
    uint32_t read = 0, written = 0, count;
    if (gap >= first.length) gap = vary__scale(vary__next(numbers), first.length);
    for (uint32_t num_switches = 0;; num_switches++) {
        count = vary__min(reading.length - read, max_length - written);
        /* The limit: at a rate near one it could switch forever and write nothing. */
        if (gap >= count || num_switches == max_length) break;
        vary__copy_words(has_room, out + written, reading.words + read, (uint32_t)gap);
        written += (uint32_t)gap;
        const int64_t shifted = (int64_t)read + (int64_t)gap +
            vary__round((double)(float)tables->options.rates[VARY_RATE_ALTERNATION_DEVIATION] *
                        (double)vary__gaussian(vary__next(numbers)));
        swapped = reading;
        reading = other;
        other = swapped;
        if (shifted >= (int64_t)reading.length) return written;
        read = shifted > 0 ? (uint32_t)shifted : 0;
        gap = vary__next_hit(&tables->alternation, numbers, 0, max_length);
    }
    vary__copy_words(has_room, out + written, reading.words + read, count);
    return written + count;
}

VARY__INLINE uint32_t vary__crossover(Vary__Numbers* numbers, Vary__Parent first, Vary__Parent second, uint64_t* out) {
    const uint32_t num_common = vary__min(first.length, second.length);
    const uint64_t* const sources[2] = {first.words, second.words}; /* a condition could become a branch */
    for (uint32_t start = 0; start < num_common; start += 32) {
        const uint32_t choices = vary__next(numbers);
        const uint32_t count = vary__min(num_common - start, 32);
        for (uint32_t i = 0; i < count; i++) out[start + i] = sources[choices >> i & 1u][start + i];
    }
    vary__copy(out + num_common, first.words + num_common, first.length - num_common);
    return first.length;
}

/* Stack effect of a word; num_popped is VARY_UNKNOWN_EFFECT for one that is in no subprogram. */
VARY__INLINE VaryEffect vary__effect_of(const VaryTables* tables, uint64_t word) {
    const uint32_t type = (uint32_t)(word & 0xffffu), stack = (uint32_t)(word >> 16 & 0xffffu), payload = (uint32_t)(word >> 32);
    VaryEffect effect;
    memset(&effect, 0, sizeof effect);
    if (type == VARY__TYPE_PTX && payload < tables->options.num_effects) return tables->options.effects[payload];
    if (type == VARY__TYPE_INPUT && payload < tables->options.num_inputs) {
        effect.num_pushed = 1;
        effect.stacks[0] = tables->options.input_stacks[payload];
    } else if (type == VARY__TYPE_CONSTANT && stack < VARY__NUM_MASKED_STACKS) {
        effect.num_pushed = 1;
        effect.stacks[0] = (uint8_t)stack;
    } else if (type == VARY__TYPE_META && stack < VARY__NUM_MASKED_STACKS && (payload == VARY__DUP || payload == VARY__SWAP)) {
        effect.num_popped = payload == VARY__DUP ? 1 : 2;
        effect.num_pushed = 2;
        memset(effect.stacks, (int)stack, 4);
    } else {
        effect.num_popped = VARY_UNKNOWN_EFFECT;
    }
    return effect;
}

/* The index of the first word of the subprogram that ends at a word, or UINT32_MAX if there is none; and the stack of its
 * value. */
VARY__INLINE uint32_t
vary__subprogram_start(const VaryTables* tables, const uint64_t* words, uint32_t last, uint32_t* stack_out) {
    uint32_t needed[VARY__NUM_MASKED_STACKS]; /* values that later words of it take */
    uint32_t num_needed = 1;
    memset(needed, 0, sizeof needed);
    for (uint32_t index = last;; index--) {
        const VaryEffect effect = vary__effect_of(tables, words[index]);
        const uint8_t* pushed = effect.stacks;
        if (effect.num_popped == VARY_UNKNOWN_EFFECT) return UINT32_MAX;
        pushed += effect.num_popped;
        if (index == last) {
            if (effect.num_pushed != 1) return UINT32_MAX;
            *stack_out = pushed[0];
            needed[pushed[0]] = 1;
        }
        for (uint32_t i = 0; i < effect.num_pushed; i++) {
            if (needed[pushed[i]] == 0) return UINT32_MAX; /* a second value would be left */
            needed[pushed[i]]--;
            num_needed--;
        }
        for (uint32_t i = 0; i < effect.num_popped; i++) needed[effect.stacks[i]]++;
        num_needed += effect.num_popped;
        if (num_needed == 0) return index;
        if (index == 0) return UINT32_MAX;
    }
}

VARY__INLINE uint32_t vary__subprogram(
    const VaryTables* tables, Vary__Numbers* numbers, Vary__Parent first, Vary__Parent second, uint32_t max_length, uint64_t* out
) {
    uint32_t start = UINT32_MAX, last = 0, stack = 0, other_start = UINT32_MAX, other_last = 0, other_stack = 0, tries, written,
             count;
    for (tries = 0; tries < VARY_NUM_TRIES && start == UINT32_MAX; tries++) {
        last = vary__scale(vary__next(numbers), first.length);
        start = vary__subprogram_start(tables, first.words, last, &stack);
    }
    if (start == UINT32_MAX || second.length == 0) return UINT32_MAX;
    for (tries = 0; tries < VARY_NUM_TRIES && other_start == UINT32_MAX; tries++) {
        other_last = vary__scale(vary__next(numbers), second.length);
        other_start = vary__subprogram_start(tables, second.words, other_last, &other_stack);
        if (other_start != UINT32_MAX && other_stack != stack) other_start = UINT32_MAX;
    }
    if (other_start == UINT32_MAX) return UINT32_MAX;
    vary__copy(out, first.words, start);
    written = start;
    count = vary__min(other_last + 1 - other_start, max_length - written);
    vary__copy(out + written, second.words + other_start, count);
    written += count;
    count = vary__min(first.length - last - 1, max_length - written);
    vary__copy(out + written, first.words + last + 1, count);
    return written + count;
}

/* Bit i: word i of `count` <= 64 is a constant that perturbation can change. */
VARY__INLINE uint64_t vary__constants(const VaryTables* tables, const uint64_t* words, uint32_t count) {
    uint64_t stacks = tables->options.float_stacks | tables->options.unsigned_stacks | tables->options.signed_stacks,
             constants = 0;
    for (; stacks; stacks &= stacks - 1)
        constants |= vary__match(words, count, 0xffffffffu, VARY__TYPE_CONSTANT | vary__trailing_zeros(stacks) << 16);
    return constants;
}

VARY__INLINE uint64_t vary__perturb(const VaryTables* tables, uint64_t word, uint32_t number) {
    const uint64_t stack = (uint64_t)1 << (word >> 16 & 0xffffu);
    const uint32_t bits = (uint32_t)(word >> 32);
    const double z = (double)vary__gaussian(number);
    /* Through f32, so that products with what is drawn are exact. */
    const double relative = (double)(float)tables->options.rates[VARY_RATE_PERTURBATION_RELATIVE];
    const double absolute = (double)(float)tables->options.rates[VARY_RATE_PERTURBATION_ABSOLUTE];
    uint32_t payload;
    if (stack & tables->options.float_stacks) {
        /* A number that is not normal counts as zero. */
        const double value = vary__is_normal_f32(bits) ? (double)vary__float_of_bits(bits) : 0.0;
        const double deviation = relative * (value < 0.0 ? -value : value) + absolute;
        payload = vary__constant_of_double(value + z * (double)vary__float_of_bits(vary__constant_of_double(deviation)));
    } else {
        const int is_signed = (stack & tables->options.signed_stacks) != 0;
        const int64_t lowest = is_signed ? INT32_MIN : 0, highest = is_signed ? INT32_MAX : UINT32_MAX;
        const int64_t value = is_signed && bits >> 31 ? (int64_t)bits - ((int64_t)1 << 32) : (int64_t)bits;
        const double deviation = relative * (double)(float)(value < 0 ? -value : value) + absolute;
        const double distance = (z < 0.0 ? -z : z) * (double)vary__float_of_bits(vary__constant_of_double(deviation));
        const int64_t step = 1 + (distance < 4294967296.0 ? (int64_t)distance : highest - lowest);
        int64_t moved = z < 0.0 ? value - step : value + step;
        if (moved < lowest) moved = value == lowest ? lowest + 1 : lowest;
        if (moved > highest) moved = value == highest ? highest - 1 : highest;
        payload = (uint32_t)moved;
    }
    return (word & 0xffffffffu) | (uint64_t)payload << 32;
}

/* Returns UINT32_MAX if there is no constant to perturb. */
VARY__INLINE uint32_t vary__perturbation(const VaryTables* tables, Vary__Numbers* numbers, Vary__Parent parent, uint64_t* out) {
    uint32_t num_constants = 0, index = 0;
    for (uint32_t start = 0; start < parent.length; start += 64) {
        const uint32_t count = vary__min(parent.length - start, 64);
        num_constants += vary__count_bits(vary__constants(tables, parent.words + start, count));
    }
    if (num_constants == 0) return UINT32_MAX;
    vary__copy(out, parent.words, parent.length);
    uint64_t hit = vary__next_hit(&tables->perturbation, numbers, 0, num_constants);
    const int is_only_hit = hit >= num_constants;
    if (is_only_hit) hit = vary__scale(vary__next(numbers), num_constants);
    for (uint32_t start = 0; hit < num_constants; start += 64) {
        const uint32_t count = vary__min(parent.length - start, 64);
        uint64_t constants = vary__constants(tables, parent.words + start, count);
        for (; constants; constants &= constants - 1) {
            const uint32_t place = start + vary__trailing_zeros(constants);
            if (index++ != hit) continue;
            out[place] = vary__perturb(tables, out[place], vary__next(numbers));
            hit = is_only_hit ? num_constants : vary__next_hit(&tables->perturbation, numbers, hit + 1, num_constants);
        }
    }
    return parent.length;
}

VARY__INLINE uint32_t vary__replacement(
    int has_room, const VaryTables* tables, Vary__Numbers* numbers, Vary__Parent parent, uint32_t max_length, uint64_t* out
) {
    uint64_t hit = vary__next_hit(&tables->replacement, numbers, 0, parent.length);
    uint32_t read = 0, written = 0, count;
    int is_only_hit = hit >= parent.length;
    if (is_only_hit) hit = vary__scale(vary__next(numbers), parent.length);
    while (hit < parent.length && written < max_length) {
        count = vary__min((uint32_t)hit - read, max_length - written);
        vary__copy_words(has_room, out + written, parent.words + read, count);
        written += count;
        read = (uint32_t)hit + 1;
        if (written < max_length) written += vary__draw_words(tables, numbers, out + written, max_length - written);
        hit = is_only_hit ? parent.length : vary__next_hit(&tables->replacement, numbers, hit + 1, parent.length);
    }
    count = vary__min(parent.length - read, max_length - written);
    vary__copy_words(has_room, out + written, parent.words + read, count);
    return written + count;
}

/* ---- Public functions ---- */

const char* vary_result_to_string(VaryResult result) { EVO__RETURN_NAME(result, VARY__RESULTS, "unknown VaryResult") }

const char* vary_operator_to_string(uint32_t operator_code) {
    return operator_code < VARY_NUM_OPERATORS ? vary__operators[operator_code].name : NULL;
}

const VaryRateInfo* vary_rate_info(uint32_t rate) {
#define VARY__ROW(OPERATOR, RATE, name, initial, lowest, highest, is_lowest_refused) \
    {VARY_OPERATOR_##OPERATOR, #name, initial, lowest, highest, is_lowest_refused},
    static const VaryRateInfo rates[VARY_NUM_RATES] = {VARY_RATES(VARY__ROW)};
#undef VARY__ROW
    return rate < VARY_NUM_RATES ? rates + rate : NULL;
}

void vary_default_options(VaryOptions* options_out) {
    if (!options_out) return;
    memset(options_out, 0, sizeof *options_out);
    options_out->operator_weights[VARY_OPERATOR_UMAD] = 1.0;
    for (uint32_t rate = 0; rate < VARY_NUM_RATES; rate++) options_out->rates[rate] = vary_rate_info(rate)->default_value;
    options_out->initial_min_length = 1;
    options_out->initial_max_length = 64;
}

static uint32_t vary__log2_columns(size_t num_entries) {
    uint32_t log2_columns = 1;
    while ((size_t)1 << log2_columns < num_entries) log2_columns++;
    return log2_columns;
}

/* Returns where the tables are to lie. */
static VaryTables* vary__take_tables(EvoArena* arena, size_t num_entries, VaryTables* tables) {
    VaryTables* place = (VaryTables*)evo__take(arena, 1, sizeof *place);
    tables->log2_columns = vary__log2_columns(num_entries);
    tables->columns = (Vary__Column*)evo__take(arena, (size_t)1 << tables->log2_columns, sizeof *tables->columns);
    tables->words = (uint64_t*)evo__take(arena, num_entries, sizeof *tables->words);
    tables->payloads = (Vary__Payload*)evo__take(arena, num_entries, sizeof *tables->payloads);
    tables->is_drawn = (uint8_t*)evo__take(arena, num_entries, sizeof *tables->is_drawn);
    tables->num_words = (uint8_t*)evo__take(arena, num_entries, sizeof *tables->num_words);
    tables->weights = (uint64_t*)evo__take(arena, (size_t)1 << tables->log2_columns, sizeof *tables->weights);
    return place;
}

VaryResult vary_tables_size(size_t num_entries, size_t* num_bytes_out) {
    EvoArena arena = evo__arena(NULL, 0);
    VaryTables tables;
    if (!num_bytes_out) return VARY__ERROR(INVALID_VALUE);
    if (num_entries == 0) return VARY__ERROR(EMPTY_VOCABULARY);
    if (num_entries > VARY_MAX_ENTRIES) return VARY__ERROR(TOO_MANY_ENTRIES);
    (void)vary__take_tables(&arena, num_entries, &tables);
    *num_bytes_out = arena.num_bytes;
    return VARY_SUCCESS;
}

/* False for NaN. */
static int vary__is_within(double value, double lowest, double highest) { return value >= lowest && value <= highest; }

static VaryResult vary__init_entry(
    const VaryEntry* entry, const VaryOptions* options, uint64_t* word_out, Vary__Payload* payload_out
) {
    const uint32_t type = (uint32_t)entry->word & 0xffffu, stack = (uint32_t)entry->word >> 16;
    const int is_float_constant =
        type == VARY__TYPE_CONSTANT && stack < VARY__NUM_MASKED_STACKS && options->float_stacks >> stack & 1u;
    const double first = entry->params[0], second = entry->params[1];
    memset(payload_out, 0, sizeof *payload_out);
    if (type == VARY__TYPE_RETURN || entry->draw >= VARY_NUM_DRAWS) return VARY__ERROR(INVALID_ENTRY);
    payload_out->draw = entry->draw;
    *word_out = entry->draw == VARY_DRAW_LITERAL ? entry->word : entry->word & 0xffffffffu;
    if (entry->draw == VARY_DRAW_LITERAL) {
        if (is_float_constant && !vary__is_finite_f32((uint32_t)(entry->word >> 32))) return VARY__ERROR(INVALID_ENTRY);
    } else if (entry->draw == VARY_DRAW_INTEGER) {
        if (is_float_constant || !vary__is_within(first, -2147483648.0, 4294967295.0) ||
            !vary__is_within(second, first + 1.0, 4294967296.0) || second - first > 4294967296.0 ||
            (double)(int64_t)first != first || (double)(int64_t)second != second) {
            return VARY__ERROR(INVALID_ENTRY);
        }
        payload_out->lowest = (uint32_t)(int64_t)first;
        payload_out->num_values = (uint64_t)(second - first);
    } else {
        const double factor = entry->draw == VARY_DRAW_GAUSSIAN ? second : second - first;
        if (!is_float_constant || !vary__is_within(first, -VARY__FLOAT_MAX, VARY__FLOAT_MAX) ||
            !vary__is_within(second, -VARY__FLOAT_MAX, VARY__FLOAT_MAX) || !vary__is_within(factor, 0.0, VARY__FLOAT_MAX)) {
            return VARY__ERROR(INVALID_ENTRY);
        }
        payload_out->first = first;
        payload_out->factor = (float)factor;
    }
    return VARY_SUCCESS;
}

/* The share of `below` in `total`, in Q32. */
static uint64_t vary__share_q32(double below, double total) { return (uint64_t)(below / total * 4294967296.0 + 0.5); }

/* Whether all effects fit, and all stacks are below 64. */
static int vary__are_effects(const VaryOptions* options) {
    for (size_t i = 0; options->effects && i < options->num_effects; i++) {
        const VaryEffect* effect = options->effects + i;
        const uint32_t num_values = (uint32_t)effect->num_popped + effect->num_pushed;
        if (effect->num_popped == VARY_UNKNOWN_EFFECT) continue;
        if (num_values > VARY_MAX_EFFECT_VALUES) return 0;
        for (uint32_t k = 0; k < num_values; k++)
            if (effect->stacks[k] >= VARY__NUM_MASKED_STACKS) return 0;
    }
    for (size_t i = 0; options->input_stacks && i < options->num_inputs; i++)
        if (options->input_stacks[i] >= VARY__NUM_MASKED_STACKS) return 0;
    return 1;
}

static VaryResult vary__init_options(const VaryOptions* options, VaryTables* tables) {
    static const uint8_t umad_kinds[4] = {VARY__ADD_BEFORE, VARY__ADD_AFTER, VARY__DELETE, VARY__REPLACE};
    static const uint8_t hit_kind[1] = {VARY__DELETE};
    uint64_t addition, deletion, both, rates[4];
    double total = 0.0, below = 0.0;
    for (int i = 0; i < VARY_NUM_OPERATORS; i++) {
        if (!vary__is_within(options->operator_weights[i], 0.0, VARY__FLOAT_MAX)) return VARY__ERROR(INVALID_WEIGHT);
        total += options->operator_weights[i];
    }
    if (total <= 0.0) return VARY__ERROR(INVALID_WEIGHT);
    for (uint32_t rate = 0; rate < VARY_NUM_RATES; rate++) {
        const VaryRateInfo* info = vary_rate_info(rate);
        const double value = options->rates[rate];
        if (!vary__is_within(value, info->lowest, info->highest) || (info->is_lowest_refused && value <= info->lowest))
            return VARY__ERROR(INVALID_RATE);
    }
    if (options->rates[VARY_RATE_PERTURBATION_RELATIVE] <= 0.0 && options->rates[VARY_RATE_PERTURBATION_ABSOLUTE] <= 0.0)
        return VARY__ERROR(INVALID_SCALE);
    if ((options->float_stacks & options->unsigned_stacks) || (options->float_stacks & options->signed_stacks) ||
        (options->unsigned_stacks & options->signed_stacks)) {
        return VARY__ERROR(INVALID_STACKS);
    }
    if (!vary__are_effects(options)) return VARY__ERROR(INVALID_STACKS);
    if (options->initial_min_length > options->initial_max_length || options->initial_max_length > VARY_MAX_LENGTH)
        return VARY__ERROR(INVALID_LENGTH);

    for (int i = 0; i < VARY_NUM_OPERATORS - 1; i++) {
        below += options->operator_weights[i];
        tables->operator_bounds[i] = vary__share_q32(below, total);
    }
    deletion = vary__rate_q31(options->rates[VARY_RATE_UMAD_DELETION_RATE]);
    addition = vary__multiply_q31(vary__rate_q31(options->rates[VARY_RATE_UMAD_ADDITION_RATE]), VARY__ONE_Q31 - deletion);
    both = vary__multiply_q31(addition, deletion);
    rates[0] = (addition - both) / 2;
    rates[1] = addition - both - rates[0];
    rates[2] = deletion - both;
    rates[3] = both;
    vary__events_build(rates, umad_kinds, 4, &tables->umad);
    rates[0] = vary__rate_q31(options->rates[VARY_RATE_ALTERNATION_RATE]);
    vary__events_build(rates, hit_kind, 1, &tables->alternation);
    rates[0] = vary__rate_q31(options->rates[VARY_RATE_PERTURBATION_RATE]);
    vary__events_build(rates, hit_kind, 1, &tables->perturbation);
    rates[0] = vary__rate_q31(options->rates[VARY_RATE_REPLACEMENT_RATE]);
    vary__events_build(rates, hit_kind, 1, &tables->replacement);
    tables->options = *options;
    if (!options->effects) tables->options.num_effects = 0;
    if (!options->input_stacks) tables->options.num_inputs = 0;
    return VARY_SUCCESS;
}

VaryResult vary_init(
    const VaryEntry* entries, size_t num_entries, const VaryOptions* options, void* memory, size_t memory_bytes,
    const VaryTables** tables_out
) {
    EvoArena arena = evo__arena(memory, memory_bytes);
    VaryTables content, *tables;
    uint64_t below_q32 = 0;
    double total = 0.0, below = 0.0;
    size_t num_bytes;
    VaryResult result = vary_tables_size(num_entries, &num_bytes);
    if (result != VARY_SUCCESS) return result;
    if (!entries || !options || !memory || !tables_out) return VARY__ERROR(INVALID_VALUE);
    if (memory_bytes < num_bytes) return VARY__ERROR(INSUFFICIENT_MEMORY);
    memset(&content, 0, sizeof content);
    tables = vary__take_tables(&arena, num_entries, &content);
    *tables = content;
    result = vary__init_options(options, tables);
    if (result != VARY_SUCCESS) return result;

    for (size_t i = 0; i < num_entries; i++) {
        if (!vary__is_within(entries[i].weight, 0.0, VARY__FLOAT_MAX)) return VARY__ERROR(INVALID_WEIGHT);
        result = vary__init_entry(entries + i, options, tables->words + i, tables->payloads + i);
        if (result != VARY_SUCCESS) return result;
        if (entries[i].num_words == 0 || entries[i].num_words > VARY_MAX_PHRASE || entries[i].num_words > num_entries - i)
            return VARY__ERROR(INVALID_ENTRY);
        tables->is_drawn[i] = entries[i].draw != VARY_DRAW_LITERAL;
        tables->num_words[i] = (uint8_t)entries[i].num_words;
        tables->has_phrases |= tables->num_words[i] > 1;
        total += entries[i].weight;
    }
    if (total <= 0.0) return VARY__ERROR(EMPTY_VOCABULARY);
    memset(tables->weights, 0, ((size_t)1 << tables->log2_columns) * sizeof *tables->weights);
    for (size_t i = 0; i < num_entries; i++) {
        below += entries[i].weight;
        const uint64_t up_to_q32 = vary__share_q32(below, total);
        tables->weights[i] = up_to_q32 - below_q32;
        below_q32 = up_to_q32;
    }
    vary__alias_build(tables->weights, tables->log2_columns, tables->columns);
    *tables_out = tables;
    return VARY_SUCCESS;
}

static int vary__are_slots(uint32_t first_slot, size_t num_slots) { return (uint64_t)num_slots <= VARY__ONE_Q32 - first_slot; }

static void vary__finish_row(uint64_t* row, uint32_t length, uint32_t max_length) {
    if (length == max_length) return;
    row[length] = VARY__TYPE_RETURN;
    memset(row + length + 1, 0, (size_t)(max_length - length - 1) * sizeof *row);
}

VaryResult vary_random_programs(
    const VaryTables* tables, uint64_t seed, uint32_t generation, uint32_t first_slot, size_t num_programs, uint32_t max_length,
    uint64_t* words_out
) {
    if (!tables || (!words_out && num_programs)) return VARY__ERROR(INVALID_VALUE);
    if (max_length == 0 || max_length > VARY_MAX_LENGTH || tables->options.initial_max_length > max_length)
        return VARY__ERROR(INVALID_LENGTH);
    if (!vary__are_slots(first_slot, num_programs)) return VARY__ERROR(INVALID_RANGE);
    for (size_t program = 0; program < num_programs; program++) {
        const uint32_t min_length = tables->options.initial_min_length;
        uint64_t* row = words_out + program * max_length;
        Vary__Numbers numbers;
        vary__numbers_start(&numbers, seed, generation, first_slot + (uint32_t)program, VARY_STREAM_INITIAL_PROGRAMS);
        const uint32_t length =
            min_length + vary__scale(vary__next(&numbers), tables->options.initial_max_length - min_length + 1);
        for (uint32_t i = 0; i < length;) i += vary__draw_words(tables, &numbers, row + i, length - i);
        vary__finish_row(row, length, max_length);
    }
    return VARY_SUCCESS;
}

/* The draws of one offspring. */
typedef struct Vary__Job {
    Vary__Numbers numbers; /* of the operator's stream */
    Vary__Numbers words; /* of VARY_STREAM_UMAD_WORDS */
    uint32_t rows[2];
    uint32_t operator_code;
} Vary__Job;

static int vary__has_two_parents(uint32_t operator_code) { return vary__operators[operator_code].num_parents == 2; }

/* Draws parents and operators of up to four jobs. */
static void vary__jobs_draw(
    const VaryTables* tables, const VaryBatch* batch, uint32_t first_slot, uint32_t count, Vary__Job* jobs
) {
    const uint32_t* candidates = batch->candidates;
    const uint32_t num_candidates = (uint32_t)(candidates ? batch->num_candidates : batch->num_rows);
    uint32_t parents[VARY__GROUP], choices[VARY__GROUP], lane, bound;
    vary__philox_group(batch->seed, batch->generation, first_slot, 0, VARY_STREAM_PARENTS, VARY__OF_SLOTS, parents);
    vary__philox_group(batch->seed, batch->generation, first_slot, 0, VARY_STREAM_OPERATOR, VARY__OF_SLOTS, choices);
    for (lane = 0; lane < count; lane++) {
        Vary__Job* job = jobs + lane;
        const uint32_t slot = first_slot + lane;
        const uint32_t first = vary__scale_64(parents[lane], parents[4 + lane], num_candidates);
        const uint32_t other = vary__scale_64(parents[8 + lane], parents[12 + lane], num_candidates - 1);
        uint32_t operator_code = 0, second = first;
        for (bound = 0; bound < VARY_NUM_OPERATORS - 1; bound++) operator_code += choices[lane] >= tables->operator_bounds[bound];
        if (num_candidates == 1 && vary__has_two_parents(operator_code)) operator_code = VARY_OPERATOR_UMAD;
        if (vary__has_two_parents(operator_code)) second = other + (other >= first);
        const uint32_t stream = vary__operators[operator_code].stream;
        job->rows[0] = candidates ? candidates[first] : first;
        job->rows[1] = candidates ? candidates[second] : second;
        job->operator_code = operator_code;
        vary__numbers_start(&job->numbers, batch->seed, batch->generation, slot, stream);
        vary__numbers_start(&job->words, batch->seed, batch->generation, slot, VARY_STREAM_UMAD_WORDS);
        vary__numbers_fill(&job->numbers);
        if (operator_code == VARY_OPERATOR_UMAD) vary__numbers_fill(&job->words);
    }
}

/* Makes one offspring, without its RETURN; returns its length and sets the job's operator to the one applied. has_room as at
 * vary__umad. */
VARY__INLINE uint32_t
vary__job_run(int has_room, const VaryTables* tables, Vary__Job* job, const uint64_t* pool, uint32_t max_length, uint64_t* out) {
    Vary__Parent first, second = {NULL, 0};
    uint32_t length = UINT32_MAX;
    first.words = pool + (size_t)job->rows[0] * max_length;
    first.length = vary__length(first.words, max_length);
    if (vary__has_two_parents(job->operator_code)) {
        second.words = pool + (size_t)job->rows[1] * max_length;
        second.length = vary__length(second.words, max_length);
    }
    if (first.length != 0) {
        switch ((VaryOperator)job->operator_code) { /* each case returns UINT32_MAX if it cannot act */
            case VARY_OPERATOR_ALTERNATION:
                length = vary__alternation(has_room, tables, &job->numbers, first, second, max_length, out);
                break;
            case VARY_OPERATOR_CROSSOVER: length = vary__crossover(&job->numbers, first, second, out); break;
            case VARY_OPERATOR_PERTURBATION: length = vary__perturbation(tables, &job->numbers, first, out); break;
            case VARY_OPERATOR_REPLACEMENT:
                length = vary__replacement(has_room, tables, &job->numbers, first, max_length, out);
                break;
            case VARY_OPERATOR_SUBPROGRAM:
                length = vary__subprogram(tables, &job->numbers, first, second, max_length, out);
                break;
            case VARY_OPERATOR_UMAD:
            case VARY_NUM_OPERATORS: break;
        }
    }
    if (length == UINT32_MAX) {
        if (job->operator_code != VARY_OPERATOR_UMAD) {
            job->operator_code = VARY_OPERATOR_UMAD;
            vary__numbers_start(&job->numbers, job->numbers.seed, job->numbers.generation, job->numbers.slot, VARY_STREAM_UMAD);
        }
        length = vary__umad(has_room, tables, &job->numbers, &job->words, first, max_length, out);
    }
    return length;
}

static void vary__offspring(const VaryTables* tables, const VaryBatch* batch) {
    /* This many jobs are drawn before they are run: blocks of Philox overlap in the processor, and the parents' words are
     * prefetched before they are read. */
    enum { JOBS = 16, WORDS_PER_LINE = 8, MAX_LINES = 8 };
    const size_t num_offspring = batch->num_offspring;
    const uint32_t max_length = batch->max_length;
    const uint32_t num_lines = vary__min((max_length + WORDS_PER_LINE - 1) / WORDS_PER_LINE, MAX_LINES);
    Vary__Job jobs[JOBS];
    for (size_t start = 0; start < num_offspring; start += JOBS) {
        const uint32_t count = num_offspring - start < JOBS ? (uint32_t)(num_offspring - start) : (uint32_t)JOBS;
        for (uint32_t i = 0; i < count; i += VARY__LANES) {
            const uint32_t first_slot = batch->first_slot + (uint32_t)start + i;
            vary__jobs_draw(tables, batch, first_slot, vary__min(count - i, VARY__LANES), jobs + i);
        }
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t parent = 0; parent < vary__operators[jobs[i].operator_code].num_parents; parent++)
                for (uint32_t line = 0; line < num_lines; line++)
                    __builtin_prefetch(batch->pool + (size_t)jobs[i].rows[parent] * max_length + line * WORDS_PER_LINE);
        for (uint32_t i = 0; i < count; i++) {
            const size_t index = start + i;
            uint64_t* out = batch->words_out + index * max_length;
            const uint32_t last_row = jobs[i].rows[jobs[i].rows[1] > jobs[i].rows[0]];
            const int has_room = !tables->has_phrases &&
                (num_offspring - index) * max_length >= 2 * (size_t)max_length + VARY__CHUNK + 2 &&
                (batch->num_rows - last_row) * max_length >= (size_t)max_length + VARY__CHUNK;
            const uint32_t length = has_room ? vary__job_run(1, tables, jobs + i, batch->pool, max_length, out)
                                             : vary__job_run(0, tables, jobs + i, batch->pool, max_length, out);
            if (batch->lengths_out) {
                batch->lengths_out[index] = length;
                if (length < max_length) out[length] = VARY__TYPE_RETURN;
            } else if (has_room) {
                uint32_t zeroed = length + 1;
                out[length] = VARY__TYPE_RETURN;
                for (; zeroed < max_length; zeroed += VARY__CHUNK) memset(out + zeroed, 0, VARY__CHUNK * sizeof *out);
            } else {
                vary__finish_row(out, length, max_length);
            }
            if (batch->operators_out) batch->operators_out[index] = (uint8_t)jobs[i].operator_code;
            if (batch->parents_out) {
                const int has_second = vary__has_two_parents(jobs[i].operator_code);
                batch->parents_out[2 * index] = jobs[i].rows[0];
                batch->parents_out[2 * index + 1] = has_second ? (int64_t)jobs[i].rows[1] : -1;
            }
        }
    }
}

VaryResult vary_offspring(const VaryTables* tables, const VaryBatch* batch) {
    if (!tables || !batch) return VARY__ERROR(INVALID_VALUE);
    if (batch->max_length == 0 || batch->max_length > VARY_MAX_LENGTH) return VARY__ERROR(INVALID_LENGTH);
    if (batch->num_rows == 0 || (batch->candidates && batch->num_candidates == 0)) return VARY__ERROR(EMPTY_POOL);
    if (batch->num_rows > VARY_MAX_ROWS || (batch->candidates && batch->num_candidates > batch->num_rows) ||
        !vary__are_slots(batch->first_slot, batch->num_offspring)) {
        return VARY__ERROR(INVALID_RANGE);
    }
    if (!batch->pool || (!batch->words_out && batch->num_offspring)) return VARY__ERROR(INVALID_VALUE);
    vary__offspring(tables, batch);
    return VARY_SUCCESS;
}

#endif /* VARY_IMPLEMENTATION */
