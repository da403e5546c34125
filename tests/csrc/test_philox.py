"""philox.cuh: the published answers of Philox 4x32-10, and numbers that follow from them. C++ stands in for CUDA."""

import math
import subprocess

import pytest
from compilers import build

PROGRAM = r"""
#include <cmath>
#include <cstdio>
#include <cstdlib>
#define __device__
#define __forceinline__ inline
struct uint2 { unsigned int x, y; };
struct uint4 { unsigned int x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
static inline unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned int)((unsigned long long)a * b >> 32); }
#define __sinf sinf
#define __cosf cosf
#include <philox.cuh>

static void print(float4 v) { printf("%.9g %.9g %.9g %.9g\n", (double)v.x, (double)v.y, (double)v.z, (double)v.w); }

int main(int, char** words) {
    unsigned int w[6];
    for (int i = 0; i < 6; i++) w[i] = (unsigned int)strtoul(words[i + 1], nullptr, 16);
    const unsigned long long seed = (unsigned long long)w[5] << 32 | w[4];
    curandStatePhilox4_32_10_t state = philox_init((unsigned long long)w[2] << 32 | w[1], seed, w[3]);
    state.ctr.x = w[0];
    const curandStatePhilox4_32_10_t first = state;
    const uint4 bits = philox_curand4(&state);
    printf("%08x %08x %08x %08x\n", bits.x, bits.y, bits.z, bits.w);
    printf("%u\n", state.ctr.x - first.ctr.x);
    curandStatePhilox4_32_10_t again = first;
    print(philox_curand_uniform4(&again));
    again = first;
    print(philox_curand_normal4(&again));
    printf("%u %.9g %.9g\n", again.ctr.x - first.ctr.x, (double)philox__uniform(0), (double)philox__uniform(0xFFFFFFFFu));
}
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    program = build(tmp_path_factory.mktemp("philox"), "g++", "c++17", PROGRAM, "-Wno-unknown-pragmas")
    return lambda words: subprocess.run([program, *words.split()], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "published"),  # counter and key, and the block, of Random123's known-answer vectors
    [
        ("00000000 00000000 00000000 00000000 00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_blocks_are_the_published_ones_and_uniform_and_normal_numbers_follow_from_them(answers, words, published):
    bits, step, uniform, normal, ends = answers(words)
    assert (bits, step) == (published, "1")
    expected = [(int(word, 16) + 0.5) / 2**32 for word in published.split()]
    assert [float(value) for value in uniform.split()] == pytest.approx(expected, rel=1e-6)
    radii = [math.sqrt(-2 * math.log(value)) for value in expected[::2]]
    angles = [2 * math.pi * value for value in expected[1::2]]
    both = [radius * f(angle) for radius, angle in zip(radii, angles, strict=True) for f in (math.sin, math.cos)]
    assert [float(value) for value in normal.split()] == pytest.approx(both, abs=1e-5)
    assert [float(value) for value in ends.split()] == [1.0, pytest.approx(2.0**-33, rel=1e-8), 1.0]
