/*
 * Tests of derive.h as a C library: memory of exactly the size that the queries tell and of any alignment, one test for each
 * error code, and the stub of a derived program. What rules compute is tested from Python (tests/unit/native/test_derive.py).
 */

#include "check.h"
#include "tuning.h"

/* f = sin(1.5 x) */
static const StackPtxInstruction sine[] = {INPUT(X), NUMBER(1.5f), OPERATION(mul_ftz_f32), OPERATION(sin_approx_ftz_f32), RETURN};

static void test_derived_program_is_emitted_as_any_program(void) {
    static const StackPtxRegister names[] = {
        {"x", STACK_PTX_STACK_TYPE_F32},
        {"y", STACK_PTX_STACK_TYPE_F32},
        {"f", STACK_PTX_STACK_TYPE_F32},
        {"c", STACK_PTX_STACK_TYPE_F32},
        {"slope", STACK_PTX_STACK_TYPE_F32},
    };
    static const size_t outputs[] = {2, 4};
    Tools tools = tools_of_default_set();
    const StackPtxLowered lowered = lower(&tools, sine, COUNT(sine));
    StackPtxLowered derived;
    StackPtxLanguageInfo info;
    const StackPtxLanguage* language = NULL;
    const uint32_t parameters[] = {1};
    char text[1024];
    size_t num_bytes = 0, length = 0;
    CHECK_UINT(derive_size(&lowered, 1, &num_bytes), DERIVE_SUCCESS);
    Block memory = block_of(num_bytes);
    CHECK_UINT(
        derive_program(tools.derive_set, &lowered, 0, parameters, 1, 3, memory.memory, num_bytes, &derived), DERIVE_SUCCESS
    );
    memset(&info, 0, sizeof info);
    info.stack_info = &stack_ptx_stack_info;
    info.limits.max_nodes = 64;
    info.limits.stack_size = 64;
    info.limits.max_frame_depth = 1;
    info.registers = names;
    info.num_registers = COUNT(names);
    info.requests = outputs;
    info.num_requests = COUNT(outputs);
    (void)stack_ptx_language_size(&info, &num_bytes);
    Block language_memory = block_of(num_bytes);
    (void)stack_ptx_language_init(&info, language_memory.memory, num_bytes, &language);
    (void)stack_ptx_workspace_size(language, &num_bytes);
    Block workspace = block_of(num_bytes);
    CHECK_UINT(stack_ptx_emit(language, &derived, workspace.memory, num_bytes, text, sizeof text, &length), STACK_PTX_SUCCESS);
    CHECK_TEXT(
        text,
        "{\n"
        ".reg .f32 %_s0_<4>;\n"
        "mul.ftz.f32 %_s0_0, %c, %x;\n"
        "sin.approx.ftz.f32 %_s0_1, %_s0_0;\n"
        "cos.approx.ftz.f32 %_s0_2, %_s0_0;\n"
        "mul.ftz.f32 %_s0_3, %_s0_2, %x;\n"
        "mov.f32 %f, %_s0_1;\n"
        "mov.f32 %slope, %_s0_3;\n"
        "}"
    );
    free(memory.base);
    free(language_memory.base);
    free(workspace.base);
    tools_free(&tools);
}

static void test_wrong_arguments_are_refused(void) {
    Tools tools = tools_of_default_set();
    const StackPtxLowered lowered = lower(&tools, sine, COUNT(sine));
    StackPtxLowered derived;
    const uint32_t constant[] = {1}, input[] = {0}, twice[] = {1, 1}, beyond[] = {99};
    uint32_t found[4];
    size_t num_bytes = 0, count = 0;
    CHECK_UINT(derive_size(&lowered, 2, &num_bytes), DERIVE_SUCCESS);
    Block memory = block_of(num_bytes);
#define DERIVE(set, program, request, parameters, num, out)                                                      \
    derive_program(set, program, request, parameters, num, DERIVE_KEEP_CONSTANTS, memory.memory, num_bytes, out)
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, constant, 1, &derived), DERIVE_SUCCESS);
    CHECK_UINT(DERIVE(NULL, &lowered, 0, constant, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, NULL, 0, constant, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 1, constant, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, NULL, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, input, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, twice, 2, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, beyond, 1, &derived), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(DERIVE(tools.derive_set, &lowered, 0, constant, 1, NULL), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(
        derive_program(tools.derive_set, &lowered, 0, twice, 2, 3, memory.memory, num_bytes - 1, &derived),
        DERIVE_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(
        derive_constants(tools.derive_set, &lowered, 0, memory.memory, num_bytes, found, COUNT(found), &count), DERIVE_SUCCESS
    );
    CHECK_UINT(count, 1);
    CHECK_UINT(found[0], 1);
    CHECK_UINT(
        derive_constants(tools.derive_set, &lowered, 0, memory.memory, num_bytes, NULL, 1, &count), DERIVE_ERROR_INVALID_VALUE
    );
    CHECK_UINT(
        derive_constants(tools.derive_set, &lowered, 0, memory.memory, 1, found, 1, &count), DERIVE_ERROR_INSUFFICIENT_MEMORY
    );
    CHECK_UINT(derive_size(NULL, 1, &num_bytes), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(derive_set_size(NULL, &num_bytes), DERIVE_ERROR_INVALID_VALUE);
    CHECK_UINT(derive_set_init(&stack_ptx_stack_info, memory.memory, 1, &tools.derive_set), DERIVE_ERROR_INSUFFICIENT_MEMORY);
    CHECK_TEXT(derive_result_to_string(DERIVE_ERROR_INSUFFICIENT_MEMORY), "DERIVE_ERROR_INSUFFICIENT_MEMORY");
    CHECK_TEXT(derive_result_to_string(DERIVE_RESULT_NUM_ENUMS), "DERIVE_RESULT_UNKNOWN");
    free(memory.base);
    tools_free(&tools);
}

/* Without copysign, abs has no rule; without fma, nothing has. */
static void test_rule_needs_its_instructions(void) {
    enum { NUM_STRINGS = sizeof stack_ptx_ptx_instructions / sizeof stack_ptx_ptx_instructions[0] };
    const char* strings[NUM_STRINGS];
    StackPtxStackInfo info = stack_ptx_stack_info;
    const DeriveSet* set = NULL;
    size_t num_bytes = 0;
    CHECK_UINT(derive_set_size(&info, &num_bytes), DERIVE_SUCCESS);
    Block memory = block_of(num_bytes);
    memcpy(strings, info.ptx_instruction_strings, sizeof strings);
    info.ptx_instruction_strings = strings;
    strings[STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32] = "other.f32";
    CHECK_UINT(derive_set_init(&info, memory.memory, num_bytes, &set), DERIVE_SUCCESS);
    CHECK(!derive_set_has_rule(set, STACK_PTX_PTX_INSTRUCTION_ABS_FTZ_F32));
    CHECK(!derive_set_has_rule(set, STACK_PTX_PTX_INSTRUCTION_COPYSIGN_F32));
    CHECK(derive_set_has_rule(set, STACK_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32));
    CHECK(!derive_set_has_rule(set, NUM_STRINGS));
    strings[STACK_PTX_PTX_INSTRUCTION_FMA_RN_FTZ_F32] = "other.f32";
    CHECK_UINT(derive_set_init(&info, memory.memory, num_bytes, &set), DERIVE_SUCCESS);
    for (size_t i = 0; i < NUM_STRINGS; i++) CHECK(!derive_set_has_rule(set, i));
    free(memory.base);
}

int main(void) {
    test_derived_program_is_emitted_as_any_program();
    test_wrong_arguments_are_refused();
    test_rule_needs_its_instructions();
    return check_num_failures != 0;
}
