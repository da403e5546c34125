/*
 * Programs of fuzz targets, over the registers of tuning.h: three bytes a word.
 */

#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include "tuning.h"

/* Writes at most max_words words; returns how many there are. */
static size_t program_of(const uint8_t* data, size_t size, StackPtxInstruction* words, size_t max_words) {
    size_t num_words = 0;
    for (; 3 * num_words + 2 < size && num_words < max_words; num_words++) {
        const uint8_t* bytes = data + 3 * num_words;
        StackPtxInstruction word;
        memset(&word, 0, sizeof word);
        if (bytes[0] % 8 < 4) {
            word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_PTX;
            word.payload.u = bytes[1] % STACK_PTX_PTX_INSTRUCTION_NUM_ENUMS;
        } else if (bytes[0] % 8 < 6) {
            word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_INPUT;
            word.payload.u = bytes[1] % 2;
        } else {
            word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_CONSTANT;
            word.aux = bytes[0] % 16 == 7 ? STACK_PTX_STACK_TYPE_U32 : STACK_PTX_STACK_TYPE_F32;
            word.payload.u = bytes[1] < 250 ? (uint32_t)(0x3e800000u + bytes[1] * 0x40000u) : (uint32_t)bytes[2] << 23;
        }
        words[num_words] = word;
    }
    return num_words;
}

#endif
