"""The farm's wire format: whatever is sent arrives, and anything beyond the bounds is refused."""

import os

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.compile.farm import protocol
from evo.compile.farm.protocol import MAX_FRAME_BYTES, MAX_HEADER_BYTES, MAX_MESSAGE_BYTES, ProtocolError, decode, encode

MESSAGES = [
    ("hello", {"evo": "1"}, 4, "host"),
    ("beat",),
    ("answer", 7, "", 0.5, 0.25, b"cubin"),
    ("request", 7, "sm_90", 64, ["--fmad=false"], bytes(24), b"", bytes(32), b"language", b"template"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message[0])
def test_a_message_arrives_as_it_was_sent(message):
    header = msgpack.unpackb(encode(message)[0])
    assert header == [part for part in message if not isinstance(part, bytes)]  # which other languages read
    assert decode(encode(message)) == message


@pytest.mark.parametrize("size", [0, -1, 1, MAX_FRAME_BYTES])
def test_data_of_any_size_arrive_in_small_frames_and_only_whole(size):
    data = [os.urandom(MAX_FRAME_BYTES + size) for _ in range(2)]
    frames = encode(("kind", *data))
    assert max(map(len, frames)) == min(MAX_FRAME_BYTES, len(data[0]))
    assert decode(frames) == ("kind", *data)
    for cut in range(1, len(frames)):
        assert len(decode(frames[:cut])) < 3


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"\xc1"],
        [b"garbage"],
        [msgpack.packb({"hello": 1})],
        [msgpack.packb("hello")],
        [msgpack.packb(["beat"]) + b"more"],
        [b"\x91" * 10_000],
        [b"\xdd\xff\xff\xff\xff"],
        [msgpack.packb(["x" * MAX_HEADER_BYTES])],
        [msgpack.packb(["answer"]), *[bytes(MAX_FRAME_BYTES)] * (MAX_MESSAGE_BYTES // MAX_FRAME_BYTES), b""],
    ],
)
def test_frames_that_are_no_message_or_exceed_a_bound_are_refused(frames):
    with pytest.raises(ProtocolError):
        decode(frames)


@given(st.lists(st.binary(max_size=64), max_size=4))
def test_any_frames_are_a_message_or_refused(frames):
    try:
        message = decode(frames)
    except ProtocolError:
        return
    assert type(message) is tuple


def test_a_difference_in_versions_is_named_with_both():
    ours = protocol.versions()
    assert {"protocol", "evo", "nvPTXCompiler", "instruction sets"} <= set(ours)
    assert protocol.first_difference(ours) is None
    for name in ours:
        assert protocol.first_difference({**ours, name: "0\n"}) == (
            f"the worker has {name} 0? and the run has {ours[name]}: install one version of evo on both machines"
        )
    assert "the worker has protocol none" in protocol.first_difference({})
