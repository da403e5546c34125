/* Tests of stack_ptx.h: buffers, memory and wrong descriptions. See stack_ptx_bench.h. */

#include "stack_ptx.h"

#include "check.h"
#include "stack_ptx_bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- text and memory ---- */

TEST(test_every_buffer_size_is_respected) {
    static const size_t requests[] = {O0, OUT_U32, A, B};
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), INPUT(IN_T0), INPUT(IN_T0), INPUT(IN_T1),
                                                INPUT(A), INPUT(B), INPUT(C),     INPUT(D),     PTX(MMA),
                                                PTX(ADD), INPUT(A), PTX(FMA),     SPECIAL(TID), RETURN};
    static char expected[2048], buffer[2048];
    Bench bench;
    size_t length = 0, size, written;
    open_bench(&bench, &roomy, requests, 4);
    (void)memcpy(expected, STUB(&bench, words), sizeof expected);
    CHECK_RESULT(
        stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, NULL, 0, &length), SUCCESS
    );
    CHECK_UINT(length, strlen(expected));
    for (size = 0; size < sizeof buffer; ++size) {
        StackPtxResult result;
        size_t k, num_touched = 0;
        memset(buffer, 0x7E, sizeof buffer);
        written = 0;
        result = stack_ptx_emit(bench.language, &bench.lowered, bench.workspace, bench.workspace_bytes, buffer, size, &written);
        CHECK(result == (size > length ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INSUFFICIENT_BUFFER));
        CHECK_UINT(written, length);
        for (k = size; k < sizeof buffer; ++k) num_touched += buffer[k] != 0x7E;
        CHECK_UINT(num_touched, 0);
        if (size > length) CHECK_TEXT(buffer, expected);
    }
    close_bench(&bench);
}

TEST(test_long_names_give_the_same_text_as_short_ones) {
    /* Longer than any padded text, which has room for 59 characters of an instruction's name. */
#define LONG_A "a23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_"
#define LONG_Z "z23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_"
#define LONG_ADD "add.23456789.123456789.123456789.123456789.123456789.1234567"
    static const char* const strings[] = {LONG_ADD};
    static const StackPtxStackInfo info = {strings, descriptors, 1, NULL, NULL, 0, prefixes, NUM_STACKS, arg_types, NUM_ARGS};
    static const StackPtxRegister long_names[] = {{LONG_A, F32}, {LONG_Z, F32}};
    static const size_t requests[] = {1, 0};
    static const StackPtxInstruction words[] = {INPUT(1), INPUT(0), INPUT(1), PTX(0), RETURN};
    Bench bench;
    open_bench(&bench, &roomy, NULL, 0);
    bench.info.stack_info = &info;
    bench.info.traits = NULL;
    bench.info.registers = long_names;
    bench.info.num_registers = 2;
    bench.info.requests = requests;
    bench.info.num_requests = 2;
    open_language(&bench);
    CHECK_TEXT(
        STUB(&bench, words),
        "{\n.reg .f32 %_s0_<1>;\n" LONG_ADD " %_s0_0, %" LONG_Z ", %" LONG_A ";\n"
        "mov.f32 %" LONG_A ", %" LONG_Z ";\nmov.f32 %" LONG_Z ", %_s0_0;\n}"
    );
    close_bench(&bench);
}

TEST(test_memory_may_have_any_alignment_but_not_too_few_bytes) {
    static const StackPtxInstruction words[] = {INPUT(A), INPUT(B), PTX(SUB), RETURN};
    Bench bench;
    StackPtxHash hash;
    size_t offset, length = 0;
    open_bench(&bench, &roomy, request_o0, 1);
    hash = HASH(&bench, words);
    for (offset = 0; offset < 65; offset += 13) {
        size_t language_bytes = 0, work_bytes = 0;
        char* memory;
        char* workspace;
        const StackPtxLanguage* language = NULL;
        StackPtxHash other;
        CHECK_RESULT(stack_ptx_language_size(&bench.info, &language_bytes), SUCCESS);
        memory = (char*)malloc(language_bytes + offset);
        CHECK_RESULT(
            stack_ptx_language_init(&bench.info, memory + offset, language_bytes - 1, &language), ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK_RESULT(stack_ptx_language_init(&bench.info, memory + offset, language_bytes, &language), SUCCESS);
        CHECK_RESULT(stack_ptx_workspace_size(language, &work_bytes), SUCCESS);
        workspace = (char*)malloc(work_bytes + offset);
        CHECK_RESULT(
            stack_ptx_lower(
                language, STACK_PTX_MODE_LENIENT, 0, words, COUNT(words), workspace + offset, work_bytes - 1, &bench.lowered, NULL
            ),
            ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK_RESULT(
            stack_ptx_lower(
                language, STACK_PTX_MODE_LENIENT, 0, words, COUNT(words), workspace + offset, work_bytes, &bench.lowered, NULL
            ),
            SUCCESS
        );
        CHECK_RESULT(
            stack_ptx_emit(language, &bench.lowered, workspace + offset, work_bytes - 1, NULL, 0, &length),
            ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK_RESULT(
            stack_ptx_hash(language, &bench.lowered, workspace + offset, work_bytes - 1, &other), ERROR_INSUFFICIENT_WORKSPACE
        );
        CHECK_RESULT(stack_ptx_hash(language, &bench.lowered, workspace + offset, work_bytes, &other), SUCCESS);
        CHECK(is_equal(hash, other));
        free(memory);
        free(workspace);
    }
    close_bench(&bench);
}

TEST(test_null_where_nothing_says_so_is_an_invalid_value) {
    static const StackPtxInstruction words[] = {INPUT(A), RETURN};
    const StackPtxMode mode = STACK_PTX_MODE_LENIENT;
    const StackPtxLanguage* language = NULL;
    Bench bench;
    StackPtxHash hash;
    StackPtxLowered* lowered = &bench.lowered;
    size_t size = 0, num_bytes;
    void* work;
    open_bench(&bench, &roomy, request_o0, 1);
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    work = bench.workspace;
    num_bytes = bench.workspace_bytes;
#define REFUSED(call) CHECK_RESULT(call, ERROR_INVALID_VALUE)
    REFUSED(stack_ptx_check_name(NULL));
    REFUSED(stack_ptx_language_size(NULL, &size));
    REFUSED(stack_ptx_language_size(&bench.info, NULL));
    REFUSED(stack_ptx_language_init(NULL, bench.memory, 1u << 20, &language));
    REFUSED(stack_ptx_language_init(&bench.info, NULL, 1u << 20, &language));
    REFUSED(stack_ptx_language_init(&bench.info, bench.memory, 1u << 20, NULL));
    REFUSED(stack_ptx_workspace_size(NULL, &size));
    REFUSED(stack_ptx_workspace_size(bench.language, NULL));
    REFUSED(stack_ptx_lower(NULL, mode, 0, words, 2, work, num_bytes, lowered, NULL));
    REFUSED(stack_ptx_lower(bench.language, mode, 0, NULL, 2, work, num_bytes, lowered, NULL));
    REFUSED(stack_ptx_lower(bench.language, mode, 0, words, 2, NULL, num_bytes, lowered, NULL));
    REFUSED(stack_ptx_lower(bench.language, mode, 0, words, 2, work, num_bytes, NULL, NULL));
    REFUSED(stack_ptx_lower(bench.language, mode, 4, words, 2, work, num_bytes, lowered, NULL));
    CHECK_RESULT(LOWER(&bench, words), SUCCESS);
    REFUSED(stack_ptx_emit(NULL, lowered, work, num_bytes, NULL, 0, &size));
    REFUSED(stack_ptx_emit(bench.language, NULL, work, num_bytes, NULL, 0, &size));
    REFUSED(stack_ptx_emit(bench.language, lowered, NULL, num_bytes, NULL, 0, &size));
    REFUSED(stack_ptx_emit(bench.language, lowered, work, num_bytes, NULL, 0, NULL));
    REFUSED(stack_ptx_hash(bench.language, NULL, work, num_bytes, &hash));
    REFUSED(stack_ptx_hash(bench.language, lowered, work, num_bytes, NULL));
#undef REFUSED
    close_bench(&bench);
}

/* ---- descriptions ---- */

/* The result of preparing a language; all of its memory is there. */
static StackPtxResult init_result(const StackPtxLanguageInfo* info) {
    const StackPtxLanguage* language = NULL;
    size_t num_bytes = 0;
    StackPtxResult result = stack_ptx_language_size(info, &num_bytes);
    if (result == STACK_PTX_SUCCESS) {
        void* memory = malloc(num_bytes);
        result = stack_ptx_language_init(info, memory, num_bytes, &language);
        free(memory);
    }
    return result;
}

TEST(test_wrong_descriptions_are_refused_by_their_code) {
    static const StackPtxArgTypeInfo bad_stack[] = {{NUM_STACKS, 0}};
    static const StackPtxArgTypeInfo too_wide[] = {{F32, STACK_PTX_MAX_NUM_VEC_ELEMS + 1}};
    static const StackPtxPtxInstructionDescriptor bad_arg[] = {
        {{NUM_ARGS + 1, NONE_ARG, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxPtxInstructionDescriptor bad_ret[] = {
        {{ARG_F32, NONE_ARG, NONE_ARG, NONE_ARG}, {NUM_ARGS + 1, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxPtxInstructionDescriptor gap[] = {
        {{NONE_ARG, ARG_F32, NONE_ARG, NONE_ARG}, {ARG_F32, NONE_ARG}, 1, false, UNREAD_REQUIREMENTS},
    };
    static const StackPtxInstructionTraits one_commutes[] = {{1, 0, 0}};
    static const StackPtxInstructionTraits two_commute[] = {{2, 0, 0}};
    static const StackPtxSpecialRegisterDescriptor bad_special[] = {{NUM_ARGS}};
    static const StackPtxSpecialRegisterDescriptor wide_special[] = {{0}};
    static const StackPtxArgTypeInfo five[] = {{F32, 5}};
    static const uint8_t bad_constant[NUM_STACKS] = {STACK_PTX_CONSTANT_TYPE_NUM_ENUMS, 0, 0, 0, 0, 0};
    static const StackPtxRegister bad_register[] = {{"x", NUM_STACKS}};
    static const StackPtxRegister bad_name[] = {{"f1", F32}};
    static const StackPtxRegister no_name[] = {{NULL, F32}};
    static const StackPtxRegister two_types[] = {{"x", F32}, {"x", U32}};
    static const size_t bad_request[] = {NUM_REGISTERS};
    static const StackPtxInstruction* const no_routine[] = {NULL};
    static const size_t no_length[] = {0};
    StackPtxLanguageInfo good, info;
    StackPtxStackInfo set;
    StackPtxTraits of_set;
    Bench bench;
    open_bench(&bench, &roomy, request_o0, 1);
    good = bench.info;
    close_bench(&bench);
    good.stack_info = &set;
    good.traits = &of_set;

#define EXPECT(code, change)                                                            \
    do {                                                                                \
        info = good;                                                                    \
        set = stack_info;                                                               \
        of_set = traits;                                                                \
        change;                                                                         \
        CHECK_TEXT(stack_ptx_result_to_string(init_result(&info)), "STACK_PTX_" #code); \
    } while (0)

    EXPECT(SUCCESS, (void)0);
    EXPECT(SUCCESS, info.traits = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.stack_info = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.registers = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.requests = NULL);
    EXPECT(ERROR_INVALID_VALUE, info.num_routines = 1);
    EXPECT(ERROR_INVALID_VALUE, info.limits.stack_size = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, info.limits.max_nodes = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, info.limits.max_frame_depth = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, info.limits.store_size = 1u << 28);
    EXPECT(ERROR_INVALID_VALUE, set.ptx_instruction_strings = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.ptx_instruction_descriptors = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.special_register_strings = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.special_register_descriptors = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.stack_literal_prefixes = NULL);
    EXPECT(ERROR_INVALID_VALUE, set.arg_type_info = NULL);
    EXPECT(ERROR_INVALID_VALUE, of_set.constant_types = bad_constant);
    EXPECT(
        ERROR_STACK_IDX_OUT_OF_BOUNDS,
        (set.arg_type_info = bad_stack, set.num_arg_types = 1, set.num_ptx_instructions = 0, set.num_special_registers = 0)
    );
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.arg_type_info = too_wide, set.num_arg_types = 1, set.num_ptx_instructions = 0, set.num_special_registers = 0)
    );
    EXPECT(ERROR_ARG_IDX_OUT_OF_BOUNDS, (set.ptx_instruction_descriptors = bad_arg, set.num_ptx_instructions = 1));
    EXPECT(ERROR_ARG_IDX_OUT_OF_BOUNDS, (set.ptx_instruction_descriptors = bad_ret, set.num_ptx_instructions = 1));
    EXPECT(ERROR_INVALID_VALUE, (set.ptx_instruction_descriptors = gap, set.num_ptx_instructions = 1));
    EXPECT(ERROR_INVALID_VALUE, (of_set.instructions = one_commutes, set.num_ptx_instructions = 1));
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.ptx_instruction_descriptors = &descriptors[NEG], of_set.instructions = two_commute, set.num_ptx_instructions = 1)
    );
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.ptx_instruction_descriptors = &descriptors[MMA], of_set.instructions = two_commute, set.num_ptx_instructions = 1)
    );
    EXPECT(ERROR_ARG_IDX_OUT_OF_BOUNDS, (set.special_register_descriptors = bad_special, set.num_special_registers = 1));
    EXPECT(
        ERROR_INVALID_VALUE,
        (set.special_register_descriptors = wide_special, set.num_special_registers = 1, set.num_ptx_instructions = 0,
         set.arg_type_info = five, set.num_arg_types = 1)
    );
    EXPECT(ERROR_STACK_IDX_OUT_OF_BOUNDS, (info.registers = bad_register, info.num_registers = 1, info.num_requests = 0));
    EXPECT(ERROR_INVALID_VALUE, (info.registers = bad_name, info.num_registers = 1, info.num_requests = 0));
    EXPECT(ERROR_INVALID_VALUE, (info.registers = no_name, info.num_registers = 1, info.num_requests = 0));
    EXPECT(ERROR_INVALID_VALUE, (info.registers = two_types, info.num_registers = 2, info.num_requests = 0));
    EXPECT(ERROR_REGISTER_IDX_OUT_OF_BOUNDS, info.requests = bad_request);
    EXPECT(ERROR_INVALID_VALUE, (info.routines = no_routine, info.num_routines = 1));
    EXPECT(SUCCESS, (info.routines = no_routine, info.routine_lengths = no_length, info.num_routines = 1));
#undef EXPECT
}

TEST(test_names_of_compilers_and_of_ptx_are_refused) {
    static const char* const refused[] = {
        "f1",    "r2",     "rd3",   "p1",      "fd4",         "rs5",     "h6",  "hh7",      "b8",
        "rc9",   "rq10",   "f0123", "_s0_0",   "_s12_345",    "SP",      "SPL", "tid",      "ntid",
        "ctaid", "laneid", "clock", "clock64", "lanemask_lt", "envreg3", "pm0", "pm7_64",   "dynamic_smem_size",
        "",      "%x",     "a b",   "a-b",     "x.y",         "x,",      "x;",  "\xC3\xA4", "x\n"
    };
    static const char* const accepted[] = {"x",   "X",  "_x0",  "f",    "r",      "rd",   "p",    "f1a",   "f_1",    "r1_",
                                           "fx1", "x1", "out0", "s0_0", "_s0",    "_s0_", "_s_0", "_sx_1", "_s0_0a", "$",
                                           "a$b", "9a", "0",    "tidx", "clocks", "SPX",  "b",    "h",     "spl"};
    size_t i;
    for (i = 0; i < COUNT(refused); ++i)
        if (stack_ptx_check_name(refused[i]) != STACK_PTX_ERROR_INVALID_VALUE) CHECK_TEXT(refused[i], "a name that is refused");
    for (i = 0; i < COUNT(accepted); ++i)
        if (stack_ptx_check_name(accepted[i]) != STACK_PTX_SUCCESS) CHECK_TEXT(accepted[i], "a name that is accepted");
}
