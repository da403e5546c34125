"""Annotated PTX: what its sites are, what is rendered into them, and what is refused."""

import pickle

import pytest

from evo.native.ptx_inject import DEFAULT_TYPES, AnnotatedPtx, AnnotationError, DataType, Variable, process_cuda

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


def test_errors_name_the_language_and_the_place_and_survive_pickling():
    for call, text, language, line, column in (
        (AnnotatedPtx, site("a") + site("a").replace("_x1 o u32", "_x1 o f32"), "PTX", 11 + 7, 4),
        (process_cuda, ANNOTATED.format(type="f64"), "CUDA", 3, 7),
    ):
        with pytest.raises(AnnotationError, match=rf"annotated {language}, line {line}, column {column}: .") as caught:
            call(text)
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
            assert (error.language, error.line, error.column) == (language, line, column)
            assert str(error) == str(caught.value)


@pytest.mark.parametrize("call", [AnnotatedPtx, process_cuda])
@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("abc\0" + site("a"), 1, 4, "a NUL byte"),
        (b"a\n\xc3\xa9\0", 2, 3, "a NUL byte"),
        ("\0", 1, 1, "a NUL byte"),
        ("a\n\u00e9\ud800", 2, 3, "half of a surrogate pair"),
    ],
)
def test_what_c_cannot_read_is_refused_by_line_and_column(call, text, line, column, reason):
    with pytest.raises(AnnotationError, match=reason) as caught:
        call(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("stubs", "message"),
    [
        (["one"], "stubs: 1, but the PTX has sites of 2 names"),
        (["one", "two", "three"], "stubs: 3, but the PTX"),
        (["a\0b", ""], "stub: holds a NUL at byte 1"),
    ],
)
def test_stubs_that_do_not_fit_are_refused(stubs, message):
    with pytest.raises(ValueError, match=message):
        AnnotatedPtx(site("a") + site("b")).render(stubs)


def test_any_number_of_names_is_kept_apart():
    names = [f"s{i}" for i in range(5000)]
    inject = AnnotatedPtx("".join(map(site, names * 2)))
    assert [(one.name, one.index, one.num_sites) for one in inject.injects] == [(name, i, 2) for i, name in enumerate(names)]
    assert inject.render(names) == b"".join(text_of(name, name) for name in names * 2)


ANNOTATED = "f();\n/* PTX_INJECT s\n  out {type} z\n  in {type} x[0]\n*/ g();\n"
PROCESSED = """f();
asm(
    "// PTX_INJECT_START s\\n\\t"
    "// %0 out {type} z\\n\\t"
    "// %1 in {type} x[0]\\n\\t"
    "// PTX_INJECT_END"
    : "={char}"({cast}z)
    : "{char}"({cast}{operand})
); g();
"""


def test_custom_types_replace_the_default_ones():
    types = [DataType("mask", "u64", "b64", "l", "*(long*)&"), ("f16", "b16", "b16", "h")]
    assert process_cuda(ANNOTATED.format(type="mask"), types) == PROCESSED.format(
        type="mask", char="l", cast="*(long*)&", operand="(x[0])"
    )
    ptx = "// PTX_INJECT_START s\n// %rd1 mod mask m\n// PTX_INJECT_END\n"
    inject = AnnotatedPtx(ptx, types)
    assert inject.info("s").variables == (Variable("m", "_x0", "mod", "u64", "mask"),)
    assert inject.render(["STUB"]) == b"{\n.reg .u64 %_x0;\nmov.b64 %_x0, %rd1;\nSTUB\nmov.b64 %rd1, %_x0;\n}\n"
    for refused, reason in [(None, "not a type known here"), ([], "not one of the types"), (types[1:], "not one of the types")]:
        with pytest.raises(AnnotationError, match=f"line 2, column 13: {reason}"):
            AnnotatedPtx(ptx, refused)
    assert [data_type.name for data_type in DEFAULT_TYPES] == ["f16", "f16X2", "s32", "u32", "f32", "b32"]
    assert process_cuda(ANNOTATED.format(type="f16"), DEFAULT_TYPES) == process_cuda(ANNOTATED.format(type="f16"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AnnotatedPtx(3), "PTX: expected str or bytes, not int"),
        (lambda: process_cuda(None), "CUDA: expected str or bytes, not NoneType"),
        (lambda: AnnotatedPtx(site("a")).render([3]), "stub: expected str or bytes, not int"),
    ],
)
def test_arguments_that_are_not_text_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()
