"""Annotated PTX: what its sites are, what is rendered into them, and what is refused."""

import pickle

import pytest

from evo.native.ptx_inject import AnnotatedPtx, AnnotationError, process_cuda

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


ANNOTATED = "f();\n/* PTX_INJECT s\n  out {type} z\n  in {type} x[0]\n*/ g();\n"


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
