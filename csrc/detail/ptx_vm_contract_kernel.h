/*
 * ptx_vm_contract_kernel.h - the loops of ptx_vm_contract.h that run for every row: at the SIMD level of the compiler's flags, since
 * code of another level between kernels costs more than they do.
 *
 * Private: included only by ptx_vm_kernels.h.
 */
#ifndef PTX_VM_CONTRACT_KERNEL_H_INCLUDED
#define PTX_VM_CONTRACT_KERNEL_H_INCLUDED

/* Hidden from the compiler: times one flushes subnormals and quiets NaNs. */
static const volatile float ptx_vm__one = 1.0f;

/* Subnormal in f16 are multiples of 2^-24. */
PTX_VM__INLINE float ptx_vm__from_f16(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    const float small = (float)fraction * 5.9604645e-8f;
    uint32_t word;
    float value;
    memcpy(&word, &small, sizeof word);
    if (exponent != 0) word = (exponent == 31u ? 0x7f800000u : (exponent + 112u) << 23) | fraction << 13;
    word |= sign;
    memcpy(&value, &word, sizeof value);
    return value;
}

PTX_VM__INLINE float ptx_vm__from_bf16(uint16_t bits) {
    const uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* `count` values, `stride` elements apart, to every `step`-th float. */
static void ptx_vm__gather(const PtxVmOperand* operand, ptrdiff_t first, ptrdiff_t stride, size_t count, float* to, size_t step) {
    const float one = ptx_vm__one;
    if (operand->element == PTX_VM_ELEMENT_F32) {
        const float* from = (const float*)operand->values + first;
        if (stride == 1 && step == 1)
            for (size_t i = 0; i < count; i++) to[i] = from[i] * one;
        else
            for (size_t i = 0; i < count; i++) to[i * step] = from[(ptrdiff_t)i * stride] * one;
        return;
    }
    const uint16_t* from = (const uint16_t*)operand->values + first;
    const bool is_f16 = operand->element == PTX_VM_ELEMENT_F16;
    for (size_t i = 0; i < count; i++) {
        const uint16_t bits = from[(ptrdiff_t)i * stride];
        to[i * step] = (is_f16 ? ptx_vm__from_f16(bits) : ptx_vm__from_bf16(bits)) * one;
    }
}

/* As ptx_vm__gather, each value in a block of its own. */
static void ptx_vm__spread(const PtxVmOperand* operand, ptrdiff_t first, ptrdiff_t stride, size_t count, float* to) {
    float values[PTX_VM__DEPTH];
    ptx_vm__gather(operand, first, stride, count, values, 1);
    for (size_t i = 0; i < count; i++) {
        const PtxVmV value = ptx_vm__set(values[i]);
        for (int j = 0; j < PTX_VM__BLOCK; j += PTX_VM__LANES) ptx_vm__store(to + i * PTX_VM__MAX_LANES + j, value);
    }
}

/* The sum of a block and of a part of one, which are cleared. */
static float ptx_vm__sum_lanes(float* block, float* part, size_t num_part) {
    const PtxVmV zero = ptx_vm__set(0.0f);
    PtxVmV sums = zero;
    float lanes[PTX_VM__LANES], rest = 0.0f;
    for (int i = 0; i < PTX_VM__BLOCK; i += PTX_VM__LANES) {
        sums = ptx_vm__add_f32(sums, ptx_vm__load(block + i));
        ptx_vm__store(block + i, zero);
    }
    ptx_vm__store(lanes, sums);
    for (int width = PTX_VM__LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lanes[i] += lanes[i + width];
    for (size_t i = 0; i < num_part; i++) {
        rest += part[i];
        part[i] = 0.0f;
    }
    return lanes[0] + rest;
}

/* A step of a loop that is too short to be worth vectors. */
#define PTX_VM__SCALAR __asm__ volatile("")

/* Runs a program over the blocks of a row's chunk, for `depth` values of k. */
static void ptx_vm__run_slots(const PtxVmStep* steps, char** memory, const PtxVmSlots* slots, size_t depth) {
    const uint32_t num_slots = slots->num_slots, num_moving = slots->num_moving;
    const uint32_t* moving = slots->moving;
    for (size_t k = 0; k < depth; k++) {
        for (uint32_t slot = 0; slot < num_slots; slot++) {
            memory[slot] = slots->at[slot];
            slots->at[slot] += slots->k_bytes[slot];
            slots->k_bytes[slot] = (slots->k_bytes[slot] ^ slots->flips[slot]) - slots->flips[slot];
            PTX_VM__SCALAR;
        }
        for (size_t block = 0; block < slots->num_blocks; block++) {
            ptx_vm__enter(steps, memory);
            for (uint32_t i = 0; i < num_moving; i++) {
                memory[moving[i]] += PTX_VM__BLOCK * sizeof(float);
                PTX_VM__SCALAR;
            }
        }
        if (slots->has_tail) {
            for (uint32_t slot = 0; slot < num_slots; slot++) memory[slot] += slots->tail_bytes[slot];
            ptx_vm__enter(steps, memory);
        }
    }
}

#endif /* PTX_VM_CONTRACT_KERNEL_H_INCLUDED */
