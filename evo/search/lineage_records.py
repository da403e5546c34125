r"""The programs that became elites, each with its parents, and the bytes of the log that a run keeps of them.

Owns both formats; knows nothing of folders. `evo.search.lineage` owns what is recorded.

    8 bytes   magic "EVOLIN1\n"
    blocks    each: length of its data, uint32 little-endian; CRC-32 of its data; data, compressed by zlib:
              number of records, uint64 little-endian; as many `RECORD_DTYPE`; their words, uint64 little-endian
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"EVOLIN1\n"
_LEVEL = 1  # of compression: words repeat so much that more gains little
_HEADER_BYTES = 8

NONE = -1  # in place of a number: no record
RECORD_DTYPE = np.dtype(
    [
        ("number", "<i8"),
        ("parents", "<i8", 2),
        ("generation", "<i8"),
        ("objective", "<f8"),
        ("hash", "<u8", 2),
        ("slot", "<i4"),
        ("cell", "<i4"),
        ("operator", "<i4"),
        ("num_words", "<i4"),
        ("in_archive", "<i4"),
    ]
)


@dataclass(frozen=True)
class Records:
    """Programs that became elites, in the order in which they did.

    facts: `(n,)` of RECORD_DTYPE. number: counts up through the run. parents: numbers; NONE for none, and for a parent that is
    forgotten perhaps not among these. cell: where it became an elite; in_archive: 0 if only in a start's population.
    words: the programs one after the other, each up to its RETURN; `num_words` says where it ends.
    """

    facts: NDArray[Any]
    words: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def num_bytes(self) -> int:
        """Memory that they take."""
        return self.facts.nbytes + self.words.nbytes

    def programs(self, rows: NDArray[np.int64], max_length: int) -> NDArray[np.uint64]:
        """`(len(rows), max_length)` words."""
        ends = np.cumsum(self.facts["num_words"], dtype=np.int64)
        programs = np.zeros((len(rows), max_length), np.uint64)
        for program, row in zip(programs, rows.tolist(), strict=True):
            count = int(self.facts["num_words"][row])
            program[:count] = self.words[ends[row] - count : ends[row]]
        return programs

    def only(self, is_kept: NDArray[np.bool_]) -> Records:
        """Some of them."""
        return Records(self.facts[is_kept], self.words[np.repeat(is_kept, self.facts["num_words"])])


def joined(parts: list[Records]) -> Records:
    """Records one after the other."""
    return Records(
        np.concatenate([np.zeros(0, RECORD_DTYPE), *(part.facts for part in parts)]),
        np.concatenate([np.zeros(0, np.uint64), *(part.words for part in parts)]),
    )


def lines_of(facts: NDArray[Any], numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each number the rows of its record and of its line of first parents, oldest first, as far back as it is remembered."""
    row_of = {number: row for row, number in enumerate(facts["number"].tolist())}
    parents = facts["parents"][:, 0].tolist()
    lines = []
    for number in numbers.tolist():
        rows, row = [], row_of.get(number)
        while row is not None:
            rows.append(row)
            row = row_of.get(parents[row])
        lines.append(np.array(rows[::-1], np.int64))
    return lines


class LineageLogError(ValueError):
    """The bytes are not an intact lineage log; the message says why."""


def encode_block(records: Records) -> bytes:
    """A block of records."""
    parts = [len(records).to_bytes(8, "little"), records.facts.tobytes(), records.words.astype("<u8").tobytes()]
    data = zlib.compress(b"".join(parts), _LEVEL)
    return len(data).to_bytes(4, "little") + zlib.crc32(data).to_bytes(4, "little") + data


def decode_log(data: bytes) -> Records:
    """The records of a whole log. Raises LineageLogError: another kind of file, or damaged."""
    if data[: len(MAGIC)] != MAGIC:
        raise LineageLogError("not a lineage log: it does not start like one")
    parts, offset = [], len(MAGIC)
    while offset < len(data):
        start = offset + _HEADER_BYTES
        end = start + int.from_bytes(data[offset : offset + 4], "little")
        block = data[start:end]
        if start > len(data) or len(block) < end - start:
            raise LineageLogError(f"cut short at {len(data)} bytes")
        if zlib.crc32(block) != int.from_bytes(data[offset + 4 : start], "little"):
            raise LineageLogError(f"damaged: the checksum of the block at byte {offset} does not fit its content")
        parts.append(_decode_block(zlib.decompress(block)))
        offset = end
    return joined(parts)


def _decode_block(data: bytes) -> Records:
    count = int.from_bytes(data[:8], "little")
    facts = np.frombuffer(data, RECORD_DTYPE, count, 8)
    return Records(facts, np.frombuffer(data, "<u8", offset=8 + facts.nbytes).astype(np.uint64))
