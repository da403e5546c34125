// A matrix product over any semiring: C(m, n) = epilogue(sum over k of A(m, k) * B(n, k)), where plus, times and the epilogue
// are injected into the sites `mma` and `epilogue` after compilation.
//
// Columns of A, B and C are contiguous: A(m, k) = a[m + k * m_size], B(n, k) = b[n + k * n_size], C(m, n) = c[m + n * m_size].
// Sizes are multiples of the tile's, pointers of 16 bytes. Launch one block of 256 threads, used as (16, 16), per tile of C:
// the grid is (m_size / 128, n_size / 128).

#include <cute/tensor.hpp>

#include <ptx_inject.h>

using namespace cute;

// A caller may define both as C++ instead, which gives a kernel without sites.
#ifndef SEMIRING_MMA
#define SEMIRING_MMA(sum, a, b) PTX_INJECT("mma", PTX_MOD(F32, sum), PTX_IN(F32, a), PTX_IN(F32, b))
#define SEMIRING_EPILOGUE(y, x) PTX_INJECT("epilogue", PTX_OUT(F32, y), PTX_IN(F32, x))
#endif

// CuTe's multiply-add of one element by one thread. Inlining and unrolling make a site of each use.
struct SemiringMma {
    using DRegisters = float[1];
    using ARegisters = float[1];
    using BRegisters = float[1];
    using CRegisters = float[1];

    CUTE_DEVICE static void fma(float& d, float const& a, float const& b, float const& c) {
        float sum = c;
        SEMIRING_MMA(sum, a, b);
        d = sum;
    }
};

template <> struct cute::MMA_Traits<SemiringMma> {
    using ValTypeD = float;
    using ValTypeA = float;
    using ValTypeB = float;
    using ValTypeC = float;
    using Shape_MNK = Shape<_1, _1, _1>;
    using ThrID = Layout<_1>;
    using ALayout = Layout<Shape<_1, _1>>;
    using BLayout = Layout<Shape<_1, _1>>;
    using CLayout = Layout<Shape<_1, _1>>;
};

// Each thread of (threads_m, threads_n) has 4 neighbouring elements of the tile in each mode, then the 4 at the next stride, so that
// it reads shared memory in vectors.
template <int num_threads, int tile_size>
using Interleaved = Layout<Shape<Int<num_threads>, _4, Int<tile_size / num_threads / 4>>, Stride<_4, _1, Int<num_threads * 4>>>;

template <int tile_m, int tile_n, int tile_k, int threads_m, int threads_n>
CUTE_DEVICE void semiring_gemm(int m_size, int n_size, int k_size, float const* a, float const* b, float* c, float zero) {
    constexpr int num_threads = threads_m * threads_n;
    auto const tile = Shape<Int<tile_m>, Int<tile_n>, Int<tile_k>>{};
    auto const block = make_coord(blockIdx.x, blockIdx.y, _);

    // The matrices, and the part of each that this block works on.
    Tensor all_a = make_tensor(make_gmem_ptr(a), make_shape(m_size, k_size), make_stride(_1{}, int64_t(m_size)));
    Tensor all_b = make_tensor(make_gmem_ptr(b), make_shape(n_size, k_size), make_stride(_1{}, int64_t(n_size)));
    Tensor all_c = make_tensor(make_gmem_ptr(c), make_shape(m_size, n_size), make_stride(_1{}, int64_t(m_size)));
    Tensor global_a = local_tile(all_a, tile, block, Step<_1, X, _1>{});  // (tile_m, tile_k, num_tiles)
    Tensor global_b = local_tile(all_b, tile, block, Step<X, _1, _1>{});  // (tile_n, tile_k, num_tiles)
    Tensor global_c = local_tile(all_c, tile, block, Step<_1, _1, X>{});  // (tile_m, tile_n)

    // Shared memory holds two tiles each of A and B: one is read while the other is written.
    constexpr auto shared_a_layout = Layout<Shape<Int<tile_m>, Int<tile_k>, _2>>{};
    constexpr auto shared_b_layout = Layout<Shape<Int<tile_n>, Int<tile_k>, _2>>{};
    __shared__ alignas(16) float memory_a[cosize_v<decltype(shared_a_layout)>];
    __shared__ alignas(16) float memory_b[cosize_v<decltype(shared_b_layout)>];
    Tensor shared_a = make_tensor(make_smem_ptr(memory_a), shared_a_layout);
    Tensor shared_b = make_tensor(make_smem_ptr(memory_b), shared_b_layout);

    // Who copies what: vectors of 4 down the columns.
    using Vector = Copy_Atom<UniversalCopy<uint128_t>, float>;
    auto const copier_a =
        make_tiled_copy(Vector{}, Layout<Shape<Int<tile_m / 4>, Int<num_threads * 4 / tile_m>>>{}, Layout<Shape<_4, _1>>{})
            .get_slice(threadIdx.x);
    auto const copier_b =
        make_tiled_copy(Vector{}, Layout<Shape<Int<tile_n / 4>, Int<num_threads * 4 / tile_n>>>{}, Layout<Shape<_4, _1>>{})
            .get_slice(threadIdx.x);
    Tensor from_a = copier_a.partition_S(global_a);  // (copy, copies_m, copies_k, num_tiles)
    Tensor from_b = copier_b.partition_S(global_b);
    Tensor to_a = copier_a.partition_D(shared_a);  // (copy, copies_m, copies_k, 2)
    Tensor to_b = copier_b.partition_D(shared_b);
    Tensor staged_a = make_fragment_like(to_a(_, _, _, 0));
    Tensor staged_b = make_fragment_like(to_b(_, _, _, 0));

    // Who computes what.
    auto const mma = make_tiled_mma(
        SemiringMma{}, Layout<Shape<Int<threads_m>, Int<threads_n>, _1>>{},
        Tile<Interleaved<threads_m, tile_m>, Interleaved<threads_n, tile_n>, _1>{}
    );
    auto const thread = mma.get_slice(threadIdx.x);
    Tensor read_a = thread.partition_A(shared_a);  // (1, elements_m, tile_k, 2)
    Tensor read_b = thread.partition_B(shared_b);  // (1, elements_n, tile_k, 2)
    Tensor factor_a = thread.make_fragment_A(read_a(_, _, _, 0));
    Tensor factor_b = thread.make_fragment_B(read_b(_, _, _, 0));
    Tensor result = thread.partition_C(global_c);  // (1, elements_m, elements_n)
    Tensor sum = thread.make_fragment_C(result);
    fill(sum, zero);

    int const num_tiles = size<3>(from_a);
    copy(Vector{}, from_a(_, _, _, 0), staged_a);
    copy(Vector{}, from_b(_, _, _, 0), staged_b);
    #pragma unroll 1
    for (int i = 0; i < num_tiles; ++i) {
        int const half = i & 1;
        copy(Vector{}, staged_a, to_a(_, _, _, half));
        copy(Vector{}, staged_b, to_b(_, _, _, half));
        __syncthreads();
        if (i + 1 < num_tiles) {
            copy(Vector{}, from_a(_, _, _, i + 1), staged_a);
            copy(Vector{}, from_b(_, _, _, i + 1), staged_b);
        }
        CUTE_UNROLL
        for (int k = 0; k < tile_k; ++k) {
            copy(read_a(_, _, k, half), factor_a(_, _, k));
            copy(read_b(_, _, k, half), factor_b(_, _, k));
            gemm(mma, factor_a(_, _, k), factor_b(_, _, k), sum);
        }
    }

    CUTE_UNROLL
    for (int i = 0; i < size(sum); ++i) {
        float x = sum(i);
        float y;
        SEMIRING_EPILOGUE(y, x);
        sum(i) = y;
    }
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, sum, result);
}

// `zero` is where sums start: 0, or infinity if plus is a minimum.
extern "C" __global__ void __launch_bounds__(256) semiring_gemm_128x128x8(
    int m_size, int n_size, int k_size, float const* a, float const* b, float* c, float zero
) {
    semiring_gemm<128, 128, 8, 16, 16>(m_size, n_size, k_size, a, b, c, zero);
}
