"""evo.ptx_inject: sites and variables by name, and stubs by name in every site."""

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from evo import stack_ptx
from evo.errors import UserError
from evo.ptx_inject import AnnotationError, PTXInject, Variable, _listed, process_cuda
from evo.ptx_inject.types import load_types

# One site of `func` with its variables, and two of `other` without; marker lines are the comment form of csrc/ptx_inject.h.
FUNC = "// PTX_INJECT_START func\n// %f5 mod f32 y\n// %f2 out f32 z\n// %r7 in s32 x[0]\n// PTX_INJECT_END\n"
OTHER = "// PTX_INJECT_START other\n// PTX_INJECT_END\n"
PTX = f"first\n{OTHER}{FUNC}{OTHER}last é\n"


def test_sites_and_variables_are_found_by_name():
    inject = PTXInject(PTX)
    assert list(inject) == ["other", "func"], "in order of appearance"
    assert len(inject) == 2
    assert "func" in inject and "x" not in inject
    func = inject["func"]
    assert (func.name, func.num_sites, len(func)) == ("func", 1, 3)
    assert list(func) == ["y", "z", "x[0]"], "in marker order"
    x = func["x[0]"]
    assert (x.name, x.register, x.mutability, x.data_type, x.register_type) == ("x[0]", "_x2", "in", "s32", "s32")
    assert [variable.mutability for variable in func.values()] == ["mod", "out", "in"]
    assert func["z"] == Variable("z", "_x1", "out", "f32", "f32")
    assert (inject["other"].num_sites, dict(inject["other"])) == (2, {})


def test_each_site_gets_the_stub_of_its_name():
    assert PTXInject(f"a\n{OTHER}b\n{OTHER}é\n").render({"other": "STUB ü"}) == "a\nSTUB ü\nb\nSTUB ü\né\n"
    rendered = PTXInject(PTX).render({"func": "FUNC", "other": "OTHER"})
    assert rendered.count("OTHER\n") == 2
    assert rendered.count("FUNC\n") == 1
    assert rendered.startswith("first\nOTHER\n{\n.reg .f32 %_x0;\n")
    assert rendered.endswith("mov.f32 %f5, %_x0;\nmov.f32 %f2, %_x1;\n}\nOTHER\nlast é\n")


def test_a_description_is_json_that_compiles_stubs_elsewhere():
    description = json.loads(json.dumps(PTXInject(PTX).describe()))
    assert description == {
        "abi_version": 1,
        "sites": [
            {"name": "other", "num_sites": 2, "variables": []},
            {
                "name": "func",
                "num_sites": 1,
                "variables": [
                    {"name": "y", "register": "_x0", "mutability": "mod", "register_type": "f32", "data_type": "f32"},
                    {"name": "z", "register": "_x1", "mutability": "out", "register_type": "f32", "data_type": "f32"},
                    {"name": "x[0]", "register": "_x2", "mutability": "in", "register_type": "s32", "data_type": "s32"},
                ],
            },
        ],
    }
    y, z, _ = [Variable(**fields) for fields in description["sites"][1]["variables"]]
    words = stack_ptx.Words()
    registers = words.registers({v.register: v.register_type for v in (y, z)})
    stub = stack_ptx.Compiler(registers, requests=[registers[z.register]]).compile([registers[y.register]])
    assert "mov.f32 %_x1, %_x0;" in PTXInject(PTX).render({"func": stub, "other": ""})


@pytest.mark.parametrize("name", ["fun", "", "func\0", "func ", "fünc", 3, None])
def test_what_names_no_site_is_not_there(name):
    inject = PTXInject(PTX)
    assert name not in inject
    assert inject.get(name) is None


def test_bytes_are_utf8():
    assert PTXInject(PTX.encode()).render({"func": "", "other": ""}) == PTXInject(PTX).render({"func": "", "other": ""})
    with pytest.raises(AnnotationError, match="line 2, column 3: a byte that is not UTF-8"):
        PTXInject(b"a\nb \xff\n")


@pytest.mark.parametrize(
    ("stubs", "error", "message"),
    [
        ({"func": ""}, ValueError, "stubs: none for 'other'"),
        ({}, ValueError, "stubs: none for 'other', 'func'"),
        ({"func": "", "other": "", "fun": ""}, ValueError, "the PTX has no site 'fun', only 'other', 'func'"),
        ({"func": "", "other": None}, TypeError, "stubs: the one for 'other' is NoneType, expected str"),
        ({"func": "", "other": "a\0"}, ValueError, "stub: holds a NUL at byte 1"),
        (["", ""], TypeError, "expected a mapping from names to stubs, not list"),
    ],
)
def test_stubs_that_do_not_fit_are_refused_by_name(stubs, error, message):
    with pytest.raises(error, match=message):
        PTXInject(PTX).render(stubs)


def test_unknown_names_are_refused_with_the_known_ones():
    inject = PTXInject(PTX)
    with pytest.raises(KeyError, match="no site 'fun', only 'other', 'func'"):
        inject["fun"]
    with pytest.raises(KeyError, match=r"site 'func' has no variable 'x', only 'y', 'z', 'x\[0\]'"):
        inject["func"]["x"]
    with pytest.raises(KeyError, match="no variable 'x', only none"):
        inject["other"]["x"]


FRAGMENTS = st.sampled_from(
    [
        b"/* PTX_INJECT s\n",
        b" in f32 x\n",
        b" out u32 \xc3\xa9\n",
        b"*/",
        b"\0",
        b"\xff",
        b"// PTX_INJECT_START s\n",
        b"// _x0 i f32 F32 x\n",
        b"// %f1 mod f32 x\n",
        b"// PTX_INJECT_END\n",
        b'{"abi_version": 1, "data_type_infos": [',
        b'{"name": "a"}',
        b"]}",
        b'"\\ud800"',
        b"NaN",
    ]
)
ANY_BYTES = st.lists(FRAGMENTS | st.binary(max_size=6), max_size=8).map(b"".join)


@hypothesis.given(ANY_BYTES)
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_any_bytes_are_read_or_refused_with_a_place(tmp_path, content):
    for read in (process_cuda, PTXInject):
        if error := error_of(read, content, AnnotationError):
            lines = content.split(b"\n")
            assert 1 <= error.line <= len(lines)
            assert 1 <= error.column <= len(lines[error.line - 1]) + 1
            assert error.reason
    path = tmp_path / "types.json"
    path.write_bytes(content)
    if error := error_of(load_types, path, UserError):
        assert str(error).startswith(f"{path}:")
        assert len(str(error).splitlines()) == 1


def error_of(call, argument, expected):
    """The error of a call, or None."""
    try:
        call(argument)
    except expected as error:
        return error
    return None


def test_a_message_lists_up_to_twenty_names():
    names = [f"n{number}" for number in range(21)]
    assert _listed(names[:20]).endswith("'n18', 'n19'") and _listed(names).endswith("'n18', 'n19', ...")
    assert _listed([]) == "none"
