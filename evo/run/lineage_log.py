r"""The lineage log: the programs that became elites in a run, appended to with each checkpoint.

Owns the bytes; knows nothing of folders. `evo.search.ancestry` owns what is recorded.

    8 bytes   magic "EVOLIN1\n"
    blocks    each: length of its data, uint32 little-endian; CRC-32 of its data; data, compressed by zlib:
              number of records, uint64 little-endian; as many `RECORD_DTYPE`; their words, uint64 little-endian
"""

from __future__ import annotations

import zlib

import numpy as np

from evo.search.ancestry import RECORD_DTYPE, Records, joined

MAGIC = b"EVOLIN1\n"
_LEVEL = 1  # of compression: words repeat so much that more gains little
_HEADER_BYTES = 8


class LineageLogError(ValueError):
    """The bytes are not an intact lineage log; the message says why."""


def encode_block(records: Records) -> bytes:
    """A block of records."""
    parts = [len(records).to_bytes(8, "little"), records.facts.tobytes(), records.words.astype("<u8").tobytes()]
    data = zlib.compress(b"".join(parts), _LEVEL)
    return len(data).to_bytes(4, "little") + zlib.crc32(data).to_bytes(4, "little") + data


def decode_log(data: bytes) -> Records:
    """The records of a whole log.

    Raises:
        LineageLogError: another kind of file, or damaged.
    """
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
