"""evo.run.checkpoint: what goes in comes out, and whatever is not intact is refused."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evo.run import checkpoint
from evo.run.checkpoint import FORMAT_VERSION, MAGIC, CheckpointError, decode_checkpoint

META = {"counters": {"generations": 3}, "name": "ü", "elapsed_s": 0.1, "seed": 2**64 - 1, "none": None}
ARRAYS = {
    "solution": np.array([[1, 2**64 - 1], [3, 4]], np.uint64),
    "objective": np.array([0.5, -0.0, np.nan, np.inf]),
    "status": np.array([0, 255], np.uint8),
}


def encode_checkpoint(meta: dict, arrays: dict) -> bytes:
    return b"".join(checkpoint.encode_checkpoint(meta, arrays))


def assert_same(given: dict, found: dict) -> None:
    assert list(given) == list(found)
    for name, array in given.items():
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype.newbyteorder("<")
        assert found[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


@given(
    st.dictionaries(
        st.text(max_size=8),
        hnp.arrays(
            dtype=st.one_of(
                hnp.integer_dtypes(endianness="?"),
                hnp.unsigned_integer_dtypes(endianness="?"),
                hnp.floating_dtypes(endianness="?", sizes=(32, 64)),
                hnp.boolean_dtypes(),
            ),
            shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=4,
    )
)
def test_any_plain_arrays_come_back_bit_by_bit_whatever_their_byte_order_and_size(arrays):
    assert_same(arrays, decode_checkpoint(encode_checkpoint({}, arrays))[1])


def test_the_layout_is_the_documented_one():
    data = encode_checkpoint({"k": 1}, {"a": np.array([258], np.dtype(">u2"))})
    header = b'{"arrays": [{"dtype": "<u2", "name": "a", "shape": [1]}], "meta": {"k": 1}}'
    body = b"EVOCKPT\n" + b"\x03\x00\x00\x00" + len(header).to_bytes(4, "little") + header + b"\x02\x01"
    assert data == body + hashlib.sha256(body).digest()


def test_programs_take_the_place_of_their_words_whatever_their_greatest_length():
    words = np.zeros((50, 4096), np.uint64)
    for row, length in enumerate([*range(49), 4096]):
        words[row, :length] = np.arange(length) % 3  # zeros within a row are kept
        words[row, length - 1 : length] = 7
    data = encode_checkpoint({}, {"solution": words, "other": ARRAYS["objective"]})
    assert len(data) < 8 * (sum(range(49)) + 4096) + 4 * 50 + 500
    assert_same({"other": ARRAYS["objective"], "solution": words}, dict(sorted(decode_checkpoint(data)[1].items())))


def test_every_truncation_is_refused():
    data = encode_checkpoint(META, ARRAYS)
    for length in range(len(data)):
        with pytest.raises(CheckpointError):
            decode_checkpoint(data[:length])


def test_every_flipped_bit_is_refused():
    data = bytearray(encode_checkpoint({"generation": 1}, {"a": np.arange(3, dtype=np.int32)}))
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CheckpointError):
            decode_checkpoint(bytes(data))
        data[bit // 8] ^= 1 << bit % 8
    decode_checkpoint(bytes(data))


def test_another_version_is_named_although_its_checksum_is_right():
    body = MAGIC + (FORMAT_VERSION + 1).to_bytes(4, "little") + b"\0" * 40
    with pytest.raises(
        CheckpointError, match=rf"^checkpoint format {FORMAT_VERSION + 1}; this evo reads format {FORMAT_VERSION}$"
    ):
        decode_checkpoint(body + hashlib.sha256(body).digest())


@pytest.mark.parametrize(("data", "reason"), [(b"", "cut short at 0 bytes"), (b"\x89PNG" * 30, "does not start like one")])
def test_another_kind_of_file_is_refused_with_the_reason(data, reason):
    with pytest.raises(CheckpointError, match=reason):
        decode_checkpoint(data)


def test_objects_are_never_written():
    with pytest.raises(TypeError, match="plain arrays"):
        encode_checkpoint({}, {"a": np.array([{}], object)})
