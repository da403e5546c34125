/*
 * ptx_vm_contract.h - ptx_vm_contract: the run that reduces a program over all pairs of two sets of rows.
 *
 * Private: included only by the implementation in ptx_vm.h.
 *
 * Lanes are columns n. A chunk of columns is packed by k, so that all rows m read it from the first-level cache; states of pairs stay
 * in the second-level cache while k advances. One step of the program is one block of columns at one m and k.
 */
#ifndef PTX_VM_CONTRACT_H_INCLUDED
#define PTX_VM_CONTRACT_H_INCLUDED

#define PTX_VM__TILE_ROWS 256u /* whose states of pairs fit the second-level cache */
#define PTX_VM__COPY_BYTES (PTX_VM__TILE_ROWS * PTX_VM_CONTRACT_COLUMNS * sizeof(float)) /* of one of two copies of states */

/* Location of a register or request of the program: its address at the first k and block of a chunk, and the bytes to the next. */
typedef struct PtxVmPlace {
    char* first;
    size_t k_bytes;
    size_t block_bytes;
    bool is_pair_state; /* which has two copies, read and written in turn, since a step may read a state that it has written */
    bool is_lane_sum; /* whose last block, of fewer columns than lanes, has lanes of its own */
} PtxVmPlace;

typedef struct PtxVmContraction {
    PtxVmRun run, finish_run;
    PtxVmPlace* places; /* of each register: operands, then states */
    const PtxVmPlace** places_of_slots; /* of each input and request of the program */
    PtxVmSlots slots;
    float* finished; /* a chunk for each request of `finish` */
    size_t lanes; /* of a block */
    float one; /* hidden from the compiler: times one flushes subnormals and quiets NaNs */
} PtxVmContraction;

static void ptx_vm__take_contraction(EvoArena* arena, const PtxVmContract* contract, PtxVmContraction* contraction) {
    const PtxVmProgram *program = contract->program, *finish = contract->finish;
    const size_t chunk = PTX_VM_CONTRACT_COLUMNS, num_operands = contract->num_operands, num_states = program->num_requests;
    memset(contraction, 0, sizeof *contraction);
    contraction->lanes = program->kernels->num_points;
    ptx_vm__take_run(arena, program, &contraction->run);
    if (finish != NULL) {
        ptx_vm__take_run(arena, finish, &contraction->finish_run);
        contraction->finished = (float*)evo__take(arena, finish->num_requests * chunk, sizeof(float));
    }
    PtxVmSlots* slots = &contraction->slots;
    slots->num_slots = program->num_inputs + program->num_requests;
    contraction->places_of_slots = (const PtxVmPlace**)evo__take(arena, slots->num_slots, sizeof(PtxVmPlace*));
    slots->at = (char**)evo__take(arena, slots->num_slots, sizeof(char*));
    slots->k_bytes = (ptrdiff_t*)evo__take(arena, slots->num_slots, sizeof(ptrdiff_t));
    slots->flips = (ptrdiff_t*)evo__take(arena, slots->num_slots, sizeof(ptrdiff_t));
    slots->moving = (uint32_t*)evo__take(arena, slots->num_slots, sizeof(uint32_t));
    slots->tail_bytes = (size_t*)evo__take(arena, slots->num_slots, sizeof(size_t));
    contraction->places = (PtxVmPlace*)evo__take(arena, num_operands + num_states, sizeof(PtxVmPlace));
    for (size_t i = 0; i < num_operands + num_states; i++) {
        const bool is_state = i >= num_operands;
        const PtxVmAxes axes = is_state ? contract->states[i - num_operands].axes : contract->operands[i].axes;
        const size_t width = axes == PTX_VM_AXES_COLUMN || axes == PTX_VM_AXES_PAIR ? chunk
            : is_state                                                              ? 2 * PTX_VM__MAX_LANES
                                                                                    : PTX_VM__MAX_LANES;
        const bool has_k = axes != PTX_VM_AXES_NONE && axes != PTX_VM_AXES_PAIR;
        const size_t rows = axes == PTX_VM_AXES_PAIR && is_state ? 2 * PTX_VM__TILE_ROWS : has_k ? PTX_VM__DEPTH : 1;
        PtxVmPlace place;
        place.first = (char*)evo__take(arena, rows * width, sizeof(float));
        place.k_bytes = has_k ? width * sizeof(float) : 0;
        place.block_bytes = width == chunk ? contraction->lanes * sizeof(float) : 0;
        place.is_pair_state = is_state && axes == PTX_VM_AXES_PAIR;
        place.is_lane_sum = is_state && width != chunk;
        if (contraction->places != NULL) contraction->places[i] = place;
    }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const PtxVmContractKernels* ptx_vm__loops(const PtxVmContract* contract) { return &contract->program->kernels->contract; }

static void ptx_vm__fill_floats(float* to, float value, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = value;
}

static ptrdiff_t ptx_vm__offset(const ptrdiff_t* strides, size_t first, size_t second) {
    return (ptrdiff_t)first * strides[0] + (ptrdiff_t)second * strides[1];
}

/* A row's values, each in all lanes, and its pairs. */
static void ptx_vm__pack_row(
    const PtxVmContract* contract, const PtxVmPlace* places, size_t m, size_t n, size_t num_columns, size_t k, size_t depth
) {
    for (size_t i = 0; i < contract->num_operands; i++) {
        const PtxVmOperand* operand = &contract->operands[i];
        float* to = (float*)(void*)places[i].first;
        if (operand->axes == PTX_VM_AXES_ROW) {
            const ptrdiff_t first = ptx_vm__offset(operand->strides, m, k);
            ptx_vm__loops(contract)->spread(operand, first, operand->strides[1], depth, to);
        } else if (operand->axes == PTX_VM_AXES_PAIR) {
            const ptrdiff_t first = ptx_vm__offset(operand->strides, m, n);
            ptx_vm__loops(contract)->gather(operand, first, operand->strides[1], num_columns, to, 1);
        }
    }
}

/* A chunk of columns, by k. Columns past the last are zero: what they give is never used. */
static void ptx_vm__pack_columns(
    const PtxVmContract* contract, const PtxVmPlace* places, size_t n, size_t num_columns, size_t k, size_t depth
) {
    const size_t chunk = PTX_VM_CONTRACT_COLUMNS;
    for (size_t i = 0; i < contract->num_operands; i++) {
        const PtxVmOperand* operand = &contract->operands[i];
        float *to = (float*)(void*)places[i].first, values[PTX_VM__DEPTH];
        if (operand->axes == PTX_VM_AXES_COLUMN) {
            const bool is_by_k = operand->strides[0] == 1;
            for (size_t j = 0; j < (is_by_k ? depth : num_columns); j++) {
                const ptrdiff_t first = ptx_vm__offset(operand->strides, is_by_k ? n : n + j, is_by_k ? k + j : k);
                if (is_by_k)
                    ptx_vm__loops(contract)->gather(operand, first, 1, num_columns, to + j * chunk, 1);
                else
                    ptx_vm__loops(contract)->gather(operand, first, operand->strides[1], depth, to + j, chunk);
            }
            for (size_t j = 0; j < depth; j++) memset(to + j * chunk + num_columns, 0, (chunk - num_columns) * sizeof(float));
        } else if (operand->axes == PTX_VM_AXES_INDEX) {
            for (size_t j = 0; j < depth; j++) values[j] = (float)(k + j);
            const PtxVmOperand indices = {values, {0, 1}, PTX_VM_AXES_ROW, PTX_VM_ELEMENT_F32};
            ptx_vm__loops(contract)->spread(&indices, 0, 1, depth, to);
        }
    }
}

/* Adds the sums over lanes of a row's values, or of the one for all, and clears the lanes. */
static void ptx_vm__drain_lanes(
    const PtxVmContract* contract, const PtxVmState* state, const PtxVmPlace* place, size_t m, size_t k, size_t depth,
    size_t num_tail
) {
    for (size_t i = 0; i < (place->k_bytes ? depth : 1); i++) {
        float* values = (float*)(void*)(place->first + i * place->k_bytes);
        const float sum = ptx_vm__loops(contract)->sum_lanes(values, values + PTX_VM__MAX_LANES, num_tail);
        if (state->axes == PTX_VM_AXES_NONE)
            *(double*)state->values += (double)sum;
        else
            ((float*)state->values)[ptx_vm__offset(state->strides, m, k + i)] += sum;
    }
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* All blocks of a row's chunk at `depth` values of k. */
static void ptx_vm__run_row(
    const PtxVmContract* contract, PtxVmContraction* contraction, size_t row_bytes, size_t k, size_t depth
) {
    PtxVmSlots* slots = &contraction->slots;
    for (uint32_t i = 0; i < slots->num_slots; i++) {
        const PtxVmPlace* place = contraction->places_of_slots[i];
        slots->at[i] = place->first;
        slots->k_bytes[i] = (ptrdiff_t)place->k_bytes;
        if (!place->is_pair_state) continue;
        /* One copy is read and the other written, in turn. */
        const bool is_second = (k + (i >= contract->program->num_inputs)) & 1;
        slots->at[i] += row_bytes + (is_second ? PTX_VM__COPY_BYTES : 0);
        slots->k_bytes[i] = is_second ? -(ptrdiff_t)PTX_VM__COPY_BYTES : (ptrdiff_t)PTX_VM__COPY_BYTES;
    }
    ptx_vm__loops(contract)->run_slots(contract->program->steps, contraction->run.memory, slots, depth);
}

/* The outputs of a row of pairs: its states, or what `finish` makes of them. */
static void ptx_vm__finish_row(
    const PtxVmContract* contract, PtxVmContraction* contraction, size_t row, size_t m, size_t n, size_t num_columns
) {
    const PtxVmProgram *program = contract->program, *finish = contract->finish;
    const PtxVmState* results = finish != NULL ? contract->results : contract->states;
    const size_t chunk = PTX_VM_CONTRACT_COLUMNS;
    const size_t state_offset = row * chunk * sizeof(float) + (contract->k_size & 1) * PTX_VM__COPY_BYTES;
    if (finish != NULL) {
        char** memory = contraction->finish_run.memory;
        ptx_vm__pack_row(contract, contraction->places, m, n, num_columns, 0, 0);
        for (size_t column = 0; column < num_columns; column += finish->kernels->num_points) {
            for (uint32_t i = 0; i < finish->num_inputs; i++) {
                const PtxVmPlace* place = &contraction->places[finish->input_registers[i]];
                memory[i] = place->first + (place->block_bytes > 0 ? column * sizeof(float) : 0);
                if (place->is_pair_state) memory[i] += state_offset;
            }
            for (uint32_t i = 0; i < finish->num_requests; i++)
                memory[ptx_vm__first_output(finish) + i] = (char*)(contraction->finished + i * chunk + column);
            finish->kernels->enter(finish->steps, memory);
        }
    }
    for (uint32_t i = 0; i < (finish != NULL ? finish->num_requests : program->num_requests); i++) {
        if (results[i].axes != PTX_VM_AXES_PAIR) continue;
        const char* state = contraction->places[contract->num_operands + (finish != NULL ? 0 : i)].first + state_offset;
        const float* from = finish != NULL ? contraction->finished + i * chunk : (const float*)(const void*)state;
        float* to = (float*)results[i].values + ptx_vm__offset(results[i].strides, m, n);
        if (results[i].strides[1] == 1)
            memcpy(to, from, num_columns * sizeof(float));
        else
            for (size_t j = 0; j < num_columns; j++) to[(ptrdiff_t)j * results[i].strides[1]] = from[j];
    }
}

/* A tile of rows and a chunk of columns. */
static void ptx_vm__run_tile(
    const PtxVmContract* contract, PtxVmContraction* contraction, size_t m, size_t num_rows, size_t n, size_t num_columns
) {
    const uint32_t num_states = contract->program->num_requests;
    contraction->slots.num_blocks = num_columns / contraction->lanes;
    contraction->slots.has_tail = num_columns % contraction->lanes != 0;
    const size_t chunk = PTX_VM_CONTRACT_COLUMNS, num_tail = num_columns % contraction->lanes;
    const PtxVmPlace* places = contraction->places + contract->num_operands;
    for (uint32_t i = 0; i < num_states; i++)
        if (contract->states[i].axes == PTX_VM_AXES_PAIR)
            ptx_vm__fill_floats((float*)(void*)places[i].first, contract->states[i].initial, num_rows * chunk);
    for (size_t k = 0; k < contract->k_size; k += PTX_VM__DEPTH) {
        const size_t depth = contract->k_size - k < PTX_VM__DEPTH ? contract->k_size - k : PTX_VM__DEPTH;
        ptx_vm__pack_columns(contract, contraction->places, n, num_columns, k, depth);
        for (uint32_t i = 0; i < num_states; i++)
            if (contract->states[i].axes == PTX_VM_AXES_COLUMN) memset(places[i].first, 0, depth * chunk * sizeof(float));
        for (size_t row = 0; row < num_rows; row++) {
            ptx_vm__pack_row(contract, contraction->places, m + row, n, num_columns, k, depth);
            ptx_vm__run_row(contract, contraction, row * chunk * sizeof(float), k, depth);
            for (uint32_t i = 0; i < num_states; i++)
                if (places[i].is_lane_sum)
                    ptx_vm__drain_lanes(contract, &contract->states[i], &places[i], m + row, k, depth, num_tail);
        }
        for (uint32_t i = 0; i < num_states; i++) {
            const PtxVmState* state = &contract->states[i];
            const float* from = (const float*)(const void*)places[i].first;
            if (state->axes != PTX_VM_AXES_COLUMN) continue;
            for (size_t j = 0; j < num_columns; j++)
                for (size_t each = 0; each < depth; each++)
                    ((float*)state->values)[ptx_vm__offset(state->strides, n + j, k + each)] += from[each * chunk + j];
        }
    }
    for (size_t row = 0; row < num_rows; row++) ptx_vm__finish_row(contract, contraction, row, m + row, n, num_columns);
}

static bool ptx_vm__is_contract(const PtxVmContract* contract) {
    if (contract == NULL || contract->program == NULL || contract->program->kind != PTX_VM_RUN_CONTRACT) return false;
    const PtxVmProgram *program = contract->program, *finish = contract->finish;
    const size_t num_registers = contract->num_operands + program->num_requests;
    if ((contract->operands == NULL && contract->num_operands > 0) || contract->states == NULL) return false;
    if (program->num_registers > num_registers || contract->k_size > PTX_VM_CONTRACT_MAX_DEPTH) return false;
    if (finish == NULL) return true;
    return finish->kind == PTX_VM_RUN_CONTRACT && finish->num_registers <= num_registers && contract->results != NULL;
}

PtxVmResult ptx_vm_contract_size(const PtxVmContract* contract, size_t* bytes_out) {
    if (!ptx_vm__is_contract(contract) || bytes_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    PtxVmContraction contraction;
    ptx_vm__take_contraction(&arena, contract, &contraction);
    *bytes_out = arena.num_bytes;
    return PTX_VM_SUCCESS;
}

PtxVmResult ptx_vm_contract(
    const PtxVmContract* contract, size_t first_row, size_t end_row, size_t first_column, size_t end_column, void* workspace,
    size_t workspace_bytes
) {
    if (!ptx_vm__is_contract(contract) || workspace == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    const PtxVmProgram *program = contract->program, *finish = contract->finish;
    EvoArena arena = evo__arena(workspace, workspace_bytes);
    PtxVmContraction run;
    ptx_vm__take_contraction(&arena, contract, &run);
    if (workspace_bytes < arena.num_bytes) return PTX_VM__ERROR(INSUFFICIENT_MEMORY);
    const PtxVmMode mode = ptx_vm__set_mode();
    ptx_vm__run_start(program, NULL, &run.run);
    if (finish != NULL) ptx_vm__run_start(finish, NULL, &run.finish_run);
    for (uint32_t i = 0; i < program->num_inputs; i++) run.places_of_slots[i] = &run.places[program->input_registers[i]];
    for (uint32_t i = 0; i < program->num_requests; i++) {
        PtxVmPlace* place = &run.places[contract->num_operands + i];
        run.places_of_slots[program->num_inputs + i] = place;
        if (place->is_lane_sum)
            memset(place->first, 0, (place->k_bytes ? PTX_VM__DEPTH : 1) * 2 * PTX_VM__MAX_LANES * sizeof(float));
    }
    for (uint32_t i = 0; i < run.slots.num_slots; i++) {
        const PtxVmPlace* place = run.places_of_slots[i];
        run.slots.flips[i] = place->is_pair_state ? -1 : 0;
        if (place->block_bytes != 0) run.slots.moving[run.slots.num_moving++] = i;
        run.slots.tail_bytes[i] = place->is_lane_sum ? PTX_VM__MAX_LANES * sizeof(float) : 0;
    }
    for (size_t i = 0; i < contract->num_operands; i++) {
        if (contract->operands[i].axes != PTX_VM_AXES_NONE) continue;
        float value;
        ptx_vm__loops(contract)->gather(&contract->operands[i], 0, 0, 1, &value, 1);
        ptx_vm__fill_floats((float*)(void*)run.places[i].first, value, PTX_VM__MAX_LANES);
    }
    for (size_t n = first_column; n < end_column; n += PTX_VM_CONTRACT_COLUMNS) {
        const size_t num_columns = end_column - n < PTX_VM_CONTRACT_COLUMNS ? end_column - n : PTX_VM_CONTRACT_COLUMNS;
        for (size_t m = first_row; m < end_row; m += PTX_VM__TILE_ROWS) {
            const size_t num_rows = end_row - m < PTX_VM__TILE_ROWS ? end_row - m : PTX_VM__TILE_ROWS;
            ptx_vm__run_tile(contract, &run, m, num_rows, n, num_columns);
        }
    }
    ptx_vm__restore_mode(mode);
    return PTX_VM_SUCCESS;
}

#endif /* PTX_VM_CONTRACT_H_INCLUDED */
