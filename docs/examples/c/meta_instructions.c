/*
 * meta_instructions.c - moves values on a stack. A meta instruction emits no PTX; it decides what later ones work on.
 *
 * Each program puts a, b, c, d on the stack (d is on top), does one thing, and takes the top three off again: into first,
 * second and third. Prints ../expected/meta_instructions.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

enum { REG_A, REG_B, REG_C, REG_D, REG_FIRST, REG_SECOND, REG_THIRD };

static const StackPtxRegister registers[] = {
    [REG_A] = {.name = "a", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_B] = {.name = "b", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_C] = {.name = "c", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_D] = {.name = "d", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_FIRST] = {.name = "first", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_SECOND] = {.name = "second", .stack_idx = STACK_PTX_STACK_TYPE_F32},
    [REG_THIRD] = {.name = "third", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

static const size_t requests[] = {REG_FIRST, REG_SECOND, REG_THIRD};

#define PUSH_FOUR                                                                                                              \
    stack_ptx_encode_input(REG_A), stack_ptx_encode_input(REG_B), stack_ptx_encode_input(REG_C), stack_ptx_encode_input(REG_D)

/* A depth or count comes from the meta stack; 0 is the top. */
static const StackPtxInstruction dup[] = {
    PUSH_FOUR, stack_ptx_encode_meta_dup(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_return
};
static const StackPtxInstruction yank_dup[] = {
    PUSH_FOUR, stack_ptx_encode_meta_constant(2), stack_ptx_encode_meta_yank_dup(STACK_PTX_STACK_TYPE_F32),
    stack_ptx_encode_return
};
static const StackPtxInstruction swap[] = {
    PUSH_FOUR, stack_ptx_encode_meta_swap(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_return
};
static const StackPtxInstruction swap_with[] = {
    PUSH_FOUR, stack_ptx_encode_meta_constant(2), stack_ptx_encode_meta_swap_with(STACK_PTX_STACK_TYPE_F32),
    stack_ptx_encode_return
};
static const StackPtxInstruction replace[] = {
    PUSH_FOUR, stack_ptx_encode_meta_constant(2), stack_ptx_encode_meta_replace(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_return
};
static const StackPtxInstruction drop[] = {
    PUSH_FOUR, stack_ptx_encode_meta_constant(1), stack_ptx_encode_meta_drop(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_return
};
static const StackPtxInstruction clear[] = {
    PUSH_FOUR, stack_ptx_encode_meta_clear(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_input(REG_A), stack_ptx_encode_return
};
static const StackPtxInstruction rotate[] = {
    PUSH_FOUR, stack_ptx_encode_meta_rotate(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_return
};
static const StackPtxInstruction reverse[] = {
    PUSH_FOUR, stack_ptx_encode_meta_reverse(STACK_PTX_STACK_TYPE_F32), stack_ptx_encode_return
};

int main(void) {
    static const struct {
        const char* name;
        const StackPtxInstruction* program;
    } examples[] = {
        {"dup", dup},     {"yank_dup 2", yank_dup}, {"swap", swap},     {"swap_with 2", swap_with}, {"replace 2", replace},
        {"drop 1", drop}, {"clear", clear},         {"rotate", rotate}, {"reverse", reverse},
    };
    size_t i;

    for (i = 0; i < COUNT(examples); ++i) {
        (void)printf("%s\n", examples[i].name);
        print_stub(&stack_ptx_stack_info, registers, COUNT(registers), NULL, 0, examples[i].program, requests, COUNT(requests));
    }
    return EXIT_SUCCESS;
}
