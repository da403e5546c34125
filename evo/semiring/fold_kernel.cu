// A fold (evo/semiring/folds.py) over all pairs of rows, whose programs are injected into the sites `step` and `finish`.
//
// evo/semiring/fold_kernel.py compiles this to PTX, which is shipped, and describes calls to the host. A block of 256 threads has
// a square tile of pairs, a thread EVO_ELEMENTS x EVO_ELEMENTS of them. The site `kinds` says which operands there are, so that
// the assembler leaves out all that is done for others.

#include "ptx_inject.h"

enum : int { // constants, which would be variables of the module otherwise
    ELEMENTS = EVO_ELEMENTS,
    SIDE = 16,
    THREADS = SIDE * SIDE,
    TILE = SIDE * ELEMENTS,
    DEPTH = 8, // values of k that lie in shared memory at once: a sector of 32 bytes
    PITCH = TILE + 4, // of them, so that threads that write along k meet in few banks
    BUFFER = DEPTH * PITCH, // floats of shared memory
    OPERAND = 2 * BUFFER, // one is read while the other is written
    VECTOR = ELEMENTS < 4 ? ELEMENTS : 4, // elements that a thread reads at once; its next ones are SIDE vectors away
    COUNT = TILE * DEPTH / THREADS, // values of a tile that a thread copies
    MATRICES = 3, // operands of rows, and of columns, at most
    PAIRS = ELEMENTS == 8 ? 1 : 5,
    NUMBERS = 8,
    STATES = 2,
};

enum Kind : unsigned { ABSENT, F32, F16, BF16 };

struct Matrix {
    const char* values;
    long long strides[4]; // in bytes: of both axes of the batch, of the axis that pairs share, of the other one
};

struct Call {
    Matrix rows[MATRICES], columns[MATRICES]; // of any kind
    Matrix pairs[5], numbers[NUMBERS]; // of float32
    float* results[STATES]; // (matrix, row, column)
    float given[NUMBERS]; // numbers without values
    float initial[STATES];
    int num_rows, num_columns, depth, inner_batch, first_matrix;
};

// The operands of rows and of columns, four bits each; which pairs and numbers have values, and how many results there are.
struct Kinds {
    unsigned rows, columns, pairs, numbers, results;
};

__device__ unsigned kind_of(unsigned kinds, int operand) { return kinds >> 4 * operand & 15u; }

__device__ int count(unsigned kinds) { return (kinds > 0) + (kinds > 15) + (kinds > 255); }

__device__ float load(const char* from, unsigned kind) {
    if (kind == F32) return *reinterpret_cast<const float*>(from);
    const unsigned short bits = *reinterpret_cast<const unsigned short*>(from);
    if (kind == BF16) return __uint_as_float(static_cast<unsigned>(bits) << 16);
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// Where a matrix begins, by this block's place in the batch.
__device__ const char* begin(const Matrix& matrix, const Call& call) {
    const int place = call.first_matrix + static_cast<int>(blockIdx.y);
    return matrix.values + place / call.inner_batch * matrix.strides[0] + place % call.inner_batch * matrix.strides[1];
}

// Which of a side's elements a thread has.
__device__ constexpr int place_of(int element) { return element / VECTOR * (SIDE * VECTOR) + element % VECTOR; }

// A thread's share of an operand's tile, on its way to shared memory. Threads go along the axis whose values are neighbours. What
// lies outside is zero: pairs there are not stored, and no step is done beyond the last k.
struct Share {
    const char* from;
    long long skip, advance; // bytes to the next value, to the next tile
    int outer, outers, inner; // of the first value; where the outer axis ends
    int next_outer, next_inner; // to the next value
    float values[COUNT];

    __device__ void open(const Matrix& matrix, const Call& call, int first, int end, unsigned kind) {
        const bool is_along_k = matrix.strides[3] == (kind == F32 ? 4 : 2);
        const int thread = threadIdx.x;
        inner = is_along_k ? thread % DEPTH : thread / TILE;
        outer = first + (is_along_k ? thread / DEPTH : thread % TILE);
        outers = end;
        next_outer = is_along_k ? THREADS / DEPTH : 0;
        next_inner = is_along_k ? 0 : THREADS / TILE;
        from = begin(matrix, call) + outer * matrix.strides[2] + inner * matrix.strides[3];
        skip = next_outer * matrix.strides[2] + next_inner * matrix.strides[3];
        advance = DEPTH * matrix.strides[3];
    }

    __device__ void read(unsigned kind, int num_inner) {
        const char* at = from;
        #pragma unroll
        for (int i = 0; i < COUNT; i++, at += skip) {
            values[i] = 0.0f;
            if (outer + i * next_outer < outers && inner + i * next_inner < num_inner) values[i] = load(at, kind);
        }
        from += advance;
    }

    __device__ void write(float* to, int first) const {
        #pragma unroll
        for (int i = 0; i < COUNT; i++) to[(inner + i * next_inner) * PITCH + outer - first + i * next_outer] = values[i];
    }
};

__device__ void read_vectors(float (&to)[ELEMENTS], const float* from) {
    #pragma unroll
    for (int i = 0; i < ELEMENTS; i += VECTOR) {
        if constexpr (VECTOR == 4) {
            const float4 found = *reinterpret_cast<const float4*>(from + place_of(i));
            to[i] = found.x, to[i + 1] = found.y, to[i + 2] = found.z, to[i + 3] = found.w;
        } else {
            const float2 found = *reinterpret_cast<const float2*>(from + place_of(i));
            to[i] = found.x, to[i + 1] = found.y;
        }
    }
}

#define EVO_UNROLL _Pragma("unroll")
#define EVO_ELEMENTS_OF_THREAD EVO_UNROLL for (int i = 0; i < ELEMENTS; i++) EVO_UNROLL for (int j = 0; j < ELEMENTS; j++)
#if EVO_ELEMENTS == 8
#define EVO_PAIRS(i, j) PTX_IN(F32, p0, pairs[0][i][j])
#else
#define EVO_PAIRS(i, j)                                                                                \
    PTX_IN(F32, p0, pairs[0][i][j]), PTX_IN(F32, p1, pairs[1][i][j]), PTX_IN(F32, p2, pairs[2][i][j]), \
        PTX_IN(F32, p3, pairs[3][i][j]), PTX_IN(F32, p4, pairs[4][i][j])
#endif
#define EVO_COMMON(i, j)                                                                                                    \
    EVO_PAIRS(i, j), PTX_IN(F32, h0, numbers[0]), PTX_IN(F32, h1, numbers[1]), PTX_IN(F32, h2, numbers[2]),                 \
        PTX_IN(F32, h3, numbers[3]), PTX_IN(F32, h4, numbers[4]), PTX_IN(F32, h5, numbers[5]), PTX_IN(F32, h6, numbers[6]), \
        PTX_IN(F32, h7, numbers[7]), PTX_IN(F32, s0, states[0][i][j]), PTX_IN(F32, s1, states[1][i][j])

extern "C" __global__ void __launch_bounds__(THREADS, 2) fold(const __grid_constant__ Call call) {
    extern __shared__ __align__(16) float shared[]; // (operand, buffer, DEPTH, PITCH)
    Kinds kinds;
    PTX_INJECT(
        "kinds", PTX_OUT(U32, rows, kinds.rows), PTX_OUT(U32, columns, kinds.columns), PTX_OUT(U32, pairs, kinds.pairs),
        PTX_OUT(U32, numbers, kinds.numbers), PTX_OUT(U32, results, kinds.results)
    );
    const int across = (call.num_columns + TILE - 1) / TILE, tile = blockIdx.x, depth = call.depth;
    const int first_row = tile / across * TILE, first_column = tile % across * TILE;
    const int x = threadIdx.x % SIDE * VECTOR, y = threadIdx.x / SIDE * VECTOR;
    const int row = first_row + y, column = first_column + x;
    float numbers[NUMBERS], pairs[PAIRS][ELEMENTS][ELEMENTS], states[STATES][ELEMENTS][ELEMENTS];
    Share rows[MATRICES], columns[MATRICES];

    EVO_UNROLL for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = call.given[i];
        if ((kinds.numbers >> i & 1) && call.numbers[i].values) numbers[i] = load(begin(call.numbers[i], call), F32);
    }
    EVO_UNROLL for (int m = 0; m < MATRICES; m++) {
        rows[m].open(call.rows[m], call, first_row, call.num_rows, kind_of(kinds.rows, m));
        columns[m].open(call.columns[m], call, first_column, call.num_columns, kind_of(kinds.columns, m));
    }
    EVO_UNROLL for (int m = 0; m < PAIRS; m++) {
        const Matrix& matrix = call.pairs[m];
        const char* const from = begin(matrix, call) + row * matrix.strides[2] + column * matrix.strides[3];
        EVO_ELEMENTS_OF_THREAD {
            pairs[m][i][j] = 0.0f;
            if ((kinds.pairs >> m & 1) && row + place_of(i) < call.num_rows && column + place_of(j) < call.num_columns)
                pairs[m][i][j] = load(from + place_of(i) * matrix.strides[2] + place_of(j) * matrix.strides[3], F32);
        }
    }
    EVO_UNROLL for (int s = 0; s < STATES; s++) EVO_ELEMENTS_OF_THREAD states[s][i][j] = call.initial[s];

    const auto read = [&](int left) {
        EVO_UNROLL for (int m = 0; m < MATRICES; m++) {
            if (const unsigned kind = kind_of(kinds.rows, m)) rows[m].read(kind, left);
            if (const unsigned kind = kind_of(kinds.columns, m)) columns[m].read(kind, left);
        }
    };
    const auto write = [&](float* to) {
        EVO_UNROLL for (int m = 0; m < MATRICES; m++) {
            if (kind_of(kinds.rows, m)) rows[m].write(to + m * OPERAND, first_row);
            if (kind_of(kinds.columns, m)) columns[m].write(to + (count(kinds.rows) + m) * OPERAND, first_column);
        }
    };
    read(depth);
    write(shared);
    __syncthreads();
    #pragma unroll 1
    for (int first = 0; first < depth; first += DEPTH) {
        const bool is_second = first & DEPTH, is_last = first + DEPTH >= depth;
        const int num_steps = min(DEPTH, depth - first);
        if (!is_last) read(depth - first - DEPTH);
        const float* from = shared + is_second * BUFFER;
        #pragma unroll 1
        for (int step = 0; step < num_steps; step++, from += PITCH) {
            const float k = static_cast<float>(first + step);
            float r[MATRICES][ELEMENTS] = {}, c[MATRICES][ELEMENTS] = {};
            EVO_UNROLL for (int m = 0; m < MATRICES; m++) {
                if (kind_of(kinds.rows, m)) read_vectors(r[m], from + m * OPERAND + y);
                if (kind_of(kinds.columns, m)) read_vectors(c[m], from + (count(kinds.rows) + m) * OPERAND + x);
            }
            EVO_ELEMENTS_OF_THREAD {
                float t0, t1;
                PTX_INJECT(
                    "step", PTX_OUT(F32, t0), PTX_OUT(F32, t1), PTX_IN(F32, r0, r[0][i]), PTX_IN(F32, r1, r[1][i]),
                    PTX_IN(F32, r2, r[2][i]), PTX_IN(F32, c0, c[0][j]), PTX_IN(F32, c1, c[1][j]), PTX_IN(F32, c2, c[2][j]),
                    PTX_IN(F32, k), EVO_COMMON(i, j)
                );
                states[0][i][j] = t0;
                states[1][i][j] = t1;
            }
        }
        if (!is_last) write(shared + !is_second * BUFFER);
        __syncthreads();
    }

    const long long matrix = call.first_matrix + static_cast<long long>(blockIdx.y), size = call.num_columns;
    const long long at = (matrix * call.num_rows + row) * size + column;
    EVO_ELEMENTS_OF_THREAD {
        float y0, y1;
        PTX_INJECT("finish", PTX_OUT(F32, y0), PTX_OUT(F32, y1), EVO_COMMON(i, j));
        if (row + place_of(i) >= call.num_rows || column + place_of(j) >= call.num_columns) continue;
        call.results[0][at + place_of(i) * size + place_of(j)] = y0;
        if (kinds.results > 1) call.results[1][at + place_of(i) * size + place_of(j)] = y1;
    }
}
