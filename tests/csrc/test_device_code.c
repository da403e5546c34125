/*
 * Tests of device_code.h as a C library: the words of a program's steps, memory of exactly the size that the query tells and of any
 * alignment, and one test for each error code. What steps compute is tested from Python (tests/unit/native/test_device_code.py).
 */

#define DEVICE_CODE_IMPLEMENTATION
#include "check.h"
#include "tuning.h"
#include "device_code.h"

/* f = sin(1.5 x) + y */
static const StackPtxInstruction line[] = {
    INPUT(Y), INPUT(X), NUMBER(1.5f), OPERATION(mul_ftz_f32), OPERATION(sin_approx_ftz_f32), OPERATION(add_ftz_f32), RETURN
};

enum { NUM_INSTRUCTIONS = STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS, FIRST_OUTPUT = 10 };

static uint16_t cases[NUM_INSTRUCTIONS * DEVICE_CODE_NUM_FORMS];
static uint8_t num_commutative[NUM_INSTRUCTIONS];
static const uint8_t vectors[NUM_REGISTERS] = {0, 1, FIRST_OUTPUT};

/* A kernel that knows three instructions: the case is 100 times its number plus the form's. */
static DeviceCodeKernel kernel_of(uint32_t num_slots) {
    static const uint32_t known[] = {
        STACK_PTX_PTX_INSTRUCTION_ADD_FTZ_F32,
        STACK_PTX_PTX_INSTRUCTION_MUL_FTZ_F32,
        STACK_PTX_PTX_INSTRUCTION_SIN_APPROX_FTZ_F32,
    };
    DeviceCodeKernel kernel = {cases, num_commutative, NUM_INSTRUCTIONS, vectors, NUM_REGISTERS, 2, num_slots};
    memset(cases, 0xFF, sizeof cases);
    for (uint32_t i = 0; i < 3; i++) {
        num_commutative[known[i]] = i < 2 ? 2 : 0;
        for (uint32_t form = 0; form < DEVICE_CODE_NUM_FORMS; form++) {
            cases[known[i] * DEVICE_CODE_NUM_FORMS + form] = (uint16_t)(100 * (i + 1) + form);
        }
    }
    return kernel;
}

static DeviceCodeResult encode(
    const DeviceCodeKernel* kernel,
    const StackPtxLowered* lowered,
    size_t missing_bytes,
    uint64_t* steps,
    size_t room,
    size_t* count
) {
    size_t num_bytes = 0;
    CHECK_UINT(device_code_workspace_size(lowered, &num_bytes), DEVICE_CODE_SUCCESS);
    Block workspace = block_of(num_bytes - missing_bytes);
    const DeviceCodeResult result =
        device_code_encode(kernel, lowered, FIRST_OUTPUT, workspace.memory, num_bytes - missing_bytes, steps, room, count);
    free(workspace.base);
    return result;
}

static void test_steps_are_those_of_the_format(void) {
    Tools tools = tools_of_default_set();
    const StackPtxLowered lowered = lower(&tools, line, COUNT(line));
    const DeviceCodeKernel kernel = kernel_of(0);
    uint64_t steps[8];
    size_t count = 0;
    CHECK_UINT(encode(&kernel, &lowered, 0, steps, 8, &count), DEVICE_CODE_SUCCESS);
    CHECK_UINT(count, 4);
    /* x (vector 0) times the constant: places slot and constant, form 1 + 3 * 2. Then the sine of the accumulator, form 0. Then
       accumulator plus y (vector 1), form 0 + 3 * 1, stored to vector 10. */
    CHECK_UINT(steps[0], UINT64_C(0x3fc00000) << 32 | 207);
    CHECK_UINT(steps[1], 300);
    CHECK_UINT(steps[2], UINT64_C(1) << 31 | UINT64_C(10) << 24 | 1 << 12 | 103);
    CHECK_UINT(steps[3], DEVICE_CODE_CASE_END);
    tools_free(&tools);
}

static void test_errors(void) {
    static const StackPtxInstruction unknown[] = {INPUT(X), OPERATION(cos_approx_ftz_f32), RETURN};
    /* (x y) + (x + y): one of the operands must wait. */
    static const StackPtxInstruction wide[] = {
        INPUT(X), INPUT(Y), OPERATION(mul_ftz_f32), INPUT(X), INPUT(Y), OPERATION(add_ftz_f32), OPERATION(add_ftz_f32), RETURN
    };
    Tools tools = tools_of_default_set();
    const DeviceCodeKernel kernel = kernel_of(0), with_slot = kernel_of(1);
    uint64_t steps[8];
    size_t count = 9, num_bytes = 0;
    StackPtxLowered lowered = lower(&tools, line, COUNT(line));
    CHECK_UINT(encode(&kernel, &lowered, 8, steps, 8, &count), DEVICE_CODE_ERROR_INSUFFICIENT_MEMORY);
    CHECK_UINT(count, 0);
    for (size_t room = 0; room < 4; room++) {
        CHECK_UINT(encode(&kernel, &lowered, 0, steps, room, &count), DEVICE_CODE_ERROR_INSUFFICIENT_BUFFER);
    }
    CHECK_UINT(device_code_workspace_size(NULL, &num_bytes), DEVICE_CODE_ERROR_INVALID_VALUE);
    CHECK_UINT(device_code_encode(&kernel, &lowered, 64, steps, 8, steps, 8, &count), DEVICE_CODE_ERROR_INVALID_VALUE);
    CHECK_UINT(device_code_encode(NULL, &lowered, 10, steps, 8, steps, 8, &count), DEVICE_CODE_ERROR_INVALID_VALUE);
    lowered = lower(&tools, unknown, COUNT(unknown));
    CHECK_UINT(encode(&kernel, &lowered, 0, steps, 8, &count), DEVICE_CODE_ERROR_NO_CASE);
    lowered = lower(&tools, wide, COUNT(wide));
    CHECK_UINT(encode(&kernel, &lowered, 0, steps, 8, &count), DEVICE_CODE_ERROR_TOO_MANY_SLOTS);
    CHECK_UINT(encode(&with_slot, &lowered, 0, steps, 8, &count), DEVICE_CODE_SUCCESS);
    CHECK_TEXT(device_code_result_to_string(DEVICE_CODE_ERROR_NO_CASE), "DEVICE_CODE_ERROR_NO_CASE");
    CHECK_TEXT(device_code_result_to_string((DeviceCodeResult)99), "DEVICE_CODE_RESULT_UNKNOWN");
    tools_free(&tools);
}

int main(void) {
    test_steps_are_those_of_the_format();
    test_errors();
    return check_num_failures != 0;
}
