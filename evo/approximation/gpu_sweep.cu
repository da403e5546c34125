// A program at every number of a format, compared with a function by pieces of polynomials. Values, errors and counts are those of
// csrc/detail/proof_kernels.h, bit for bit: --fmad=false keeps products and sums apart. evo/approximation/gpu_sweep.py launches it.

enum Form : int { F32, F16, BF16 };

struct Call {
    const long long* first_keys; // of the pieces, and one past the end
    const double *centres, *inverses, *coefficients, *bounds;
    struct Result* results; // one for each thread
    long long first, last; // keys: integers in the order of the numbers
    double overflow;
    int num_pieces, run, form, digits, least_exponent; // run: keys of a thread
    float minus_zero; // which an assembler that knew it would give to the program, by its own arithmetic
};

struct Result {
    double worst[3]; // in ulps, absolute, relative
    long long at[3]; // keys; MINUS_ZERO is that number
    long long nans, wrong_signs, falls;
};

#define COEFFICIENTS 8
#define MINUS_ZERO (-1ll << 63)
#define SIGN (1ull << 63)
#define EXPONENT (0x7FFull << 52)
#define INFINITE __longlong_as_double(EXPONENT)
#define FLUSHED 0x1p-126
#define LARGEST 0x1p200

__device__ unsigned long long bits_of(double value) { return __double_as_longlong(value); }

__device__ float number_of(long long key, int form) {
    const unsigned size = key < 0 ? -key : key;
    float value = __uint_as_float(form == F32 ? size : size << 16);
    if (form == F16) asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(size)));
    return key < 0 ? -value : value;
}

__device__ double result_of(float x, int form) {
    float y;
    /* PTX_INJECT program
        out f32 y // in registers of evo.kernel.pointwise.site_lowering
        in f32 x
    */
    if (form == F16) asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h; }" : "+f"(y));
    const unsigned bits = __float_as_uint(y);
    if (form == BF16 && y == y) y = __uint_as_float(bits + 0x7FFFu + (bits >> 16 & 1u) & 0xFFFF0000u);
    return y;
}

// Of a size: the unit in the last place is a power of two.
__device__ double inverse_ulp(double size, const Call& call) {
    const long long least = 1023 + call.least_exponent, own = bits_of(size) >> 52;
    return __longlong_as_double(2046 + call.digits - 1 - (own < least ? least : own) << 52);
}

// The function; `piece` is that of a key before, or any.
__device__ double exact_at(long long key, double x, int& piece, const Call& call) {
    while (call.first_keys[piece + 1] <= key) piece++;
    const long long begin = call.first_keys[piece];
    const double* c = call.coefficients + COEFFICIENTS * piece;
    if (call.first_keys[piece + 1] - begin <= COEFFICIENTS) return c[key - begin];
    const double t = (x - call.centres[piece]) * call.inverses[piece];
    double value = c[COEFFICIENTS - 1];
    for (int i = COEFFICIENTS - 2; i >= 0; i--) value = value * t + c[i];
    // What may be below a power of two goes there.
    const unsigned long long power = bits_of(value) & EXPONENT;
    const double size = __longlong_as_double(bits_of(value) & ~SIGN);
    const bool is_near = power > 0 && size - call.bounds[piece] < __longlong_as_double(power);
    return is_near ? __longlong_as_double(power - 1 | bits_of(value) & SIGN) : value;
}

__device__ void compare(long long key, double y, double r, const Call& call, Result& found) {
    const double size = __longlong_as_double(bits_of(r) & ~SIGN), y_size = __longlong_as_double(bits_of(y) & ~SIGN);
    const bool is_nan = y != y, differ = (bits_of(y) ^ bits_of(r)) & SIGN;
    const bool is_right = (y_size == INFINITE && size >= call.overflow && !differ) || (y == 0.0 && size < FLUSHED);
    double error = is_right ? 0.0 : __longlong_as_double(bits_of(y - r) & ~SIGN);
    if (is_nan || (!is_right && size >= LARGEST)) error = INFINITE;
    const double least = __longlong_as_double(1023ll + call.least_exponent << 52);
    const double errors[3] = {error * inverse_ulp(size, call), error, error / (size < least ? least : size)};
    for (int kind = 0; kind < 3; kind++)
        if (errors[kind] > found.worst[kind]) {
            found.worst[kind] = errors[kind];
            found.at[kind] = key;
        }
    found.nans += is_nan;
    found.wrong_signs += differ && y != 0.0 && r != 0.0 && !is_nan;
}

extern "C" __global__ void sweep(const __grid_constant__ Call call) {
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long start = call.first + thread * call.run;
    if (start > call.last) return;
    const long long stop = start + call.run <= call.last ? start + call.run : call.last + 1;
    Result found = {{-1.0, -1.0, -1.0}, {start, start, start}, 0, 0, 0};
    long long key = start > call.first_keys[0] ? start - 1 : start; // the step to the first is this thread's too
    int piece = 0;
    for (int high = call.num_pieces; high - piece > 1;) {
        const int middle = (piece + high) / 2;
        if (call.first_keys[middle] <= key)
            piece = middle;
        else
            high = middle;
    }
    double last_y = 0.0, last_r = 0.0;
    for (; key < stop; key++) {
        const float x = number_of(key, call.form);
        const double y = result_of(x, call.form), r = exact_at(key, x, piece, call);
        if (key >= start) {
            compare(key, y, r, call, found);
            if (key > call.first_keys[0]) found.falls += (y > last_y && r < last_r) || (y < last_y && r > last_r);
            if (key == 0) compare(MINUS_ZERO, result_of(call.minus_zero, call.form), r, call, found);
        }
        last_y = y;
        last_r = r;
    }
    call.results[thread] = found;
}
