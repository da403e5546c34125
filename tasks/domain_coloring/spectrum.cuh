// The power of a picture in half-octave bands of frequency, by a Fourier transform in place.
//
// The two pixels of a pair side by side are real and imaginary part of one number, so that a picture is SIZE rows of WIDTH
// complex numbers. From their transform Z follows the spectrum of the pixels: that of even columns is the part of Z that is
// Hermitian, that of odd columns the other one (Press et al., Numerical Recipes, section 12.3).

constexpr int WIDTH = SIZE / 2;
constexpr int LOG_WIDTH = LOG_SIZE - 1;

static __device__ const float2 roots[WIDTH] = {ROOTS};  // exp(-2 pi i k / SIZE)

static __device__ __forceinline__ float2 product(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Decimation in frequency by factors of two, along columns and then along rows. Leaves both in bit-reversed order.
static __device__ void transform(float2* numbers) {
#pragma unroll 1
    for (int stage = LOG_SIZE + LOG_WIDTH - 1; stage >= 0; --stage) {
        const int unit = stage >= LOG_WIDTH ? LOG_WIDTH : 0;  // log2 of the distance between neighbours in a column or row
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x; i < SIZE * WIDTH / 2; i += EVO_BLOCK_SIZE) {
            const int low = i & ((1 << stage) - 1);
            float2* first = numbers + (2 * i - low);
            float2* second = first + (1 << stage);
            const float2 a = *first, b = *second;
            *first = make_float2(a.x + b.x, a.y + b.y);
            *second = product(make_float2(a.x - b.x, a.y - b.y), roots[low >> unit << (LOG_WIDTH + unit - stage)]);
        }
    }
    __syncthreads();
}

// Where `transform` leaves the number of these frequencies.
static __device__ __forceinline__ int place_of(unsigned int row, unsigned int column) {
    return __brev(row) >> (32 - LOG_SIZE) << LOG_WIDTH | __brev(column) >> (32 - LOG_WIDTH);
}

// This thread's share of the power of each band. Other threads have the other frequencies; those of the Nyquist column lie in no
// band, and those of negative columns count as their positive ones.
static __device__ void add_bands(const float2* numbers, float (&bands)[NUM_BANDS]) {
#pragma unroll 1
    for (int i = threadIdx.x; i < SIZE * WIDTH; i += EVO_BLOCK_SIZE) {
        const int row = i / WIDTH, column = i % WIDTH;
        const float2 z = numbers[place_of(row, column)];
        const float2 opposite = numbers[place_of(-row & (SIZE - 1), -column & (WIDTH - 1))];
        const float2 odd = product(roots[column], make_float2(z.y + opposite.y, opposite.x - z.x));
        const float real = 0.5f * (z.x + opposite.x + odd.x), imaginary = 0.5f * (z.y - opposite.y + odd.y);
        const float power = (real * real + imaginary * imaginary) * (column > 0 ? 2.0f : 1.0f);
        const int cycles = row < SIZE / 2 ? row : row - SIZE;
        const int band = 30 - __clz(cycles * cycles + column * column);  // they begin at squared frequencies of 2, 4, 8, ...
#pragma unroll
        for (int each = 0; each < NUM_BANDS; ++each) bands[each] += each == band ? power : 0.0f;
    }
}
