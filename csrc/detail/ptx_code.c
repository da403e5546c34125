/* The implementation of ptx_code.h. No flags of its own: it writes vector instructions and executes none. */
#define _GNU_SOURCE
#ifndef PTX_VM_X86_LEVELS
#define PTX_VM_X86_LEVELS
#endif
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../ptx_vm.h"
#define PTX_VM__RECORDS
#include "ptx_vm_functions.h"

/* ---- records of operations --------------------------------------------------------------------------------------- */

/* Operations with code. Those of halves and of single bits have none. */
/* clang-format off */
#define PTX_CODE__OPERATIONS(X) \
    X(ADD_U32, add_u32, 2) X(SUB_U32, sub_u32, 2) X(MUL_LO_U32, mul_lo_u32, 2) X(MAD_LO_U32, mad_lo_u32, 3) \
    X(COPYSIGN_F32, copysign_f32, 2) X(ADD_F32, add_f32, 2) X(SUB_F32, sub_f32, 2) X(MUL_F32, mul_f32, 2) \
    X(FMA_F32, fma_f32, 3) X(DIV_F32, div_f32, 2) X(ABS_F32, abs_f32, 1) X(NEG_F32, neg_f32, 1) X(MIN_F32, min_f32, 2) \
    X(MAX_F32, max_f32, 2) X(RCP_F32, rcp_f32, 1) X(SQRT_F32, sqrt_f32, 1) X(RSQRT_F32, rsqrt_f32, 1) X(SIN_F32, sin_f32, 1) \
    X(COS_F32, cos_f32, 1) X(LG2_F32, lg2_f32, 1) X(EX2_F32, ex2_f32, 1) X(TANH_F32, tanh_f32, 1) \
    X(SETP_LT_F32, setp_lt_f32, 2) X(SETP_EQ_U32, setp_eq_u32, 2) X(SETP_NE_U32, setp_ne_u32, 2) X(SELP_B32, selp_b32, 3) \
    X(F32_FROM_U32, f32_from_u32, 1) X(F32_FROM_S32, f32_from_s32, 1) X(XOR_B32, xor_b32, 2) X(AND_B32, and_b32, 2) \
    X(OR_B32, or_b32, 2) X(NOT_B32, not_b32, 1) X(MIN_U32, min_u32, 2) X(MAX_U32, max_u32, 2) X(MIN_S32, min_s32, 2) \
    X(MAX_S32, max_s32, 2) X(ABS_S32, abs_s32, 1) X(NEG_S32, neg_s32, 1) X(SHL_B32, shl_b32, 2) X(SHR_U32, shr_u32, 2) \
    X(SHR_S32, shr_s32, 2) X(SETP_LT_U32, setp_lt_u32, 2) X(SETP_LE_U32, setp_le_u32, 2) X(SETP_GT_U32, setp_gt_u32, 2) \
    X(SETP_GE_U32, setp_ge_u32, 2) X(SETP_LT_S32, setp_lt_s32, 2) X(SETP_LE_S32, setp_le_s32, 2) \
    X(SETP_GT_S32, setp_gt_s32, 2) X(SETP_GE_S32, setp_ge_s32, 2) X(MIN_RAW_F32, min_raw_f32, 2) \
    X(MAX_RAW_F32, max_raw_f32, 2) X(QUIET_F32, quiet_f32, 1) X(FIX_NAN_F32, fix_nan_f32, 1) X(TRUTH, truth, 1) \
    X(OUTPUT_F32, fix_nan_f32, 1) X(OUTPUT_TRUTH, output_truth, 1)
/* clang-format on */

static PtxVmV ptx_vm__output_truth(PtxVmV x) { return ptx_vm__and_b32(x, ptx_vm__set_bits(1)); }

/* Leaves out what nothing reads, which a compiler would leave out too, and marks what each instruction is the last to read. */
static void ptx_code__end_record(PtxCodeRecord* record) {
    bool is_read[PTX_CODE__FIRST_CONSTANT] = {false};
    uint8_t numbers[PTX_CODE__FIRST_CONSTANT] = {0, 1, 2};
    uint32_t num_left = 0;
    is_read[2 + record->num_instructions] = true;
    for (uint32_t i = record->num_instructions; i-- > 0;) {
        PtxCodeInstruction* instruction = &record->instructions[i];
        for (uint32_t k = instruction->num_sources; is_read[3 + i] && k-- > 0;) {
            const uint8_t source = instruction->sources[k];
            if (source >= PTX_CODE__FIRST_CONSTANT || is_read[source]) continue;
            is_read[source] = true;
            instruction->last |= (uint8_t)(1u << k);
        }
    }
    for (uint32_t i = 0; i < record->num_instructions; i++) {
        PtxCodeInstruction instruction = record->instructions[i];
        if (!is_read[3 + i]) continue;
        for (uint32_t k = 0; k < 3; k++)
            if (instruction.sources[k] < PTX_CODE__FIRST_CONSTANT) instruction.sources[k] = numbers[instruction.sources[k]];
        numbers[3 + i] = (uint8_t)(3 + num_left);
        record->instructions[num_left++] = instruction;
    }
    record->num_instructions = num_left;
}

#define PTX_CODE__APPLY1(function) function(operands[0])
#define PTX_CODE__APPLY2(function) function(operands[0], operands[1])
#define PTX_CODE__APPLY3(function) function(operands[0], operands[1], operands[2])
#define PTX_CODE__RECORD(enumerator, name, arity)               \
    ptx_code__recorder.record = &records[PTX_VM__##enumerator]; \
    (void)PTX_CODE__APPLY##arity(ptx_vm__##name);               \
    ptx_code__end_record(ptx_code__recorder.record);

static void ptx_code__record_all(bool is_512, PtxCodeRecord* records) {
    static const PtxVmV operands[3] = {{0}, {1}, {2}};
    ptx_code__recorder.is_512 = is_512;
    PTX_CODE__OPERATIONS(PTX_CODE__RECORD)
}

/* ---- encodings --------------------------------------------------------------------------------------------------- */

enum {
    PTX_CODE__UNARY,
    PTX_CODE__UNARY_IMM,
    PTX_CODE__BINARY,
    PTX_CODE__COMMUTATIVE,
    PTX_CODE__BINARY_IMM,
    PTX_CODE__FMA,
    PTX_CODE__SELECT,
    PTX_CODE__TO_ZERO, /* from here on, the last operand is a register */
    PTX_CODE__SHIFT,
    PTX_CODE__FROM_MASK,
    PTX_CODE__TO_MASK, /* from here on, AVX-512 gives a mask */
    PTX_CODE__COMPARE
};

#define PTX_CODE__ROW_SHAPE(name, shape, map, prefix, opcode, extension) PTX_CODE__##shape,
static const uint8_t ptx_code__shapes[] = {PTX_CODE__ROWS(PTX_CODE__ROW_SHAPE)};

static const uint8_t ptx_code__num_immediates[] = {
    [PTX_CODE__UNARY_IMM] = 1, [PTX_CODE__BINARY_IMM] = 1, [PTX_CODE__SHIFT] = 1, [PTX_CODE__COMPARE] = 1
};

typedef struct PtxCodeRow {
    uint8_t map, prefix, opcode, extension;
} PtxCodeRow;
#define PTX_CODE__ROW(name, shape, map, prefix, opcode, extension) {map, prefix, opcode, extension},
static const PtxCodeRow ptx_code__rows[] = {PTX_CODE__ROWS(PTX_CODE__ROW)};

/* Where an instruction's last operand is, as what it changes in the instruction's word and what follows that. */
typedef struct PtxCodePlace {
    uint64_t bits;
    uint32_t tail;
    uint16_t address; /* 0, or 1 + the index of the table of memory where it has to be read from before each use */
    uint8_t tail_bytes;
    uint8_t r; /* the register, or NO_REGISTER */
    uint8_t load; /* instruction that loads it: LOAD or BROADCAST */
    bool is_operand; /* of other instructions too */
} PtxCodePlace;

#define PTX_CODE__NO_REGISTER 255u

/* An instruction is the word of its row, exclusive or what its registers and its memory operand change in it. */
typedef struct PtxCodeLevel {
    bool is_512;
    uint32_t vector_bytes, num_bytes; /* of an instruction of registers */
    uint32_t num_registers, num_kept; /* for values; above them, for constants through the loop */
    uint64_t words[PTX_CODE__NUM_ROWS];
    uint64_t result[32], first[32], second[32]; /* by register: in ModRM's reg, in vvvv, in ModRM's rm */
    uint64_t constant, function_constant, spilled, array; /* memory operands by their base */
    uint64_t far, broadcast; /* a displacement of 32 bits; a lane for all */
    PtxCodePlace registers[32], function_constants[PTX_CODE__MAX_CONSTANTS];
    PtxCodeRecord records[PTX_VM__NUM_OPERATIONS];
} PtxCodeLevel;

/* Behind a base: vectors, which AVX-512 counts in displacements, or its lanes, which stand for a vector of equal ones. */
static PtxCodePlace ptx_code__behind(const PtxCodeLevel* level, uint64_t base, uint32_t index, bool is_lane) {
    const uint32_t step = is_lane ? 4 : level->vector_bytes, near = level->is_512 ? index : step * index;
    const bool is_near = near < 128;
    base ^= (is_lane ? level->broadcast : 0) ^ (is_near ? 0 : level->far);
    const PtxCodePlace place = {base,
                                is_near ? near : step * index,
                                0,
                                is_near ? 1 : 4,
                                PTX_CODE__NO_REGISTER,
                                is_lane ? PTX_CODE__BROADCAST : PTX_CODE__LOAD,
                                true};
    return place;
}

static void ptx_code__fill_level(PtxCodeLevel* level, bool is_512) {
    const uint32_t modrm = is_512 ? 40 : 32;
    level->is_512 = is_512;
    level->vector_bytes = is_512 ? 64 : 32;
    level->num_bytes = is_512 ? 6 : 5;
    level->num_registers = is_512 ? 11 : 10;
    level->num_kept = is_512 ? 21 : 6;
    for (uint32_t i = 0; i < PTX_CODE__NUM_ROWS; i++) {
        const PtxCodeRow row = ptx_code__rows[i];
        const uint64_t tail = (uint64_t)row.opcode | (uint64_t)(0xc0u | (uint32_t)row.extension << 3) << 8;
        level->words[i] = is_512
            ? 0x62u | (uint64_t)(0xf0u | row.map) << 8 | (uint64_t)(0x7cu | row.prefix) << 16 | (uint64_t)0x48u << 24 | tail << 32
            : 0xc4u | (uint64_t)(0xe0u | row.map) << 8 | (uint64_t)(0x7cu | row.prefix) << 16 | tail << 24;
        if (i == PTX_CODE__MUL_TO_ZERO_512) level->words[i] |= (uint64_t)0x70u << 24;
    }
    for (uint64_t r = 0; r < 32; r++) {
        const uint64_t high = r >> 3 & 1, top = r >> 4;
        level->result[r] = high << 15 ^ top << 12 ^ (r & 7) << (modrm + 3);
        level->first[r] = (r & 15) << 19 ^ top << 27;
        level->second[r] = high << 13 ^ top << 14 ^ (r & 7) << modrm;
    }
    const uint64_t near = (uint64_t)0x80u << modrm; /* a displacement of 8 bits */
    level->far = (uint64_t)0xc0u << modrm; /* in place of that */
    level->broadcast = is_512 ? (uint64_t)0x10u << 24 : 0;
    level->spilled = near | (uint64_t)1 << modrm;                                    /* rcx */
    level->constant = is_512 ? near | (uint64_t)2 << modrm : level->spilled;         /* rdx */
    level->function_constant = near | (uint64_t)1 << 13;                             /* r8 */
    level->array = near | (uint64_t)4 << modrm;
    for (uint32_t r = 0; r < 32; r++) {
        const PtxCodePlace place = {level->second[r], 0, 0, 0, (uint8_t)r, PTX_CODE__LOAD, true};
        level->registers[r] = place;
    }
    ptx_code__record_all(is_512, level->records);
    for (uint32_t i = 0; i < PTX_CODE__MAX_CONSTANTS; i++)
        level->function_constants[i] = ptx_code__behind(level, level->function_constant, i, is_512);
}

/* ---- executable memory ------------------------------------------------------------------------------------------- */

#define PTX_CODE__NUM_BUFFERS 64u
#define PTX_CODE__BUFFER_BYTES ((size_t)128 << 10)
#define PTX_CODE__PROGRAM_BYTES ((size_t)64 << 10) /* of one program at most */

#define PTX_CODE__RING_BYTES ((size_t)60 << 10)    /* where the next program begins anew */

typedef struct PtxCodeBuffer {
    uint64_t id, uniform; /* of the program that it has */
    size_t begin, end;    /* of its code */
    int is_taken;
    char padding[24]; /* a cache line for each */
} PtxCodeBuffer;

static struct {
    pthread_once_t once;
    bool is_there;
    char *writable, *executable;
    PtxCodeLevel levels[2];
    uint32_t vectors[PTX_CODE__MAX_CONSTANTS][8]; /* constants of functions for AVX2 */
    PtxCodeBuffer buffers[PTX_CODE__NUM_BUFFERS];
} ptx_code__pool = {.once = PTHREAD_ONCE_INIT};

/* Maps the buffers, at addresses that are there already or anywhere. */
static bool ptx_code__map(void) {
    const size_t num_bytes = PTX_CODE__NUM_BUFFERS * PTX_CODE__BUFFER_BYTES;
    const int is_fixed = ptx_code__pool.writable != NULL ? MAP_FIXED : 0;
    const int file = memfd_create("evo-code", MFD_CLOEXEC);
    if (file < 0) return false;
    char* writable = (char*)MAP_FAILED;
    char* executable = (char*)MAP_FAILED;
    if (ftruncate(file, (off_t)num_bytes) == 0) {
        writable = (char*)mmap(ptx_code__pool.writable, num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | is_fixed, file, 0);
        executable = (char*)mmap(ptx_code__pool.executable, num_bytes, PROT_READ | PROT_EXEC, MAP_SHARED | is_fixed, file, 0);
    }
    (void)close(file);
    const bool is_there = writable != (char*)MAP_FAILED && executable != (char*)MAP_FAILED;
    if (!is_there && !is_fixed) {
        if (writable != (char*)MAP_FAILED) (void)munmap(writable, num_bytes);
        if (executable != (char*)MAP_FAILED) (void)munmap(executable, num_bytes);
        return false;
    }
    if (!is_there) return false;
    ptx_code__pool.writable = writable;
    ptx_code__pool.executable = executable;
    memset(ptx_code__pool.buffers, 0, sizeof ptx_code__pool.buffers);
    return true;
}

/* In the child of a fork: what it shares with its parent must not be written to. */
static void ptx_code__after_fork(void) {
    if (ptx_code__pool.is_there) ptx_code__pool.is_there = ptx_code__map();
}

static void ptx_code__open(void) {
    const char* switched_off = getenv("EVO_NO_CODE");
    if (switched_off != NULL && strcmp(switched_off, "") != 0 && strcmp(switched_off, "0") != 0) return;
    ptx_code__fill_level(&ptx_code__pool.levels[0], false);
    ptx_code__fill_level(&ptx_code__pool.levels[1], true);
    for (uint32_t i = 0; i < PTX_CODE__MAX_CONSTANTS; i++)
        for (uint32_t lane = 0; lane < 8; lane++) ptx_code__pool.vectors[i][lane] = ptx_code__recorder.constants[i];
    ptx_code__pool.is_there = ptx_code__map() && pthread_atfork(NULL, NULL, ptx_code__after_fork) == 0;
}

bool ptx_code__is_available(bool is_512) {
    (void)pthread_once(&ptx_code__pool.once, ptx_code__open);
    return ptx_code__pool.is_there && ptx_vm_level_is_available(is_512 ? PTX_VM_LEVEL_AVX512 : PTX_VM_LEVEL_AVX2);
}

/* ---- emission ---------------------------------------------------------------------------------------------------- */

#define PTX_CODE__MAX_VALUES 1024u
#define PTX_CODE__INSTRUCTION_BYTES 96u /* with loads of its operands and stores of values that they displace */
#define PTX_CODE__NO_BASE 255u
#define PTX_CODE__NOWHERE UINT16_MAX

typedef struct PtxCodeEmitter {
    const PtxCodeLevel* level;
    const PtxCodeSource* source;
    char* at;
    uint32_t free, locked; /* registers by bits: without a value; which must keep theirs */
    uint32_t num_spilled;
    uint32_t next_mask;
    uint16_t owners[32];
    uint8_t bases[PTX_CODE__MAX_INPUTS + 8]; /* register with the address of an input or output, or NO_BASE */
    uint16_t uses[PTX_CODE__MAX_VALUES];
    const PtxCodePlace*
        places[PTX_CODE__MAX_VALUES + PTX_CODE__MAX_INSTRUCTIONS]; /* of values and of the operation's instructions */
    PtxCodePlace memory[PTX_CODE__MAX_VALUES]; /* places of values in memory */
} PtxCodeEmitter;

static void ptx_code__bytes(PtxCodeEmitter* emitter, uint64_t bytes, uint32_t num_bytes) {
    memcpy(emitter->at, &bytes, sizeof bytes);
    emitter->at += num_bytes;
}

/* mov register, [rdi + 8 * index] */
static void ptx_code__load_address(PtxCodeEmitter* emitter, uint32_t r, uint32_t index) {
    ptx_code__bytes(emitter, 0x48u | (r >> 3) << 2 | 0x8bu << 8 | (0x87u | (r & 7) << 3) << 16 | (uint64_t)(8 * index) << 24, 7);
}

/* The instruction with this last operand. */
static inline void ptx_code__put(
    PtxCodeEmitter* emitter, uint64_t word, const PtxCodePlace* place, uint32_t immediate, uint32_t num_immediates
) {
    char* at = emitter->at;
    word ^= place->bits;
    memcpy(at, &word, sizeof word);
    at += emitter->level->num_bytes;
    memcpy(at, &place->tail, sizeof place->tail);
    at += place->tail_bytes;
    *at = (char)immediate;
    emitter->at = at + num_immediates;
}

/* An input or output. Without a register for its address that is loaded before each use. */
static PtxCodePlace ptx_code__array_place(const PtxCodeEmitter* emitter, uint32_t index, bool is_uniform) {
    const PtxCodeLevel* level = emitter->level;
    const bool has_base = index < sizeof emitter->bases && emitter->bases[index] != PTX_CODE__NO_BASE && !is_uniform;
    const uint32_t base = has_base ? emitter->bases[index] : 11;
    PtxCodePlace place = {
        level->array ^ (uint64_t)(base >> 3) << 13, base & 7, 0, 2, PTX_CODE__NO_REGISTER, PTX_CODE__LOAD, has_base
    };
    if (!has_base) place.address = (uint16_t)(index + 1);
    if (is_uniform) { /* no index, and a lane for all */
        place.bits ^= level->broadcast;
        place.tail |= 0x20;
        place.load = PTX_CODE__BROADCAST;
    }
    return place;
}

/* Between a register and a place: a load of the place's own kind, or a store. */
static void ptx_code__move(PtxCodeEmitter* emitter, uint8_t row, uint32_t r, const PtxCodePlace* place) {
    const PtxCodeLevel* level = emitter->level;
    if (place->address != 0) ptx_code__load_address(emitter, 11, place->address - 1u);
    ptx_code__put(
        emitter, level->words[row] ^ level->result[r] ^ (row == PTX_CODE__BROADCAST ? level->broadcast : 0), place, 0, 0
    );
}

/* A free register. If there is none, the oldest value goes to memory: programs of a stack need it last. */
static uint32_t ptx_code__allocate(PtxCodeEmitter* emitter) {
    if (__builtin_expect(emitter->free == 0, 0)) {
        uint32_t oldest = 0, value = UINT32_MAX;
        for (uint32_t r = 0; r < emitter->level->num_registers; r++) {
            if (emitter->locked >> r & 1 || emitter->owners[r] >= value || emitter->owners[r] >= emitter->source->num_values)
                continue;
            oldest = r;
            value = emitter->owners[r];
        }
        emitter->memory[value] = ptx_code__behind(emitter->level, emitter->level->spilled, emitter->num_spilled++, false);
        emitter->places[value] = &emitter->memory[value];
        ptx_code__move(emitter, PTX_CODE__STORE, oldest, emitter->places[value]);
        return oldest;
    }
    const uint32_t r = (uint32_t)__builtin_ctz(emitter->free);
    emitter->free &= emitter->free - 1;
    return r;
}

/* Loads a source that lies in memory to a register, which `dying` gets. */
static const PtxCodePlace* ptx_code__in_register(PtxCodeEmitter* emitter, const PtxCodePlace* place, uint32_t* dying) {
    if (__builtin_expect(place->r != PTX_CODE__NO_REGISTER, 1)) return place;
    const uint32_t r = ptx_code__allocate(emitter);
    ptx_code__move(emitter, place->load, r, place);
    emitter->owners[r] = PTX_CODE__NOWHERE;
    emitter->locked |= 1u << r;
    *dying |= 1u << r;
    return &emitter->level->registers[r];
}

/* a b + c, in the register of one of them, which it gives. */
static uint32_t ptx_code__multiply_add(PtxCodeEmitter* emitter, uint8_t row, const PtxCodePlace** places, uint32_t* dying) {
    const PtxCodeLevel* level = emitter->level;
    uint32_t target = 3;
    for (uint32_t k = 0; k < 3; k++)
        target = places[k]->r != PTX_CODE__NO_REGISTER && *dying >> (places[k]->r & 31) & 1 ? k : target;
    if (target == 3) {
        target = 2;
        for (uint32_t k = 0; k < 3; k++) target = places[k]->r == PTX_CODE__NO_REGISTER ? k : target;
        const uint32_t r = ptx_code__allocate(emitter);
        ptx_code__move(emitter, places[target]->load, r, places[target]);
        emitter->locked |= 1u << r;
        places[target] = &emitter->level->registers[r];
    }
    const uint32_t r = places[target]->r;
    *dying &= ~(1u << r);
    /* Forms: 231: target = first * second + target; 213: target = first * target + second; 132: target = target * second + first. */
    const PtxCodePlace *first = places[target == 0], *second = places[target == 2 ? 1 : 2];
    uint64_t form = target == 2 ? (uint64_t)0x20u : (uint64_t)0x10u;
    if (first->r == PTX_CODE__NO_REGISTER) {
        const PtxCodePlace* other = first;
        first = second;
        second = other;
        if (target != 2) form = 0;
        first = ptx_code__in_register(emitter, first, dying);
    }
    if (!second->is_operand) second = ptx_code__in_register(emitter, second, dying);
    const uint64_t word = level->words[row] + (form << (8 * level->num_bytes - 16));
    ptx_code__put(emitter, word ^ level->result[r] ^ level->first[first->r], second, 0, 0);
    return r;
}

/* One instruction of an operation's record, which gives the value `result`. */
static void ptx_code__emit(
    PtxCodeEmitter* emitter, const PtxCodeInstruction* instruction, const uint32_t* operands, uint32_t result
) {
    const PtxCodeLevel* level = emitter->level;
    const uint32_t num_values = emitter->source->num_values, num_sources = instruction->num_sources;
    const uint8_t shape = ptx_code__shapes[instruction->row];
    const bool reads_mask = level->is_512 && (shape == PTX_CODE__SELECT || shape == PTX_CODE__FROM_MASK); /* as the last source */
    const PtxCodePlace* places[3];
    uint32_t dying = 0, r;
    emitter->locked = 0;
    for (uint32_t k = 0; k < num_sources; k++) {
        const uint32_t number = instruction->sources[k];
        if (number >= PTX_CODE__FIRST_CONSTANT) {
            places[k] = &level->function_constants[number - PTX_CODE__FIRST_CONSTANT];
            continue;
        }
        const uint32_t value = number < 3 ? operands[number] : num_values + number - 3, is_last = instruction->last >> k & 1;
        const PtxCodePlace* place = places[k] = emitter->places[value];
        if (reads_mask && k + 1 == num_sources) continue;
        const uint32_t is_value = place->r < level->num_registers;
        uint32_t is_dead = is_last;
        if (number < 3) is_dead &= (uint32_t)((emitter->uses[value] = (uint16_t)(emitter->uses[value] - is_last)) == 0);
        emitter->locked |= is_value << (place->r & 31);
        dying |= (is_dead & is_value) << (place->r & 31);
    }
    uint64_t word = level->words[instruction->row];
    if (shape == PTX_CODE__FMA) {
        r = ptx_code__multiply_add(emitter, instruction->row, places, &dying);
        emitter->free |= dying;
    } else {
        const bool is_binary = num_sources > 1;
        const PtxCodePlace *first = places[0], *last = places[is_binary];
        uint32_t immediate = instruction->immediate, num_immediates = ptx_code__num_immediates[shape];
        if (is_binary) {
            if (first->r == PTX_CODE__NO_REGISTER) {
                if (shape == PTX_CODE__COMMUTATIVE) {
                    first = last;
                    last = places[0];
                }
                first = ptx_code__in_register(emitter, first, &dying);
            }
            word ^= level->first[first->r];
        }
        if (!last->is_operand || shape >= PTX_CODE__TO_ZERO) last = ptx_code__in_register(emitter, last, &dying);
        if (shape == PTX_CODE__SELECT) { /* AVX2 has the mask's register in the upper half of an immediate */
            immediate = (uint32_t)ptx_code__in_register(emitter, places[2], &dying)->r << 4;
            word ^= level->is_512 ? (uint64_t)places[2]->r << 24 : 0;
            num_immediates = !level->is_512;
        }
        emitter->free |= dying;
        const bool is_mask = level->is_512 && shape >= PTX_CODE__TO_MASK;
        r = is_mask ? (emitter->next_mask = emitter->next_mask % 7 + 1) : ptx_code__allocate(emitter);
        word ^= shape == PTX_CODE__SHIFT ? level->first[r] : level->result[r];
        ptx_code__put(emitter, word, last, immediate, num_immediates);
        emitter->places[result] = &level->registers[r];
        if (is_mask) return;
    }
    emitter->owners[r] = (uint16_t)result;
    emitter->places[result] = &level->registers[r];
}

/* The operation's instructions; the last one gives the value `result`. */
static void ptx_code__emit_operation(PtxCodeEmitter* emitter, uint8_t operation, const uint32_t* operands, uint32_t result) {
    const PtxCodeRecord* record = &emitter->level->records[operation];
    const uint32_t num_values = emitter->source->num_values, last = record->num_instructions - 1;
    for (uint32_t i = 0; i < last; i++) ptx_code__emit(emitter, &record->instructions[i], operands, num_values + i);
    ptx_code__emit(emitter, &record->instructions[last], operands, result);
}

/* The value's requests. */
static void ptx_code__emit_requests(PtxCodeEmitter* emitter, uint32_t value) {
    const PtxCodeSource* source = emitter->source;
    for (uint32_t i = source->values[value].first_request; i != UINT32_MAX; i = source->next_request[i]) {
        const uint8_t operation = source->outputs[i];
        const bool is_plain = operation == PTX_VM__OUTPUT_BITS || operation == PTX_VM__SUM_F32;
        const uint32_t result = source->num_values + PTX_CODE__MAX_INSTRUCTIONS - 1;
        uint32_t dying = 0;
        if (is_plain)
            emitter->uses[value]--;
        else
            ptx_code__emit_operation(emitter, operation, &value, result);
        emitter->locked = 0;
        const PtxCodePlace* place = ptx_code__in_register(emitter, emitter->places[is_plain ? value : result], &dying);
        const PtxCodePlace output = ptx_code__array_place(emitter, source->num_inputs + i, false);
        ptx_code__move(emitter, PTX_CODE__STORE, place->r, &output);
        if ((!is_plain || emitter->uses[value] == 0) && place->r < emitter->level->num_registers) dying |= 1u << place->r;
        emitter->free |= dying;
    }
}

/* Registers that hold addresses, in the order in which they are given away; from the third on the caller's, to be saved. */
static const uint8_t ptx_code__addresses[] = {9, 10, 3, 5, 12, 13, 14, 15};

/* Writes the code at `to`. Gives its end. */
static char* ptx_code__emit_program(const PtxCodeLevel* level, const PtxCodeSource* source, uint64_t uniform, char* to) {
    PtxCodeEmitter emitter;
    emitter.level = level;
    emitter.source = source;
    emitter.at = to;
    emitter.free = (1u << level->num_registers) - 1;
    emitter.locked = emitter.next_mask = 0;
    emitter.num_spilled = level->is_512 ? 0 : source->num_constants; /* which come before them */
    /* Addresses of arrays, as far as there are registers for them. */
    const uint32_t num_arrays = source->num_inputs + source->num_requests;
    uint32_t num_addresses = 0;
    for (uint32_t i = 0; i < sizeof emitter.bases && i < num_arrays; i++) {
        emitter.bases[i] = PTX_CODE__NO_BASE;
        if (i < source->num_inputs && uniform >> i & 1) continue;
        if (num_addresses == sizeof ptx_code__addresses) continue;
        const uint8_t r = emitter.bases[i] = ptx_code__addresses[num_addresses++];
        if (num_addresses > 2) ptx_code__bytes(&emitter, r < 8 ? 0x50u + r : 0x41u | (0x50u + (r & 7u)) << 8, r < 8 ? 1 : 2);
        ptx_code__load_address(&emitter, r, i);
    }
    /* Constants stay in registers, as far as there are some. */
    uint32_t num_kept = 0;
    for (uint32_t i = 0; i < source->num_values; i++) {
        const PtxVmValue* value = &source->values[i];
        uint32_t num_uses = value->num_uses;
        for (uint32_t k = value->first_request; k != UINT32_MAX; k = source->next_request[k]) num_uses++;
        emitter.uses[i] = (uint16_t)num_uses;
        if (value->operation < PTX_VM__NUM_OPERATIONS || num_uses == 0) continue;
        const bool is_input = value->operation == PTX_VM__INPUT, is_uniform = is_input && (uniform >> value->memory & 1);
        emitter.memory[i] = is_input ? ptx_code__array_place(&emitter, value->memory, is_uniform)
                                     : ptx_code__behind(level, level->constant, value->memory, level->is_512);
        emitter.places[i] = &emitter.memory[i];
        if ((is_input && !is_uniform) || num_kept == level->num_kept) continue;
        const uint32_t r = level->num_registers + num_kept++;
        ptx_code__move(&emitter, emitter.memory[i].load, r, &emitter.memory[i]);
        emitter.places[i] = &level->registers[r];
    }
    ptx_code__bytes(&emitter, 0xc031u, 2); /* xor eax, eax */
    const char* loop = emitter.at;
    for (uint32_t i = 0; i < source->num_values; i++) {
        const PtxVmValue* value = &source->values[i];
        if (value->operation < PTX_VM__NUM_OPERATIONS) ptx_code__emit_operation(&emitter, value->operation, value->operands, i);
        if (value->first_request != UINT32_MAX) ptx_code__emit_requests(&emitter, i);
    }
    ptx_code__bytes(&emitter, 0xc08348u | (uint64_t)level->vector_bytes << 24, 4); /* add rax, vector_bytes */
    ptx_code__bytes(&emitter, 0xf03948u, 3); /* cmp rax, rsi */
    ptx_code__bytes(&emitter, 0x820fu | (uint64_t)(uint32_t)(loop - emitter.at - 6) << 16, 6); /* jb loop */
    for (uint32_t i = num_addresses; i-- > 2;) {
        const uint32_t r = ptx_code__addresses[i];
        ptx_code__bytes(&emitter, r < 8 ? 0x58u + r : 0x41u | (0x58u + (r & 7u)) << 8, r < 8 ? 1 : 2);
    }
    ptx_code__bytes(&emitter, 0xc377f8c5u, 4); /* vzeroupper, ret */
    return emitter.at;
}

bool ptx_code__prepare(PtxCodeSource* source) {
    static __thread uint64_t next_id;
    static uint64_t num_threads;
    const PtxCodeLevel* level = &ptx_code__pool.levels[source->is_512];
    if (source->num_values > PTX_CODE__MAX_VALUES || source->num_inputs > PTX_CODE__MAX_INPUTS ||
        source->num_requests > PTX_CODE__MAX_VALUES)
        return false;
    size_t num_instructions = 8 + source->num_inputs + 3 * (size_t)source->num_requests;
    for (uint32_t i = 0; i < source->num_values; i++) {
        const uint8_t operation = source->values[i].operation;
        const uint32_t count = operation < PTX_VM__NUM_OPERATIONS ? level->records[operation].num_instructions : 1;
        if (count == 0) return false;
        num_instructions += count;
    }
    if (num_instructions * PTX_CODE__INSTRUCTION_BYTES > PTX_CODE__PROGRAM_BYTES) return false;
    if ((next_id & UINT32_MAX) == 0) next_id = (__atomic_add_fetch(&num_threads, 1, __ATOMIC_RELAXED) << 32) + 1;
    source->id = next_id++;
    return true;
}

PtxCodeRun ptx_code__take(const PtxCodeSource* source, uint64_t uniform) {
    static __thread uint32_t latest;
    PtxCodeRun run = {NULL, NULL, latest, false};
    if (!ptx_code__pool.is_there) return run;
    while (__atomic_exchange_n(&ptx_code__pool.buffers[run.buffer].is_taken, 1, __ATOMIC_ACQUIRE)) {
        run.buffer = (run.buffer + 1) % PTX_CODE__NUM_BUFFERS;
        if (run.buffer == latest) (void)sched_yield();
    }
    latest = run.buffer;
    PtxCodeBuffer* buffer = &ptx_code__pool.buffers[run.buffer];
    const size_t first = run.buffer * PTX_CODE__BUFFER_BYTES;
    if (buffer->id != source->id || buffer->uniform != uniform) {
        /* Behind the code before, which the CPU may still have: to write over that would make it wait. */
        buffer->begin = buffer->end > 0 && buffer->end < PTX_CODE__RING_BYTES ? buffer->end : 64;
        char* to = ptx_code__pool.writable + first + buffer->begin;
        const char* end = ptx_code__emit_program(&ptx_code__pool.levels[source->is_512], source, uniform, to);
        buffer->end = (buffer->begin + (size_t)(end - to) + 63) & ~(size_t)63;
        buffer->id = source->id;
        buffer->uniform = uniform;
    }
    const char* code = ptx_code__pool.executable + first + buffer->begin;
    memcpy(&run.code, &code, sizeof code); /* ISO C has no cast from data to functions */
    run.function_constants = source->is_512 ? ptx_code__recorder.constants : ptx_code__pool.vectors[0];
    run.is_taken = true;
    return run;
}

void ptx_code__give_back(const PtxCodeRun* run) {
    if (run->is_taken) __atomic_store_n(&ptx_code__pool.buffers[run->buffer].is_taken, 0, __ATOMIC_RELEASE);
}
