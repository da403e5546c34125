"""Compile requests: what they hold, what their keys tell apart, and that nothing else decides."""

import pickle
from dataclasses import replace

import numpy as np
from compile_cases import program_text, programs

from evo.compile.language import decode_language, encode_language
from evo.compile.request import Compiled, CompileRequest, compile_request, pack_programs, render
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, Limits


def request_for(language, texts, **changes) -> CompileRequest:
    batch = programs(language, texts)
    packed = pack_programs(batch.words, batch.hashes)
    return replace(CompileRequest(*packed, encode_language(language), "sm_90", 64), **changes)


def test_a_language_survives_encoding(language):
    other = Language(
        shipped_instruction_set("default"), (("n", "u32"),), (("n", "u32"),), Limits(stack_size=7, execution_limit=9)
    )
    for original in (language, other):
        assert repr(decode_language(encode_language(original))) == repr(original)  # which has no semantics
        assert encode_language(decode_language(encode_language(original))) == encode_language(original)
    assert encode_language(language) != encode_language(other)
    assert decode_language(encode_language(language)) is decode_language(encode_language(language))


def test_words_after_a_return_are_not_sent_and_change_nothing(language):
    words = programs(language, ["%x %y mul_ftz_f32", "%x %x %x %x %x"]).words
    words[0, 3] = 10  # RETURN
    words[0, 4:] = 12345
    packed = pack_programs(words, np.zeros((2, 2), np.uint64))
    assert np.frombuffer(packed[1], "<u4").tolist() == [3, 5]
    assert np.frombuffer(packed[0], "<u8").tolist() == words[0, :3].tolist() + words[1, :5].tolist()


def test_stubs_are_at_the_sites_in_the_order_of_the_programs(language):
    text = render(
        request_for(language, ["%x 0.5 mul_ftz_f32", "%x 0.25 mul_ftz_f32", "%x 0.125 mul_ftz_f32"], sites_per_kernel=2)
    ).decode()
    places = [text.index(part) for part in ("pack_0", "0f3F000000", "0f3E800000", "pack_1", "0f3E000000")]
    assert places == sorted(places)
    assert "PTX_INJECT" not in text


def test_the_same_request_gives_the_same_cubin(language):
    request = request_for(language, [program_text(i) for i in range(3)])
    outcomes = [compile_request(pickle.loads(pickle.dumps(request))) for _ in range(2)]
    assert isinstance(outcomes[0], Compiled)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].compiler_s > 0


def test_the_cache_key_depends_on_everything_that_decides_a_cubin(language):
    texts = ["%x %y mul_ftz_f32", "%x"]
    request = request_for(language, texts)
    smaller = replace(language, limits=Limits(stack_size=5))
    # The programs mean the same, but the kernel has a parameter more.
    longer = replace(language, inputs=(*language.inputs, ("more", "f32")))
    assert request_for(longer, texts).hashes == request.hashes
    others = [
        request_for(longer, texts),
        request_for(language, texts[:1]),
        request_for(language, texts[::-1]),
        request_for(smaller, texts),
        replace(request, target="sm_80"),
        replace(request, sites_per_kernel=1),
        replace(request, options=("--fmad=false",)),
        replace(request, options=("--fmad=false", "--opt-level=", "3")),
        replace(request, template=b"other"),
    ]
    keys = [one.cache_key() for one in [request, *others]]
    assert len(set(keys)) == len(keys)
