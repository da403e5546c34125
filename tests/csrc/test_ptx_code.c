/*
 * Tests of detail/ptx_code.h without the virtual machine: code against the same arithmetic in C, buffers that threads share, forks,
 * and systems that allow no code. tests/unit/native/test_ptx_code.py compares code with the virtual machine.
 */
#if !defined(__x86_64__)
int main(void) { return 0; }
#else
#include "detail/ptx_code.c"

#include <sys/resource.h>
#include <sys/wait.h>
#include "check.h"

#define NUM_POINTS 128
#define MAX_VALUES 256
#define NONE UINT32_MAX

bool ptx_vm_level_is_available(PtxVmLevel level) {
    if (level == PTX_VM_LEVEL_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl");
}

static const uint32_t next_request[] = {NONE};
static const uint8_t outputs[] = {PTX_VM__OUTPUT_BITS};

/* Values 0: the input, 1: a constant; then what the test adds; the last is the output. */
typedef struct Program {
    PtxVmValue values[MAX_VALUES];
    uint32_t num_values;
    PtxCodeSource source;
    float constant;
} Program;

static uint32_t add(Program* program, uint8_t operation, uint32_t a, uint32_t b) {
    const PtxVmValue value = {operation, 0, 2, 0, {a, b, NONE}, 0, NONE, NONE, NONE, NONE};
    program->values[program->num_values] = value;
    program->values[a].num_uses++;
    program->values[b].num_uses++;
    return program->num_values++;
}

static void begin(Program* program, float constant) {
    const PtxVmValue input = {PTX_VM__INPUT, 0, 0, 0, {NONE, NONE, NONE}, 0, 0, NONE, NONE, NONE};
    memset(program, 0, sizeof *program);
    program->values[0] = program->values[1] = input;
    program->values[1].operation = PTX_VM__CONSTANT;
    program->num_values = 2;
    program->constant = constant;
}

static bool end(Program* program, bool is_512) {
    const PtxCodeSource source = {0, is_512, program->num_values, 1, 1, 1, program->values, next_request, outputs};
    program->values[program->num_values - 1].first_request = 0;
    program->source = source;
    return ptx_code__prepare(&program->source);
}

/* False if there is no buffer. */
static bool run(const Program* program, bool is_uniform, const float* x, float* y) {
    static __thread float spilled[4 * MAX_VALUES * 16] __attribute__((aligned(64)));
    uint32_t bits;
    char* memory[2];
    const PtxCodeRun code = ptx_code__take(&program->source, is_uniform ? 1 : 0);
    if (!code.is_taken) return false;
    memcpy(&bits, &program->constant, sizeof bits);
    for (int i = 0; i < 8 && !program->source.is_512; i++) spilled[i] = program->constant;
    memory[0] = (char*)(uintptr_t)x;
    memory[1] = (char*)y;
    code.code(memory, NUM_POINTS * sizeof(float), &bits, (char*)spilled, code.function_constants);
    ptx_code__give_back(&code);
    return true;
}

static int exit_code_of(void (*function)(void)) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        function();
        _exit(check_num_failures != 0);
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static void switched_off(void) {
    (void)setenv("EVO_NO_CODE", "1", 1);
    CHECK(!ptx_code__is_available(false));
    CHECK(!ptx_code__is_available(true));
}

static void without_memory(void) {
    const struct rlimit none = {0, 0};
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK(!ptx_code__is_available(false));
}

/* Before this process has asked for code itself. */
TEST(test_a_switch_or_a_limit_leaves_no_code) {
    CHECK_UINT((size_t)exit_code_of(switched_off), 0);
    CHECK_UINT((size_t)exit_code_of(without_memory), 0);
}

#define EACH_LEVEL(is_512)                       \
    for (int is_512 = 0; is_512 < 2; is_512++)   \
        if (ptx_code__is_available(is_512 != 0))

static float x[NUM_POINTS], y[NUM_POINTS];

/* More values at once than there are registers, used in the reverse order: (x + c), (x + c) + c, ... and their products. */
TEST(test_code_computes_what_c_does_with_any_number_of_values) {
    enum { NUM_SUMS = 60 };
    for (int i = 0; i < NUM_POINTS; i++) x[i] = 0.25f + 0.001f * (float)i;
    EACH_LEVEL(is_512) {
        for (int is_uniform = 0; is_uniform < 2; is_uniform++) {
            Program program;
            begin(&program, 0.0125f);
            for (uint32_t i = 0; i < NUM_SUMS; i++) (void)add(&program, PTX_VM__ADD_F32, i == 0 ? 0 : i + 1, 1);
            uint32_t product = 1 + NUM_SUMS;
            for (uint32_t i = NUM_SUMS; i-- > 1;) product = add(&program, PTX_VM__MUL_F32, product, 1 + i);
            CHECK(end(&program, is_512 != 0));
            CHECK(run(&program, is_uniform != 0, x, y));
            for (int i = 0; i < NUM_POINTS; i++) {
                float sums[NUM_SUMS], expected;
                for (int k = 0; k < NUM_SUMS; k++) sums[k] = (k == 0 ? x[is_uniform ? 0 : i] : sums[k - 1]) + 0.0125f;
                expected = sums[NUM_SUMS - 1];
                for (int k = NUM_SUMS - 1; k-- > 0;) expected *= sums[k];
                CHECK(y[i] == expected);
            }
        }
    }
}

TEST(test_programs_without_code_are_refused) {
    EACH_LEVEL(is_512) {
        static Program program;
        begin(&program, 1.0f);
        (void)add(&program, PTX_VM__POPC_B32, 0, 0);
        CHECK(!end(&program, is_512 != 0));
        program.values[2].operation = PTX_VM__ADD_F32;
        CHECK(end(&program, is_512 != 0));
        program.num_values = PTX_CODE__MAX_VALUES + 1;
        program.source.num_values = program.num_values;
        CHECK(!ptx_code__prepare(&program.source));
        begin(&program, 1.0f);
        while (program.num_values < MAX_VALUES) (void)add(&program, PTX_VM__TANH_F32, program.num_values - 1, 0);
        CHECK(!end(&program, is_512 != 0)); /* too long */
    }
}

/* A program of each number: x + number. */
static void check_numbers(size_t first, size_t count) {
    float results[NUM_POINTS];
    EACH_LEVEL(is_512) {
        for (size_t number = first; number < first + count; number++) {
            Program program;
            begin(&program, (float)number);
            (void)add(&program, PTX_VM__ADD_F32, 0, 1);
            CHECK(end(&program, is_512 != 0));
            CHECK(run(&program, false, x, results));
            CHECK(results[0] == x[0] + (float)number && results[NUM_POINTS - 1] == x[NUM_POINTS - 1] + (float)number);
        }
    }
}

static void* check_in_thread(void* number) {
    check_numbers(1000 * (size_t)(uintptr_t)number, 500);
    return NULL;
}

TEST(test_threads_share_the_buffers) {
    pthread_t threads[8];
    for (uintptr_t i = 0; i < COUNT(threads); i++) CHECK(pthread_create(&threads[i], NULL, check_in_thread, (void*)i) == 0);
    for (size_t i = 0; i < COUNT(threads); i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void in_child(void) { check_numbers(0, 50); }

/* The child writes where this process's code would be if they shared their memory. */
TEST(test_a_fork_has_buffers_of_its_own) {
    EACH_LEVEL(is_512) {
        Program program;
        begin(&program, 3.0f);
        (void)add(&program, PTX_VM__ADD_F32, 0, 1);
        CHECK(end(&program, is_512 != 0));
        CHECK(run(&program, false, x, y));
        CHECK_UINT((size_t)exit_code_of(in_child), 0);
        CHECK(run(&program, false, x, y));
        CHECK(y[5] == x[5] + 3.0f);
    }
}
#endif
