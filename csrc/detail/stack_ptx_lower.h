/*
 * stack_ptx_lower.h - stack_ptx_lower: the lowered form of a program.
 *
 * Private: included only by stack_ptx.h, after stack_ptx_fold.h. The rows of a program that has run and is folded are renumbered
 * from first to last, without the dead ones.
 */

#ifndef STACK_PTX_LOWER_H
#define STACK_PTX_LOWER_H

#include "stack_ptx_fold.h"

/* Operands of a node beyond the third, from the rows in which it continues. */
PTX_TEXT__COLD void stack_ptx__collect_continued(
    const StackPtx__Work* work, const StackPtx__Row* row, uint32_t num_operands, uint32_t* operands
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
PTX_TEXT__COLD void stack_ptx__number_results(
    const StackPtxLanguage* language, StackPtx__Work* work, uint32_t r, uint32_t node_idx
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

/* Renumbers nodes and values, without the dead ones. */
static void stack_ptx__collect(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxLowered* lowered) {
    const uint8_t* live = work->live;
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const uint32_t num_rows = work->num_rows;
    uint32_t* value_ids = work->value_ids;
    uint32_t* value_nodes = work->value_nodes;
    uint16_t* value_stacks = work->value_stacks;
    uint32_t* operands = work->operands; /* of the next node */
    StackPtxNode* node = work->nodes;
    uint32_t num_nodes = 0, num_values = 0, num_instructions = 0, r;

    value_ids[0] = 0;
    for (r = 1; r < num_rows; ++r) {
        const StackPtx__Row* row = &rows[r];
        const uint64_t head = row->head, operands_0 = row->operands[0], operands_1 = row->operands[1];
        const StackPtx__OpNode* op_node = &op_nodes[(uint32_t)head];
        if (!live[r] || op_node->node.num_values == 0) continue;
        memcpy(node, &op_node->node, offsetof(StackPtxNode, payload));
        node->payload = op_node->node.payload | (uint32_t)(head >> 32);
        node->first_operand = (uint32_t)(operands - work->operands);
        node->first_value = num_values;
        /* If there are fewer, the next node overwrites them. */
        operands[0] = value_ids[(uint32_t)operands_0];
        operands[1] = value_ids[operands_0 >> 32];
        operands[2] = value_ids[(uint32_t)operands_1];
        operands[3] = value_ids[operands_1 >> 32];
        value_ids[r] = num_values;
        value_nodes[num_values] = num_nodes;
        value_stacks[num_values] = op_node->node.stack_idx;
        if (op_node->is_large) {
            stack_ptx__collect_continued(work, row, op_node->node.num_operands, operands);
            stack_ptx__number_results(language, work, r, num_nodes);
            num_values += op_node->node.num_values - 1u;
        }
        operands += op_node->node.num_operands;
        num_instructions += op_node->is_ptx;
        ++num_values;
        ++num_nodes;
        ++node;
    }
    lowered->nodes = work->nodes;
    lowered->operands = work->operands;
    lowered->value_nodes = work->value_nodes;
    lowered->value_stacks = work->value_stacks;
    lowered->num_nodes = num_nodes;
    lowered->num_operands = (uint32_t)(operands - work->operands);
    lowered->num_values = num_values;
    lowered->num_instructions = num_instructions;
}

/* The row that computes what a node does whose operands have rows. */
static uint32_t stack_ptx__row_of_node(
    const StackPtxLanguage* language, StackPtx__Work* work, const StackPtxNode* node, const uint32_t* operands,
    const uint32_t* rows
) {
    uint32_t op_idx = node->payload, bits = 0, k;
    uint64_t commutes = 0, pairs[2] = {0, 0};
    if (node->kind == STACK_PTX_NODE_CONSTANT) {
        op_idx = language->first_constant + node->stack_idx;
        bits = node->payload;
    } else {
        commutes = stack_ptx__commutes(language, op_idx);
    }
    for (k = 0; k < node->num_operands; ++k) pairs[k / 2] |= (uint64_t)rows[operands[k]] << (k % 2 * 32);
    return stack_ptx__find_row(language, work, stack_ptx__pair(op_idx, bits), pairs[0], pairs[1], commutes);
}

/* Puts the derivative of one stored value by another into the first one's place. False if the node limit ends the program. */
PTX_TEXT__COLD bool stack_ptx__run_derivative(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxInstruction word) {
    const StackPtxDerivation* derivation = &language->derivation;
    const uint32_t x = work->store[word.payload.u].row, y = work->store[word.aux].row;
    StackPtxNode zero = {STACK_PTX_NODE_CONSTANT, 0, 0, 1, 0, 0, 0};
    StackPtxLowered lowered, derived;
    uint32_t* rows = work->derived_rows;
    uint32_t request, i, r;
    stack_ptx__mark_live(work, &y, 1);
    if (x != 0 && work->live[x]) {
        stack_ptx__collect(language, work, &lowered);
        request = work->value_ids[y];
        lowered.request_values = &request;
        lowered.num_requests = 1;
        lowered.mode = STACK_PTX_MODE_LENIENT;
        if (derivation->derive(
                derivation->context, &lowered, work->value_nodes[work->value_ids[x]], work->derived, derivation->memory_bytes,
                &derived
            ) != STACK_PTX_SUCCESS ||
            !stack_ptx__count_values(language, work, derived.num_values - lowered.num_values)) {
            return false;
        }
        for (r = 1; r < work->num_rows; ++r)
            for (i = 0; work->live[r] && i < language->op_nodes[(uint32_t)work->rows[r].head].node.num_values; ++i)
                rows[work->value_ids[r] + i] = r + i;
        for (i = lowered.num_nodes; i < derived.num_nodes; ++i) {
            const StackPtxNode* node = &derived.nodes[i];
            rows[node->first_value] = stack_ptx__row_of_node(language, work, node, derived.operands + node->first_operand, rows);
        }
        if (derived.request_values[1] != STACK_PTX_NO_VALUE) {
            work->store[word.aux].row = rows[derived.request_values[1]];
            return true;
        }
    }
    if (!stack_ptx__count_values(language, work, 1)) return false;
    zero.stack_idx = (uint16_t)work->store[word.aux].stack_idx;
    work->store[word.aux].row = stack_ptx__row_of_node(language, work, &zero, NULL, NULL);
    return true;
}

static StackPtxResult stack_ptx__check_work(const StackPtxLanguage* language, const void* workspace, size_t workspace_bytes) {
    if (language == NULL || workspace == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    if (workspace_bytes < language->layout.bytes) return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    return STACK_PTX_SUCCESS;
}

/* Writes what runs of a program by the language's template. Returns its length. */
PTX_TEXT__COLD size_t stack_ptx__instantiate(
    const StackPtxLanguage* language, const StackPtxInstruction* words, size_t num_words, StackPtxInstruction* instance
) {
    size_t length = 0, t, i;
    for (t = 0; t < language->template_length; ++t) {
        const StackPtxInstruction* call = &language->template_words[t];
        const bool is_call = call->instruction_type == STACK_PTX_INSTRUCTION_TYPE_ROUTINE;
        const StackPtxInstruction* from = is_call ? words : call;
        const size_t count = is_call ? num_words : 1;
        uint32_t function = 0;
        for (i = 0; i < count && from[i].instruction_type != STACK_PTX_INSTRUCTION_TYPE_RETURN; ++i) {
            StackPtxInstruction word = from[i];
            if (is_call) {
                if (word.instruction_type >= STACK_PTX_INSTRUCTION_TYPE_NUM_ENUMS) continue; /* only a template may have it */
                if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_META &&
                    word.payload.u == STACK_PTX_META_INSTRUCTION_CLEAR) {
                    ++function;
                    continue;
                }
                if (function > call->payload.u) break;
                if (function < call->payload.u) continue;
                if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_INPUT) {
                    if (call->aux == 0) continue;
                    word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_LOAD;
                    word.payload.u = language->limits.store_size - 1 - word.payload.u % call->aux;
                }
            }
            if (length == language->limits.execution_limit) return 0;
            instance[length++] = word;
        }
    }
    return length;
}

StackPtxResult stack_ptx_lower(
    const StackPtxLanguage* language, StackPtxMode mode, uint32_t flags, const StackPtxInstruction* words, size_t num_words,
    void* workspace, size_t workspace_bytes, StackPtxLowered* lowered_out, StackPtxPlace* place_out
) {
    StackPtx__Work work;
    StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    size_t i;
    if (result != STACK_PTX_SUCCESS) return result;
    if (lowered_out == NULL || (words == NULL && num_words > 0) || (unsigned)mode > STACK_PTX_MODE_COMPATIBLE ||
        (flags & ~(STACK_PTX_FLAG_NO_VALUE_NUMBERING | STACK_PTX_FLAG_NO_FOLDING)) != 0) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    if (language->template_length > 0) {
        num_words = stack_ptx__instantiate(language, words, num_words, work.instance);
        words = work.instance;
    }
    result = stack_ptx__run(language, mode, flags, words, num_words, &work, place_out);
    if (result != STACK_PTX_SUCCESS) return result;
    for (i = 0; i < language->num_requests; ++i)
        work.request_values[i] = stack_ptx__pop(&work.stacks[language->registers[language->requests[i]].stack_idx]);
    stack_ptx__mark_live(&work, work.request_values, language->num_requests);
    if (language->folding.fold != NULL && (flags & STACK_PTX_FLAG_NO_FOLDING) == 0)
        stack_ptx__fold(language, &work, work.request_values, language->num_requests);
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
