/*
 * stack_ptx_lower.h - running a program on stacks of values, and the lowered form of what it leaves.
 *
 * Private: included by stack_ptx.h alone, after stack_ptx_language.h. While a program runs, each value that it makes has a row:
 * an op and the rows of its operands. Equal values get the same row. Then the rows that requests need are marked from the
 * last to the first, and numbered anew from the first to the last.
 *
 * Speed. What costs most are branches that cannot be guessed, so there is one for what kind of word comes next and hardly any
 * other: operands are taken without one, inputs have their rows from the start, and the table of values is kept sparse.
 */

#ifndef STACK_PTX_LOWER_H
#define STACK_PTX_LOWER_H

#include "stack_ptx_language.h"

/* ---- lowering: values ---- */

/* Where the search for a value begins; the same for both orders of operands that commute. Small indices, as most are, do not
   meet in the mix before it is multiplied. */
STACK_PTX__HOT uint32_t stack_ptx__slot_of(
    const StackPtx__Work* work,
    uint64_t head,
    uint64_t operands_0,
    uint64_t operands_1,
    uint64_t commutes
) {
    const uint64_t both_orders = operands_0 + (stack_ptx__rotate(operands_0, 32) & commutes);
    const uint64_t mix = head ^ stack_ptx__rotate(both_orders, 10) ^ stack_ptx__rotate(operands_1, 21);
    return (uint32_t)((mix * STACK_PTX__MIX_1) >> work->table_shift);
}

/* Takes a part of the table that is small enough to be cleared for each program. */
static void stack_ptx__open_table(const StackPtxLanguage* language, StackPtx__Work* work, uint64_t size) {
    uint64_t part = 16;
    work->table_shift = 60;
    while (part < size && part < language->layout.table_size) {
        part *= 2;
        --work->table_shift;
    }
    work->part_mask = (uint32_t)(part - 1);
    work->grow_at = part == language->layout.table_size ? UINT32_MAX : (uint32_t)(part / 2);
    memset(work->table, 0, part * sizeof *work->table);
}

STACK_PTX__HOT uint32_t stack_ptx__add_row(StackPtx__Work* work, uint64_t head, uint64_t operands_0, uint64_t operands_1) {
    StackPtx__Row* row = &work->rows[work->num_rows];
    row->head = head;
    row->operands[0] = operands_0;
    row->operands[1] = operands_1;
    return work->num_rows++;
}

static uint64_t stack_ptx__commutes(const StackPtxLanguage* language, uint32_t op_idx) {
    return op_idx < language->first_special ? language->ops[op_idx].commutes : 0;
}

/* Four times the part, with the rows that value numbering may find put in again: those alone, since the others, of which the
   inputs are there before the first search, may be more than the part has room for. */
STACK_PTX__COLD void stack_ptx__grow_table(const StackPtxLanguage* language, StackPtx__Work* work) {
    uint32_t i;
    stack_ptx__open_table(language, work, 4 * ((uint64_t)work->part_mask + 1));
    for (i = 1; i < work->num_rows; ++i) {
        const StackPtx__Row* row = &work->rows[i];
        const uint32_t op_idx = (uint32_t)row->head;
        const bool is_input = op_idx >= language->first_input && op_idx < language->first_constant;
        if (!is_input && op_idx != language->follower && !language->op_nodes[op_idx].is_volatile) {
            const uint64_t commutes = stack_ptx__commutes(language, op_idx);
            uint32_t slot = stack_ptx__slot_of(work, row->head, row->operands[0], row->operands[1], commutes);
            while (work->table[slot] != 0) {
                slot = (slot + 1) & work->part_mask;
            }
            work->table[slot] = i;
        }
    }
}

/* The row of an equal value, or a new one. The search rarely takes more than one step, and its outcome is a branch and not a
   choice between values: a processor that guesses it need not wait. */
STACK_PTX__HOT uint32_t stack_ptx__find_row(
    const StackPtxLanguage* language,
    StackPtx__Work* work,
    uint64_t head,
    uint64_t operands_0,
    uint64_t operands_1,
    uint64_t commutes
) {
    uint32_t slot, found;
    if (work->num_rows >= work->grow_at) {
        if (!work->is_numbering) {
            return stack_ptx__add_row(work, head, operands_0, operands_1);
        }
        stack_ptx__grow_table(language, work);
    }
    slot = stack_ptx__slot_of(work, head, operands_0, operands_1, commutes);
    while ((found = work->table[slot]) != 0) {
        const StackPtx__Row* row = &work->rows[found];
        if (row->head == head && row->operands[1] == operands_1 &&
            (row->operands[0] == operands_0 ||
             (commutes != 0 && row->operands[0] == stack_ptx__rotate(operands_0, 32)))) {
            return found;
        }
        slot = (slot + 1) & work->part_mask;
    }
    work->table[slot] = work->num_rows;
    return stack_ptx__add_row(work, head, operands_0, operands_1);
}

STACK_PTX__HOT void stack_ptx__push(StackPtx__Values* stack, uint32_t row) {
    *stack->top = row;
    stack->top += stack->top < stack->full;
}

/* 0 if the stack is empty. */
STACK_PTX__HOT uint32_t stack_ptx__pop(StackPtx__Values* stack) {
    return stack->top == stack->base ? 0 : *--stack->top;
}

STACK_PTX__HOT size_t stack_ptx__height(const StackPtx__Values* stack) {
    return (size_t)(stack->top - stack->base);
}

/* False where the node limit ends the program. */
STACK_PTX__HOT bool stack_ptx__count_values(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t count) {
    if (count > language->limits.max_nodes - work->num_created) {
        return false;
    }
    work->num_created += count;
    return true;
}

/* A PTX instruction with vectors, several results or operands from several stacks, or a volatile one. */
STACK_PTX__COLD bool stack_ptx__run_general_ptx(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t op_idx) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[op_idx];
    const StackPtx__OpNode* op_node = &language->op_nodes[op_idx];
    const uint32_t num_args = stack_ptx__num_args(info, descriptor);
    const uint32_t num_values = op_node->node.num_values;
    uint32_t operands[STACK_PTX__MAX_OPERANDS + 4] = {0};
    uint32_t i, k, row, num_operands = 0, first = 0;
    uint64_t pair_0, pair_1;

    for (i = 0; i < num_args; ++i) {
        const uint32_t stack_idx = info->arg_type_info[descriptor->arg_types[i]].stack_idx;
        uint32_t num_needed = 0;
        for (k = 0; k <= i; ++k) {
            if (info->arg_type_info[descriptor->arg_types[k]].stack_idx == stack_idx) {
                num_needed += stack_ptx__num_elems(info, descriptor->arg_types[k]);
            }
        }
        if (stack_ptx__height(&work->stacks[stack_idx]) < num_needed) {
            return true;
        }
    }
    if (!stack_ptx__count_values(language, work, num_values)) {
        return false;
    }
    for (i = 0; i < num_args; ++i) {
        const uint32_t stack_idx = info->arg_type_info[descriptor->arg_types[i]].stack_idx;
        for (k = stack_ptx__num_elems(info, descriptor->arg_types[i]); k > 0; --k) {
            operands[num_operands++] = stack_ptx__pop(&work->stacks[stack_idx]);
        }
    }
    if (num_values == 0) {
        return true;
    }
    /* Operands 3, 4, 5 and a fourth, then 6, 7, 8 and a fourth, ..: the last of these rows is made first. */
    if (num_operands > 4) {
        first = (num_operands - 2) / 3 * 3;
    }
    pair_0 = stack_ptx__pair(operands[first], operands[first + 1]);
    pair_1 = stack_ptx__pair(operands[first + 2], operands[first + 3]);
    for (; first > 0; first -= 3) {
        row = stack_ptx__find_row(language, work, language->continuation, pair_0, pair_1, 0);
        pair_0 = stack_ptx__pair(operands[first - 3], operands[first - 2]);
        pair_1 = stack_ptx__pair(operands[first - 1], row);
    }
    if (op_node->is_volatile) {
        row = stack_ptx__add_row(work, op_idx, pair_0, pair_1);
    } else {
        row = stack_ptx__find_row(language, work, op_idx, pair_0, pair_1, language->ops[op_idx].commutes);
    }
    if (row + 1 == work->num_rows) {
        for (i = 1; i < num_values; ++i) {
            (void)stack_ptx__add_row(work, language->follower, row, 0);
        }
    }
    row += num_values;
    for (i = stack_ptx__num_rets(info, descriptor); i > 0; --i) {
        const uint32_t ret_type = descriptor->ret_types[i - 1];
        for (k = stack_ptx__num_elems(info, ret_type); k > 0; --k) {
            stack_ptx__push(&work->stacks[info->arg_type_info[ret_type].stack_idx], --row);
        }
    }
    return true;
}

STACK_PTX__COLD bool stack_ptx__run_special(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t idx) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t arg_type = info->special_register_descriptors[idx].arg_type_idx;
    const uint32_t num_elems = stack_ptx__num_elems(info, arg_type);
    const uint32_t op_idx = language->first_special + idx;
    uint32_t i;
    if (!stack_ptx__count_values(language, work, num_elems)) {
        return false;
    }
    for (i = 0; i < num_elems; ++i) {
        const uint64_t head = stack_ptx__pair(op_idx, i << 16);
        const uint32_t row = language->op_nodes[op_idx].is_volatile ? stack_ptx__add_row(work, head, 0, 0)
                                                                    : stack_ptx__find_row(language, work, head, 0, 0, 0);
        stack_ptx__push(&work->stacks[info->arg_type_info[arg_type].stack_idx], row);
    }
    return true;
}

STACK_PTX__HOT bool stack_ptx__run_input(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t register_idx) {
    const uint32_t stack_idx = language->registers[register_idx].stack_idx;
    uint32_t row;
    if (!stack_ptx__count_values(language, work, 1)) {
        return false;
    }
    row = register_idx + 1;
    if (register_idx >= language->num_input_rows) {
        row = stack_ptx__add_row(work, stack_ptx__pair(language->first_input + stack_idx, register_idx), 0, 0);
    }
    stack_ptx__push(&work->stacks[stack_idx], row);
    return true;
}

STACK_PTX__HOT bool stack_ptx__run_constant(
    const StackPtxLanguage* language,
    StackPtx__Work* work,
    uint32_t stack_idx,
    uint32_t bits
) {
    if (!stack_ptx__count_values(language, work, 1)) {
        return false;
    }
    stack_ptx__push(
        &work->stacks[stack_idx],
        stack_ptx__find_row(language, work, stack_ptx__pair(language->first_constant + stack_idx, bits), 0, 0, 0)
    );
    return true;
}

/* A PTX instruction with scalar operands from one stack and one result. */
STACK_PTX__HOT bool stack_ptx__run_plain_ptx(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t op_idx) {
    const StackPtx__Op* op = &language->ops[op_idx];
    StackPtx__Values* in = &work->stacks[op->in_stack];
    const uint32_t* top = in->top;
    uint64_t pair_0, pair_1;

    if (stack_ptx__height(in) < op->num_operands) {
        return true;
    }
    if (!stack_ptx__count_values(language, work, 1)) {
        return false;
    }
    pair_0 = stack_ptx__pair(top[-1], top[-2]) & op->operand_masks[0];
    pair_1 = stack_ptx__pair(top[-3], top[-4]) & op->operand_masks[1];
    in->top -= op->num_operands;
    stack_ptx__push(&work->stacks[op->out_stack], stack_ptx__find_row(language, work, op_idx, pair_0, pair_1, op->commutes));
    return true;
}

/* False where a depth is out of range. */
static bool stack_ptx__run_meta(StackPtx__Work* work, StackPtx__Values* stack, uint32_t operation) {
    const size_t height = stack_ptx__height(stack);
    uint32_t* top = stack->top;
    uint32_t number = 0, value;

    if (operation == STACK_PTX_META_INSTRUCTION_YANK_DUP || operation == STACK_PTX_META_INSTRUCTION_SWAP_WITH ||
        operation == STACK_PTX_META_INSTRUCTION_REPLACE || operation == STACK_PTX_META_INSTRUCTION_DROP) {
        if (work->num_meta == 0) {
            return true;
        }
        number = work->meta[--work->num_meta];
        if (operation == STACK_PTX_META_INSTRUCTION_DROP) {
            stack->top -= height > number ? number : 0;
            return true;
        }
        if (number >= height) {
            return false;
        }
        if (operation != STACK_PTX_META_INSTRUCTION_YANK_DUP && top == stack->full) {
            return true;
        }
    }
    if (height == 0) {
        return true;
    }
    value = top[-1];
    switch (operation) {
        case STACK_PTX_META_INSTRUCTION_DUP:
            stack_ptx__push(stack, value);
            break;
        case STACK_PTX_META_INSTRUCTION_YANK_DUP:
            stack_ptx__push(stack, *(top - 1 - number));
            break;
        case STACK_PTX_META_INSTRUCTION_SWAP:
            if (height > 1) {
                top[-1] = top[-2];
                top[-2] = value;
            }
            break;
        case STACK_PTX_META_INSTRUCTION_SWAP_WITH:
            top[-1] = *(top - 1 - number);
            *(top - 1 - number) = value;
            break;
        case STACK_PTX_META_INSTRUCTION_REPLACE:
            *(top - 1 - number) = value;
            --stack->top;
            break;
        case STACK_PTX_META_INSTRUCTION_CLEAR:
            stack->top = stack->base;
            break;
        case STACK_PTX_META_INSTRUCTION_ROTATE:
            memmove(stack->base + 1, stack->base, (height - 1) * sizeof value);
            *stack->base = value;
            break;
        default: { /* REVERSE: the caller lets no other operation through */
            uint32_t* low = stack->base;
            while (low + 1 < top) {
                value = *low;
                *low++ = *--top;
                *top = value;
            }
            break;
        }
    }
    return true;
}

/* ---- lowering: the run ---- */

/* A ROUTINE or a RETURN: the caller's. */
#define STACK_PTX__LEAVE STACK_PTX_RESULT_NUM_ENUMS
/* A depth or frame: INVALID_VALUE where it is an error. */
#define STACK_PTX__OUT_OF_RANGE ((StackPtxResult)(STACK_PTX_RESULT_NUM_ENUMS + 1))

/* Prepares an instruction of a bare language, which has no traits. */
STACK_PTX__COLD StackPtxResult stack_ptx__prepare_late(const StackPtxLanguage* language, uint32_t op_idx) {
    const StackPtxResult result = stack_ptx__check_instruction(&language->stack_info, op_idx, NULL);
    if (result == STACK_PTX_SUCCESS) {
        stack_ptx__prepare_ptx_op(language, op_idx, NULL);
    }
    return result;
}

/* Runs a word that stays in its word list, or answers STACK_PTX__LEAVE. What is wrong with the word, if anything, is the
   result: SUCCESS also for a no-op of every mode. The node limit is INSUFFICIENT_AST_SIZE. */
STACK_PTX__HOT StackPtxResult stack_ptx__run_word(
    const StackPtxLanguage* language,
    StackPtx__Work* work,
    StackPtxInstruction word
) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t payload = word.payload.u;
    bool is_within_limit;
    switch (word.instruction_type) {
        case STACK_PTX_INSTRUCTION_TYPE_PTX:
            if (payload >= info->num_ptx_instructions) {
                return STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS;
            }
            if (language->op_kinds[payload] == STACK_PTX__OP_UNPREPARED) {
                const StackPtxResult result = stack_ptx__prepare_late(language, payload);
                if (result != STACK_PTX_SUCCESS) {
                    return result;
                }
            }
            is_within_limit = language->op_kinds[payload] == STACK_PTX__OP_PLAIN
                                  ? stack_ptx__run_plain_ptx(language, work, payload)
                                  : stack_ptx__run_general_ptx(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_INPUT:
            if (payload >= language->num_registers) {
                return STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS;
            }
            is_within_limit = stack_ptx__run_input(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_CONSTANT:
            if (word.aux >= info->num_stacks) {
                return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            }
            if (language->stacks[word.aux].constant_type == STACK_PTX_CONSTANT_TYPE_NONE) {
                return STACK_PTX_ERROR_WRONG_TYPE_DISPATCH;
            }
            is_within_limit = stack_ptx__run_constant(language, work, word.aux, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_SPECIAL:
            if (payload >= info->num_special_registers) {
                return STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS;
            }
            if (language->op_hashes == NULL) {
                const StackPtxResult result = stack_ptx__check_special(info, payload);
                if (result != STACK_PTX_SUCCESS) {
                    return result;
                }
                stack_ptx__prepare_special(language, payload, NULL);
            }
            is_within_limit = stack_ptx__run_special(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_META:
            if (word.aux >= info->num_stacks) {
                return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            }
            if (payload >= STACK_PTX_META_INSTRUCTION_NUM_ENUMS) {
                return STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS;
            }
            return stack_ptx__run_meta(work, &work->stacks[word.aux], payload) ? STACK_PTX_SUCCESS : STACK_PTX__OUT_OF_RANGE;
        case STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT:
            if (work->num_meta < language->limits.stack_size) {
                work->meta[work->num_meta++] = payload;
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_STORE:
            if (word.aux >= info->num_stacks) {
                return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            }
            if (payload >= language->limits.store_size) {
                return STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS;
            }
            if (stack_ptx__height(&work->stacks[word.aux]) > 0) {
                work->store[payload].row = stack_ptx__pop(&work->stacks[word.aux]);
                work->store[payload].stack_idx = word.aux;
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_LOAD:
            if (payload >= language->limits.store_size) {
                return STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS;
            }
            if (work->store[payload].row != 0) {
                stack_ptx__push(&work->stacks[work->store[payload].stack_idx], work->store[payload].row);
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_ROUTINE:
        case STACK_PTX_INSTRUCTION_TYPE_RETURN:
            return STACK_PTX__LEAVE;
        default:
            return STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN;
    }
    return is_within_limit ? STACK_PTX_SUCCESS : STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE;
}

static void stack_ptx__open_run(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t flags, size_t num_words) {
    size_t i;
    for (i = 0; i < language->stack_info.num_stacks; ++i) {
        StackPtx__Values* stack = &work->stacks[i];
        stack->base = work->stack_rows + STACK_PTX__STACKS_MARGIN + i * ((size_t)language->limits.stack_size + 1);
        stack->top = stack->base;
        stack->full = stack->base + language->limits.stack_size;
    }
    memset(work->store, 0, language->limits.store_size * sizeof *work->store);
    memset(&work->rows[0], 0, sizeof work->rows[0]);
    work->num_rows = 1;
    /* Inputs have rows of their own from the start, so that there is nothing to find; the unused ones are dead code. */
    for (i = 0; i < language->num_input_rows; ++i) {
        const uint32_t op_idx = language->first_input + language->registers[i].stack_idx;
        (void)stack_ptx__add_row(work, stack_ptx__pair(op_idx, (uint32_t)i), 0, 0);
    }
    work->num_created = 0;
    work->num_meta = 0;
    work->is_numbering = (flags & STACK_PTX_FLAG_NO_VALUE_NUMBERING) == 0;
    work->grow_at = 0;
    if (work->is_numbering) {
        /* At most a quarter full for most programs, so that most searches take one step. */
        stack_ptx__open_table(language, work, 4 * (uint64_t)(num_words < 1024 ? num_words : 1024));
    }
}

/* What a mode makes of what is wrong with a word: SUCCESS to go on, or an error, whose place is written. */
STACK_PTX__COLD StackPtxResult stack_ptx__judge(
    StackPtxMode mode,
    StackPtxResult of_word,
    size_t routine_idx,
    size_t word_idx,
    StackPtxPlace* place_out
) {
    if (mode == STACK_PTX_MODE_LENIENT || (mode == STACK_PTX_MODE_COMPATIBLE && of_word == STACK_PTX__OUT_OF_RANGE)) {
        return STACK_PTX_SUCCESS;
    }
    if (of_word == STACK_PTX__OUT_OF_RANGE) {
        of_word = STACK_PTX_ERROR_INVALID_VALUE;
    }
    if (place_out != NULL) {
        place_out->routine_idx = routine_idx;
        place_out->word_idx = word_idx;
    }
    return STACK_PTX__ERROR(of_word);
}

static StackPtxResult stack_ptx__run(
    const StackPtxLanguage* language,
    StackPtxMode mode,
    uint32_t flags,
    const StackPtxInstruction* words,
    size_t num_words,
    StackPtx__Work* work,
    StackPtxPlace* place_out
) {
    size_t budget = language->limits.execution_limit;
    size_t num_open = 1; /* word lists */
    size_t next = 0, length = num_words, routine_idx = STACK_PTX_MAIN_PROGRAM;

    stack_ptx__open_run(language, work, flags, num_words);
    if (language->limits.max_frame_depth == 0) {
        return STACK_PTX_SUCCESS;
    }
    for (;;) { /* once for each stretch of words between calls and returns */
        const size_t begin = next;
        const size_t stop = length - begin < budget ? length : begin + budget;
        StackPtxInstruction word = {STACK_PTX_INSTRUCTION_TYPE_NONE, 0, {0}};
        StackPtxResult of_word = STACK_PTX_SUCCESS;

        while (next < stop) {
            word = words[next++];
            of_word = stack_ptx__run_word(language, work, word);
            if (of_word != STACK_PTX_SUCCESS) {
                StackPtxResult result;
                if (of_word == STACK_PTX__LEAVE) {
                    break;
                }
                result = stack_ptx__judge(mode, of_word, routine_idx, next - 1, place_out);
                if (result != STACK_PTX_SUCCESS || of_word == STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE) {
                    return result;
                }
            }
        }
        budget -= next - begin;
        if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_ROUTINE) {
            if (word.payload.u >= language->num_routines) {
                of_word = STACK_PTX_ERROR_ROUTINES_IDX_OUT_OF_BOUNDS;
            } else if (num_open == language->limits.max_frame_depth) {
                of_word = STACK_PTX__OUT_OF_RANGE;
            } else {
                StackPtx__Frame* frame = &work->frames[num_open++ - 1];
                frame->words = words;
                frame->next = next;
                frame->length = length;
                frame->routine_idx = routine_idx;
                words = language->routines[word.payload.u];
                next = 0;
                length = language->routine_lengths == NULL ? SIZE_MAX : language->routine_lengths[word.payload.u];
                routine_idx = word.payload.u;
                continue;
            }
            of_word = stack_ptx__judge(mode, of_word, routine_idx, next - 1, place_out);
            if (of_word != STACK_PTX_SUCCESS) {
                return of_word;
            }
        } else if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_RETURN || next == length) {
            const StackPtx__Frame* frame;
            if (--num_open == 0) {
                return STACK_PTX_SUCCESS;
            }
            frame = &work->frames[num_open - 1];
            words = frame->words;
            next = frame->next;
            length = frame->length;
            routine_idx = frame->routine_idx;
        } else {
            return STACK_PTX_SUCCESS; /* the execution limit */
        }
    }
}

/* ---- lowering: the result ---- */

/* Marks what the requests' rows need, and what that needs. */
static void stack_ptx__mark_live(StackPtx__Work* work, const uint32_t* request_rows, size_t num_requests) {
    const StackPtx__Row* rows = work->rows;
    uint8_t* live = work->live;
    size_t i;
    uint32_t r;
    memset(live, 0, work->num_rows);
    for (i = 0; i < num_requests; ++i) {
        live[request_rows[i]] = 1;
    }
    for (r = work->num_rows - 1; r > 0; --r) {
        if (live[r]) {
            const StackPtx__Row* row = &rows[r];
            live[(uint32_t)row->operands[0]] = 1;
            live[row->operands[0] >> 32] = 1;
            live[(uint32_t)row->operands[1]] = 1;
            live[row->operands[1] >> 32] = 1;
        }
    }
}

/* Operands of a node beyond the third, taken from the rows in which it continues. */
STACK_PTX__COLD void stack_ptx__collect_continued(
    const StackPtx__Work* work,
    const StackPtx__Row* row,
    uint32_t num_operands,
    uint32_t* operands
) {
    while (num_operands > 4) {
        row = &work->rows[row->operands[1] >> 32];
        num_operands -= 3;
        operands += 3;
        operands[0] = work->value_ids[(uint32_t)row->operands[0]];
        operands[1] = work->value_ids[row->operands[0] >> 32];
        operands[2] = work->value_ids[(uint32_t)row->operands[1]];
        operands[3] = work->value_ids[row->operands[1] >> 32];
    }
}

/* The results of a node with more than one, which may lie on several stacks. */
STACK_PTX__COLD void stack_ptx__number_results(
    const StackPtxLanguage* language,
    StackPtx__Work* work,
    uint32_t r,
    uint32_t node_idx
) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[work->nodes[node_idx].payload];
    const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
    uint32_t value = work->nodes[node_idx].first_value;
    uint32_t i, k;
    for (i = 0; i < num_rets; ++i) {
        for (k = stack_ptx__num_elems(info, descriptor->ret_types[i]); k > 0; --k) {
            work->value_ids[r++] = value;
            work->value_nodes[value] = node_idx;
            work->value_stacks[value++] = info->arg_type_info[descriptor->ret_types[i]].stack_idx;
        }
    }
}

/* Numbers nodes and values anew, without the dead ones. */
static void stack_ptx__collect(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxLowered* lowered) {
    const uint8_t* live = work->live;
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const uint32_t num_rows = work->num_rows;
    uint32_t* value_ids = work->value_ids;
    uint32_t* value_nodes = work->value_nodes;
    uint16_t* value_stacks = work->value_stacks;
    StackPtxNode* node = work->nodes;
    uint32_t num_nodes = 0, num_operands = 0, num_values = 0, num_instructions = 0, r;

    value_ids[0] = 0;
    for (r = 1; r < num_rows; ++r) {
        const StackPtx__Row* row = &rows[r];
        const StackPtx__OpNode* op_node = &op_nodes[(uint32_t)row->head];
        uint32_t* operands = work->operands + num_operands;
        if (!live[r] || op_node->node.num_values == 0) {
            continue;
        }
        memcpy(node, &op_node->node, offsetof(StackPtxNode, payload));
        node->payload = op_node->node.payload | (uint32_t)(row->head >> 32);
        node->first_operand = num_operands;
        node->first_value = num_values;
        /* Where there are fewer the next node writes over them. */
        operands[0] = value_ids[(uint32_t)row->operands[0]];
        operands[1] = value_ids[row->operands[0] >> 32];
        operands[2] = value_ids[(uint32_t)row->operands[1]];
        operands[3] = value_ids[row->operands[1] >> 32];
        value_ids[r] = num_values;
        value_nodes[num_values] = num_nodes;
        value_stacks[num_values] = op_node->node.stack_idx;
        if (op_node->is_large) {
            stack_ptx__collect_continued(work, row, op_node->node.num_operands, operands);
            stack_ptx__number_results(language, work, r, num_nodes);
        }
        num_operands += op_node->node.num_operands;
        num_values += op_node->node.num_values;
        num_instructions += op_node->is_ptx;
        ++num_nodes;
        ++node;
    }
    lowered->nodes = work->nodes;
    lowered->operands = work->operands;
    lowered->value_nodes = work->value_nodes;
    lowered->value_stacks = work->value_stacks;
    lowered->num_nodes = num_nodes;
    lowered->num_operands = num_operands;
    lowered->num_values = num_values;
    lowered->num_instructions = num_instructions;
}

static StackPtxResult stack_ptx__check_work(
    const StackPtxLanguage* language,
    const void* workspace,
    size_t workspace_bytes
) {
    if (language == NULL || workspace == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    if (workspace_bytes < language->layout.bytes) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    }
    return STACK_PTX_SUCCESS;
}

StackPtxResult stack_ptx_lower(
    const StackPtxLanguage* language,
    StackPtxMode mode,
    uint32_t flags,
    const StackPtxInstruction* words,
    size_t num_words,
    void* workspace,
    size_t workspace_bytes,
    StackPtxLowered* lowered_out,
    StackPtxPlace* place_out
) {
    StackPtx__Work work;
    StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    size_t i;
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (lowered_out == NULL || (words == NULL && num_words > 0) || (unsigned)mode > STACK_PTX_MODE_COMPATIBLE ||
        (flags & ~STACK_PTX_FLAG_NO_VALUE_NUMBERING) != 0) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    result = stack_ptx__run(language, mode, flags, words, num_words, &work, place_out);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    for (i = 0; i < language->num_requests; ++i) {
        work.request_values[i] = stack_ptx__pop(&work.stacks[language->registers[language->requests[i]].stack_idx]);
    }
    stack_ptx__mark_live(&work, work.request_values, language->num_requests);
    stack_ptx__collect(language, &work, lowered_out);
    for (i = 0; i < language->num_requests; ++i) {
        const uint32_t row = work.request_values[i];
        work.request_values[i] = row == 0 ? STACK_PTX_NO_VALUE : work.value_ids[row];
    }
    lowered_out->request_values = work.request_values;
    lowered_out->num_requests = (uint32_t)language->num_requests;
    lowered_out->mode = mode;
    return STACK_PTX_SUCCESS;
}

#endif /* STACK_PTX_LOWER_H */
