"""Annotated PTX: what its sites are, what is rendered into them, and what is refused."""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

from evo.native.ptx_inject import Inject, PtxInject, Variable

SITE = """{{
.reg .f32 %_x0;
.reg .u32 %_x1;
mov.f32 %_x0, %f1;
// PTX_INJECT_START {name}
// _x0 m f32 F32 y
// _x1 o u32 U32 z
// _x2 i f32 F32 x
// PTX_INJECT_END
mov.f32 %f1, %_x0;
}}
"""


def site(name: str) -> str:
    return SITE.format(name=name)


def text_of(name: str, stub: str) -> bytes:
    begin, end = site(name).index("// PTX_INJECT_START"), site(name).index("// PTX_INJECT_END") + len("// PTX_INJECT_END")
    return (site(name)[:begin] + stub + site(name)[end:]).encode()


def test_sites_are_told_by_name_in_order_of_appearance():
    inject = PtxInject("head\n" + site("b") + site("a") + site("b"))
    variables = (Variable("y", "_x0", "mod", "f32", "F32"), Variable("z", "_x1", "out", "u32", "U32"), Variable("x", "_x2", "in", "f32", "F32"))
    assert inject.num_injects == 2
    assert inject.injects == (Inject("b", 0, 2, variables), Inject("a", 1, 1, variables))
    assert inject.info("a") == inject.injects[1]
    with pytest.raises(KeyError):
        inject.info("c")


def test_a_stub_stands_in_place_of_its_markers_at_every_site_of_the_name():
    inject = PtxInject("head\n" + site("b") + site("a") + site("b") + "tail")
    expected = b"head\n" + text_of("b", "STUB B") + text_of("a", "a") + text_of("b", "STUB B") + b"tail"
    assert inject.render(["STUB B", b"a"]) == expected
    assert inject.render(["STUB B", b"a"]) == expected, "a second call gives the same"


def test_what_is_rendered_has_the_length_of_its_text_and_no_more():
    inject = PtxInject(site("a"))
    for length in [0, 1, 7, 8, 100_000]:
        assert inject.render(["s" * length]) == text_of("a", "s" * length)


def test_text_without_markers_is_rendered_as_it_is():
    assert PtxInject("nothing here").num_injects == 0
    assert PtxInject(b"nothing here").render([]) == b"nothing here"
    assert PtxInject("").render([]) == b""


def test_the_handle_needs_neither_the_text_nor_the_stubs_afterwards():
    inject = PtxInject("".join([site("a")]))
    rendered = inject.render(["".join(["x", "y"])])
    gc.collect()
    assert inject.info("a").variables[0].name == "y"
    assert rendered == text_of("a", "xy")


@pytest.mark.parametrize("stubs", [[], ["one"], ["one", "two", "three"]])
def test_as_many_stubs_as_names_or_none_is_rendered(stubs):
    with pytest.raises(ValueError, match=f"stubs: {len(stubs)}, but the PTX has sites of 2 names"):
        PtxInject(site("a") + site("b")).render(stubs)


@pytest.mark.parametrize(
    ("ptx", "line"),
    [
        ("\n// PTX_INJECT_END\n", 2),
        ("// PTX_INJECT_START a\n// _x0 o f32 F32 z\n", 1),
        (site("a").replace("_x1 o u32", "_x1 q u32"), 7),
        (site("a") + site("a").replace("_x1 o u32", "_x1 o f32"), 11 + 7),
    ],
)
def test_wrong_markers_are_refused_by_line(ptx, line):
    with pytest.raises(ValueError, match=rf"annotated PTX, line {line}, column \d+: ."):
        PtxInject(ptx)


def test_a_nul_cannot_hide_the_rest_of_a_text():
    with pytest.raises(ValueError, match="ptx: holds a NUL at byte 3"):
        PtxInject("abc\0" + site("a"))
    with pytest.raises(ValueError, match="stub: holds a NUL at byte 1"):
        PtxInject(site("a")).render(["a\0b"])


def test_threads_share_one_handle():
    inject = PtxInject("".join(site(f"s{i}") for i in range(200)))
    with ThreadPoolExecutor(4) as executor:
        results = list(executor.map(lambda text: inject.render([text] * 200), [str(i) * 50 for i in range(40)]))
    assert results == [b"".join(text_of(f"s{j}", str(i) * 50) for j in range(200)) for i in range(40)]
