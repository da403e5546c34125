// The power of a picture in half-octave bands of frequency, by a Fourier transform in place, as in evo's csrc/detail/picture_kernels.h:
// same butterflies, so same bits. Row 2 k and row 2 k + 1 of pixels are real and imaginary part of row k of a picture of HEIGHT rows
// of SIZE complex numbers.

constexpr int HEIGHT = SIZE / 2;
constexpr int LOG_HEIGHT = LOG_SIZE - 1;

static __device__ const float2 roots[HEIGHT] = {ROOTS}; // exp(-2 pi i k / SIZE)

static __device__ __forceinline__ float2 product(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

static __device__ __forceinline__ float2 load(const float* picture, int row, int column) {
    return make_float2(picture[2 * row * SIZE + column], picture[(2 * row + 1) * SIZE + column]);
}

static __device__ __forceinline__ void store(float* picture, int row, int column, float2 number) {
    picture[2 * row * SIZE + column] = number.x;
    picture[(2 * row + 1) * SIZE + column] = number.y;
}

static __device__ __forceinline__ int reversed(unsigned int number, int num_bits) { return __brev(number) >> (32 - num_bits); }

// One stage of decimation in frequency, along columns or rows, of numbers 2^stage apart.
static __device__ void transform_stage(float* picture, int stage, bool is_along_rows) {
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < SIZE * HEIGHT / 2; i += EVO_BLOCK_SIZE) {
        const int line = is_along_rows ? i / (SIZE / 2) : i % SIZE, pair = is_along_rows ? i % (SIZE / 2) : i / SIZE;
        const int low = pair & ((1 << stage) - 1), first = 2 * pair - low, second = first + (1 << stage);
        const int row = is_along_rows ? line : first, column = is_along_rows ? first : line;
        const int other_row = is_along_rows ? line : second, other_column = is_along_rows ? second : line;
        const float2 a = load(picture, row, column), b = load(picture, other_row, other_column);
        store(picture, row, column, make_float2(a.x + b.x, a.y + b.y));
        store(picture, other_row, other_column, product(make_float2(a.x - b.x, a.y - b.y), roots[low << (LOG_SIZE - 1 - stage)]));
    }
}

// Leaves rows and columns in bit-reversed order.
static __device__ void transform(float* picture) {
    for (int stage = LOG_HEIGHT - 1; stage >= 0; --stage) transform_stage(picture, stage, false);
    __syncthreads();
    // The spectrum of the real columns, doubled: that of even rows is the part that is Hermitian, that of odd rows the other one. A
    // thread has two rows that are opposite, or one that is its own opposite.
    for (int i = threadIdx.x; i < (HEIGHT / 2 + 1) * SIZE; i += EVO_BLOCK_SIZE) {
        const int k = i / SIZE, opposite = (HEIGHT - k) % HEIGHT, column = i % SIZE;
        const float2 a = load(picture, reversed(k, LOG_HEIGHT), column),
                     b = load(picture, reversed(opposite, LOG_HEIGHT), column);
        const float2 even = make_float2(a.x + b.x, a.y - b.y);
        const float2 odd = product(make_float2(a.y + b.y, b.x - a.x), roots[k]);
        const float2 opposite_odd = product(make_float2(a.y + b.y, a.x - b.x), roots[opposite]);
        store(picture, reversed(k, LOG_HEIGHT), column, make_float2(even.x + odd.x, even.y + odd.y));
        if (opposite != k)
            store(picture, reversed(opposite, LOG_HEIGHT), column, make_float2(even.x + opposite_odd.x, opposite_odd.y - even.y));
    }
    for (int stage = LOG_SIZE - 1; stage >= 0; --stage) transform_stage(picture, stage, true);
    __syncthreads();
}

// Puts the power of each number in place of its real part. That of negative rows is the same as of positive ones; all is doubled.
static __device__ void power_of(float* picture) {
    for (int i = threadIdx.x; i < SIZE * HEIGHT; i += EVO_BLOCK_SIZE) {
        const float2 number = load(picture, i / SIZE, i % SIZE);
        picture[2 * (i / SIZE) * SIZE + i % SIZE] = (number.x * number.x + number.y * number.y) * (i < SIZE ? 0.25f : 0.5f);
    }
    __syncthreads();
}

// The power of a band in a column, from the top. Even columns come first: the last stage on the CPU leaves them so.
static __device__ float band_in_column(const float* picture, int band, int place) {
    const int stored = place < SIZE / 2 ? 2 * place : 2 * (place - SIZE / 2) + 1, column = reversed(stored, LOG_SIZE);
    const int across = column < SIZE / 2 ? column : SIZE - column;
    float sum = 0.0f;
#pragma unroll 1
    for (int row = 0; row < HEIGHT; ++row) {
        const int down = reversed(row, LOG_HEIGHT);
        // They begin at squared frequencies of 2, 4, 8, ...
        sum += 30 - __clz(down * down + across * across) == band ? picture[2 * row * SIZE + stored] : 0.0f;
    }
    return sum;
}
