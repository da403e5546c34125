/*
 * philox.c - random numbers from a counter: Philox 2x32-10, ten calls of a routine. u is uniform in [0, 1]; state counts on.
 *
 * The generator's words have their own stack, so that a search never mixes them with other numbers.
 * The algorithm is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Prints ../expected/philox.txt.
 */

#include "print_stub.h"
#include "stack_ptx_descriptions.h"

#define MULTIPLIER 0xD256D193u
#define WEYL 0x9E3779B9u
#define KEY 12345u

enum { REG_STATE, REG_U };
enum { ROUTINE_ROUND };
enum { ENTRY_KEY, ENTRY_LEFT, ENTRY_RIGHT };

static const StackPtxRegister registers[] = {
    [REG_STATE] = {.name = "state", .stack_idx = STACK_PTX_STACK_TYPE_PHILOX},
    [REG_U] = {.name = "u", .stack_idx = STACK_PTX_STACK_TYPE_F32},
};

/* left, right, key = high(left * MULTIPLIER) ^ key ^ right, low(left * MULTIPLIER), key + WEYL */
static const StackPtxInstruction philox_round[] = {
    stack_ptx_encode_constant_philox(MULTIPLIER),
    stack_ptx_encode_load(ENTRY_LEFT),
    stack_ptx_encode_ptx_instruction_mul_lo_philox,
    stack_ptx_encode_constant_philox(MULTIPLIER),
    stack_ptx_encode_load(ENTRY_LEFT),
    stack_ptx_encode_ptx_instruction_mul_hi_philox,
    stack_ptx_encode_load(ENTRY_KEY),
    stack_ptx_encode_ptx_instruction_xor_philox,
    stack_ptx_encode_load(ENTRY_RIGHT),
    stack_ptx_encode_ptx_instruction_xor_philox,
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_PHILOX, ENTRY_LEFT),
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_PHILOX, ENTRY_RIGHT),
    stack_ptx_encode_constant_philox(WEYL),
    stack_ptx_encode_load(ENTRY_KEY),
    stack_ptx_encode_ptx_instruction_add_philox,
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_PHILOX, ENTRY_KEY),
    stack_ptx_encode_return,
};

static const StackPtxInstruction* routines[] = {[ROUTINE_ROUND] = philox_round};

static const StackPtxInstruction program[] = {
    stack_ptx_encode_input(REG_STATE),
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_PHILOX, ENTRY_LEFT),
    stack_ptx_encode_constant_philox(0),
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_PHILOX, ENTRY_RIGHT),
    stack_ptx_encode_constant_philox(KEY),
    stack_ptx_encode_store(STACK_PTX_STACK_TYPE_PHILOX, ENTRY_KEY),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    stack_ptx_encode_routine(ROUTINE_ROUND),
    /* u = left * 2^-32 */
    stack_ptx_encode_load(ENTRY_LEFT),
    stack_ptx_encode_ptx_instruction_philox_to_u32,
    stack_ptx_encode_ptx_instruction_cvt_rn_f32_u32,
    stack_ptx_encode_constant_f32(2.3283064365386963e-10f),
    stack_ptx_encode_ptx_instruction_mul_ftz_f32,
    /* state = state + 1 */
    stack_ptx_encode_constant_philox(1),
    stack_ptx_encode_input(REG_STATE),
    stack_ptx_encode_ptx_instruction_add_philox,
    stack_ptx_encode_return,
};

static const size_t requests[] = {REG_U, REG_STATE};

int main(void) {
    print_stub(&stack_ptx_stack_info, registers, COUNT(registers), routines, COUNT(routines), program, requests, COUNT(requests));
    return EXIT_SUCCESS;
}
