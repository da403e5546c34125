/*
 * philox.cuh - counter-based random numbers in CUDA kernels, without memory and without curand.
 *
 *     #include <philox.cuh>
 *
 *     curandStatePhilox4_32_10_t state = philox_init(launch, seed, thread);
 *     uint4 bits = philox_curand4(&state);              four random words; the state goes on to the next block
 *     float4 uniform = philox_curand_uniform4(&state);  above 0, at most 1
 *     float4 normal = philox_curand_normal4(&state);    mean 0, standard deviation 1
 *
 * Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The key is the seed.
 * The counter is block, launch (low and high word) and thread, so a thread has 2^32 blocks in each of 2^64 launches. Names and
 * order of words are mm-ptx's, and PTX_PHILOX(state) of ptx_inject.h hands the state to a stub. For nvcc and NVRTC.
 */

#ifndef PHILOX_CUH
#define PHILOX_CUH

typedef struct curandStatePhilox4_32_10 {
    uint4 ctr; /* x: the next block; y and z: the launch; w: the thread */
    uint2 key;
} curandStatePhilox4_32_10_t;

static __device__ __forceinline__ curandStatePhilox4_32_10_t
philox_init(unsigned long long launch_id, unsigned long long seed, unsigned int utid) {
    curandStatePhilox4_32_10_t state;
    state.ctr.x = 0;
    state.ctr.y = (unsigned int)launch_id;
    state.ctr.z = (unsigned int)(launch_id >> 32);
    state.ctr.w = utid;
    state.key.x = (unsigned int)seed;
    state.key.y = (unsigned int)(seed >> 32);
    return state;
}

static __device__ __forceinline__ uint4 philox_curand4(curandStatePhilox4_32_10_t* state) {
    uint4 block = state->ctr;
    uint2 key = state->key;
    state->ctr.x++;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const unsigned int high_x = __umulhi(0xD2511F53u, block.x), high_z = __umulhi(0xCD9E8D57u, block.z);
        const unsigned int low_x = 0xD2511F53u * block.x, low_z = 0xCD9E8D57u * block.z;
        block.x = high_z ^ block.y ^ key.x;
        block.z = high_x ^ block.w ^ key.y;
        block.y = low_z;
        block.w = low_x;
        key.x += 0x9E3779B9u; /* the golden ratio */
        key.y += 0xBB67AE85u; /* the square root of 3 */
    }
    return block;
}

/* The middle of one of 2^32 equal parts of 0 to 1. */
static __device__ __forceinline__ float philox__uniform(unsigned int bits) {
    return (float)bits * 2.3283064365386963e-10f + 1.1641532182693481e-10f;
}

static __device__ __forceinline__ float4 philox_curand_uniform4(curandStatePhilox4_32_10_t* state) {
    const uint4 bits = philox_curand4(state);
    float4 uniform;
    uniform.x = philox__uniform(bits.x);
    uniform.y = philox__uniform(bits.y);
    uniform.z = philox__uniform(bits.z);
    uniform.w = philox__uniform(bits.w);
    return uniform;
}

/* Box and Muller's transformation of two words into two independent Gaussians. */
static __device__ __forceinline__ float2 philox__normal(unsigned int radius_bits, unsigned int angle_bits) {
    const float radius = sqrtf(-2.0f * logf(philox__uniform(radius_bits)));
    const float angle = 6.2831855f * philox__uniform(angle_bits);
    float2 normal;
    normal.x = radius * __sinf(angle);
    normal.y = radius * __cosf(angle);
    return normal;
}

static __device__ __forceinline__ float4 philox_curand_normal4(curandStatePhilox4_32_10_t* state) {
    const uint4 bits = philox_curand4(state);
    const float2 first = philox__normal(bits.x, bits.y), second = philox__normal(bits.z, bits.w);
    float4 normal;
    normal.x = first.x;
    normal.y = first.y;
    normal.z = second.x;
    normal.w = second.y;
    return normal;
}

#endif /* PHILOX_CUH */
