from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "vary.h" nogil:
    ctypedef enum VaryResult:
        VARY_SUCCESS
        VARY_ERROR_EMPTY_VOCABULARY
        VARY_ERROR_INVALID_SCALE
        VARY_ERROR_INVALID_STACKS

    enum:
        VARY_NUM_OPERATORS
        VARY_NUM_RATES
        VARY_MAX_LENGTH
        VARY_MAX_PHRASE
        VARY_DRAW_LITERAL
        VARY_DRAW_GAUSSIAN
        VARY_DRAW_UNIFORM
        VARY_DRAW_INTEGER
        VARY_MAX_EFFECT_VALUES
        VARY_UNKNOWN_EFFECT

    ctypedef struct VaryEffect:
        pass

    ctypedef struct VaryEntry:
        pass

    ctypedef struct VaryOptions:
        double operator_weights[VARY_NUM_OPERATORS]
        double rates[VARY_NUM_RATES]
        uint32_t initial_min_length
        uint32_t initial_max_length
        uint64_t float_stacks
        uint64_t unsigned_stacks
        uint64_t signed_stacks
        const VaryEffect* effects
        size_t num_effects
        const uint8_t* input_stacks
        size_t num_inputs

    ctypedef struct VaryTables:
        pass

    ctypedef struct VaryBatch:
        uint64_t seed
        uint32_t generation
        uint32_t first_slot
        size_t num_offspring
        uint32_t max_length
        const uint64_t* pool
        size_t num_rows
        const uint32_t* candidates
        size_t num_candidates
        uint64_t* words_out
        uint32_t* lengths_out
        int64_t* parents_out
        uint8_t* operators_out

    ctypedef struct VaryRateInfo:
        uint32_t operator_code
        const char* name
        double default_value
        double lowest
        double highest
        bint is_lowest_refused

    const char* vary_result_to_string(VaryResult)
    const char* vary_operator_to_string(uint32_t)
    const VaryRateInfo* vary_rate_info(uint32_t)
    VaryResult vary_tables_size(size_t, size_t*)
    VaryResult vary_init(const VaryEntry*, size_t, const VaryOptions*, void*, size_t, const VaryTables**)
    VaryResult vary_random_programs(const VaryTables*, uint64_t, uint32_t, uint32_t, size_t, uint32_t, uint64_t*)
    VaryResult vary_offspring(const VaryTables*, const VaryBatch*)
    uint32_t vary_program_length(const uint64_t*, uint32_t)
