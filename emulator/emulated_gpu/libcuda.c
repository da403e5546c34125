/*
 * libcuda.c - a stand-in for the CUDA driver: memory, modules, streams and events of devices that do not exist.
 *
 * It is built as libcuda.so.1 and has the driver's functions that cuda.bindings.driver is asked for here. It owns handles,
 * allocations, contexts and errors, and refuses what the real driver refuses. What a module or a kernel is it does not know:
 * those calls go to a process's own functions (EvoEmulatedCallbacks), which run the kernel on the process's memory.
 *
 * Work is done when it is submitted, unless the option `deferred` is set: then every stream keeps its work until something
 * waits for it, so that whoever reads too early, or forgets that one stream must wait for another, sees old bytes.
 *
 * Threads. One recursive lock; a kernel runs under it. The callers must not hold Python's lock while they wait for this one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    OUT_OF_RESOURCES = 701
};

/* ---- the process's part ------------------------------------------------------------------------------------------ */

enum { MAX_PARAMETERS = 256, MAX_PARAMETER_BYTES = 4096 };

typedef struct {
    uint32_t num_parameters;
    uint32_t static_shared_bytes;
    uint32_t num_registers; /* a thread */
    uint32_t offsets[MAX_PARAMETERS];
    uint32_t sizes[MAX_PARAMETERS];
} EvoEmulatedFunction;

/* Each returns a CUresult. */
typedef struct {
    /* cubin: NULL: the module is PTX, which the driver assembles. */
    int (*load)(uint64_t module, const char* ptx, uint64_t num_bytes, int capability, const void* cubin, uint64_t cubin_bytes);
    int (*unload)(uint64_t module);
    int (*function)(uint64_t module, const char* name, EvoEmulatedFunction* function_out);
    int (*variable)(uint64_t module, const char* name, uint64_t* address_out, uint64_t* num_bytes_out);
    int (*launch)(
        uint64_t module, const char* name, const uint32_t* grid, const uint32_t* block, uint32_t shared_bytes,
        const void* parameters, uint32_t num_bytes
    );
} EvoEmulatedCallbacks;

static EvoEmulatedCallbacks callbacks;

/* ---- state ------------------------------------------------------------------------------------------------------- */

enum { MAX_DEVICES = 8, MAX_FAULTS = 16, MAX_CALLS = 128, MAX_DEPTH = 32 };

typedef struct {
    int retained;
    int error;   /* what every call gives from now on */
    int pending; /* what the next call that waits will find */
    uint64_t used_bytes;
} Context;

typedef enum { STREAM, EVENT, MODULE, FUNCTION, VARIABLE, DEVICE_MEMORY, HOST_MEMORY, NUM_KINDS } Kind;

typedef struct Work Work;

typedef struct Object {
    struct Object* next;
    Kind kind;
    bool is_alive;
    Context* context;
    uint32_t flags;                     /* streams, events */
    Work *first, *last;                 /* streams */
    struct Object* stream;              /* events: where last recorded */
    uint64_t num_recorded, num_done;    /* events */
    struct timespec time;               /* events */
    uint64_t id;                        /* modules */
    struct Object* module;              /* functions, variables */
    char* name;                         /* functions */
    EvoEmulatedFunction* shape;         /* functions */
    uint32_t max_dynamic_shared_bytes;  /* functions */
    int carveout;                       /* functions */
    char* memory;                       /* memory, variables; those belong to the process's part */
    uint64_t num_bytes;                 /* memory, variables */
} Object;

typedef enum { COPY, SET8, SET32, LAUNCH, RECORD, WAIT, FREE } WorkKind;

struct Work {
    Work* next;
    WorkKind kind;
    char* target;
    const char* source;
    char* owned; /* freed afterwards */
    uint64_t count;
    uint32_t value;
    Object* object; /* event, function or memory */
    uint64_t generation;
    bool is_endless; /* kernels */
    uint32_t grid[3], block[3], shared_bytes, num_parameter_bytes;
    unsigned char parameters[MAX_PARAMETER_BYTES];
};

typedef struct {
    char call[24];
    long at;
    int code;
    bool is_late; /* found by the next call that waits */
} Fault;

static struct Options {
    int driver_version, num_devices, capability, num_processors;
    uint64_t total_bytes;
    bool is_deferred;
    int num_faults;
    Fault faults[MAX_FAULTS];
} defaults = {13000, 1, 90, 132, UINT64_C(80) << 30, false, 0, {{"", 0, 0, false}}}, options;

/* CUDA C++ Programming Guide 13.0, table of technical specifications: threads, blocks and bytes of shared memory of a
   multiprocessor. A block may have all of that memory but 1 KiB, before 8.0 all. */
static const struct Limits {
    int capability, num_threads, num_blocks, shared_bytes;
} architectures[] = {
    {75, 1024, 16, 64 << 10},   {80, 2048, 32, 164 << 10},  {86, 1536, 16, 100 << 10},  {87, 1536, 16, 164 << 10},
    {89, 1536, 24, 100 << 10},  {90, 2048, 32, 228 << 10},  {100, 2048, 32, 228 << 10}, {103, 2048, 32, 228 << 10},
    {110, 1536, 24, 228 << 10}, {120, 1536, 24, 100 << 10}, {121, 1536, 24, 100 << 10},
};
enum { NUM_REGISTERS = 65536, MAX_THREAD_REGISTERS = 255, STATIC_SHARED_BYTES = 48 << 10, RESERVED_SHARED_BYTES = 1 << 10 };

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_initialized, is_eager;
static Context contexts[MAX_DEVICES];
static Object* objects;
static Object default_streams[MAX_DEVICES];
static uint64_t next_module = 1;
static const Context* running; /* the context of the kernel that runs */
static uint64_t leaks[NUM_KINDS];
static struct {
    char name[24];
    long count;
} calls[MAX_CALLS];
static __thread Context* current[MAX_DEPTH];
static __thread int depth;

static bool is_sticky(int code) {
    return code == 214 || code == 226 || (code >= 700 && code != 701 && code < 800) || code == 999;
}

static bool parse_option(char* option) {
    char* value = strchr(option, '=');
    Fault* fault = &options.faults[options.num_faults];
    int major = 0, minor = 0;
    char late[8] = "";
    if (!value) return false;
    *value++ = 0;
    if (!strcmp(option, "driver"))
        options.driver_version = atoi(value);
    else if (!strcmp(option, "devices"))
        options.num_devices = atoi(value);
    else if (!strcmp(option, "processors"))
        options.num_processors = atoi(value);
    else if (!strcmp(option, "total_memory"))
        options.total_bytes = strtoull(value, NULL, 0);
    else if (!strcmp(option, "deferred"))
        options.is_deferred = atoi(value) != 0;
    else if (!strcmp(option, "capability")) {
        if (sscanf(value, "%d.%d", &major, &minor) != 2) return false;
        options.capability = 10 * major + minor;
    } else if (!strcmp(option, "fault")) {
        if (options.num_faults == MAX_FAULTS ||
            sscanf(value, "%23[^:]:%ld:%d:%7s", fault->call, &fault->at, &fault->code, late) < 3)
            return false;
        if (late[0] && (strcmp(late, "late") || !is_sticky(fault->code))) return false;
        if (fault->code == NOT_READY && strcmp(fault->call, "launch")) return false;
        fault->is_late = late[0] != 0;
        for (int i = 0; i < MAX_CALLS && calls[i].name[0]; i++)
            if (!strcmp(calls[i].name, fault->call)) fault->at += calls[i].count;
        options.num_faults++;
    } else
        return false;
    return options.num_devices >= 0 && options.num_devices <= MAX_DEVICES;
}

/* 0, or 1 where an option is wrong. */
static int configure(const char* text) {
    char buffer[1024], *rest = NULL;
    int result = 0;
    if (strlen(text) >= sizeof buffer) return 1;
    strcpy(buffer, text);
    for (char* option = strtok_r(buffer, ", ", &rest); option; option = strtok_r(NULL, ", ", &rest))
        if (!parse_option(option)) result = 1;
    return result;
}

static void start(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    options = defaults;
    const char* text = getenv("EVO_EMULATED_GPU");
    if (text && configure(text)) {
        fprintf(stderr, "emulated GPU: EVO_EMULATED_GPU=%s: a wrong option\n", text);
        abort();
    }
}

static void note(const char* text) { fprintf(stderr, "emulated GPU: %s\n", text); }

/* Counts a call; the code of a fault that is due, or 0. */
static int count_call(const char* name, bool* is_late_out) {
    int i = 0;
    while (i < MAX_CALLS - 1 && calls[i].name[0] && strcmp(calls[i].name, name)) i++;
    if (!calls[i].name[0]) snprintf(calls[i].name, sizeof calls[i].name, "%s", name);
    calls[i].count++;
    for (int f = 0; f < options.num_faults; f++) {
        if (!strcmp(options.faults[f].call, name) && options.faults[f].at == calls[i].count) {
            if (options.faults[f].code < 0) raise(-options.faults[f].code);
            *is_late_out = options.faults[f].is_late;
            return options.faults[f].code;
        }
    }
    return 0;
}

/* Those of the newest architecture that is not newer than the devices. */
static const struct Limits* limits(void) {
    size_t i = sizeof architectures / sizeof architectures[0] - 1;
    while (i > 0 && architectures[i].capability > options.capability) i--;
    return &architectures[i];
}

static int max_block_shared_bytes(void) {
    return limits()->shared_bytes - (limits()->capability >= 80 ? RESERVED_SHARED_BYTES : 0);
}

/* Registers that a block takes: warps get them in units of 256. */
static uint64_t block_registers(const EvoEmulatedFunction* shape, uint64_t num_threads) {
    return (num_threads + 31) / 32 * ((shape->num_registers * 32 + 255) / 256 * 256);
}

static Context* current_context(void) { return depth > 0 ? current[depth - 1] : NULL; }

static bool is_context(const Context* context) {
    for (int i = 0; i < options.num_devices; i++)
        if (context == &contexts[i]) return context->retained > 0;
    return false;
}

/* Begins a call: takes the lock, and gives what is wrong before it has begun. `waits`: the call sees what work before it left. */
static int begin(const char* name, bool needs_context, bool waits) {
    bool is_late = false;
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    if (!is_initialized) return NOT_INITIALIZED;
    Context* context = current_context();
    if (needs_context && !is_context(context)) return INVALID_CONTEXT;
    if (context && needs_context) {
        if (!context->error && waits) context->error = context->pending;
        if (context->error) return context->error;
    }
    int code = count_call(name, &is_late);
    if (code == NOT_READY) return code;
    if (code && context && is_sticky(code)) *(is_late ? &context->pending : &context->error) = code;
    return is_late ? SUCCESS : code;
}

static CUresult end(int result) {
    pthread_mutex_unlock(&lock);
    return result;
}

#define BEGIN(name, needs_context, waits)              \
    do {                                               \
        int begun = begin(name, needs_context, waits); \
        if (begun) return end(begun);                  \
    } while (0)
#define REQUIRE(condition, code)            \
    do {                                    \
        if (!(condition)) return end(code); \
    } while (0)

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static Object* new_object(Kind kind) {
    Object* object = calloc(1, sizeof *object);
    if (!object) abort();
    object->kind = kind;
    object->is_alive = true;
    object->context = current_context();
    object->next = objects;
    objects = object;
    return object;
}

/* The object behind a handle, or NULL if it never was one, was destroyed, or is another context's. Destroyed ones are kept, so
   that no new handle is equal to an old one. */
static Object* find_object(const void* handle, Kind kind) {
    for (Object* object = objects; object; object = object->next)
        if (object == handle)
            return object->is_alive && object->kind == kind && object->context == current_context() ? object : NULL;
    return NULL;
}

static Object* find_stream(const void* handle) {
    if ((uintptr_t)handle > 2) return find_object(handle, STREAM);
    Object* stream = &default_streams[current_context() - contexts];
    stream->context = current_context();
    return stream;
}

static Object* find_memory(uint64_t address, uint64_t num_bytes, Kind kind) {
    for (Object* object = objects; object; object = object->next) {
        if (object->kind != kind || !object->is_alive) continue;
        uint64_t first = (uint64_t)(uintptr_t)object->memory;
        if (address >= first && num_bytes <= object->num_bytes && address - first <= object->num_bytes - num_bytes) return object;
    }
    return NULL;
}

static bool is_on_device(uint64_t address, uint64_t num_bytes) {
    return find_memory(address, num_bytes, DEVICE_MEMORY) || find_memory(address, num_bytes, VARIABLE);
}

static void free_memory(Object* object) {
    object->is_alive = false;
    if (object->kind == DEVICE_MEMORY) object->context->used_bytes -= object->num_bytes;
    free(object->memory);
}

/* Fresh memory holds a pattern, so that nobody relies on zeros. */
static int allocate(uint64_t num_bytes, Kind kind, Object** object_out) {
    Context* context = current_context();
    void* memory = NULL;
    if (num_bytes == 0) return INVALID_VALUE;
    if (kind == DEVICE_MEMORY && num_bytes > options.total_bytes - context->used_bytes) return OUT_OF_MEMORY;
    if (posix_memalign(&memory, 512, num_bytes)) return OUT_OF_MEMORY;
    memset(memory, 0xAB, num_bytes < (1u << 26) ? num_bytes : (1u << 26));
    *object_out = new_object(kind);
    (*object_out)->memory = memory;
    (*object_out)->num_bytes = num_bytes;
    if (kind == DEVICE_MEMORY) context->used_bytes += num_bytes;
    return SUCCESS;
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

static bool run_stream_until(Object* stream, const Object* event, uint64_t generation);

/* Does a piece of work; false where it cannot be done, as something before it never ends. */
static bool run_work(Context* context, Work* work) {
    bool is_poisoned = context->error || context->pending;
    switch (work->kind) {
        case COPY:
            if (!is_poisoned) memcpy(work->target, work->source, work->count);
            break;
        case SET8:
            if (!is_poisoned) memset(work->target, (int)work->value, work->count);
            break;
        case SET32:
            for (uint64_t i = 0; i < work->count && !is_poisoned; i++) memcpy(work->target + 4 * i, &work->value, 4);
            break;
        case LAUNCH:
            if (work->is_endless) return false;
            if (!is_poisoned && !work->object->module->is_alive) {
                note("a kernel's module was unloaded before the kernel ran");
                context->pending = 719;
            } else if (!is_poisoned) {
                running = context;
                context->pending = callbacks.launch(
                    work->object->module->id, work->object->name, work->grid, work->block, work->shared_bytes, work->parameters,
                    work->num_parameter_bytes
                );
            }
            break;
        case RECORD:
            clock_gettime(CLOCK_MONOTONIC, &work->object->time);
            work->object->num_done = work->generation;
            break;
        case WAIT: return run_stream_until(work->object->stream, work->object, work->generation);
        case FREE:
            if (work->object->is_alive) free_memory(work->object);
            break;
    }
    return true;
}

/* One piece of a stream's work, if there is one and it can be done. */
static bool run_one(Object* stream) {
    Work* work = stream->first;
    if (!work || !run_work(stream->context, work)) return false;
    stream->first = work->next;
    if (!stream->first) stream->last = NULL;
    free(work->owned);
    free(work);
    return true;
}

/* Does a stream's work, as far as the event's recording of that generation if there is an event; false where that cannot be. */
static bool run_stream_until(Object* stream, const Object* event, uint64_t generation) {
    while (stream->first && (!event || event->num_done < generation))
        if (!run_one(stream)) return false;
    return true;
}

/* Does what the caller waits for. The real driver would never return to who waits for a kernel that never ends. */
static void wait_for(Object* stream, const Object* event, uint64_t generation) {
    if (run_stream_until(stream, event, generation) || stream->context->pending) return;
    note("somebody waits for a kernel that never ends");
    stream->context->pending = 702;
}

static void wait_for_streams(Context* context, bool with_non_blocking) {
    for (Object* object = objects; object; object = object->next)
        if (object->kind == STREAM && object->context == context && (with_non_blocking || !(object->flags & 1)))
            wait_for(object, NULL, 0);
}

static void wait_for_all(Context* context, bool with_non_blocking) {
    wait_for_streams(context, with_non_blocking);
    wait_for(&default_streams[context - contexts], NULL, 0);
}

/* Work of a stream: done now, as far as it can be, or kept for later. */
static void submit(Object* stream, Work work) {
    Work* copy = malloc(sizeof *copy);
    if (!copy) abort();
    *copy = work;
    copy->next = NULL;
    /* The default stream and the streams that are not created as non-blocking wait for each other. */
    Object* default_stream = &default_streams[stream->context - contexts];
    if (stream == default_stream)
        wait_for_streams(stream->context, false);
    else if (!(stream->flags & 1) && default_stream->first)
        wait_for(default_stream, NULL, 0);
    if (stream->last)
        stream->last->next = copy;
    else
        stream->first = copy;
    stream->last = copy;
    if (!options.is_deferred) run_stream_until(stream, NULL, 0);
}

/* The error that work up to now has led to. */
static int waited(void) {
    Context* context = current_context();
    if (!context->error) context->error = context->pending;
    return context->error;
}

/* ---- devices and contexts ---------------------------------------------------------------------------------------- */

CUresult cuInit(unsigned int flags) {
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    bool is_late = false;
    REQUIRE(flags == 0, INVALID_VALUE);
    int code = count_call("init", &is_late);
    REQUIRE(code == 0, code);
    REQUIRE(options.num_devices > 0, NO_DEVICE);
    const char* loading = getenv("CUDA_MODULE_LOADING");
    if (!is_initialized) is_eager = loading && !strcmp(loading, "EAGER");
    is_initialized = true;
    return end(SUCCESS);
}

CUresult cuModuleGetLoadingMode(int* mode) {
    BEGIN("device", false, false);
    *mode = is_eager ? 1 : 2;
    return end(SUCCESS);
}

CUresult cuDriverGetVersion(int* version) {
    pthread_once(&once, start);
    if (!version) return INVALID_VALUE;
    *version = options.driver_version;
    return SUCCESS;
}

static bool is_device(CUdevice device) { return device >= 0 && device < options.num_devices; }

CUresult cuDeviceGetCount(int* count) {
    BEGIN("device", false, false);
    *count = options.num_devices;
    return end(SUCCESS);
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    BEGIN("device", false, false);
    REQUIRE(is_device(ordinal), INVALID_DEVICE);
    *device = ordinal;
    return end(SUCCESS);
}

CUresult cuDeviceGetName(char* name, int num_bytes, CUdevice device) {
    BEGIN("device", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    REQUIRE(num_bytes > 0, INVALID_VALUE);
    snprintf(name, (size_t)num_bytes, "Emulated GPU");
    return end(SUCCESS);
}

CUresult cuDeviceGetUuid_v2(unsigned char* uuid, CUdevice device) {
    BEGIN("device", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    memset(uuid, 0xE0 + device, 16);
    return end(SUCCESS);
}

CUresult cuDeviceTotalMem_v2(size_t* num_bytes, CUdevice device) {
    BEGIN("device", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    *num_bytes = options.total_bytes;
    return end(SUCCESS);
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
    static const struct {
        int attribute, value;
    } known[] = {
        {1, 1024},
        {2, 1024},
        {3, 1024},
        {4, 64},
        {5, 2147483647},
        {6, 65535},
        {7, 65535}, /* threads of a block, its axes, the grid's */
        {8, STATIC_SHARED_BYTES},
        {9, 65536},
        {10, 32},
        {12, NUM_REGISTERS},
        {13, 1980000}, /* shared, constant, warp, kHz */
        {17, 0},
        {18, 0},
        {20, 0},
        {31, 1},
        {32, 0},
        {33, 1},
        {34, 0},
        {50, 0}, /* no time limit, not integrated, default mode, kernels at once, ECC, PCI */
        {36, 2619000},
        {37, 5120},
        {38, 52428800},
        {40, 3},
        {41, 1}, /* memory kHz, bits, L2, copy engines, UVA */
        {82, NUM_REGISTERS},
        {83, 0},
        {115, 1},
    };
    BEGIN("device", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    if (attribute == 16)
        *value = options.num_processors;
    else if (attribute == 75)
        *value = options.capability / 10;
    else if (attribute == 76)
        *value = options.capability % 10;
    else if (attribute == 39)
        *value = limits()->num_threads;
    else if (attribute == 81)
        *value = limits()->shared_bytes;
    else if (attribute == 97)
        *value = max_block_shared_bytes();
    else if (attribute == 106)
        *value = limits()->num_blocks;
    else {
        size_t i = 0, count = sizeof known / sizeof known[0];
        while (i < count && known[i].attribute != attribute) i++;
        REQUIRE(i < count, INVALID_VALUE);
        *value = known[i].value;
    }
    return end(SUCCESS);
}

CUresult cuDevicePrimaryCtxRetain(Context** context, CUdevice device) {
    BEGIN("retain", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    REQUIRE(context, INVALID_VALUE);
    contexts[device].retained++;
    *context = &contexts[device];
    return end(SUCCESS);
}

static void drop_work(Object* stream) {
    while (stream->first) {
        Work* work = stream->first;
        stream->first = work->next;
        free(work->owned);
        free(work);
    }
    stream->last = NULL;
}

/* What is still alive is counted as leaked, and ends. Errors stay: the real driver too wants a new process. */
static void destroy_context(Context* context) {
    for (Object* object = objects; object; object = object->next)
        if (object->kind == STREAM && object->context == context) run_stream_until(object, NULL, 0);
    run_stream_until(&default_streams[context - contexts], NULL, 0);
    memset(leaks, 0, sizeof leaks);
    drop_work(&default_streams[context - contexts]);
    for (Object* object = objects; object; object = object->next) {
        if (object->context != context) continue;
        if (object->kind == STREAM) drop_work(object);
        if (!object->is_alive) continue;
        leaks[object->kind]++;
        if (object->kind == DEVICE_MEMORY || object->kind == HOST_MEMORY)
            free_memory(object);
        else if (object->kind == MODULE)
            callbacks.unload(object->id);
        object->is_alive = false;
    }
    context->retained = 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    BEGIN("release", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    REQUIRE(contexts[device].retained > 0, INVALID_CONTEXT);
    if (--contexts[device].retained == 0) destroy_context(&contexts[device]);
    return end(SUCCESS);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    BEGIN("reset", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    int retained = contexts[device].retained;
    destroy_context(&contexts[device]);
    contexts[device].retained = retained;
    return end(SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* is_active) {
    BEGIN("device", false, false);
    REQUIRE(is_device(device), INVALID_DEVICE);
    *flags = 0;
    *is_active = contexts[device].retained > 0;
    return end(SUCCESS);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    BEGIN("device", false, false);
    (void)flags;
    return end(is_device(device) ? SUCCESS : INVALID_DEVICE);
}

CUresult cuCtxSetCurrent(Context* context) {
    BEGIN("context", false, false);
    REQUIRE(!context || is_context(context), INVALID_CONTEXT);
    if (depth == 0) depth = 1;
    current[depth - 1] = context;
    if (!context) depth--;
    return end(SUCCESS);
}

CUresult cuCtxPushCurrent_v2(Context* context) {
    BEGIN("context", false, false);
    REQUIRE(is_context(context) && depth < MAX_DEPTH, INVALID_CONTEXT);
    current[depth++] = context;
    return end(SUCCESS);
}

CUresult cuCtxPopCurrent_v2(Context** context) {
    BEGIN("context", false, false);
    REQUIRE(depth > 0, INVALID_CONTEXT);
    depth--;
    if (context) *context = current[depth];
    return end(SUCCESS);
}

CUresult cuCtxGetCurrent(Context** context) {
    BEGIN("context", false, false);
    *context = current_context();
    return end(SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice* device) {
    BEGIN("context", true, false);
    *device = (CUdevice)(current_context() - contexts);
    return end(SUCCESS);
}

CUresult cuCtxSynchronize(void) {
    BEGIN("synchronize", true, true);
    wait_for_all(current_context(), true);
    return end(waited());
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    BEGIN("memory_info", true, false);
    *free_bytes = options.total_bytes - current_context()->used_bytes;
    *total_bytes = options.total_bytes;
    return end(SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t num_bytes) {
    Object* object = NULL;
    BEGIN("alloc", true, true);
    int result = allocate(num_bytes, DEVICE_MEMORY, &object);
    REQUIRE(result == SUCCESS, result);
    *address = (CUdeviceptr)(uintptr_t)object->memory;
    return end(SUCCESS);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t num_bytes, void* stream) {
    Object* object = NULL;
    BEGIN("alloc", true, false);
    REQUIRE(find_stream(stream), INVALID_HANDLE);
    int result = allocate(num_bytes, DEVICE_MEMORY, &object);
    REQUIRE(result == SUCCESS, result);
    *address = (CUdeviceptr)(uintptr_t)object->memory;
    return end(SUCCESS);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    BEGIN("free", true, true);
    REQUIRE(address, SUCCESS);
    Object* object = find_memory(address, 1, DEVICE_MEMORY);
    REQUIRE(object && (uintptr_t)object->memory == address, INVALID_VALUE);
    wait_for_all(current_context(), true);
    free_memory(object);
    return end(waited());
}

CUresult cuMemFreeAsync(CUdeviceptr address, void* stream) {
    BEGIN("free", true, false);
    REQUIRE(find_stream(stream), INVALID_HANDLE);
    REQUIRE(address, SUCCESS);
    Object* object = find_memory(address, 1, DEVICE_MEMORY);
    REQUIRE(object && (uintptr_t)object->memory == address, INVALID_VALUE);
    submit(find_stream(stream), (Work){.kind = FREE, .object = object});
    return end(SUCCESS);
}

CUresult cuMemHostAlloc(void** memory, size_t num_bytes, unsigned int flags) {
    Object* object = NULL;
    (void)flags;
    BEGIN("host_alloc", true, false);
    int result = allocate(num_bytes, HOST_MEMORY, &object);
    REQUIRE(result == SUCCESS, result);
    *memory = object->memory;
    return end(SUCCESS);
}

CUresult cuMemAllocHost_v2(void** memory, size_t num_bytes) { return cuMemHostAlloc(memory, num_bytes, 0); }

CUresult cuMemFreeHost(void* memory) {
    BEGIN("host_free", true, true);
    Object* object = find_memory((uint64_t)(uintptr_t)memory, 1, HOST_MEMORY);
    REQUIRE(object && object->memory == memory, INVALID_VALUE);
    wait_for_all(current_context(), true);
    free_memory(object);
    return end(waited());
}

/* A copy of pageable memory is done (to the host) or has read its source (to the device) when the call returns. */
static int copy(Object* stream, char* target, const char* source, uint64_t num_bytes, bool is_to_device) {
    Work work = {.kind = COPY, .target = target, .source = source, .count = num_bytes};
    uint64_t host = (uint64_t)(uintptr_t)(is_to_device ? source : target);
    uint64_t device = (uint64_t)(uintptr_t)(is_to_device ? target : source);
    if (num_bytes == 0) return SUCCESS;
    if (!host || !is_on_device(device, num_bytes)) return INVALID_VALUE;
    bool is_pinned = find_memory(host, num_bytes, HOST_MEMORY) != NULL;
    if (is_to_device && !is_pinned) {
        work.owned = malloc(num_bytes);
        if (!work.owned) return OUT_OF_MEMORY;
        memcpy(work.owned, source, num_bytes);
        work.source = work.owned;
    }
    submit(stream, work);
    if (!is_to_device && !is_pinned) wait_for(stream, NULL, 0);
    return SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, size_t num_bytes) {
    BEGIN("copy", true, true);
    int result = copy(find_stream(NULL), (char*)(uintptr_t)target, source, num_bytes, true);
    REQUIRE(result == SUCCESS, result);
    /* Of pageable memory the real one may only have taken a copy when it returns, and streams that do not wait for the default one
       run before that is in place. */
    if (find_memory((uint64_t)(uintptr_t)source, num_bytes, HOST_MEMORY)) wait_for(find_stream(NULL), NULL, 0);
    return end(waited());
}

CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, size_t num_bytes) {
    BEGIN("copy", true, true);
    int result = copy(find_stream(NULL), target, (const char*)(uintptr_t)source, num_bytes, false);
    REQUIRE(result == SUCCESS, result);
    wait_for(find_stream(NULL), NULL, 0);
    return end(waited());
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t num_bytes, void* stream) {
    BEGIN("copy", true, false);
    REQUIRE(find_stream(stream), INVALID_HANDLE);
    return end(copy(find_stream(stream), (char*)(uintptr_t)target, source, num_bytes, true));
}

CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, size_t num_bytes, void* stream) {
    BEGIN("copy", true, false);
    REQUIRE(find_stream(stream), INVALID_HANDLE);
    return end(copy(find_stream(stream), target, (const char*)(uintptr_t)source, num_bytes, false));
}

static int set(void* stream, CUdeviceptr target, uint32_t value, uint64_t count, uint64_t size) {
    if (!find_stream(stream)) return INVALID_HANDLE;
    if (count == 0) return SUCCESS;
    if (target % size || !find_memory(target, count * size, DEVICE_MEMORY)) return INVALID_VALUE;
    submit(
        find_stream(stream),
        (Work){.kind = size == 1 ? SET8 : SET32, .target = (char*)(uintptr_t)target, .value = value, .count = count}
    );
    return SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, size_t count) {
    BEGIN("set", true, false);
    return end(set(NULL, target, value, count, 1));
}

CUresult cuMemsetD32_v2(CUdeviceptr target, unsigned int value, size_t count) {
    BEGIN("set", true, false);
    return end(set(NULL, target, value, count, 4));
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, void* stream) {
    BEGIN("set", true, false);
    return end(set(stream, target, value, count, 1));
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, void* stream) {
    BEGIN("set", true, false);
    return end(set(stream, target, value, count, 4));
}

/* ---- streams and events ------------------------------------------------------------------------------------------ */

CUresult cuStreamCreate(Object** stream, unsigned int flags) {
    BEGIN("stream_create", true, false);
    REQUIRE(flags <= 1, INVALID_VALUE);
    *stream = new_object(STREAM);
    (*stream)->flags = flags;
    return end(SUCCESS);
}

CUresult cuStreamDestroy_v2(Object* stream) {
    BEGIN("stream_destroy", true, false);
    REQUIRE(find_object(stream, STREAM), INVALID_HANDLE);
    run_stream_until(stream, NULL, 0); /* it goes on by itself */
    stream->is_alive = false;
    return end(SUCCESS);
}

CUresult cuStreamSynchronize(void* stream) {
    BEGIN("synchronize", true, true);
    REQUIRE(find_stream(stream), INVALID_HANDLE);
    if ((uintptr_t)stream <= 2) wait_for_all(current_context(), false);
    wait_for(find_stream(stream), NULL, 0);
    return end(waited());
}

/* Each question does one piece of the work that it asks for. */
CUresult cuStreamQuery(void* stream) {
    BEGIN("query", true, true);
    REQUIRE(find_stream(stream), INVALID_HANDLE);
    bool is_done = !find_stream(stream)->first;
    run_one(find_stream(stream));
    int result = waited();
    return end(result ? result : is_done ? SUCCESS : NOT_READY);
}

CUresult cuStreamWaitEvent(void* stream, Object* event, unsigned int flags) {
    BEGIN("stream_wait", true, false);
    (void)flags;
    REQUIRE(find_stream(stream) && find_object(event, EVENT), INVALID_HANDLE);
    if (event->num_recorded)
        submit(find_stream(stream), (Work){.kind = WAIT, .object = event, .generation = event->num_recorded});
    return end(SUCCESS);
}

CUresult cuEventCreate(Object** event, unsigned int flags) {
    BEGIN("event_create", true, false);
    REQUIRE(flags <= 7 && (!(flags & 4) || (flags & 2)), INVALID_VALUE);
    *event = new_object(EVENT);
    (*event)->flags = flags;
    return end(SUCCESS);
}

CUresult cuEventDestroy_v2(Object* event) {
    BEGIN("event_destroy", true, false);
    REQUIRE(find_object(event, EVENT), INVALID_HANDLE);
    event->is_alive = false;
    return end(SUCCESS);
}

CUresult cuEventRecord(Object* event, void* stream) {
    BEGIN("event_record", true, false);
    REQUIRE(find_object(event, EVENT) && find_stream(stream), INVALID_HANDLE);
    event->stream = find_stream(stream);
    event->num_recorded++;
    submit(event->stream, (Work){.kind = RECORD, .object = event, .generation = event->num_recorded});
    return end(SUCCESS);
}

CUresult cuEventSynchronize(Object* event) {
    BEGIN("synchronize", true, true);
    REQUIRE(find_object(event, EVENT), INVALID_HANDLE);
    if (event->num_recorded) wait_for(event->stream, event, event->num_recorded);
    return end(waited());
}

CUresult cuEventQuery(Object* event) {
    BEGIN("query", true, true);
    REQUIRE(find_object(event, EVENT), INVALID_HANDLE);
    bool is_done = event->num_done == event->num_recorded;
    if (!is_done) run_one(event->stream);
    int result = waited();
    return end(result ? result : is_done ? SUCCESS : NOT_READY);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, Object* first, Object* second) {
    BEGIN("elapsed", true, true);
    REQUIRE(find_object(first, EVENT) && find_object(second, EVENT), INVALID_HANDLE);
    REQUIRE(first->num_recorded && second->num_recorded && !((first->flags | second->flags) & 2), INVALID_HANDLE);
    REQUIRE(first->num_done == first->num_recorded && second->num_done == second->num_recorded, NOT_READY);
    *milliseconds = (float)((double)(second->time.tv_sec - first->time.tv_sec) * 1e3 +
                            (double)(second->time.tv_nsec - first->time.tv_nsec) * 1e-6);
    return end(SUCCESS);
}

/* ---- modules and kernels ----------------------------------------------------------------------------------------- */

static const char MARKER[] = "\nemulated GPU: PTX follows\n";

static uint64_t read_number(const unsigned char* image, size_t offset, int num_bytes) {
    uint64_t value = 0;
    for (int i = num_bytes - 1; i >= 0; i--) value = value << 8 | image[offset + (size_t)i];
    return value;
}

/* Bytes of an ELF file, from its headers; 0 if it is none of 64 bits. */
static uint64_t elf_bytes(const unsigned char* image) {
    if (memcmp(image, "\177ELF\2", 5)) return 0;
    uint64_t programs = read_number(image, 32, 8), sections = read_number(image, 40, 8), last = 64;
    uint64_t program_bytes = read_number(image, 54, 2), num_programs = read_number(image, 56, 2);
    uint64_t section_bytes = read_number(image, 58, 2), num_sections = read_number(image, 60, 2);
    if (programs + program_bytes * num_programs > last) last = programs + program_bytes * num_programs;
    if (sections + section_bytes * num_sections > last) last = sections + section_bytes * num_sections;
    for (uint64_t i = 0; i < num_sections; i++) {
        const unsigned char* section = image + sections + i * section_bytes;
        uint64_t stop = read_number(section, 24, 8) + read_number(section, 32, 8);
        if (read_number(section, 4, 4) != 8 && stop > last) last = stop; /* 8: a section without bytes */
    }
    return last;
}

/* Bytes of the cubin at `image`, after which the marker stands; for those who write it. */
uint64_t evo_emulated_cubin_bytes(const void* image) { return elf_bytes(image); }

CUresult cuModuleLoadData(Object** module, const void* image) {
    BEGIN("load", true, true);
    REQUIRE(module && image, INVALID_VALUE);
    uint64_t num_bytes = elf_bytes(image);
    const char* ptx = image;
    uint64_t ptx_bytes;
    if (num_bytes) {
        const char* marker = ptx + num_bytes;
        if (strncmp(marker, MARKER, sizeof MARKER - 1)) {
            note("a cubin without PTX behind it: it was not compiled by emulated_gpu");
            return end(INVALID_IMAGE);
        }
        ptx = marker + sizeof MARKER - 1 + 8;
        ptx_bytes = read_number((const unsigned char*)marker, sizeof MARKER - 1, 8);
    } else {
        if (strncmp(ptx, ".version", 8) && strncmp(ptx, "//", 2)) return end(INVALID_IMAGE);
        ptx_bytes = strlen(ptx);
    }
    const void* cubin = num_bytes ? image : NULL;
    int result =
        callbacks.load ? callbacks.load(next_module, ptx, ptx_bytes, options.capability, cubin, num_bytes) : INVALID_IMAGE;
    REQUIRE(result == SUCCESS, result);
    *module = new_object(MODULE);
    (*module)->id = next_module++;
    return end(SUCCESS);
}

CUresult cuModuleLoadDataEx(
    Object** module, const void* image, unsigned int num_options, int* option_names, void** option_values
) {
    (void)num_options;
    (void)option_names;
    (void)option_values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(Object* module) {
    BEGIN("unload", true, true);
    REQUIRE(find_object(module, MODULE), INVALID_HANDLE);
    /* It does not wait: the driver's documentation does not promise that it would. */
    for (Object* object = objects; object; object = object->next)
        if ((object->kind == FUNCTION || object->kind == VARIABLE) && object->module == module) object->is_alive = false;
    module->is_alive = false;
    callbacks.unload(module->id);
    return end(waited());
}

CUresult cuModuleGetFunction(Object** function, Object* module, const char* name) {
    BEGIN("function", true, false);
    REQUIRE(find_object(module, MODULE), INVALID_HANDLE);
    EvoEmulatedFunction* shape = calloc(1, sizeof *shape);
    if (!shape) abort();
    int result = callbacks.function(module->id, name, shape);
    if (result) {
        free(shape);
        return end(result);
    }
    *function = new_object(FUNCTION);
    (*function)->module = module;
    (*function)->name = strdup(name);
    (*function)->shape = shape;
    (*function)->carveout = -1;
    return end(SUCCESS);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* num_bytes, Object* module, const char* name) {
    uint64_t found = 0, size = 0;
    BEGIN("variable", true, false);
    REQUIRE(find_object(module, MODULE), INVALID_HANDLE);
    int result = callbacks.variable(module->id, name, &found, &size);
    REQUIRE(result == SUCCESS, result);
    if (!find_memory(found, size, VARIABLE)) {
        Object* variable = new_object(VARIABLE);
        variable->module = module;
        variable->memory = (char*)(uintptr_t)found;
        variable->num_bytes = size;
    }
    if (address) *address = found;
    if (num_bytes) *num_bytes = size;
    return end(SUCCESS);
}

CUresult cuFuncGetAttribute(int* value, int attribute, Object* function) {
    BEGIN("attribute", true, false);
    REQUIRE(find_object(function, FUNCTION), INVALID_HANDLE);
    switch (attribute) {
        case 0:
            for (*value = 1024; block_registers(function->shape, (uint64_t)*value) > NUM_REGISTERS;) *value -= 32;
            break;
        case 1: *value = (int)function->shape->static_shared_bytes; break;
        case 2:
        case 3:
        case 7: *value = 0; break;
        case 4: *value = (int)function->shape->num_registers; break;
        case 5:
        case 6: *value = options.capability; break;
        case 8: *value = (int)function->max_dynamic_shared_bytes; break;
        case 9: *value = function->carveout; break;
        default: return end(INVALID_VALUE);
    }
    return end(SUCCESS);
}

CUresult cuFuncSetAttribute(Object* function, int attribute, int value) {
    BEGIN("attribute", true, false);
    REQUIRE(find_object(function, FUNCTION), INVALID_HANDLE);
    if (attribute == 9) {
        REQUIRE(value >= -1 && value <= 100, INVALID_VALUE);
        function->carveout = value;
        return end(SUCCESS);
    }
    int64_t most = (int64_t)max_block_shared_bytes() - function->shape->static_shared_bytes;
    REQUIRE(attribute == 8 && value >= 0 && value <= most, INVALID_VALUE);
    function->max_dynamic_shared_bytes = (uint32_t)value;
    return end(SUCCESS);
}

static uint32_t smaller(uint64_t one, uint64_t other) { return (uint32_t)(one < other ? one : other); }

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, Object* function, int block_size, size_t shared_bytes) {
    BEGIN("attribute", true, false);
    REQUIRE(find_object(function, FUNCTION), INVALID_HANDLE);
    REQUIRE(block_size > 0 && block_size <= 1024, INVALID_VALUE);
    uint64_t size = (uint64_t)block_size, shared = shared_bytes + function->shape->static_shared_bytes;
    uint32_t most = smaller(limits()->num_blocks, (uint64_t)limits()->num_threads / size);
    most = smaller(most, NUM_REGISTERS / block_registers(function->shape, size));
    *num_blocks = (int)smaller(most, (uint64_t)limits()->shared_bytes / (shared + RESERVED_SHARED_BYTES));
    return end(SUCCESS);
}

static int pack_parameters(const EvoEmulatedFunction* shape, void** parameters, void** extra, Work* work) {
    const void* block = NULL;
    const size_t* block_bytes = NULL;
    for (uint32_t i = 0; i < shape->num_parameters; i++)
        if (shape->offsets[i] + shape->sizes[i] > work->num_parameter_bytes)
            work->num_parameter_bytes = shape->offsets[i] + shape->sizes[i];
    if (parameters) {
        for (uint32_t i = 0; i < shape->num_parameters; i++) {
            if (!parameters[i]) return INVALID_VALUE;
            memcpy(work->parameters + shape->offsets[i], parameters[i], shape->sizes[i]);
        }
        return SUCCESS;
    }
    for (; extra && *extra; extra += 2)
        if (*extra == (void*)1)
            block = extra[1];
        else if (*extra == (void*)2)
            block_bytes = extra[1];
        else
            return INVALID_VALUE;
    if (shape->num_parameters == 0) return SUCCESS;
    if (!block || !block_bytes || *block_bytes < work->num_parameter_bytes) return INVALID_VALUE;
    memcpy(work->parameters, block, work->num_parameter_bytes);
    return SUCCESS;
}

CUresult cuLaunchKernel(
    Object* function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, unsigned int block_y,
    unsigned int block_z, unsigned int shared_bytes, void* stream, void** parameters, void** extra
) {
    Work work = {
        .kind = LAUNCH,
        .object = function,
        .grid = {grid_x, grid_y, grid_z},
        .block = {block_x, block_y, block_z},
        .shared_bytes = shared_bytes
    };
    int begun = begin("launch", true, false);
    work.is_endless = begun == NOT_READY;
    REQUIRE(begun == SUCCESS || work.is_endless, begun);
    REQUIRE(find_object(function, FUNCTION) && find_stream(stream), INVALID_HANDLE);
    REQUIRE(grid_x && grid_y && grid_z && block_x && block_y && block_z, INVALID_VALUE);
    REQUIRE(grid_x <= 2147483647u && grid_y <= 65535 && grid_z <= 65535, INVALID_VALUE);
    REQUIRE(block_x <= 1024 && block_y <= 1024 && block_z <= 64, INVALID_VALUE);
    REQUIRE((uint64_t)block_x * block_y * block_z <= 1024, INVALID_VALUE);
    uint32_t allowed = function->max_dynamic_shared_bytes, unasked = STATIC_SHARED_BYTES - function->shape->static_shared_bytes;
    if (allowed < unasked) allowed = unasked;
    REQUIRE(shared_bytes <= allowed, INVALID_VALUE);
    REQUIRE(block_registers(function->shape, (uint64_t)block_x * block_y * block_z) <= NUM_REGISTERS, OUT_OF_RESOURCES);
    int result = pack_parameters(function->shape, parameters, extra, &work);
    REQUIRE(result == SUCCESS, result);
    submit(find_stream(stream), work);
    return end(SUCCESS);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult error_text(int code, const char** text, bool wants_name) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].code == code) {
            *text = wants_name ? errors[i].name : errors[i].text;
            return SUCCESS;
        }
    }
    *text = NULL;
    return INVALID_VALUE;
}

CUresult cuGetErrorName(int code, const char** text) { return error_text(code, text, true); }
CUresult cuGetErrorString(int code, const char** text) { return error_text(code, text, false); }

/* ---- how callers find functions ---------------------------------------------------------------------------------- */

typedef void (*Function)(void);

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status);

#define ENTRY(name, version, function) {name, version, (Function)function}
static const struct {
    const char* name;
    int version; /* the first with this function */
    Function function;
} symbols[] = {
    ENTRY("cuGetErrorName", 6000, cuGetErrorName),
    ENTRY("cuGetErrorString", 6000, cuGetErrorString),
    ENTRY("cuInit", 2000, cuInit),
    ENTRY("cuDriverGetVersion", 2020, cuDriverGetVersion),
    ENTRY("cuDeviceGetCount", 2000, cuDeviceGetCount),
    ENTRY("cuDeviceGet", 2000, cuDeviceGet),
    ENTRY("cuDeviceGetName", 2000, cuDeviceGetName),
    ENTRY("cuDeviceGetUuid", 9020, cuDeviceGetUuid_v2),
    ENTRY("cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2),
    ENTRY("cuDeviceGetAttribute", 2000, cuDeviceGetAttribute),
    ENTRY("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain),
    ENTRY("cuDevicePrimaryCtxRelease", 7000, cuDevicePrimaryCtxRelease_v2),
    ENTRY("cuDevicePrimaryCtxReset", 7000, cuDevicePrimaryCtxReset_v2),
    ENTRY("cuDevicePrimaryCtxGetState", 7000, cuDevicePrimaryCtxGetState),
    ENTRY("cuDevicePrimaryCtxSetFlags", 7000, cuDevicePrimaryCtxSetFlags_v2),
    ENTRY("cuCtxSetCurrent", 4000, cuCtxSetCurrent),
    ENTRY("cuCtxGetCurrent", 4000, cuCtxGetCurrent),
    ENTRY("cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2),
    ENTRY("cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2),
    ENTRY("cuCtxGetDevice", 2000, cuCtxGetDevice),
    ENTRY("cuCtxSynchronize", 2000, cuCtxSynchronize),
    ENTRY("cuMemGetInfo", 3020, cuMemGetInfo_v2),
    ENTRY("cuMemAlloc", 3020, cuMemAlloc_v2),
    ENTRY("cuMemFree", 3020, cuMemFree_v2),
    ENTRY("cuMemAllocAsync", 11020, cuMemAllocAsync),
    ENTRY("cuMemFreeAsync", 11020, cuMemFreeAsync),
    ENTRY("cuMemHostAlloc", 2020, cuMemHostAlloc),
    ENTRY("cuMemAllocHost", 3020, cuMemAllocHost_v2),
    ENTRY("cuMemFreeHost", 2000, cuMemFreeHost),
    ENTRY("cuMemcpyHtoD", 3020, cuMemcpyHtoD_v2),
    ENTRY("cuMemcpyDtoH", 3020, cuMemcpyDtoH_v2),
    ENTRY("cuMemcpyHtoDAsync", 3020, cuMemcpyHtoDAsync_v2),
    ENTRY("cuMemcpyDtoHAsync", 3020, cuMemcpyDtoHAsync_v2),
    ENTRY("cuMemsetD8", 3020, cuMemsetD8_v2),
    ENTRY("cuMemsetD32", 3020, cuMemsetD32_v2),
    ENTRY("cuMemsetD8Async", 3020, cuMemsetD8Async),
    ENTRY("cuMemsetD32Async", 3020, cuMemsetD32Async),
    ENTRY("cuStreamCreate", 2000, cuStreamCreate),
    ENTRY("cuStreamDestroy", 4000, cuStreamDestroy_v2),
    ENTRY("cuStreamSynchronize", 2000, cuStreamSynchronize),
    ENTRY("cuStreamQuery", 2000, cuStreamQuery),
    ENTRY("cuStreamWaitEvent", 3020, cuStreamWaitEvent),
    ENTRY("cuEventCreate", 2000, cuEventCreate),
    ENTRY("cuEventDestroy", 4000, cuEventDestroy_v2),
    ENTRY("cuEventRecord", 2000, cuEventRecord),
    ENTRY("cuEventSynchronize", 2000, cuEventSynchronize),
    ENTRY("cuEventQuery", 2000, cuEventQuery),
    ENTRY("cuEventElapsedTime", 2000, cuEventElapsedTime_v2),
    ENTRY("cuModuleLoadData", 2000, cuModuleLoadData),
    ENTRY("cuModuleLoadDataEx", 2010, cuModuleLoadDataEx),
    ENTRY("cuModuleUnload", 2000, cuModuleUnload),
    ENTRY("cuModuleGetFunction", 2000, cuModuleGetFunction),
    ENTRY("cuModuleGetGlobal", 3020, cuModuleGetGlobal_v2),
    ENTRY("cuFuncGetAttribute", 2020, cuFuncGetAttribute),
    ENTRY("cuFuncSetAttribute", 9000, cuFuncSetAttribute),
    ENTRY("cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor),
    ENTRY("cuModuleGetLoadingMode", 11070, cuModuleGetLoadingMode),
    ENTRY("cuLaunchKernel", 4000, cuLaunchKernel),
    ENTRY("cuGetProcAddress", 12000, cuGetProcAddress_v2),
};

/* NVRTC looks for the driver, and crashes where it has cuInit but not this. It goes on without a table. */
CUresult cuGetExportTable(const void** table, const void* id);
CUresult cuGetExportTable(const void** table, const void* id) {
    (void)id;
    *table = NULL;
    return INVALID_VALUE;
}

/* As the real one, gives no function to who asks for a version newer than the driver. */
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
    (void)flags;
    pthread_once(&once, start);
    *function = NULL;
    if (status) *status = 1;
    if (version > options.driver_version) return INVALID_VALUE;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (strcmp(symbols[i].name, symbol) || symbols[i].version > version) continue;
        memcpy(function, &symbols[i].function, sizeof *function);
        if (status) *status = 0;
        return SUCCESS;
    }
    return SUCCESS;
}

/* ---- what tests ask ---------------------------------------------------------------------------------------------- */

/* Options separated by commas, as in the environment's EVO_EMULATED_GPU; faults count calls from now on. 0, or 1 where one is wrong. */
int evo_emulated_configure(const char* text) {
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    return end(configure(text));
}

/* As if the process had just started, but with the options' defaults and not the environment's: no context, no error, no call. */
void evo_emulated_reset(void) {
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEVICES; i++) {
        if (contexts[i].retained) destroy_context(&contexts[i]);
        contexts[i] = (Context){0, 0, 0, 0};
    }
    memset(leaks, 0, sizeof leaks);
    memset(calls, 0, sizeof calls);
    options = defaults;
    is_initialized = false;
    depth = 0;
    pthread_mutex_unlock(&lock);
}

void evo_emulated_set_callbacks(const EvoEmulatedCallbacks* process) { callbacks = *process; }

/* Addresses and sizes of memory that the running kernel may use, in turn; the number of areas, also where there is no room for all. */
uint64_t evo_emulated_areas(uint64_t* addresses_and_sizes, uint64_t max_areas) {
    uint64_t count = 0;
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    for (Object* object = objects; object; object = object->next) {
        if (!object->is_alive || (object->kind != DEVICE_MEMORY && object->kind != HOST_MEMORY)) continue;
        if (object->kind == DEVICE_MEMORY && object->context != running) continue; /* another device's */
        if (count < max_areas) {
            addresses_and_sizes[2 * count] = (uint64_t)(uintptr_t)object->memory;
            addresses_and_sizes[2 * count + 1] = object->num_bytes;
        }
        count++;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

/* Streams, events, modules, device memory and host memory: alive now, and alive when a context last ended. */
void evo_emulated_alive(uint64_t* alive_out, uint64_t* leaked_out) {
    static const Kind kinds[] = {STREAM, EVENT, MODULE, DEVICE_MEMORY, HOST_MEMORY};
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 5; i++) {
        alive_out[i] = 0;
        leaked_out[i] = leaks[kinds[i]];
        for (Object* object = objects; object; object = object->next)
            alive_out[i] += object->is_alive && object->kind == kinds[i];
    }
    pthread_mutex_unlock(&lock);
}

/* How many calls of this name (those of faults) there were. */
long evo_emulated_calls(const char* name) {
    for (int i = 0; i < MAX_CALLS && calls[i].name[0]; i++)
        if (!strcmp(calls[i].name, name)) return calls[i].count;
    return 0;
}
