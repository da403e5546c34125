"""Division of a block's points among threads, and of its shared memory among values, in the interpreter kernel.

Owns both for the inputs and outputs of a language. Knows nothing of the kernel's text.
"""

from dataclasses import dataclass

from evo.language.program import Language

WARP = 32
_MAX_BLOCK_SIZE = 256
# Four let a load or store of a vector move 16 bytes, the most that one instruction can, and share the work of decoding a step.
# Eight would halve that work again, but also the warps of a multiprocessor, and not the traffic of shared memory (docs/gpu.md).
_POINTS_PER_THREAD = 4
MAX_POINTS = _MAX_BLOCK_SIZE * _POINTS_PER_THREAD  # of a tile, as reduction.POINTS_PER_BLOCK

# Shared memory of a block: 12 vectors. Two such blocks, 16 warps, fit a multiprocessor of compute capability 8.6, 8.9 or 12.0,
# whose 100 KiB are the least since Turing; three fit 8.0, and four 9.0 and 10.0.
NUM_VECTORS = 12
# With many inputs and outputs a block may have twice as much, which is what all GPUs since compute capability 8.0 have for one.
MAX_VECTORS = 24
# In registers, as many vectors, the accumulator and an operand take 112 of 128 at eight points a thread, and 16 warps fit.
_POINTS_IN_REGISTERS = 8
# Rows of outputs that a warp sums at once, each with an octet of threads.
NUM_OCTETS = 4
# Fewer slots would send programs to the compile lane for the sake of more warps.
_MIN_SLOTS = 7


@dataclass(frozen=True)
class Layout:
    """Threads of a tile, and a block's vectors: inputs, then slots, then outputs.

    num_buffered: programs whose outputs are summed at once; 1 in a kernel that stores. in_registers: vectors are registers, and
    shared memory has the outputs of `num_buffered` programs alone.
    """

    num_inputs: int
    num_outputs: int
    num_slots: int
    num_buffered: int
    block_size: int
    points_per_thread: int
    in_registers: bool = False

    @property
    def first_output(self) -> int:
        """The vector of the first output."""
        return self.num_inputs + self.num_slots

    @property
    def num_vectors(self) -> int:
        """All records."""
        return self.first_output + self.num_outputs

    @property
    def num_registers(self) -> int:
        """Vectors that are registers: all or none."""
        return self.num_vectors if self.in_registers else 0

    @property
    def points(self) -> int:
        """Points of a tile."""
        return self.block_size * self.points_per_thread

    @property
    def run(self) -> int:
        """Neighbouring points of a thread, which a load or store of a vector moves at once. A thread has one run or more."""
        return min(self.points_per_thread, _POINTS_PER_THREAD)

    def point(self, k: int) -> int:
        """The thread's point k in the tile, counted from its first one."""
        return k // self.run * self.block_size * self.run + k % self.run

    @property
    def vector_bytes(self) -> int:
        """Bytes of a value at each point of a tile."""
        return 4 * self.points

    @property
    def num_held(self) -> int:
        """Programs whose outputs registers hold until they are summed, since shared memory is in use."""
        return 0 if self.in_registers or self.num_buffered == 1 else self.num_buffered

    @property
    def first_shared(self) -> int:
        """The first output among the vectors of shared memory."""
        return 0 if self.in_registers else self.first_output

    @property
    def shared_bytes(self) -> int:
        """Bytes of the vectors in shared memory."""
        return (self.num_buffered * self.num_outputs if self.in_registers else self.num_vectors) * self.vector_bytes

    def num_tiles(self, num_points: int) -> int:
        """Blocks along x."""
        return -(-num_points // self.points)


def layout_of(language: Language, sums: bool, num_points: int = MAX_POINTS, in_registers: bool = False) -> Layout | None:
    """Lay out threads and vectors of a kernel for these inputs and outputs; None if they leave too few slots.

    Args:
        num_points: the most that it will sum.
        in_registers: as `Layout` has it.
    """
    num_inputs, num_outputs = len(language.inputs), len(language.outputs)
    num_vectors = max(NUM_VECTORS, num_inputs + num_outputs + _MIN_SLOTS)
    points_per_thread = _POINTS_IN_REGISTERS if in_registers else 1 if num_points <= WARP else _POINTS_PER_THREAD
    num_warps = max(-(-num_points // (WARP * points_per_thread)), -(-num_outputs // NUM_OCTETS) if sums else 1)
    block_size = min(MAX_POINTS // max(points_per_thread, _POINTS_PER_THREAD), WARP << (num_warps - 1).bit_length())
    num_buffered = {1: 4, 2: 2}.get(num_outputs, 1) if sums else 1
    num_slots = num_vectors - num_inputs - num_outputs
    layout = Layout(num_inputs, num_outputs, num_slots, num_buffered, block_size, points_per_thread, in_registers)
    return layout if num_vectors <= (NUM_VECTORS if in_registers else MAX_VECTORS) else None
