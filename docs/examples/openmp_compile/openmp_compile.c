/*
 * openmp_compile.c - random programs to cubins on all cores: Stack PTX, PTX Inject and nvPTXCompiler under OpenMP.
 *
 *     openmp_compile [NUM_PROGRAMS [MAX_THREADS [FOLDER [STUB]]]]
 *
 * Each program becomes a stub, the stub a kernel in the template that is embedded in this file, and the kernel a cubin. Prints
 * programs/s with 1, 2, 4, ... threads up to MAX_THREADS (all cores), and the speed-up over one thread. Defaults: 1,024 programs;
 * nothing is written. FOLDER, which must exist, gets a cubin for each program; "" means none. STUB is the PTX of program 0 instead
 * of a random one. A program that fails is reported, the others continue, and the exit status is a failure.
 *
 * Threads share only what never changes: the language and the template's handle. Each thread has its own
 * workspace. nvPTXCompiler needs neither a GPU nor a driver.
 */

#define STACK_PTX_IMPLEMENTATION
#include <stack_ptx.h>
#define PTX_INJECT_IMPLEMENTATION
#include <ptx_inject.h>

#include <check_result_helper.h>

#include <generated/stack_ptx_descriptions.h>

#include "kernel_ptx.h"

#include <nvPTXCompiler.h>
#include <omp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TARGET "--gpu-name=sm_90"
#define NUM_WORDS 64
#define SEED 1u

enum { REG_X, REG_Y, REG_RESULT, NUM_REGISTERS };

static const size_t requests[] = {REG_RESULT};
static const StackPtxLimits limits = {
    128,       /* stack_size */
    4096,      /* max_nodes */
    1,         /* max_frame_depth: no routines */
    0,         /* store_size */
    NUM_WORDS, /* execution_limit */
};

/* Instructions that programs use. */
static const StackPtxInstruction operations[] = {
    stack_ptx_encode_ptx_instruction_add_ftz_f32,        stack_ptx_encode_ptx_instruction_sub_ftz_f32,
    stack_ptx_encode_ptx_instruction_mul_ftz_f32,        stack_ptx_encode_ptx_instruction_fma_rn_ftz_f32,
    stack_ptx_encode_ptx_instruction_min_ftz_f32,        stack_ptx_encode_ptx_instruction_max_ftz_f32,
    stack_ptx_encode_ptx_instruction_rcp_approx_ftz_f32, stack_ptx_encode_ptx_instruction_sin_approx_ftz_f32,
    stack_ptx_encode_ptx_instruction_tanh_approx_f32,
};

/* Shared by all programs and threads. */
typedef struct Template {
    const StackPtxLanguage* language;
    size_t workspace_bytes;
    PtxInjectHandle inject;
} Template;

/* A cubin, or NULL and the reason. free_result frees both. */
typedef struct Result {
    char* cubin;
    size_t num_bytes;
    char* error;
} Result;

static void* allocate(size_t num_bytes) {
    void* memory = malloc(num_bytes);
    if (memory == NULL) {
        (void)fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static char* copy_text(const char* text) { return strcpy((char*)allocate(strlen(text) + 1), text); }

static void free_result(Result* result) {
    free(result->cubin);
    free(result->error);
    memset(result, 0, sizeof *result);
}

/* ---- programs ---- */

/* SplitMix64. */
static uint32_t next_random(uint64_t* state, uint32_t bound) {
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((x ^ (x >> 31)) % bound);
}

/* Program `index`: the same on every machine and in any thread. Any sequence of words is a program. */
static void make_program(size_t index, StackPtxInstruction words[NUM_WORDS]) {
    const StackPtxInstruction end = stack_ptx_encode_return;
    uint64_t state = ((uint64_t)SEED << 32) + index;
    size_t i;
    for (i = 0; i < NUM_WORDS - 1; ++i) {
        /* Values first, so that there is something to work on. */
        const uint32_t kind = next_random(&state, i < NUM_WORDS / 3 ? 3 : 12);
        if (kind < 2) {
            const StackPtxInstruction input = stack_ptx_encode_input(kind == 0 ? REG_X : REG_Y);
            words[i] = input;
        } else if (kind == 2) {
            const StackPtxInstruction constant = stack_ptx_encode_constant_f32((float)next_random(&state, 1000) / 100.0f);
            words[i] = constant;
        } else {
            words[i] = operations[next_random(&state, COUNT(operations))];
        }
    }
    words[NUM_WORDS - 1] = end;
}

/* The stub of a program. */
static char* make_stub(const Template* shared, const StackPtxInstruction* words, void* workspace) {
    StackPtxLowered lowered;
    size_t length = 0;
    char* stub;
    stackPtxCheck(stack_ptx_lower(
        shared->language, STACK_PTX_MODE_LENIENT, 0, words, NUM_WORDS, workspace, shared->workspace_bytes, &lowered, NULL
    ));
    stackPtxCheck(stack_ptx_emit(shared->language, &lowered, workspace, shared->workspace_bytes, NULL, 0, &length));
    stub = (char*)allocate(length + 1);
    stackPtxCheck(stack_ptx_emit(shared->language, &lowered, workspace, shared->workspace_bytes, stub, length + 1, &length));
    return stub;
}

/* ---- compiling ---- */

/* The compiler's error log. */
static char* error_log(nvPTXCompilerHandle compiler, nvPTXCompileResult result) {
    char code[64];
    size_t size = 0;
    if (compiler != NULL && nvPTXCompilerGetErrorLogSize(compiler, &size) == NVPTXCOMPILE_SUCCESS && size > 0) {
        char* log = (char*)allocate(size + 1);
        if (nvPTXCompilerGetErrorLog(compiler, log) == NVPTXCOMPILE_SUCCESS) {
            log[size] = '\0';
            return log;
        }
        free(log);
    }
    (void)snprintf(code, sizeof code, "nvPTXCompiler error %d\n", (int)result);
    return copy_text(code);
}

static void compile_ptx(const char* ptx, size_t length, Result* result) {
    static const char* const options[] = {TARGET};
    nvPTXCompilerHandle compiler = NULL;
    nvPTXCompileResult code = nvPTXCompilerCreate(&compiler, length, ptx);
    if (code == NVPTXCOMPILE_SUCCESS) code = nvPTXCompilerCompile(compiler, (int)COUNT(options), options);
    if (code == NVPTXCOMPILE_SUCCESS) code = nvPTXCompilerGetCompiledProgramSize(compiler, &result->num_bytes);
    if (code == NVPTXCOMPILE_SUCCESS) {
        result->cubin = (char*)allocate(result->num_bytes);
        code = nvPTXCompilerGetCompiledProgram(compiler, result->cubin);
    }
    if (code != NVPTXCOMPILE_SUCCESS) {
        free(result->cubin);
        result->cubin = NULL;
        result->error = error_log(compiler, code);
    }
    if (compiler != NULL) (void)nvPTXCompilerDestroy(&compiler);
}

static void compile_stub(const Template* shared, const char* stub, Result* result) {
    size_t size = 0;
    char* ptx;
    ptxInjectCheck(ptx_inject_render_ptx(shared->inject, &stub, 1, NULL, 0, &size));
    ptx = (char*)allocate(size);
    ptxInjectCheck(ptx_inject_render_ptx(shared->inject, &stub, 1, ptx, size, &size));
    compile_ptx(ptx, size, result);
    free(ptx);
}

/* Compiles all programs with this many threads. Returns seconds. */
static double compile_all(const Template* shared, size_t num_programs, int num_threads, const char* first_stub, Result* results) {
    const double start = omp_get_wtime();
#pragma omp parallel num_threads(num_threads)
    {
        void* workspace = allocate(shared->workspace_bytes);
        long long i;
#pragma omp for schedule(dynamic)
        for (i = 0; i < (long long)num_programs; ++i) {
            StackPtxInstruction words[NUM_WORDS];
            char* stub;
            make_program((size_t)i, words);
            stub = i == 0 && first_stub != NULL ? copy_text(first_stub) : make_stub(shared, words, workspace);
            free_result(&results[i]);
            compile_stub(shared, stub, &results[i]);
            free(stub);
        }
        free(workspace);
    }
    return omp_get_wtime() - start;
}

/* ---- the template ---- */

/* The bare name of the register that a variable of the site is in. */
static const char* register_of(PtxInjectHandle inject, const char* variable) {
    const char* name = NULL;
    ptxInjectCheck(ptx_inject_variable_info_by_name(inject, 0, variable, NULL, &name, NULL, NULL, NULL));
    return name;
}

static void write_cubins(const char* folder, const Result* results, size_t num_programs) {
    size_t i;
    for (i = 0; i < num_programs; ++i) {
        char path[4096];
        FILE* file;
        if (results[i].cubin == NULL) continue;
        (void)snprintf(path, sizeof path, "%s/%05u.cubin", folder, (unsigned)i);
        file = fopen(path, "wb");
        if (file == NULL || fwrite(results[i].cubin, 1, results[i].num_bytes, file) != results[i].num_bytes ||
            fclose(file) != 0) {
            perror(path);
            exit(EXIT_FAILURE);
        }
    }
}

int main(int argc, char** argv) {
    const size_t num_programs = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 1024;
    const int max_threads = argc > 2 ? atoi(argv[2]) : omp_get_num_procs();
    const char* folder = argc > 3 ? argv[3] : "";
    const char* first_stub = argc > 4 ? argv[4] : NULL;
    StackPtxRegister registers[NUM_REGISTERS];
    StackPtxLanguageInfo info;
    Template shared;
    Result* results;
    void* memory;
    size_t language_bytes = 0, num_failed = 0, i;
    double time_of_one_s = 0.0;
    int num_threads;

    if (num_programs == 0 || max_threads <= 0) {
        (void)fprintf(stderr, "usage: openmp_compile [NUM_PROGRAMS [MAX_THREADS [FOLDER [STUB]]]]\n");
        return 2;
    }

    ptxInjectCheck(ptx_inject_create(&shared.inject, kernel_ptx));
    for (i = 0; i < NUM_REGISTERS; ++i) registers[i].stack_idx = STACK_PTX_STACK_TYPE_F32;
    registers[REG_X].name = register_of(shared.inject, "x");
    registers[REG_Y].name = register_of(shared.inject, "y");
    registers[REG_RESULT].name = register_of(shared.inject, "result");

    memset(&info, 0, sizeof info);
    info.stack_info = &stack_ptx_stack_info;
    info.traits = &stack_ptx_traits;
    info.limits = limits;
    info.registers = registers;
    info.num_registers = NUM_REGISTERS;
    info.requests = requests;
    info.num_requests = COUNT(requests);
    stackPtxCheck(stack_ptx_language_size(&info, &language_bytes));
    memory = allocate(language_bytes);
    stackPtxCheck(stack_ptx_language_init(&info, memory, language_bytes, &shared.language));
    stackPtxCheck(stack_ptx_workspace_size(shared.language, &shared.workspace_bytes));

    results = (Result*)allocate(num_programs * sizeof *results);
    memset(results, 0, num_programs * sizeof *results);
    (void)printf("threads  programs/s  speedup\n");
    for (num_threads = 1;;) {
        const double time_s = compile_all(&shared, num_programs, num_threads, first_stub, results);
        time_of_one_s = num_threads == 1 ? time_s : time_of_one_s;
        (void)printf("%7d  %10.1f  %7.2f\n", num_threads, (double)num_programs / time_s, time_of_one_s / time_s);
        (void)fflush(stdout);
        if (num_threads == max_threads) break;
        num_threads = 2 * num_threads < max_threads ? 2 * num_threads : max_threads;
    }

    for (i = 0; i < num_programs; ++i) {
        if (results[i].cubin == NULL) {
            ++num_failed;
            (void)fprintf(stderr, "program %u: %s\n", (unsigned)i, results[i].error);
        }
    }
    (void)printf("%u of %u programs compiled\n", (unsigned)(num_programs - num_failed), (unsigned)num_programs);
    if (folder[0] != '\0') write_cubins(folder, results, num_programs);
    for (i = 0; i < num_programs; ++i) free_result(&results[i]);
    free(results);
    free(memory);
    ptxInjectCheck(ptx_inject_destroy(shared.inject));
    return num_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
