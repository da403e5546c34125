/*
 * tuning.h - what C tests of derive.h, tune.h, device_code.h and ptx_vm_gram share: a language of the default instruction set with inputs x and
 * y and an output f.
 */

#ifndef TUNING_H
#define TUNING_H

#define DERIVE_IMPLEMENTATION
#define TUNE_IMPLEMENTATION
#include "block.h"
#include "generated/stack_ptx_descriptions.h"
#include "ptx_vm.h"
#include "tune.h"

#include <stdlib.h>
#include <string.h>

enum { X, Y, F, NUM_REGISTERS };
static const StackPtxRegister registers[NUM_REGISTERS] = {
    {"x", STACK_PTX_STACK_TYPE_F32},
    {"y", STACK_PTX_STACK_TYPE_F32},
    {"f", STACK_PTX_STACK_TYPE_F32},
};
static const size_t requests[] = {F, F};

#define INPUT(idx) stack_ptx_encode_input(idx)
#define NUMBER(c) stack_ptx_encode_constant_f32(c)
#define OPERATION(name) stack_ptx_encode_ptx_instruction_##name
#define RETURN stack_ptx_encode_return
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct Tools {
    Block language_memory, lowering, vm_memory, derive_memory;
    const StackPtxLanguage* language;
    const PtxVmSet* vm_set;
    const DeriveSet* derive_set;
} Tools;

/* With a request of f for each output. */
static Tools tools_of(size_t num_requests) {
    Tools tools;
    StackPtxLanguageInfo info;
    size_t num_bytes = 0;
    memset(&info, 0, sizeof info);
    info.stack_info = &stack_ptx_stack_info;
    info.limits.stack_size = 64;
    info.limits.max_nodes = 4096;
    info.limits.max_frame_depth = 1;
    info.limits.store_size = 4;
    info.limits.execution_limit = 8192;
    info.registers = registers;
    info.num_registers = NUM_REGISTERS;
    info.requests = requests;
    info.num_requests = num_requests;
    (void)stack_ptx_language_size(&info, &num_bytes);
    tools.language_memory = block_of(num_bytes);
    (void)stack_ptx_language_init(&info, tools.language_memory.memory, num_bytes, &tools.language);
    (void)stack_ptx_workspace_size(tools.language, &num_bytes);
    tools.lowering = block_of(num_bytes);
    (void)ptx_vm_set_size(&stack_ptx_stack_info, &num_bytes);
    tools.vm_memory = block_of(num_bytes);
    (void)ptx_vm_set_init(&stack_ptx_stack_info, tools.vm_memory.memory, num_bytes, &tools.vm_set);
    (void)derive_set_size(&stack_ptx_stack_info, &num_bytes);
    tools.derive_memory = block_of(num_bytes);
    (void)derive_set_init(&stack_ptx_stack_info, tools.derive_memory.memory, num_bytes, &tools.derive_set);
    return tools;
}

static inline void tools_free(Tools* tools) {
    free(tools->language_memory.base);
    free(tools->lowering.base);
    free(tools->vm_memory.base);
    free(tools->derive_memory.base);
}

static StackPtxLowered lower(const Tools* tools, const StackPtxInstruction* words, size_t num_words) {
    StackPtxLowered lowered;
    (void)stack_ptx_lower(
        tools->language, STACK_PTX_MODE_LENIENT, 0, words, num_words, tools->lowering.memory, tools->lowering.num_bytes, &lowered,
        NULL
    );
    return lowered;
}

#endif /* TUNING_H */
