/*
 * stack_ptx_run.h - runs a program on stacks of values, to rows.
 *
 * Private: included only by stack_ptx.h, after stack_ptx_language.h. While a program runs, each value has a row: an op and the
 * rows of its operands. Equal values get the same row. Then the rows that requests need are marked, from last to first.
 *
 * Speed. Mispredicted branches cost most, and the kind of the next word cannot be predicted. So inputs, constants and common
 * instructions share branch-free code: a table says what a word takes and gives, inputs have their rows from the start, and the
 * table of values is kept sparse. All other, rarer words go through a switch.
 */

#ifndef STACK_PTX_RUN_H
#define STACK_PTX_RUN_H

#include "stack_ptx_language.h"

/* ---- lowering: values ---- */

/* First slot in the search for a value; the same for both orders of operands that commute. Small indices, the usual ones, do not
   overlap in the mix before the multiplication. */
PTX_TEXT__HOT uint32_t
stack_ptx__entry_of(const StackPtx__Work* work, uint64_t head, uint64_t operands_0, uint64_t operands_1, uint64_t commutes) {
    const uint64_t both_orders = operands_0 + (stack_ptx__rotate(operands_0, 32) & commutes);
    const uint64_t mix = head ^ stack_ptx__rotate(both_orders, 10) ^ stack_ptx__rotate(operands_1, 21);
    return (uint32_t)((mix * STACK_PTX__MIX_1) >> work->table_shift);
}

/* Uses a part of the table that is small enough to be cleared for each program. */
static void stack_ptx__open_table(const StackPtxLanguage* language, StackPtx__Work* work, uint64_t size) {
    uint64_t part = 16;
    work->table_shift = 60;
    while (part < size && part < language->layout.table_size) {
        part *= 2;
        --work->table_shift;
    }
    work->part_mask = (uint32_t)(part - 1);
    work->grow_at = part == language->layout.table_size ? UINT32_MAX : (uint32_t)(part / 2);
    memset(work->table, 0, (size_t)part * sizeof *work->table);
}

PTX_TEXT__HOT uint32_t stack_ptx__add_row(StackPtx__Work* work, uint64_t head, uint64_t operands_0, uint64_t operands_1) {
    StackPtx__Row* row = &work->rows[work->num_rows];
    row->head = head;
    row->operands[0] = operands_0;
    row->operands[1] = operands_1;
    return work->num_rows++;
}

static uint64_t stack_ptx__commutes(const StackPtxLanguage* language, uint32_t op_idx) {
    return op_idx < language->first_special ? language->ops[op_idx].commutes : 0;
}

/* Makes the part four times as large and reinserts the rows that value numbering may find. The others, such as inputs, might not
   fit. */
PTX_TEXT__COLD void stack_ptx__grow_table(const StackPtxLanguage* language, StackPtx__Work* work) {
    uint32_t i;
    stack_ptx__open_table(language, work, 4 * ((uint64_t)work->part_mask + 1));
    for (i = 1; i < work->num_rows; ++i) {
        const StackPtx__Row* row = &work->rows[i];
        const uint32_t op_idx = (uint32_t)row->head;
        const bool is_input = op_idx >= language->first_input && op_idx < language->first_constant;
        if (!is_input && op_idx != language->follower && !language->op_nodes[op_idx].is_volatile) {
            const uint64_t commutes = stack_ptx__commutes(language, op_idx);
            uint32_t entry = stack_ptx__entry_of(work, row->head, row->operands[0], row->operands[1], commutes);
            while (work->table[entry] != 0) entry = (entry + 1) & work->part_mask;
            work->table[entry] = i;
        }
    }
}

/* The table's entry for the row of an equal value, or the free entry for a new one. The search rarely takes more than one step.
   Its outcome is a branch, not a choice between values, so that a processor that predicts it need not wait. With a mask of zeros
   instead of ones every entry is free. */
PTX_TEXT__HOT uint32_t* stack_ptx__find_entry(
    const StackPtx__Work* work, uint64_t head, uint64_t operands_0, uint64_t operands_1, uint64_t commutes, uint32_t mask
) {
    uint32_t entry = stack_ptx__entry_of(work, head, operands_0, operands_1, commutes);
    uint32_t found;
    while ((found = work->table[entry] & mask) != 0) {
        const StackPtx__Row* row = &work->rows[found];
        if (row->head == head && row->operands[1] == operands_1 &&
            (row->operands[0] == operands_0 || (commutes != 0 && row->operands[0] == stack_ptx__rotate(operands_0, 32)))) {
            break;
        }
        entry = (entry + 1) & work->part_mask;
    }
    return &work->table[entry];
}

/* The row of an equal value, or a new one. */
static uint32_t stack_ptx__find_row(
    const StackPtxLanguage* language, StackPtx__Work* work, uint64_t head, uint64_t operands_0, uint64_t operands_1,
    uint64_t commutes
) {
    uint32_t* entry;
    if (!work->is_numbering) return stack_ptx__add_row(work, head, operands_0, operands_1);
    if (work->num_rows >= work->grow_at) stack_ptx__grow_table(language, work);
    entry = stack_ptx__find_entry(work, head, operands_0, operands_1, commutes, UINT32_MAX);
    if (*entry == 0) *entry = stack_ptx__add_row(work, head, operands_0, operands_1);
    return *entry;
}

PTX_TEXT__HOT void stack_ptx__push(StackPtx__Values* stack, uint32_t row) {
    *stack->top = row;
    stack->top += stack->top < stack->full;
}

/* 0 if the stack is empty. */
PTX_TEXT__HOT uint32_t stack_ptx__pop(StackPtx__Values* stack) { return stack->top == stack->base ? 0 : *--stack->top; }

PTX_TEXT__HOT size_t stack_ptx__height(const StackPtx__Values* stack) { return (size_t)(stack->top - stack->base); }

/* False if the node limit ends the program. */
PTX_TEXT__HOT bool stack_ptx__count_values(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t count) {
    if (count > language->limits.max_nodes - work->num_created) return false;
    work->num_created += count;
    return true;
}

/* A PTX instruction with vectors, several results or operands from several stacks, or a volatile one. */
PTX_TEXT__COLD bool stack_ptx__run_general_ptx(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t op_idx) {
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
        for (k = 0; k <= i; ++k)
            if (info->arg_type_info[descriptor->arg_types[k]].stack_idx == stack_idx)
                num_needed += stack_ptx__num_elems(info, descriptor->arg_types[k]);
        if (stack_ptx__height(&work->stacks[stack_idx]) < num_needed) return true;
    }
    if (!stack_ptx__count_values(language, work, num_values)) return false;
    for (i = 0; i < num_args; ++i) {
        const uint32_t stack_idx = info->arg_type_info[descriptor->arg_types[i]].stack_idx;
        for (k = stack_ptx__num_elems(info, descriptor->arg_types[i]); k > 0; --k)
            operands[num_operands++] = stack_ptx__pop(&work->stacks[stack_idx]);
    }
    if (num_values == 0) return true;
    /* Operands 3, 4, 5 and a fourth, then 6, 7, 8 and a fourth, ..: the last of these rows is made first. */
    if (num_operands > 4) first = (num_operands - 2) / 3 * 3;
    pair_0 = stack_ptx__pair(operands[first], operands[first + 1]);
    pair_1 = stack_ptx__pair(operands[first + 2], operands[first + 3]);
    for (; first > 0; first -= 3) {
        row = stack_ptx__find_row(language, work, language->continuation, pair_0, pair_1, 0);
        pair_0 = stack_ptx__pair(operands[first - 3], operands[first - 2]);
        pair_1 = stack_ptx__pair(operands[first - 1], row);
    }
    if (op_node->is_volatile)
        row = stack_ptx__add_row(work, op_idx, pair_0, pair_1);
    else
        row = stack_ptx__find_row(language, work, op_idx, pair_0, pair_1, language->ops[op_idx].commutes);
    if (row + 1 == work->num_rows)
        for (i = 1; i < num_values; ++i) (void)stack_ptx__add_row(work, language->follower, row, 0);
    row += num_values;
    for (i = stack_ptx__num_rets(info, descriptor); i > 0; --i) {
        const uint32_t ret_type = descriptor->ret_types[i - 1];
        for (k = stack_ptx__num_elems(info, ret_type); k > 0; --k)
            stack_ptx__push(&work->stacks[info->arg_type_info[ret_type].stack_idx], --row);
    }
    return true;
}

PTX_TEXT__COLD bool stack_ptx__run_special(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t idx) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t arg_type = info->special_register_descriptors[idx].arg_type_idx;
    const uint32_t num_elems = stack_ptx__num_elems(info, arg_type);
    const uint32_t op_idx = language->first_special + idx;
    uint32_t i;
    if (!stack_ptx__count_values(language, work, num_elems)) return false;
    for (i = 0; i < num_elems; ++i) {
        const uint64_t head = stack_ptx__pair(op_idx, i << 16);
        const uint32_t row = language->op_nodes[op_idx].is_volatile ? stack_ptx__add_row(work, head, 0, 0)
                                                                    : stack_ptx__find_row(language, work, head, 0, 0, 0);
        stack_ptx__push(&work->stacks[info->arg_type_info[arg_type].stack_idx], row);
    }
    return true;
}

/* An input that has no row from the start. */
PTX_TEXT__COLD bool stack_ptx__run_late_input(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t register_idx) {
    const uint32_t stack_idx = language->registers[register_idx].stack_idx;
    if (!stack_ptx__count_values(language, work, 1)) return false;
    stack_ptx__push(
        &work->stacks[stack_idx], stack_ptx__add_row(work, stack_ptx__pair(language->first_input + stack_idx, register_idx), 0, 0)
    );
    return true;
}

/* Runs words up to the first that is not plain, is not prepared, or might exceed the node limit. Returns its index, or `stop`. An
   input makes a row like the others, which is not kept. */
PTX_TEXT__HOT size_t stack_ptx__run_plain_words(
    const StackPtxLanguage* language, StackPtx__Work* work, const StackPtxInstruction* words, size_t next, size_t stop,
    int is_numbering /* a constant where this is inlined */
) {
    const size_t first = next;
    const uint32_t num_left = language->limits.max_nodes - work->num_created;
    size_t end = stop - next < num_left ? stop : next + num_left; /* later if words make no value */
    size_t num_idle = 0;
    uint32_t num_rows = work->num_rows;
    StackPtx__Row* rows = work->rows;
    /* Of the stack in use, the top is kept here: read back from memory, each word would wait for the one before. */
    StackPtx__Values* stack = work->stacks;
    uint32_t* top = stack->top;
    uint32_t stack_idx = 0;

    for (; next < end; ++next) {
        const StackPtxInstruction word = words[next];
        const StackPtx__WordForm* form;
        const StackPtx__Op* op;
        const uint32_t* old_top;
        uint64_t head, pair_0, pair_1;
        uint32_t idx, row, mask, found = 0;

        if (word.instruction_type >= STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS) break;
        form = &language->word_forms[word.instruction_type];
        idx = (word.payload.u & form->payload_mask) | (word.aux & form->aux_mask);
        if (idx >= form->num_ops || form->op_kinds[idx] != STACK_PTX__OP_PLAIN) break;
        op = &form->ops[idx];
        if (op->in_stack != stack_idx) {
            stack->top = top;
            stack_idx = op->in_stack;
            stack = &work->stacks[stack_idx];
            top = stack->top;
        }
        if (top - op->num_operands < stack->base) {
            end += end < stop;
            ++num_idle;
            continue;
        }
        old_top = top;
        top -= op->num_operands;
        head = stack_ptx__pair(op->head, word.payload.u);
        pair_0 = stack_ptx__pair(old_top[-1], old_top[-2]) & op->operand_masks[0];
        pair_1 = stack_ptx__pair(old_top[-3], old_top[-4]) & op->operand_masks[1];
        mask = op->new_row_mask; /* not conditions, which could become branches */
        row = op->row | (num_rows & mask);
        if (is_numbering) {
            uint32_t* entry;
            if (num_rows >= work->grow_at) {
                work->num_rows = num_rows;
                stack_ptx__grow_table(language, work);
            }
            entry = stack_ptx__find_entry(work, head, pair_0, pair_1, op->commutes, mask);
            found = *entry & mask;
            if (found != 0)
                row = found;
            else
                *entry = (num_rows & mask) | (*entry & ~mask);
        }
        if (found == 0) {
            StackPtx__Row* new_row = &rows[num_rows];
            new_row->head = head;
            new_row->operands[0] = pair_0;
            new_row->operands[1] = pair_1;
            num_rows -= mask; /* one more, or not */
        }
        if (op->out_stack != stack_idx) {
            stack->top = top;
            stack_idx = op->out_stack;
            stack = &work->stacks[stack_idx];
            top = stack->top;
        }
        *top = row;
        top += top < stack->full;
    }
    stack->top = top;
    work->num_rows = num_rows;
    work->num_created += (uint32_t)(next - first - num_idle);
    return next;
}

/* False if a depth is out of range. */
static bool stack_ptx__run_meta(StackPtx__Work* work, StackPtx__Values* stack, uint32_t operation) {
    const size_t height = stack_ptx__height(stack);
    uint32_t* top = stack->top;
    uint32_t number = 0, value;

    if (operation == STACK_PTX_META_INSTRUCTION_YANK_DUP || operation == STACK_PTX_META_INSTRUCTION_SWAP_WITH ||
        operation == STACK_PTX_META_INSTRUCTION_REPLACE || operation == STACK_PTX_META_INSTRUCTION_DROP) {
        if (work->num_meta == 0) return true;
        number = work->meta[--work->num_meta];
        if (operation == STACK_PTX_META_INSTRUCTION_DROP) {
            stack->top -= height > number ? number : 0;
            return true;
        }
        if (number >= height) return false;
        if (operation != STACK_PTX_META_INSTRUCTION_YANK_DUP && top == stack->full) return true;
    }
    if (height == 0) return true;
    value = top[-1];
    switch (operation) {
        case STACK_PTX_META_INSTRUCTION_DUP: stack_ptx__push(stack, value); break;
        case STACK_PTX_META_INSTRUCTION_YANK_DUP: stack_ptx__push(stack, *(top - 1 - number)); break;
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
        case STACK_PTX_META_INSTRUCTION_CLEAR: stack->top = stack->base; break;
        case STACK_PTX_META_INSTRUCTION_ROTATE:
            if (height > 2) {
                top[-1] = top[-2];
                top[-2] = top[-3];
                top[-3] = value;
            }
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

/* A ROUTINE or a RETURN, left to the caller. */
#define STACK_PTX__LEAVE STACK_PTX_RESULT_NUM_ELEMS
/* A depth or frame out of range: INVALID_VALUE if it is an error. */
#define STACK_PTX__OUT_OF_RANGE ((StackPtxResult)(STACK_PTX_RESULT_NUM_ELEMS + 1))
/* The word is prepared now: run it again. */
#define STACK_PTX__PREPARED ((StackPtxResult)(STACK_PTX_RESULT_NUM_ELEMS + 2))

/* Prepares an instruction at its first use, without traits. */
PTX_TEXT__COLD StackPtxResult stack_ptx__prepare_late(const StackPtxLanguage* language, uint32_t op_idx) {
    const StackPtxResult result = stack_ptx__check_instruction(&language->stack_info, op_idx, NULL);
    if (result == STACK_PTX_SUCCESS) {
        stack_ptx__prepare_ptx_op(language, op_idx, NULL);
        return STACK_PTX__PREPARED;
    }
    return result;
}

/* A plain word that was not run: the node limit ends the program here, if the word can apply. */
static bool stack_ptx__run_last_plain(const StackPtx__Work* work, const StackPtx__Op* op) {
    return stack_ptx__height(&work->stacks[op->in_stack]) < op->num_operands;
}

/* A word of a template, in stack_ptx_lower.h. */
static bool stack_ptx__run_derivative(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxInstruction word);

/* Runs a word at which stack_ptx__run_plain_words stops, or returns STACK_PTX__PREPARED or, for one that leaves its word list,
   STACK_PTX__LEAVE. Otherwise the result is the word's error, or SUCCESS, also for a no-op of every mode. The node limit is
   INSUFFICIENT_AST_SIZE. */
static StackPtxResult stack_ptx__run_word(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxInstruction word) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtx__WordForm* constant = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_CONSTANT];
    const StackPtx__WordForm* input = &language->word_forms[STACK_PTX_INSTRUCTION_TYPE_INPUT];
    const uint32_t payload = word.payload.u;
    bool is_within_limit;
    switch (word.instruction_type) {
        case STACK_PTX_INSTRUCTION_TYPE_PTX:
            if (payload >= info->num_ptx_instructions) return STACK_PTX_ERROR_PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS;
            if (language->op_kinds[payload] == STACK_PTX__OP_UNPREPARED) return stack_ptx__prepare_late(language, payload);
            is_within_limit = language->op_kinds[payload] == STACK_PTX__OP_PLAIN
                ? stack_ptx__run_last_plain(work, &language->ops[payload])
                : stack_ptx__run_general_ptx(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_INPUT:
            if (payload >= language->num_registers) return STACK_PTX_ERROR_REGISTER_IDX_OUT_OF_BOUNDS;
            if (language->registers[payload].name == NULL) return STACK_PTX_ERROR_INVALID_VALUE;
            if (payload >= language->num_input_rows) {
                is_within_limit = stack_ptx__run_late_input(language, work, payload);
            } else if (input->op_kinds[payload] == STACK_PTX__OP_UNPREPARED) {
                stack_ptx__prepare_input(language, payload);
                return STACK_PTX__PREPARED;
            } else {
                is_within_limit = stack_ptx__run_last_plain(work, &input->ops[payload]);
            }
            break;
        case STACK_PTX_INSTRUCTION_TYPE_CONSTANT:
            if (word.aux >= info->num_stacks) return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            if (language->stacks[word.aux].constant_type == STACK_PTX_CONSTANT_TYPE_NONE)
                return STACK_PTX_ERROR_WRONG_TYPE_DISPATCH;
            if (constant->op_kinds[word.aux] == STACK_PTX__OP_UNPREPARED) {
                stack_ptx__prepare_constant(language, word.aux);
                return STACK_PTX__PREPARED;
            }
            is_within_limit = stack_ptx__run_last_plain(work, &constant->ops[word.aux]);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_SPECIAL:
            if (payload >= info->num_special_registers) return STACK_PTX_ERROR_SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS;
            if (language->is_late) {
                const StackPtxResult result = stack_ptx__check_special(info, payload);
                if (result != STACK_PTX_SUCCESS) return result;
                stack_ptx__prepare_special(language, payload, NULL);
            }
            is_within_limit = stack_ptx__run_special(language, work, payload);
            break;
        case STACK_PTX_INSTRUCTION_TYPE_META:
            if (word.aux >= info->num_stacks) return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            if (payload >= STACK_PTX_META_INSTRUCTION_NUM_ENUMS) return STACK_PTX_ERROR_META_INSTRUCTION_IDX_OUT_OF_BOUNDS;
            return stack_ptx__run_meta(work, &work->stacks[word.aux], payload) ? STACK_PTX_SUCCESS : STACK_PTX__OUT_OF_RANGE;
        case STACK_PTX_INSTRUCTION_TYPE_META_CONSTANT:
            if (work->num_meta < language->limits.stack_size) work->meta[work->num_meta++] = payload;
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_STORE:
            if (word.aux >= info->num_stacks) return STACK_PTX_ERROR_STACK_IDX_OUT_OF_BOUNDS;
            if (payload >= language->limits.store_size) return STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS;
            if (stack_ptx__height(&work->stacks[word.aux]) > 0) {
                work->store[payload].row = stack_ptx__pop(&work->stacks[word.aux]);
                work->store[payload].stack_idx = word.aux;
            }
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_LOAD:
            if (payload >= language->limits.store_size) return STACK_PTX_ERROR_LOAD_IDX_OUT_OF_BOUNDS;
            if (work->store[payload].row != 0)
                stack_ptx__push(&work->stacks[work->store[payload].stack_idx], work->store[payload].row);
            return STACK_PTX_SUCCESS;
        case STACK_PTX_INSTRUCTION_TYPE_ROUTINE:
        case STACK_PTX_INSTRUCTION_TYPE_RETURN: return STACK_PTX__LEAVE;
        case STACK_PTX_TEMPLATE_DERIVATIVE:
            if (language->derivation.derive == NULL) return STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN;
            if (payload >= language->limits.store_size || word.aux >= language->limits.store_size)
                return STACK_PTX_ERROR_STORE_IDX_OUT_OF_BOUNDS;
            is_within_limit = stack_ptx__run_derivative(language, work, word);
            break;
        default: return STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN;
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
    /* Inputs have rows from the start, so there is nothing to find; unused ones are dead code. */
    for (i = 0; i < language->num_input_rows; ++i) {
        const uint32_t op_idx = language->first_input + language->registers[i].stack_idx;
        (void)stack_ptx__add_row(work, stack_ptx__pair(op_idx, (uint32_t)i), 0, 0);
    }
    work->num_created = 0;
    work->num_meta = 0;
    work->is_numbering = (flags & STACK_PTX_FLAG_NO_VALUE_NUMBERING) == 0;
    if (work->is_numbering) {
        /* At most a quarter full for most programs, so that most searches take one step. */
        stack_ptx__open_table(language, work, 4 * (uint64_t)(num_words < 1024 ? num_words : 1024));
    }
}

/* A mode's treatment of a word's error: SUCCESS to continue, or the error, whose place is written. */
PTX_TEXT__COLD StackPtxResult
stack_ptx__judge(StackPtxMode mode, StackPtxResult of_word, size_t routine_idx, size_t word_idx, StackPtxPlace* place_out) {
    if (mode == STACK_PTX_MODE_LENIENT || (mode == STACK_PTX_MODE_COMPATIBLE && of_word == STACK_PTX__OUT_OF_RANGE))
        return STACK_PTX_SUCCESS;
    if (of_word == STACK_PTX__OUT_OF_RANGE) of_word = STACK_PTX_ERROR_INVALID_VALUE;
    if (place_out != NULL) {
        place_out->routine_idx = routine_idx;
        place_out->word_idx = word_idx;
    }
    return STACK_PTX__ERROR(of_word);
}

static StackPtxResult stack_ptx__run(
    const StackPtxLanguage* language, StackPtxMode mode, uint32_t flags, const StackPtxInstruction* words, size_t num_words,
    StackPtx__Work* work, StackPtxPlace* place_out
) {
    size_t budget = language->limits.execution_limit;
    size_t num_open = 1; /* word lists */
    size_t next = 0, length = num_words, routine_idx = STACK_PTX_MAIN_PROGRAM;

    stack_ptx__open_run(language, work, flags, num_words);
    if (language->limits.max_frame_depth == 0) return STACK_PTX_SUCCESS;
    for (;;) { /* once for each run of words between calls and returns */
        const size_t begin = next;
        const size_t stop = length - begin < budget ? length : begin + budget;
        StackPtxInstruction word = {STACK_PTX_INSTRUCTION_TYPE_NONE, 0, {0}};
        StackPtxResult of_word = STACK_PTX_SUCCESS;

        while (next < stop) {
            next = work->is_numbering ? stack_ptx__run_plain_words(language, work, words, next, stop, 1)
                                      : stack_ptx__run_plain_words(language, work, words, next, stop, 0);
            if (next == stop) break;
            word = words[next];
            of_word = stack_ptx__run_word(language, work, word);
            next += of_word != STACK_PTX__PREPARED;
            if (of_word != STACK_PTX_SUCCESS && of_word != STACK_PTX__PREPARED) {
                StackPtxResult result;
                if (of_word == STACK_PTX__LEAVE) break;
                result = stack_ptx__judge(mode, of_word, routine_idx, next - 1, place_out);
                if (result != STACK_PTX_SUCCESS || of_word == STACK_PTX_ERROR_INSUFFICIENT_AST_SIZE) return result;
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
            if (of_word != STACK_PTX_SUCCESS) return of_word;
        } else if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_RETURN || next == length) {
            const StackPtx__Frame* frame;
            if (--num_open == 0) return STACK_PTX_SUCCESS;
            frame = &work->frames[num_open - 1];
            words = frame->words;
            next = frame->next;
            length = frame->length;
            routine_idx = frame->routine_idx;
        } else { /* the execution limit */
            return mode != STACK_PTX_MODE_STRICT
                ? STACK_PTX_SUCCESS
                : stack_ptx__judge(mode, STACK_PTX_ERROR_BAD_INSTRUCTION_MAYBE_FORGOT_RETURN, routine_idx, next, place_out);
        }
    }
}

/* ---- lowering: live rows ---- */

static void stack_ptx__mark_requests(StackPtx__Work* work, const uint32_t* request_rows, size_t num_requests) {
    size_t i;
    memset(work->live, 0, work->num_rows);
    for (i = 0; i < num_requests; ++i) work->live[request_rows[i]] = 1;
}

PTX_TEXT__HOT void stack_ptx__mark_operands(uint8_t* live, const StackPtx__Row* row) {
    const uint64_t operands_0 = row->operands[0], operands_1 = row->operands[1];
    live[(uint32_t)operands_0] = 1;
    live[operands_0 >> 32] = 1;
    live[(uint32_t)operands_1] = 1;
    live[operands_1 >> 32] = 1;
}

/* Marks the rows that requests need, directly or not. */
static void stack_ptx__mark_live(StackPtx__Work* work, const uint32_t* request_rows, size_t num_requests) {
    const StackPtx__Row* rows = work->rows; /* locals: writing a byte might change the struct, for all that a compiler knows */
    uint8_t* live = work->live;
    uint32_t r;
    stack_ptx__mark_requests(work, request_rows, num_requests);
    for (r = work->num_rows - 1; r > 0; --r)
        if (live[r]) stack_ptx__mark_operands(live, &rows[r]);
}

#endif /* STACK_PTX_RUN_H */
