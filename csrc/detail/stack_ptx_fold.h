/*
 * stack_ptx_fold.h - computes instructions of constants while a program is lowered.
 *
 * Private: included only by stack_ptx.h, after stack_ptx_run.h. It works on the rows of a program that has run, before they are
 * renumbered. What an instruction computes is asked of the language's StackPtxFolding.
 *
 * Most programs have no instruction of constants alone: a first pass finds out. In the others each live row is visited in order,
 * from the first such instruction on. A row that becomes a constant is rewritten in place. Value numbering then looks only at rows
 * that change: an equal row takes their place, or they take its place. Some stacks have no constants, such as that of predicates: a
 * known value of theirs keeps its row and is only remembered, so that what it decides can be known too.
 *
 * Then come instructions that are others with another constant, such as a division by a constant. That constant needs a row before
 * theirs, so all rows move up; since only such programs pay for it, their values are then numbered anew.
 */

#ifndef STACK_PTX_FOLD_H
#define STACK_PTX_FOLD_H

#include "stack_ptx_run.h"

/* Bit of `live`, beside the lowest, of a row that is known but no constant. Its bits are in `operands`, which is not in use yet and
   has room for one of each row. */
#define STACK_PTX__IS_REMEMBERED 2u

PTX_TEXT__HOT bool stack_ptx__is_constant(const StackPtxLanguage* language, const StackPtx__Work* work, uint32_t r) {
    return (uint32_t)work->rows[r].head - language->first_constant < language->follower - language->first_constant;
}

PTX_TEXT__HOT uint32_t stack_ptx__operand(const StackPtx__Row* row, uint32_t k) {
    return (uint32_t)(row->operands[k / 2] >> (k % 2 * 32));
}

/* The first live instruction all of whose operands are constants; num_rows if there is none. Row 0, which stands for operands that
   an instruction lacks, counts as a constant. */
static uint32_t stack_ptx__first_of_constants(const StackPtxLanguage* language, StackPtx__Work* work) {
    const uint32_t num_rows = work->num_rows, num_ptx = language->first_special;
    uint32_t r;
    work->rows[0].head = language->first_constant;
    for (r = 1; r < num_rows; ++r) {
        const StackPtx__Row* row = &work->rows[r];
        const uint32_t is_found = (uint32_t)((uint32_t)row->head < num_ptx) & work->live[r] &
            (uint32_t)stack_ptx__is_constant(language, work, stack_ptx__operand(row, 0)) &
            (uint32_t)stack_ptx__is_constant(language, work, stack_ptx__operand(row, 1));
        if (is_found && stack_ptx__is_constant(language, work, stack_ptx__operand(row, 2)) &&
            stack_ptx__is_constant(language, work, stack_ptx__operand(row, 3))) {
            break;
        }
    }
    return r;
}

/* The result of the language's folding for a row, which has one result and at most four operands. */
static StackPtxFoldKind stack_ptx__fold_row(
    const StackPtxLanguage* language, const StackPtx__Work* work, const StackPtx__Row* row, uint32_t* result_out
) {
    const uint32_t op_idx = (uint32_t)row->head, num_operands = language->op_nodes[op_idx].node.num_operands;
    uint32_t operands[4] = {0, 0, 0, 0}, known = 0, remembered = 0, k;
    for (k = 0; k < num_operands; ++k) {
        const uint32_t operand = stack_ptx__operand(row, k);
        if (stack_ptx__is_constant(language, work, operand)) {
            known |= 1u << k;
            operands[k] = (uint32_t)(work->rows[operand].head >> 32);
        } else if ((work->live[operand] & STACK_PTX__IS_REMEMBERED) != 0) {
            known |= 1u << k;
            remembered |= 1u << k;
            operands[k] = work->operands[operand];
        }
    }
    if (remembered == 0 && known != (1u << num_operands) - 1u) return STACK_PTX_FOLD_NONE;
    return language->folding.fold(language->folding.context, op_idx, known, operands, result_out);
}

/* The stack of an operand of an instruction without vectors. */
static uint32_t stack_ptx__stack_of_operand(const StackPtxLanguage* language, uint32_t op_idx, uint32_t k) {
    const StackPtxStackInfo* info = &language->stack_info;
    return info->arg_type_info[info->ptx_instruction_descriptors[op_idx].arg_types[k]].stack_idx;
}

/* Makes a row a constant, or remembers that it is known. Whether the row changes. */
static bool stack_ptx__take_constant(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t r, uint32_t bits) {
    const uint32_t stack_idx = language->op_nodes[(uint32_t)work->rows[r].head].node.stack_idx;
    if (language->stacks[stack_idx].constant_type == STACK_PTX_CONSTANT_TYPE_NONE) {
        work->live[r] |= STACK_PTX__IS_REMEMBERED;
        work->operands[r] = bits;
        return false;
    }
    work->rows[r].head = stack_ptx__pair(language->first_constant + stack_idx, bits);
    work->rows[r].operands[0] = 0;
    work->rows[r].operands[1] = 0;
    return true;
}

/* Finds the row that equals a changed one. The earlier of them takes the place of the other. The table has room for all rows that
   change: no more than half of it is in use, by as many rows. */
static void stack_ptx__merge_row(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t r, uint32_t* places) {
    const StackPtx__Row* row = &work->rows[r];
    const uint32_t op_idx = (uint32_t)row->head;
    uint32_t* entry;
    if (!work->is_numbering || language->op_nodes[op_idx].is_volatile) return;
    entry = stack_ptx__find_entry(
        work, row->head, row->operands[0], row->operands[1], stack_ptx__commutes(language, op_idx), UINT32_MAX
    );
    if (*entry != 0 && *entry < r) {
        places[r] = places[*entry];
        return;
    }
    if (*entry > r) places[*entry] = r;
    *entry = r;
}

/* Folds the live rows from one on. With is_all each counts as changed; the table is then empty. */
static void stack_ptx__fold_rows(
    const StackPtxLanguage* language, StackPtx__Work* work, uint32_t first_row, bool is_all, uint32_t* request_rows,
    size_t num_requests
) {
    uint32_t* places = work->value_ids; /* of each row: the row that takes its place, or itself */
    uint32_t r, k;
    size_t i;
    for (r = 0; r < work->num_rows; ++r) places[r] = r;
    for (r = first_row; r < work->num_rows; ++r) {
        StackPtx__Row* row = &work->rows[r];
        const uint32_t op_idx = (uint32_t)row->head;
        const StackPtx__OpNode* op_node = &language->op_nodes[op_idx];
        const bool is_input = op_idx >= language->first_input && op_idx < language->first_constant;
        StackPtxFoldKind kind = STACK_PTX_FOLD_NONE;
        uint32_t result[3] = {0, 0, 0};
        bool is_changed = is_all;
        if ((work->live[r] & 1u) == 0 || places[r] != r || is_input) continue;
        if (op_idx == language->follower) { /* as far behind the first value of its node as before */
            const uint32_t first = stack_ptx__operand(row, 0);
            places[r] = places[first] + (r - first);
            continue;
        }
        for (k = 0; k < 2; ++k) {
            const uint64_t operands = row->operands[k];
            row->operands[k] = stack_ptx__pair(places[(uint32_t)operands], places[operands >> 32]);
            is_changed = is_changed || row->operands[k] != operands;
        }
        if (op_node->is_ptx && !op_node->is_large && !op_node->is_volatile)
            kind = stack_ptx__fold_row(language, work, row, result);
        if (kind == STACK_PTX_FOLD_CONSTANT) {
            is_changed = stack_ptx__take_constant(language, work, r, result[0]) || is_changed;
        } else if (
            kind == STACK_PTX_FOLD_OPERAND && stack_ptx__stack_of_operand(language, op_idx, result[0]) == op_node->node.stack_idx
        ) {
            places[r] = stack_ptx__operand(row, result[0]);
            continue;
        }
        if (is_changed) stack_ptx__merge_row(language, work, r, places);
    }
    for (i = 0; i < num_requests; ++i) request_rows[i] = places[request_rows[i]];
    stack_ptx__mark_live(work, request_rows, num_requests);
}

/* Whether a live row is another instruction, which is then written to result_out. */
static bool stack_ptx__is_rewritten(
    const StackPtxLanguage* language, const StackPtx__Work* work, uint32_t r, uint32_t* result_out
) {
    const StackPtx__Row* row = &work->rows[r];
    const uint32_t op_idx = (uint32_t)row->head, rewrites = language->op_nodes[op_idx].rewrites;
    uint32_t operands[4] = {0, 0, 0, 0}, k;
    for (k = 0; k < 4 && (work->live[r] & 1u) != 0; ++k) {
        const uint32_t operand = stack_ptx__operand(row, k);
        if ((rewrites >> k & 1u) != 0 && stack_ptx__is_constant(language, work, operand)) {
            operands[k] = (uint32_t)(work->rows[operand].head >> 32);
            if (language->folding.fold(language->folding.context, op_idx, 1u << k, operands, result_out) ==
                STACK_PTX_FOLD_INSTRUCTION) {
                return true;
            }
        }
    }
    return false;
}

/* Makes rows the other instructions that they are. The new constants get rows of their own, before them. Whether there are any. If
   the workspace lacks room for a row for each, all stay as they are. */
static bool stack_ptx__rewrite_rows(
    const StackPtxLanguage* language, StackPtx__Work* work, uint32_t* request_rows, size_t num_requests
) {
    const uint32_t num_rows = work->num_rows;
    const uint64_t max_rows = (uint64_t)language->num_registers + language->limits.max_nodes + 1;
    uint32_t* places = work->value_ids; /* where each row moves to */
    uint32_t num_new = 0, result[3] = {0, 0, 0}, r;
    size_t i;
    for (r = 0; r < num_rows; ++r) {
        const bool may_be = language->op_nodes[(uint32_t)work->rows[r].head].rewrites != 0;
        num_new += (uint32_t)(may_be && stack_ptx__is_rewritten(language, work, r, result));
        places[r] = r + num_new;
    }
    if (num_new == 0 || num_rows + (uint64_t)num_new > max_rows) return false;
    for (r = num_rows; r-- > 1;) { /* from the last on: none is overwritten before it moves */
        const uint32_t to = places[r];
        StackPtx__Row row = work->rows[r];
        row.operands[0] = stack_ptx__pair(places[(uint32_t)row.operands[0]], places[row.operands[0] >> 32]);
        row.operands[1] = stack_ptx__pair(places[(uint32_t)row.operands[1]], places[row.operands[1] >> 32]);
        if (to != places[r - 1] + 1 && stack_ptx__is_rewritten(language, work, r, result)) {
            const uint32_t stack_idx = stack_ptx__stack_of_operand(language, result[0], result[1]);
            const uint32_t shift = result[1] % 2 * 32;
            uint64_t* pair = &row.operands[result[1] / 2];
            row.head = stack_ptx__pair(result[0], result[0]);
            *pair = (*pair & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)(to - 1) << shift;
            work->live[to] = 1;
            work->live[to - 1] = 1;
            work->rows[to - 1].head = stack_ptx__pair(language->first_constant + stack_idx, result[2]);
            work->rows[to - 1].operands[0] = 0;
            work->rows[to - 1].operands[1] = 0;
        } else {
            work->live[to] = work->live[r] & 1u;
        }
        work->rows[to] = row;
    }
    for (i = 0; i < num_requests; ++i) request_rows[i] = places[request_rows[i]];
    work->num_rows = num_rows + num_new;
    return true;
}

/* Computes instructions of constants among the live rows, and marks those that are live then. */
static void stack_ptx__fold(const StackPtxLanguage* language, StackPtx__Work* work, uint32_t* request_rows, size_t num_requests) {
    const uint32_t first_row = stack_ptx__first_of_constants(language, work);
    if (first_row < work->num_rows) stack_ptx__fold_rows(language, work, first_row, false, request_rows, num_requests);
    if (language->has_rewrites && stack_ptx__rewrite_rows(language, work, request_rows, num_requests)) {
        if (work->is_numbering) stack_ptx__open_table(language, work, 4 * (uint64_t)work->num_rows);
        stack_ptx__fold_rows(language, work, 1, true, request_rows, num_requests);
    }
}

#endif /* STACK_PTX_FOLD_H */
