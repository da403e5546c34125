/*
 * ptx_vm_gram.h - ptx_vm_gram: the run that sums products of a program's requests.
 *
 * Private: included only by the implementation in ptx_vm.h.
 */
#ifndef PTX_VM_GRAM_H_INCLUDED
#define PTX_VM_GRAM_H_INCLUDED

/* Lanes of every pair of columns, then the sums of the tree: those of 2^k blocks at index k. */
static void ptx_vm__end_gram_block(uint32_t num_requests, const PtxVmGramRun* gram, size_t num_blocks) {
    const uint32_t num_columns = 2 + num_requests, stride = PTX_VM__GRAM_STRIDE(num_requests);
    const size_t num_entries = PTX_VM_GRAM_NUM_ENTRIES(num_requests);
    size_t entry = 0;
    for (uint32_t i = 0; i < num_columns; i++) {
        for (uint32_t j = 0; j <= i; j++, entry++) {
            const double* lanes = gram->lanes + 8 * (i * stride + j);
            double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
            size_t level = 0;
            for (; num_blocks >> level & 1; level++) sum = gram->tree[level * num_entries + entry] + sum;
            gram->tree[level * num_entries + entry] = sum;
        }
    }
    memset(gram->lanes, 0, (size_t)num_columns * stride * 8 * sizeof(double));
}

static double ptx_vm__first_value(const void* values) {
    float first;
    memcpy(&first, values, sizeof first);
    return first - first == 0.0f ? (double)first : 0.0;
}

static void ptx_vm__run_gram_blocks(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_points, const float* target, const float* roots,
    bool is_centred, double* references, PtxVmRun* run
) {
    const size_t block = program->kernels->num_points, block_bytes = ptx_vm__block_bytes(program);
    const uint32_t first_output = ptx_vm__first_output(program);
    for (size_t point = 0; point < num_points; point += block) {
        const size_t num_valid = num_points - point < block ? num_points - point : block, end = point + num_valid;
        for (uint32_t i = 0; i < program->num_inputs; i++) {
            const PtxVmInput* input = &inputs[program->input_registers[i]];
            if (input->is_uniform) continue;
            run->memory[i] = ptx_vm__block(input->values, point, num_valid, block, run->vectors + i * block_bytes);
        }
        program->kernels->enter(program->steps, run->memory);
        if (point == 0 && is_centred) {
            references[0] = ptx_vm__first_value(target);
            for (uint32_t k = 0; k < program->num_requests; k++)
                references[1 + k] = ptx_vm__first_value(run->memory[first_output + k]);
        }
        program->kernels->gram(
            target + point, roots == NULL ? NULL : roots + point, run->memory + first_output, program->num_requests,
            (uint32_t)num_valid, references, run->gram.columns, run->gram.lanes
        );
        if (end % PTX_VM__SUM_BLOCK == 0 || end == num_points)
            ptx_vm__end_gram_block(program->num_requests, &run->gram, (end - 1) / PTX_VM__SUM_BLOCK);
    }
}

PtxVmResult ptx_vm_gram(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points, const float* target,
    const float* root_weights, bool is_centred, double* sums_out, double* references_out, void* workspace, size_t workspace_bytes
) {
    if (program == NULL || program->kind != PTX_VM_RUN_GRAM || workspace == NULL || target == NULL || sums_out == NULL ||
        references_out == NULL || !ptx_vm__has_inputs(program, inputs, num_inputs)) {
        return PTX_VM__ERROR(INVALID_VALUE);
    }
    EvoArena arena = evo__arena(workspace, workspace_bytes);
    PtxVmRun run;
    ptx_vm__take_run(&arena, program, &run);
    if (workspace_bytes < arena.num_bytes) return PTX_VM__ERROR(INSUFFICIENT_MEMORY);

    const uint32_t num_requests = program->num_requests;
    const size_t num_entries = PTX_VM_GRAM_NUM_ENTRIES(num_requests);
    const size_t num_sum_blocks = num_points / PTX_VM__SUM_BLOCK + (num_points % PTX_VM__SUM_BLOCK != 0);
    ptx_vm__run_start(program, inputs, &run);
    memset(run.gram.lanes, 0, (size_t)(2 + num_requests) * PTX_VM__GRAM_STRIDE(num_requests) * 8 * sizeof(double));
    memset( /* the columns that only fill up the last four */
        run.gram.columns + (size_t)(2 + num_requests) * program->kernels->num_points,
        0,
        (size_t)(PTX_VM__GRAM_STRIDE(num_requests) - 2 - num_requests) * program->kernels->num_points * sizeof(double)
    );
    const PtxVmMode mode = ptx_vm__set_mode();
    for (uint32_t k = 0; k < 1 + num_requests; k++) references_out[k] = 0.0;
    ptx_vm__run_gram_blocks(program, inputs, num_points, target, root_weights, is_centred, references_out, &run);
    ptx_vm__restore_mode(mode);
    memset(sums_out, 0, num_entries * sizeof(double));
    for (uint32_t level = 0; level < PTX_VM__MAX_TREE_DEPTH && (uint64_t)num_sum_blocks >> level != 0; level++) {
        if (!((uint64_t)num_sum_blocks >> level & 1)) continue;
        for (size_t k = 0; k < num_entries; k++) sums_out[k] = run.gram.tree[level * num_entries + k] + sums_out[k];
    }
    return PTX_VM_SUCCESS;
}

#endif /* PTX_VM_GRAM_H_INCLUDED */
