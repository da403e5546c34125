/*
 * stack_ptx_emit.h - the stub and the hash of a lowered program, and stack_ptx_compile.
 *
 * Private: included only by stack_ptx.h, after stack_ptx_lower.h. Each value has a padded text, copied at fixed sizes while the
 * buffer has room. Near its end, and for long texts and vectors, text is written piece by piece.
 */

#ifndef STACK_PTX_EMIT_H
#define STACK_PTX_EMIT_H

#include "stack_ptx_lower.h"

/* ---- emission ---- */

/* Finds the constants that are operands of instructions which take registers only; of halves, all that are operands. */
PTX_TEXT__COLD void stack_ptx__mark_moved(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work
) {
    uint32_t i, k;
    memset(work->live, 0, lowered->num_nodes);
    for (i = 0; i < lowered->num_nodes; ++i) {
        const StackPtxNode* node = &lowered->nodes[i];
        for (k = 0; node->kind == STACK_PTX_NODE_PTX && k < node->num_operands; ++k) {
            const uint32_t operand = lowered->value_nodes[lowered->operands[node->first_operand + k]];
            const StackPtxNode* constant = &lowered->nodes[operand];
            const bool is_moved = language->op_nodes[node->payload].registers_only != 0 ||
                stack_ptx__is_half(language->stacks[constant->stack_idx].constant_type);
            if (is_moved && constant->kind == STACK_PTX_NODE_CONSTANT) work->live[operand] = 1;
        }
    }
    work->moved = work->live;
}

/* Names an input or constant. Whether the text is long. */
PTX_TEXT__HOT bool stack_ptx__name_leaf(
    const StackPtxLanguage* language, const StackPtxNode* node, uint32_t payload, PtxText__Value* text
) {
    const uint32_t constant_type = language->stacks[node->stack_idx].constant_type;
    text->length = PTX_TEXT__LONG;
    if (node->kind == STACK_PTX_NODE_INPUT && !language->is_late) {
        *text = language->register_infos[payload].text;
    } else if (node->kind == STACK_PTX_NODE_INPUT) {
        const char* name = language->registers[payload].name;
        ptx_text__make_register(name, strlen(name), text);
    } else if (constant_type < STACK_PTX_CONSTANT_TYPE_F64) {
        memcpy(text->text, ", ", 2);
        text->length = (uint8_t)(2 + stack_ptx__format_literal(constant_type, payload, text->text + 2));
    }
    return text->length == PTX_TEXT__LONG;
}

/* Source of the text: a lowered program, or rows. stack_ptx_compile gives no lowered form to anyone, so it has the rows of a simple
   program written straight: is_rows, a constant where it is inlined. The text of a row is at its own index, that of a value one
   after it; the first is empty, of operands that an instruction lacks. Inputs and most constants are written in place;
   instructions and special registers are lines and have temporaries for results. They are listed apart, so that loops over one
   kind predict well. */
typedef struct StackPtx__Source {
    const StackPtxLowered* lowered; /* NULL: rows */
    const uint32_t* lines;          /* first to last */
    const uint32_t* leaves;         /* in no order */
    uint32_t num_lines;
    uint32_t num_leaves;
} StackPtx__Source;

/* Names all values, and counts the temporaries of each stack. */
PTX_TEXT__HOT void stack_ptx__name_values(
    const StackPtxLanguage* language, StackPtx__Work* work, const StackPtx__Source* source, int is_rows
) {
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const StackPtxNode* nodes = is_rows ? NULL : source->lowered->nodes;
    PtxText__Value* texts = work->texts;
    uint32_t* numbers = work->num_temporaries;
    const PtxText__Value* stems = language->stems;
    uint32_t i, k;
    bool has_long_texts = false;
    texts[0].length = 0;
    for (i = 0; i < source->num_leaves; ++i) {
        const uint32_t idx = source->leaves[i];
        const StackPtxNode* node = is_rows ? &op_nodes[(uint32_t)rows[idx].head].node : &nodes[idx];
        const uint32_t payload = is_rows ? (uint32_t)(rows[idx].head >> 32) : node->payload;
        has_long_texts |= stack_ptx__name_leaf(language, node, payload, &texts[is_rows ? idx : node->first_value + 1]);
    }
    memset(numbers, 0, language->stack_info.num_stacks * sizeof *numbers);
    for (i = 0; i < source->num_lines; ++i) {
        const uint32_t idx = source->lines[i];
        const StackPtxNode* node = is_rows ? &op_nodes[(uint32_t)rows[idx].head].node : &nodes[idx];
        const uint32_t first = is_rows ? idx : node->first_value + 1;
        has_long_texts |= ptx_text__make_temporary(&stems[node->stack_idx], numbers[node->stack_idx]++, &texts[first]);
        for (k = 1; k < node->num_values && !is_rows; ++k) {
            const uint32_t stack_idx = source->lowered->value_stacks[node->first_value + k];
            has_long_texts |= ptx_text__make_temporary(&stems[stack_idx], numbers[stack_idx]++, &texts[first + k]);
        }
    }
    work->has_long_texts = has_long_texts;
}

/* Lists the lines from the front of an array and the leaves from its back, and names all values. */
static StackPtx__Source stack_ptx__open_lowered(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work
) {
    const StackPtxNode* nodes = lowered->nodes;
    const uint32_t num_nodes = lowered->num_nodes;
    const uint8_t* moved = NULL;
    uint32_t* front = work->sorted_nodes;
    uint32_t* back = work->sorted_nodes + num_nodes;
    StackPtx__Source source;
    uint32_t i;
    work->moved = NULL;
    if (language->has_registers_only) {
        stack_ptx__mark_moved(language, lowered, work);
        moved = work->moved;
    }
    for (i = 0; i < num_nodes; ++i) {
        /* No short circuit, which would be a branch. */
        const uint32_t is_front = (uint32_t)(nodes[i].kind >= STACK_PTX_NODE_SPECIAL) | (moved != NULL ? moved[i] : 0u);
        *front = i;
        back[-1] = i;
        front += is_front;
        back -= is_front ^ 1u;
    }
    source.lowered = lowered;
    source.lines = work->sorted_nodes;
    source.leaves = front;
    source.num_lines = (uint32_t)(front - work->sorted_nodes);
    source.num_leaves = num_nodes - source.num_lines;
    stack_ptx__name_values(language, work, &source, 0);
    return source;
}

/* Finds the rows that requests need, and names their values. False if some are not inputs, constants or instructions of scalars
   with short texts. */
static bool stack_ptx__open_rows(
    const StackPtxLanguage* language, StackPtx__Work* work, size_t num_requests, StackPtx__Source* source_out
) {
    const StackPtx__Row* rows = work->rows;
    const uint32_t num_rows = work->num_rows;
    uint8_t* live = work->live;
    uint32_t* lines = work->sorted_nodes + num_rows;
    uint32_t* leaves = work->sorted_nodes;
    uint32_t are_simple = 1, r;
    if (num_rows > language->limits.max_nodes)  /* there may be no places for all texts */
        return false;
    stack_ptx__mark_requests(work, work->request_values, num_requests);
    for (r = num_rows - 1; r > 0; --r) {
        if (live[r]) {
            const StackPtx__OpNode* op_node = &language->op_nodes[(uint32_t)rows[r].head];
            const uint32_t is_line = op_node->is_ptx;
            are_simple &= op_node->is_simple_text;
            stack_ptx__mark_operands(live, &rows[r]);
            /* No branch, which could not be predicted. */
            lines[-1] = r;
            lines -= is_line;
            *leaves = r;
            leaves += is_line ^ 1u;
        }
    }
    source_out->lowered = NULL;
    source_out->lines = lines;
    source_out->leaves = work->sorted_nodes;
    source_out->num_lines = (uint32_t)(work->sorted_nodes + num_rows - lines);
    source_out->num_leaves = (uint32_t)(leaves - work->sorted_nodes);
    if (are_simple == 0) return false;
    stack_ptx__name_values(language, work, source_out, 1);
    return !work->has_long_texts;
}

static void stack_ptx__write_temporary(const StackPtxLanguage* language, PtxText__Writer* writer, StackPtx__Temporary temporary) {
    const PtxText__Value* stem = &language->stems[temporary.stack_idx];
    ptx_text__write(writer, stem->text + 2, stem->length - 2u);
    ptx_text__write_decimal(writer, temporary.number);
}

/* The suffix of a special register whose node has this payload: the element of a vector one. */
static const char* stack_ptx__element_suffix(const StackPtxLanguage* language, uint32_t payload) {
    static const char* const suffixes[4] = {".x", ".y", ".z", ".w"};
    const StackPtxStackInfo* info = &language->stack_info;
    const bool is_vector = stack_ptx__is_vector(info, info->special_register_descriptors[payload & UINT16_MAX].arg_type_idx);
    return is_vector ? suffixes[payload >> 16] : "";
}

static void stack_ptx__write_constant(const StackPtxLanguage* language, PtxText__Writer* writer, const StackPtxNode* node) {
    char literal[STACK_PTX__MAX_LITERAL];
    const uint32_t constant_type = language->stacks[node->stack_idx].constant_type;
    ptx_text__write(writer, literal, stack_ptx__format_literal(constant_type, node->payload, literal));
}

/* A value of any length, without the comma before it. */
static void stack_ptx__write_value(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, const StackPtx__Work* work, PtxText__Writer* writer,
    uint32_t value
) {
    const PtxText__Value* text = &work->texts[lowered != NULL ? value + 1 : value];
    uint32_t node_idx;
    const StackPtxNode* node;
    if (text->length != PTX_TEXT__LONG) {
        ptx_text__write(writer, text->text + 2, text->length - 2u);
        return;
    }
    node_idx = lowered->value_nodes[value];
    node = &lowered->nodes[node_idx];
    if (node->kind == STACK_PTX_NODE_INPUT) {
        ptx_text__write(writer, "%", 1);
        ptx_text__write_string(writer, language->registers[node->payload].name);
    } else if (node->kind == STACK_PTX_NODE_CONSTANT && (work->moved == NULL || !work->moved[node_idx])) {
        stack_ptx__write_constant(language, writer, node);
    } else {
        StackPtx__Temporary temporary;
        temporary.stack_idx = lowered->value_stacks[value];
        memcpy(&temporary.number, text->text, sizeof temporary.number);
        stack_ptx__write_temporary(language, writer, temporary);
    }
}

/* The values of an operand or result: one, or a vector in braces. */
static void stack_ptx__write_group(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, const StackPtx__Work* work, PtxText__Writer* writer,
    uint32_t arg_type, const uint32_t* values, /* NULL: those from first_value on */
    uint32_t first_value
) {
    const uint32_t count = stack_ptx__num_elems(&language->stack_info, arg_type);
    const bool is_vector = stack_ptx__is_vector(&language->stack_info, arg_type);
    uint32_t i;
    if (is_vector) ptx_text__write(writer, "{", 1);
    for (i = 0; i < count; ++i) {
        if (i > 0) ptx_text__write(writer, ", ", 2);
        stack_ptx__write_value(language, lowered, work, writer, values != NULL ? values[i] : first_value + i);
    }
    if (is_vector) ptx_text__write(writer, "}", 1);
}

/* The instruction that copies a value of a stack, and a space. PTX has no mov for 8-bit registers, which only cvt, ld and st
   take, nor for the f16 types, whose registers are moved as bits. */
static void stack_ptx__write_move_name(const StackPtxLanguage* language, PtxText__Writer* writer, uint32_t stack_idx) {
    static const char* const others[][2] = {
        {"u8", "cvt.u8.u8 "}, {"s8", "cvt.u8.u8 "}, {"b8", "cvt.u8.u8 "}, {"f16", "mov.b16 "}, {"f16x2", "mov.b32 "},
    };
    const char* prefix = language->stack_info.stack_literal_prefixes[stack_idx];
    size_t i;
    for (i = 0; i < sizeof others / sizeof others[0]; ++i) {
        if (strcmp(prefix, others[i][0]) == 0) {
            ptx_text__write_string(writer, others[i][1]);
            return;
        }
    }
    ptx_text__write(writer, "mov.", 4);
    ptx_text__write_string(writer, prefix);
    ptx_text__write(writer, " ", 1);
}

/* The line of an instruction, special register or moved constant, of any form. */
PTX_TEXT__COLD void stack_ptx__write_node(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, const StackPtx__Work* work, PtxText__Writer* writer,
    const StackPtxNode* node
) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t idx = node->payload & (node->kind == STACK_PTX_NODE_SPECIAL ? UINT16_MAX : UINT32_MAX);
    if (node->kind == STACK_PTX_NODE_SPECIAL) {
        stack_ptx__write_move_name(language, writer, node->stack_idx);
        stack_ptx__write_value(language, lowered, work, writer, node->first_value);
        ptx_text__write(writer, ", %", 3);
        ptx_text__write_string(writer, info->special_register_strings[idx]);
        ptx_text__write_string(writer, stack_ptx__element_suffix(language, node->payload));
    } else if (node->kind == STACK_PTX_NODE_CONSTANT) {
        stack_ptx__write_move_name(language, writer, node->stack_idx);
        stack_ptx__write_value(language, lowered, work, writer, node->first_value);
        ptx_text__write(writer, ", ", 2);
        stack_ptx__write_constant(language, writer, node);
    } else {
        const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[idx];
        const uint32_t num_args = stack_ptx__num_args(info, descriptor);
        const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
        const uint32_t* operands = lowered->operands + node->first_operand;
        const char* name = info->ptx_instruction_strings[idx];
        const char* immediates = strchr(name, ' ');
        uint32_t value = node->first_value;
        uint32_t i;
        ptx_text__write(writer, name, immediates == NULL ? strlen(name) : (size_t)(immediates - name));
        for (i = 0; i < num_rets; ++i) {
            /* Two results are written p|q. */
            ptx_text__write(writer, i == 0 ? " " : "|", 1);
            stack_ptx__write_group(language, lowered, work, writer, descriptor->ret_types[i], NULL, value);
            value += stack_ptx__num_elems(info, descriptor->ret_types[i]);
        }
        for (i = 0; i < num_args; ++i) {
            ptx_text__write(writer, ", ", 2);
            stack_ptx__write_group(language, lowered, work, writer, descriptor->arg_types[i], operands, 0);
            operands += stack_ptx__num_elems(info, descriptor->arg_types[i]);
        }
        if (immediates != NULL) {
            ptx_text__write(writer, ",", 1);
            ptx_text__write_string(writer, immediates);
        }
    }
    ptx_text__write(writer, ";\n", 2);
}

/* The text of an operand, chosen without a branch: the number of operands cannot be predicted. */
PTX_TEXT__HOT const PtxText__Value* stack_ptx__operand_text(
    const PtxText__Value* texts, const uint32_t* operands, uint32_t num_operands, uint32_t k
) {
    return &texts[(operands[k] + 1) & (0u - (uint32_t)(k < num_operands))];
}

/* Writes all lines. */
PTX_TEXT__HOT void stack_ptx__write_lines(
    const StackPtxLanguage* language, const StackPtx__Work* work, const StackPtx__Source* source, PtxText__Writer* writer,
    int is_rows
) {
    const PtxText__Name* names = language->op_texts;
    const PtxText__Value* texts = work->texts;
    const StackPtx__Row* rows = work->rows;
    const uint32_t* lines = source->lines;
    const uint32_t num_lines = source->num_lines;
    char* const buffer = writer->buffer;
    const size_t capacity = writer->capacity;
    const uint32_t* all_operands = is_rows ? NULL : source->lowered->operands;
    const bool are_simple = !work->has_long_texts;
    size_t length = writer->length;
    uint32_t i;
    for (i = 0; i < num_lines; ++i) {
        const uint32_t idx = lines[i];
        const StackPtxNode* node = is_rows ? NULL : &source->lowered->nodes[idx];
        if (is_rows) {
            /* Copies: what is written might change the row, for all that a compiler knows. */
            const uint64_t operands_0 = rows[idx].operands[0], operands_1 = rows[idx].operands[1];
            length = ptx_text__write_line(
                buffer, capacity, length, &names[(uint32_t)rows[idx].head], &texts[idx], &texts[(uint32_t)operands_0],
                &texts[operands_0 >> 32], &texts[(uint32_t)operands_1], operands_1 >> 32 != 0 ? &texts[operands_1 >> 32] : NULL
            );
        } else if (node->kind == STACK_PTX_NODE_PTX && are_simple && language->op_nodes[node->payload].is_simple_text) {
            const uint32_t* operands = all_operands + node->first_operand;
            const uint32_t count = node->num_operands;
            length = ptx_text__write_line(
                buffer, capacity, length, &names[node->payload], &texts[node->first_value + 1],
                stack_ptx__operand_text(texts, operands, count, 0), stack_ptx__operand_text(texts, operands, count, 1),
                stack_ptx__operand_text(texts, operands, count, 2), count > 3 ? &texts[operands[3] + 1] : NULL
            );
        } else {
            writer->length = length;
            stack_ptx__write_node(language, source->lowered, work, writer, node);
            length = writer->length;
        }
    }
    writer->length = length;
}

static void stack_ptx__write_declarations(const StackPtxLanguage* language, const StackPtx__Work* work, PtxText__Writer* writer) {
    const size_t num_stacks = language->stack_info.num_stacks;
    size_t i;
    for (i = 0; i < num_stacks; ++i) {
        const PtxText__Value* stem = &language->stems[i];
        if (work->num_temporaries[i] == 0) continue;
        ptx_text__write(writer, ".reg .", 6);
        ptx_text__write_string(writer, language->stack_info.stack_literal_prefixes[i]);
        ptx_text__write(writer, stem->text + 1, stem->length - 1u);
        ptx_text__write(writer, "<", 1);
        ptx_text__write_decimal(writer, work->num_temporaries[i]);
        ptx_text__write(writer, ">;\n", 3);
    }
}

/* ---- emission: requests ---- */

/* Register that a request's value is read from, by its canonical index; UINT32_MAX if it is no register. */
static uint32_t stack_ptx__source_of(const StackPtxLanguage* language, const StackPtxLowered* lowered, uint32_t request) {
    const uint32_t value = lowered->request_values[request];
    const StackPtxNode* node;
    if (value == STACK_PTX_NO_VALUE) return UINT32_MAX;
    node = &lowered->nodes[lowered->value_nodes[value]];
    return node->kind == STACK_PTX_NODE_INPUT ? language->register_infos[node->payload].canonical : UINT32_MAX;
}

static uint32_t stack_ptx__target_of(const StackPtxLanguage* language, uint32_t request) {
    return language->register_infos[language->requests[request]].canonical;
}

static void stack_ptx__add_move(
    StackPtx__Work* work, uint32_t* num_moves, StackPtx__MoveKind kind, uint32_t request, uint32_t value,
    const StackPtx__Temporary* temporary /* NULL: none */
) {
    StackPtx__Move* move = &work->moves[(*num_moves)++];
    move->kind = kind;
    move->request = request;
    move->value = value;
    if (temporary != NULL) move->temporary = *temporary;
}

/* One after the other. */
static uint32_t stack_ptx__plan_in_order(const StackPtxLowered* lowered, StackPtx__Work* work) {
    uint32_t num_moves = 0, i;
    for (i = 0; i < lowered->num_requests; ++i)
        if (lowered->request_values[i] != STACK_PTX_NO_VALUE || lowered->mode == STACK_PTX_MODE_LENIENT)
            stack_ptx__add_move(work, &num_moves, STACK_PTX__MOVE_VALUE, i, lowered->request_values[i], NULL);
    return num_moves;
}

/* True if a register that another pending request reads would be written too early. */
static bool stack_ptx__is_blocked(const StackPtx__Work* work, uint32_t num_requests, uint32_t request) {
    const uint32_t target = work->pending[request].target;
    uint32_t i;
    for (i = 0; i < num_requests; ++i)
        if (i != request && work->pending[i].is_pending && work->pending[i].source == target) return true;
    return false;
}

/* As one parallel move: a register is written after its last read, and one of each cycle is saved first. Of requests for the same
   register the last counts. */
static uint32_t stack_ptx__plan_in_parallel(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work
) {
    StackPtx__Pending* pending = work->pending;
    const uint32_t num_requests = lowered->num_requests;
    uint32_t num_moves = 0, num_pending = 0, i, k;

    for (i = 0; i < num_requests; ++i) {
        memset(&pending[i], 0, sizeof pending[i]);
        pending[i].target = stack_ptx__target_of(language, i);
        pending[i].source = stack_ptx__source_of(language, lowered, i);
        pending[i].is_pending = 1;
        for (k = i + 1; k < num_requests; ++k) pending[i].is_pending &= stack_ptx__target_of(language, k) != pending[i].target;
        num_pending += pending[i].is_pending;
    }
    while (num_pending > 0) {
        const uint32_t num_before = num_pending;
        for (i = 0; i < num_requests; ++i) {
            if (pending[i].is_pending && !stack_ptx__is_blocked(work, num_requests, i)) {
                stack_ptx__add_move(
                    work, &num_moves, pending[i].is_saved ? STACK_PTX__MOVE_SAVED : STACK_PTX__MOVE_VALUE, i,
                    lowered->request_values[i], &pending[i].temporary
                );
                pending[i].is_pending = 0;
                --num_pending;
            }
        }
        if (num_pending == num_before) {
            StackPtx__Temporary temporary;
            for (i = 0; !pending[i].is_pending; ++i) {
            }
            temporary.stack_idx = language->registers[language->requests[i]].stack_idx;
            temporary.number = work->num_temporaries[temporary.stack_idx]++;
            stack_ptx__add_move(work, &num_moves, STACK_PTX__MOVE_TO_SAVE, i, STACK_PTX_NO_VALUE, &temporary);
            for (k = 0; k < num_requests; ++k) {
                if (pending[k].source == pending[i].target) {
                    pending[k].source = UINT32_MAX;
                    pending[k].is_saved = 1;
                    pending[k].temporary = temporary;
                }
            }
        }
    }
    return num_moves;
}

static uint32_t stack_ptx__plan_moves(const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work) {
    uint32_t i;
    if (lowered->mode == STACK_PTX_MODE_LENIENT) {
        for (i = 0; i < lowered->num_requests; ++i) {
            const uint32_t source = stack_ptx__source_of(language, lowered, i);
            if (source != UINT32_MAX && language->register_infos[source].first_request < i)
                return stack_ptx__plan_in_parallel(language, lowered, work);
        }
    }
    return stack_ptx__plan_in_order(lowered, work);
}

static void stack_ptx__write_moves(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, const StackPtx__Work* work, uint32_t num_moves,
    PtxText__Writer* writer
) {
    uint32_t i;
    for (i = 0; i < num_moves; ++i) {
        const StackPtx__Move* move = &work->moves[i];
        const StackPtxRegister* target = &language->registers[language->requests[move->request]];
        const char* prefix = language->stack_info.stack_literal_prefixes[target->stack_idx];
        stack_ptx__write_move_name(language, writer, target->stack_idx);
        if (move->kind == STACK_PTX__MOVE_TO_SAVE) {
            stack_ptx__write_temporary(language, writer, move->temporary);
            ptx_text__write(writer, ", ", 2);
        }
        ptx_text__write(writer, "%", 1);
        ptx_text__write_string(writer, target->name);
        if (move->kind != STACK_PTX__MOVE_TO_SAVE) ptx_text__write(writer, ", ", 2);
        if (move->kind == STACK_PTX__MOVE_SAVED) {
            stack_ptx__write_temporary(language, writer, move->temporary);
        } else if (move->kind == STACK_PTX__MOVE_VALUE && move->value == STACK_PTX_NO_VALUE) {
            char literal[STACK_PTX__MAX_LITERAL];
            const uint32_t constant_type = stack_ptx__constant_type_of_prefix(prefix);
            ptx_text__write(writer, literal, stack_ptx__format_literal(constant_type, 0, literal));
        } else if (move->kind == STACK_PTX__MOVE_VALUE) {
            stack_ptx__write_value(language, lowered, work, writer, move->value);
        }
        ptx_text__write(writer, ";\n", 2);
    }
}

/* The stub of what is opened, with these moves at its end. */
static StackPtxResult stack_ptx__emit(
    const StackPtxLanguage* language, const StackPtx__Work* work, const StackPtx__Source* source, uint32_t num_moves,
    char* buffer, size_t buffer_size, size_t* bytes_written_out
) {
    PtxText__Writer writer = ptx_text__open(buffer, buffer_size);
    if (language->limits.max_frame_depth > 0 || source->lowered->mode == STACK_PTX_MODE_LENIENT) {
        ptx_text__write(&writer, "{\n", 2);
        stack_ptx__write_declarations(language, work, &writer);
        if (source->lowered == NULL)
            stack_ptx__write_lines(language, work, source, &writer, 1);
        else
            stack_ptx__write_lines(language, work, source, &writer, 0);
        stack_ptx__write_moves(language, source->lowered, work, num_moves, &writer);
        ptx_text__write(&writer, "}", 1);
    }
    return ptx_text__close(&writer, buffer_size, bytes_written_out) ? STACK_PTX_SUCCESS
                                                                    : STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
}

StackPtxResult stack_ptx_emit(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, void* workspace, size_t workspace_bytes, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
) {
    StackPtx__Work work;
    StackPtx__Source source;
    const StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    if (result != STACK_PTX_SUCCESS) return result;
    if (lowered == NULL || bytes_written_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    stack_ptx__open_work(language, workspace, &work);
    source = stack_ptx__open_lowered(language, lowered, &work);
    return stack_ptx__emit(
        language, &work, &source, stack_ptx__plan_moves(language, lowered, &work), buffer, buffer_size, bytes_written_out
    );
}

/* ---- canonical hash ---- */

static int stack_ptx__is_less(const StackPtxHash* a, const StackPtxHash* b) {
    return a->words[0] != b->words[0] ? a->words[0] < b->words[0] : a->words[1] < b->words[1];
}

static uint32_t stack_ptx__op_of_node(const StackPtxLanguage* language, const StackPtxNode* node) {
    switch (node->kind) {
        case STACK_PTX_NODE_INPUT: return language->first_input + node->stack_idx;
        case STACK_PTX_NODE_CONSTANT: return language->first_constant + node->stack_idx;
        case STACK_PTX_NODE_SPECIAL: return language->first_special + (node->payload & UINT16_MAX);
        default: return node->payload;
    }
}

StackPtxResult stack_ptx_hash(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, void* workspace, size_t workspace_bytes,
    StackPtxHash* hash_out
) {
    StackPtx__Work work;
    StackPtxHash* hashes;
    StackPtxHash total;
    uint64_t num_volatile = 0;
    uint32_t i, k;
    const StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    if (result != STACK_PTX_SUCCESS) return result;
    if (lowered == NULL || hash_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    stack_ptx__open_work(language, workspace, &work);
    hashes = work.hashes;

    for (i = 0; i < lowered->num_nodes; ++i) {
        const StackPtxNode* node = &lowered->nodes[i];
        const uint32_t op_idx = stack_ptx__op_of_node(language, node);
        const uint32_t* operands = lowered->operands + node->first_operand;
        StackPtxHash hash = language->op_hashes[op_idx];

        if (node->kind == STACK_PTX_NODE_PTX) {
            uint32_t is_exchanged = 0;
            if (language->ops[op_idx].commutes != 0)
                is_exchanged = (uint32_t)stack_ptx__is_less(&hashes[operands[1]], &hashes[operands[0]]);
            for (k = 0; k < node->num_operands; ++k) {
                const StackPtxHash* operand = &hashes[operands[k < 2 ? k ^ is_exchanged : k]];
                stack_ptx__absorb(&hash, operand->words[0], operand->words[1]);
            }
        } else if (node->kind == STACK_PTX_NODE_SPECIAL) {
            const char* suffix = stack_ptx__element_suffix(language, node->payload);
            if (suffix[0] != '\0') hash = stack_ptx__hash_special(language, node->payload & UINT16_MAX, suffix);
        } else {
            stack_ptx__absorb(&hash, node->payload, STACK_PTX__TAG_NODE);
        }
        if (language->op_nodes[op_idx].is_volatile) stack_ptx__absorb(&hash, ++num_volatile, STACK_PTX__TAG_VOLATILE);
        hashes[node->first_value] = hash;
        for (k = 1; k < node->num_values; ++k) {
            hashes[node->first_value + k] = hash;
            stack_ptx__absorb(&hashes[node->first_value + k], k, STACK_PTX__TAG_RESULT);
        }
    }

    total = language->salt;
    for (i = 0; i < lowered->num_requests; ++i) {
        const uint32_t value = lowered->request_values[i];
        const StackPtxHash* type_hash = &language->stacks[language->registers[language->requests[i]].stack_idx].type_hash;
        stack_ptx__absorb(&total, type_hash->words[0], type_hash->words[1]);
        if (value == STACK_PTX_NO_VALUE)
            stack_ptx__absorb(&total, i, STACK_PTX__TAG_MISSING);
        else
            stack_ptx__absorb(&total, hashes[value].words[0], hashes[value].words[1]);
    }
    stack_ptx__absorb(&total, lowered->num_requests, STACK_PTX__TAG_PROGRAM);
    *hash_out = total;
    return STACK_PTX_SUCCESS;
}

/* ---- all in one call ---- */

static uint32_t stack_ptx__clamp(size_t value) { return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value; }

/* There is no memory for registers, routines and requests, whose numbers are unknown when the size is asked for. No
   more requests find a value than the stacks can hold. */
static StackPtxResult stack_ptx__place_compile(
    const StackPtxCompilerInfo* compiler_info, const StackPtxLanguageInfo* info, void* workspace, size_t workspace_bytes,
    StackPtxLanguage** language_out, StackPtx__Layout* layout, size_t* language_bytes_out
) {
    StackPtxResult result = stack_ptx__check_counts(info);
    if (result == STACK_PTX_SUCCESS) result = stack_ptx__check_types(info->stack_info, NULL);
    if (result == STACK_PTX_SUCCESS) {
        const size_t max_values = info->stack_info->num_stacks * compiler_info->stack_size;
        stack_ptx__place_work(
            layout, &info->limits, info->stack_info, 1, stack_ptx__bound_operands(info->stack_info),
            STACK_PTX__MAX_LATE_REGISTERS, max_values, max_values, 0, 0
        );
        *language_bytes_out = stack_ptx__place_language(info, 1, workspace, workspace_bytes, language_out);
        if (*language_bytes_out > SIZE_MAX / 2 || layout->bytes > SIZE_MAX / 2)
            result = STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    return result;
}

static void stack_ptx__describe_compile(
    const StackPtxCompilerInfo* compiler_info, const StackPtxStackInfo* stack_info, size_t execution_limit,
    StackPtxLanguageInfo* info_out
) {
    memset(info_out, 0, sizeof *info_out);
    info_out->stack_info = stack_info;
    info_out->limits.stack_size = stack_ptx__clamp(compiler_info->stack_size);
    info_out->limits.max_nodes = stack_ptx__clamp(compiler_info->max_ast_size);
    info_out->limits.max_frame_depth = stack_ptx__clamp(compiler_info->max_frame_depth);
    info_out->limits.store_size = stack_ptx__clamp(compiler_info->store_size);
    info_out->limits.execution_limit = stack_ptx__clamp(execution_limit);
}

StackPtxResult stack_ptx_compile_workspace_size(
    const StackPtxCompilerInfo* compiler_info, const StackPtxStackInfo* stack_info, size_t* bytes_out
) {
    StackPtxLanguageInfo info;
    StackPtx__Layout layout;
    size_t language_bytes = 0;
    StackPtxResult result;
    if (compiler_info == NULL || bytes_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    if (compiler_info->max_frame_depth == 0) {
        *bytes_out = 1; /* malloc(0) may give NULL; nothing is used */
        return STACK_PTX_SUCCESS;
    }
    if (stack_info == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    stack_ptx__describe_compile(compiler_info, stack_info, 0, &info);
    result = stack_ptx__check_counts(&info);
    if (result == STACK_PTX_SUCCESS) result = stack_ptx__check_stack_info(stack_info, NULL);
    if (result == STACK_PTX_SUCCESS)
        result = stack_ptx__place_compile(compiler_info, &info, NULL, 0, NULL, &layout, &language_bytes);
    if (result == STACK_PTX_SUCCESS) *bytes_out = language_bytes + layout.bytes;
    return result;
}

StackPtxResult stack_ptx_compile(
    const StackPtxCompilerInfo* compiler_info, const StackPtxStackInfo* stack_info, const StackPtxInstruction* instructions,
    const StackPtxRegister* registers, size_t num_registers, const StackPtxInstruction** routines, size_t num_routines,
    const size_t* requests, size_t num_requests, size_t execution_limit, void* workspace, size_t workspace_bytes, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
) {
    StackPtxLanguageInfo info;
    StackPtx__Layout layout;
    StackPtxLanguage* language = NULL;
    StackPtx__Work work;
    StackPtx__Source source;
    StackPtxLowered lowered;
    StackPtxResult result;
    size_t language_bytes = 0, i;
    uint32_t num_moves = 0;

    if (compiler_info == NULL || bytes_written_out == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    if (compiler_info->max_frame_depth == 0) {
        *bytes_written_out = 0;
        if (buffer != NULL && buffer_size == 0) return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        if (buffer != NULL) buffer[0] = '\0';
        return STACK_PTX_SUCCESS;
    }
    if (stack_info == NULL || instructions == NULL || workspace == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    stack_ptx__describe_compile(compiler_info, stack_info, execution_limit, &info);
    info.registers = registers;
    info.num_registers = num_registers;
    info.routines = (const StackPtxInstruction* const*)routines;
    info.num_routines = num_routines;
    info.requests = requests;
    info.num_requests = num_requests;
    result = stack_ptx__place_compile(compiler_info, &info, workspace, workspace_bytes, &language, &layout, &language_bytes);
    if (result != STACK_PTX_SUCCESS) return result;
    if (workspace_bytes < language_bytes + layout.bytes) return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    result = stack_ptx__check_connections(&info, 1);
    if (result != STACK_PTX_SUCCESS) return result;
    stack_ptx__open_language(&info, language);
    language->layout = layout;
    stack_ptx__open_work(language, (char*)workspace + language_bytes, &work);
    result = stack_ptx__run(
        language, STACK_PTX_MODE_COMPATIBLE, STACK_PTX_FLAG_NO_VALUE_NUMBERING, instructions, SIZE_MAX, &work, NULL
    );
    if (result != STACK_PTX_SUCCESS) return result;
    for (i = 0; i < num_requests; ++i) {
        const uint32_t row = stack_ptx__pop(&work.stacks[registers[requests[i]].stack_idx]);
        if (row != 0) {
            work.request_values[num_moves] = row;
            stack_ptx__add_move(&work, &num_moves, STACK_PTX__MOVE_VALUE, (uint32_t)i, row, NULL);
        }
    }
    if (!stack_ptx__open_rows(language, &work, num_moves, &source)) {
        stack_ptx__mark_live(&work, work.request_values, num_moves);
        stack_ptx__collect(language, &work, &lowered);
        lowered.mode = STACK_PTX_MODE_COMPATIBLE;
        for (i = 0; i < num_moves; ++i) work.moves[i].value = work.value_ids[work.request_values[i]];
        source = stack_ptx__open_lowered(language, &lowered, &work);
    }
    return stack_ptx__emit(language, &work, &source, num_moves, buffer, buffer_size, bytes_written_out);
}

#endif /* STACK_PTX_EMIT_H */
