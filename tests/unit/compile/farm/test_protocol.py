"""The farm's wire format: what is sent arrives, and whatever else arrives is refused."""

import hashlib
import os
import struct
import zlib

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")


from evo.compile.farm import protocol
from evo.compile.farm.protocol import (
    FROM_RUN,
    FROM_WORKER,
    Answer,
    Beat,
    Bye,
    Cancel,
    Hello,
    ProtocolError,
    Refused,
    Request,
    Shared,
    Welcome,
    Who,
    cubin_problem,
    decode,
    encode,
    seal,
)
from evo.compile.language import encode_language
from evo.compile.request import compile_request

DIGEST = bytes(range(16))
REQUEST = Request(7, DIGEST, bytes(24), struct.pack("<2I", 1, 2), bytes(32))
MESSAGES = {
    "worker": [Hello(2, {"evo": "1"}, 4, "host"), Beat(), Bye(""), Answer(7, "compiled", 0.5, 0.25, bytes(32), b"cubin")],
    "run": [
        Welcome(1.0, 60.0),
        Refused("no"),
        Who(),
        Beat(),
        Bye(),
        Shared("sm_90", 64, ("--fmad=false",), b"language", b"template"),
        REQUEST,
        Cancel(7),
    ],
}
ACCEPTED = {"worker": FROM_WORKER, "run": FROM_RUN}
ALL = [(side, message) for side, messages in MESSAGES.items() for message in messages]


@pytest.mark.parametrize(("side", "message"), ALL, ids=lambda value: getattr(value, "KIND", value))
def test_a_message_arrives_as_it_was_sent(side, message):
    assert decode(encode(message), ACCEPTED[side]) == message


@pytest.mark.parametrize("size", [0, -1, 1, protocol.MAX_FRAME_BYTES])
def test_data_of_any_size_arrive_though_frames_are_small(size):
    """About one full frame, and two."""
    blobs = [os.urandom(protocol.MAX_FRAME_BYTES + size) for _ in range(2)]
    message = Shared("sm_90", 64, (), *blobs)
    frames = encode(message)
    assert max(map(len, frames)) == min(protocol.MAX_FRAME_BYTES, len(blobs[0]))
    assert decode(frames, FROM_RUN) == message
    for cut in range(1, len(frames)):
        with pytest.raises(ProtocolError):
            decode(frames[:cut], FROM_RUN)


def test_a_message_beyond_the_bound_is_refused():
    full = bytes(protocol.MAX_FRAME_BYTES)
    frames = [header("shared", "sm_90", 64, ()), *[full] * (protocol.MAX_MESSAGE_BYTES // len(full)), b"", b"template"]
    with pytest.raises(ProtocolError, match="size of a message"):
        decode(frames, FROM_RUN)


@pytest.mark.parametrize(("side", "message"), ALL, ids=lambda value: getattr(value, "KIND", value))
def test_a_side_refuses_what_only_the_other_may_send(side, message):
    (other,) = set(ACCEPTED) - {side}
    if message.KIND in ACCEPTED[other]:
        return
    with pytest.raises(ProtocolError, match="wrong kind"):
        decode(encode(message), ACCEPTED[other])


def header(*values) -> bytes:
    return msgpack.packb(list(values))


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"\xc1"],
        [b"garbage"],
        [header()],
        [header(["hello"])],
        [header(3)],
        [header("shell", "rm")],
        [msgpack.packb({"hello": 1})],
        [msgpack.packb(msgpack.ExtType(5, b"x"))],
        [msgpack.packb("hello")],
        [header("beat") + b"more"],
        [header("beat"), b"a frame too many"],
        [header("beat", 1)],
        [b"\x91" * 10_000],
        [b"\xdd\xff\xff\xff\xff"],
        [header("beat").ljust(protocol.MAX_HEADER_BYTES + 1, b"\0")],
        [header("hello", 2, {"evo": "1"}, 4)],
        [header("hello", 2, {"evo": 1}, 4, "host")],
        [header("hello", 2, {1: "1"}, 4, "host")],
        [header("hello", 2, ["evo"], 4, "host")],
        [header("hello", 2, {}, 0, "host")],
        [header("hello", 2, {}, 10**9, "host")],
        [header("hello", 2, {}, 1.5, "host")],
        [header("hello", 2, {}, True, "host")],
        [header("hello", 2, {}, 4, "two\nlines")],
        [header("hello", 2, {}, 4, "x" * 2000)],
        [header("bye", None)],
        [header("answer", 7, "compiled", 0.0, 0.0, bytes(32))],
        [header("answer", -7, "compiled", 0.0, 0.0, bytes(32)), b""],
        [header("answer", 2**63, "compiled", 0.0, 0.0, bytes(32)), b""],
        [header("hello", 2**63, {}, 4, "host")],
        [header("answer", 7, "eaten", 0.0, 0.0, bytes(32)), b""],
        [header("answer", 7, "compiled", float("nan"), 0.0, bytes(32)), b""],
        [header("answer", 7, "compiled", 0.0, -1.0, bytes(32)), b""],
        [header("answer", 7, "compiled", 0.0, 0.0, "seal"), b""],
        [header("answer", 7, "rejected", 0.0, 0.0, bytes(32)), bytes(protocol.MAX_LOG_BYTES + 1)],
    ],
)
def test_a_run_refuses_garbage(frames):
    with pytest.raises(ProtocolError):
        decode(frames, FROM_WORKER)


@pytest.mark.parametrize(
    "frames",
    [
        [header("welcome", 0.0, 60.0)],
        [header("welcome", 1.0, float("inf"))],
        [header("shared", "sm_90", 0, []), b"", b""],
        [header("shared", "sm_90", 64, "--options"), b"", b""],
        [header("shared", "sm_90", 64, [1]), b"", b""],
        [header("shared", "sm_90", 64, ["-x"] * 65), b"", b""],
        [header("request", 1, DIGEST), b"", b"", b""],
        [header("request", 1, DIGEST[:-1]), bytes(8), b"\1\0\0\0", bytes(16)],
        [header("request", 1, DIGEST), bytes(8), b"\2\0\0\0", bytes(16)],
        [header("request", 1, DIGEST), bytes(9), b"\1\0\0\0", bytes(16)],
        [header("request", 1, DIGEST), bytes(8), b"\1\0\0\0\0", bytes(16)],
        [header("request", 1, DIGEST), bytes(8), b"\1\0\0\0", bytes(32)],
        [header("request", 1, DIGEST), b"", bytes(4 * 4097), bytes(16 * 4097)],
    ],
)
def test_a_worker_refuses_garbage(frames):
    with pytest.raises(ProtocolError):
        decode(frames, FROM_RUN)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8) | st.binary(max_size=32),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(sorted({*FROM_WORKER, *FROM_RUN}))


@given(
    kind=KINDS,
    fields=st.lists(VALUES, max_size=6),
    blobs=st.lists(st.binary(max_size=64), max_size=4),
    side=st.sampled_from(["worker", "run"]),
)
def test_whatever_comes_is_a_message_or_refused(kind, fields, blobs, side):
    try:
        message = decode([header(kind, *fields), *blobs], ACCEPTED[side])
    except ProtocolError:
        return
    assert decode(encode(message), ACCEPTED[side]) == message


def test_another_version_is_told_apart_from_garbage_however_its_hello_goes_on():
    for more in ([], [{"evo": "9"}, 4, "host"], ["something new", None]):
        with pytest.raises(ProtocolError, match="speaks protocol 3 and the run 2:"):
            decode([header("hello", 3, *more)], FROM_WORKER)


def test_a_difference_in_versions_is_named_with_both():
    ours = protocol.versions()
    assert {"evo", "nvPTXCompiler", "instruction sets"} <= set(ours)
    assert protocol.first_difference(ours, ours) is None
    for name in ours:
        assert protocol.first_difference({**ours, name: "0"}, ours) == (
            f"the worker has {name} 0 and the run has {ours[name]}: install one version of evo on both machines"
        )
    assert "the worker has extra 1 and the run has none:" in protocol.first_difference({**ours, "extra": "1"}, ours)


def test_every_shared_part_changes_the_digest():
    parts = {"target": "sm_90", "sites_per_kernel": 64, "options": ("a", "b"), "language": b"l", "template": b"t"}
    others = {"target": "sm_80", "sites_per_kernel": 65, "options": ("a", "c"), "language": b"lt", "template": b""}
    digests = {Shared(**{**parts, name: value}).digest for name, value in others.items()}
    assert len(digests | {Shared(**parts).digest}) == 6
    assert Shared(**{**parts, "language": b"", "template": b"lt"}).digest not in digests


def test_parts_that_unpack_to_too_much_are_refused(language):
    Shared("sm_90", 64, (), encode_language(language), b"pointwise-1").check_size()
    bomb = zlib.compress(bytes(protocol.MAX_UNPACKED_BYTES + 1), 1)
    assert len(bomb) < protocol.MAX_MESSAGE_BYTES
    for parts in ((bomb, b"pointwise-1"), (encode_language(language), b"ptx\0" + bomb)):
        with pytest.raises(ProtocolError, match="256 MiB"):
            Shared("sm_90", 64, (), *parts).check_size()


def test_a_seal_fits_one_content_and_one_request_only():
    assert seal(DIGEST, b"hashes", b"cubin") == hashlib.sha256(DIGEST + b"hashes" + b"cubin").digest()
    found = {
        seal(DIGEST, b"a" * 16, b"x"),
        seal(DIGEST, b"a" * 16, b"y"),
        seal(DIGEST, b"b" * 16, b"x"),
        seal(bytes(16), b"a" * 16, b"x"),
    }
    assert len(found) == 4


def test_a_cubin_passes_whole_and_in_no_other_state(request_of):
    request = request_of(5)
    assert request.kernel_sizes == (3, 2)
    cubin, kernels = compile_request(request).cubin, ["pack_0", "pack_1"]
    assert cubin_problem(cubin, kernels) is None
    assert cubin_problem(cubin + b"PTX of the emulated GPU", kernels) is None
    assert cubin_problem(cubin, [*kernels, "pack_2"]) == "without the kernel pack_2"
    for end in range(0, len(cubin), len(cubin) // 97):
        assert cubin_problem(cubin[:end], kernels), end
    assert cubin_problem(cubin[: len(cubin) - 1], kernels) == "truncated"
    assert cubin_problem(b"MZ" + cubin[2:], kernels) == "not an ELF file"


def test_a_damaged_cubin_never_breaks_its_check(request_of):
    cubin = compile_request(request_of(2)).cubin
    rng = np.random.Generator(np.random.Philox(5))
    for _ in range(300):
        damaged = bytearray(cubin)
        for place in rng.integers(0, 64, 4):
            damaged[place] = rng.integers(0, 256)
        cubin_problem(bytes(damaged), ["pack_0"])
