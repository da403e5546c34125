/*
 * instruction_row.h - finds the row of an instruction in the table of those that a CPU computes.
 *
 * Private: included by headers that give instructions a meaning. An instruction has the row of its PTX name and of its types by
 * the row's signature: a letter for the result and one for each operand, f for f32, i for u32, s32 or b32, p for pred, h for f16, b for
 * bf16. All are scalars.
 */

#ifndef EVO_INSTRUCTION_ROW_H
#define EVO_INSTRUCTION_ROW_H

#include <stdbool.h>
#include <string.h>

#include "../generated/instruction_table.h"
#include "../stack_ptx.h"

#define EVO__ROW_ENUMERATOR(enumerator, ptx, signature, operation, derivative) EVO__ROW_##enumerator,
enum { INSTRUCTION_TABLE(EVO__ROW_ENUMERATOR) EVO__NUM_ROWS };

#define EVO__ROW(enumerator, ptx, signature, operation, derivative) {ptx, signature, derivative},
static const struct {
    const char* ptx;
    const char* signature;
    const char* derivative;
} evo__rows[] = {INSTRUCTION_TABLE(EVO__ROW)};

/* The letter of a stack's type; 0 if it has none. */
static inline char evo__letter(const char* literal_prefix) {
    if (strcmp(literal_prefix, "f32") == 0) return 'f';
    if (strcmp(literal_prefix, "u32") == 0 || strcmp(literal_prefix, "s32") == 0 || strcmp(literal_prefix, "b32") == 0)
        return 'i';
    if (strcmp(literal_prefix, "b16") == 0) return 'h';
    return strcmp(literal_prefix, "pred") == 0 ? 'p' : '\0';
}

/* The letter of each stack. A stack of b16 is one of bf16 if an instruction of this type takes its scalars. */
static inline void evo__letters(const StackPtxStackInfo* info, char* letters) {
    for (size_t i = 0; i < info->num_stacks; i++) letters[i] = evo__letter(info->stack_literal_prefixes[i]);
    for (size_t i = 0; i < info->num_ptx_instructions; i++) {
        const size_t length = strlen(info->ptx_instruction_strings[i]);
        const uint16_t arg_type = info->ptx_instruction_descriptors[i].arg_types[0];
        if (length < 5 || strcmp(info->ptx_instruction_strings[i] + length - 5, ".bf16") != 0 || arg_type >= info->num_arg_types)
            continue;
        const StackPtxArgTypeInfo type = info->arg_type_info[arg_type];
        if (type.num_vec_elems == 0 && type.stack_idx < info->num_stacks && letters[type.stack_idx] == 'h')
            letters[type.stack_idx] = 'b';
    }
}

/* Whether an argument type is a scalar of the type of a letter; 0 stands for no argument. */
static inline bool evo__has_type(const StackPtxStackInfo* info, const char* letters, uint16_t arg_type, char letter) {
    if (arg_type >= info->num_arg_types) return letter == '\0';
    const StackPtxArgTypeInfo type = info->arg_type_info[arg_type];
    return letter != '\0' && type.num_vec_elems == 0 && type.stack_idx < info->num_stacks && letters[type.stack_idx] == letter;
}

/* `letters` has one for each stack. */
static inline bool evo__has_signature(
    const StackPtxStackInfo* info, const char* letters, size_t instruction_idx, const char* signature
) {
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[instruction_idx];
    const size_t num_args = strlen(signature) - 1;
    bool has = evo__has_type(info, letters, descriptor->ret_types[0], signature[0]) &&
        evo__has_type(info, letters, descriptor->ret_types[1], '\0');
    for (size_t k = 0; k < STACK_PTX_MAX_NUM_ARGS; k++)
        has = has && evo__has_type(info, letters, descriptor->arg_types[k], k < num_args ? signature[k + 1] : '\0');
    return has;
}

/* The row of an instruction, or NUM_ROWS. Rows have no immediates. */
static inline size_t evo__find_row(const StackPtxStackInfo* info, const char* letters, size_t instruction_idx) {
    const char* ptx = info->ptx_instruction_strings[instruction_idx];
    const size_t length = strcspn(ptx, " ");
    size_t row = 0;
    while (row < EVO__NUM_ROWS &&
           (strncmp(ptx, evo__rows[row].ptx, length) != 0 || evo__rows[row].ptx[length] != '\0' ||
            !evo__has_signature(info, letters, instruction_idx, evo__rows[row].signature)))
        row++;
    return row;
}

#endif /* EVO_INSTRUCTION_ROW_H */
