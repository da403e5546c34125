"""Headers of `python -m evo.instructions`: they compile, C, C++ and Python have the same words, a mistake is one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from compilers import CSRC, build, run

from evo import stack_ptx
from evo.instructions import SHIPPED, describe_instruction_set, shipped_instruction_set
from evo.instructions.__main__ import main
from evo.instructions.header import render_header
from evo.native.stack_ptx_words import META_OPERATIONS

# Command -> language and standard.
LANGUAGES = {name: ("cpp", "c++11") if name.endswith("++") else ("c", "c99") for name in ("gcc", "clang", "g++", "clang++")}
# A set with every kind of entry, and none of the default set's indices.
SMALL = {
    "abi_version": 1,
    "stack_types": [
        {"name": "flag", "literal_prefix": "pred"},
        {"name": "Number", "literal_prefix": "f32", "constant_type": "f32"},
        {"name": "Signed", "literal_prefix": "s32", "constant_type": "s32", "encoder_type": "u32"},
        {"name": "Wide", "literal_prefix": "f64", "constant_type": "f64"},
    ],
    "arg_types": [
        {"name": "Flag", "stack_type": "flag"},
        {"name": "Number", "stack_type": "Number"},
        {"name": "V4_Number", "stack_type": "Number", "num_vec_elems": 4},
    ],
    "instructions": [
        {"ptx": "min.f32", "args": ["Number", "Number"], "rets": ["Number"], "num_commutative": 2},
        {"ptx": "setp.lt.f32", "args": ["Number", "Number"], "rets": ["Flag", "Flag"], "name": "Less", "volatile": True},
        {"ptx": "pick.f32 1, 2", "args": ["V4_Number"], "rets": ["Number"], "aligned": True},
    ],
    "special_registers": [],
}


def generate(*arguments: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-P", "-m", "evo.instructions", "generate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def output(folder: Path, command: str, header: str, source: str) -> str:
    """The output of a program that is compiled, with its header `set.h`, without a warning."""
    (folder / "set.h").write_text(header)
    return run(build(folder, command, LANGUAGES[command][1], source, "-I", folder)).stdout


def test_checked_in_headers_are_what_the_generator_writes(tmp_path):
    CliRunner().invoke(main, ["tables", str(tmp_path)], catch_exceptions=False)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {path.name: path.read_text() for path in (CSRC / "generated").iterdir()}


@pytest.mark.parametrize("command", LANGUAGES)
@pytest.mark.parametrize("name", [*SHIPPED, "small"])
def test_headers_compile_without_warnings_and_hold_the_set(tmp_path, command, name):
    instruction_set = describe_instruction_set(SMALL) if name == "small" else shipped_instruction_set(name)
    lang = LANGUAGES[command][0]
    prefix = "stack_ptx_" if lang == "c" else "stack_ptx::"
    info, words, traits = f"{prefix}stack_info", f"{prefix}ptx_instructions", f"{prefix}traits"
    source = f"""
#define STACK_PTX_IMPLEMENTATION
#include "stack_ptx.h"
#include "set.h"
#include "set.h"
#include <stdio.h>
int main(void) {{
    size_t i, k;
    for (i = 0; i < {info}.num_stacks; ++i) {{
        printf("%s %d\\n", {info}.stack_literal_prefixes[i], {traits}.constant_types[i]);
    }}
    for (i = 0; i < {info}.num_ptx_instructions; ++i) {{
        const StackPtxPtxInstructionDescriptor* one = &{info}.ptx_instruction_descriptors[i];
        printf("%s", {info}.ptx_instruction_strings[i]);
        printf(" %u %u", (unsigned){words}[i].instruction_type, (unsigned){words}[i].payload.u);
        for (k = 0; k < 4; ++k) {{ printf(" %d", one->arg_types[k]); }}
        for (k = 0; k < 2; ++k) {{ printf(" %d", one->ret_types[k]); }}
        printf(" %d %d", one->num_unique_stacks, one->is_aligned);
        for (k = 0; k < 4; ++k) {{ printf(" %d %d", one->unique_stacks[k].stack_idx, one->unique_stacks[k].num_values); }}
        printf(" %d", {traits}.instructions[i].num_commutative);
        printf(" %d", {traits}.instructions[i].is_volatile);
        printf(" %d\\n", {traits}.instructions[i].registers_only);
    }}
    for (i = 0; i < {info}.num_special_registers; ++i) {{
        printf("%s %d", {info}.special_register_strings[i], {info}.special_register_descriptors[i].arg_type_idx);
        printf(" %d\\n", {traits}.volatile_special_registers[i]);
    }}
    return 0;
}}
"""
    lines = output(tmp_path, command, render_header(instruction_set, lang, "set.h"), source).splitlines()
    kinds = [None, "f32", "u32", "s32", "f64", "u64", "s64", "f16", "bf16"]
    none = len(instruction_set.arg_types)
    expected = [f"{stack.literal_prefix} {kinds.index(stack.constant_type)}" for stack in instruction_set.stacks]
    for index, one in enumerate(instruction_set.instructions):
        needs: dict[int, int] = {}
        for arg in one.args:
            arg_type = instruction_set.arg_types[arg]
            needs[arg_type.stack_idx] = needs.get(arg_type.stack_idx, 0) + (arg_type.num_vec_elems or 1)
        numbers = [1, index, *one.args, *[none] * (4 - len(one.args)), *one.rets, *[none] * (2 - len(one.rets))]
        numbers += [len(needs), int(one.aligned)]
        numbers += [number for pair in needs.items() for number in pair] + [0] * (2 * (4 - len(needs)))
        numbers += [one.num_commutative, int(one.volatile), int(one.registers_only)]
        expected.append(f"{one.ptx} {' '.join(map(str, numbers))}")
    expected += [f"{special.ptx} {special.arg_idx} {int(special.volatile)}" for special in instruction_set.special_registers]
    assert lines == expected


@pytest.mark.parametrize("command", ["gcc", "g++"])
def test_every_encoder_gives_the_word_of_python(tmp_path, command):
    lang = LANGUAGES[command][0]
    stack = "STACK_PTX_STACK_TYPE_{}" if lang == "c" else "stack_ptx::StackType::{}"
    u64, f64 = stack.format("U64"), stack.format("F64")
    words = stack_ptx.Words("wide")
    pairs = {f"ptx_instruction_{name}": words.instructions[name] for name in words.instructions}
    pairs |= {f"special_register_{name}": words.special[name] for name in words.special}
    pairs |= {f"meta_{name}({u64})": words.meta[name]("u64") for name in META_OPERATIONS}
    pairs |= {"return": words.RETURN, "routine(3)": words.routine(3)}
    pairs |= {"input(7)": words.registers(dict.fromkeys("abcdeghx", "f32"))["x"]}
    pairs |= {"load(9)": words.load(9), f"store({f64}, 5)": words.store("f64", 5)}
    pairs |= {"meta_constant(70000)": words.meta_constant(70000), "constant_f64(2.5f)": words.constants.f64(2.5)}
    pairs |= {"constant_s64(-3)": words.constants.s64(-3), "constant_philox(9)": words.constants.philox(9)}
    prefix = "stack_ptx_encode_" if lang == "c" else "stack_ptx::encode_"
    entries = ",\n".join(prefix + encoder for encoder in pairs)
    source = f"""
#include "stack_ptx.h"
#include "set.h"
#include <stdio.h>
#include <string.h>
static const StackPtxInstruction words[] = {{{entries}}};
int main(void) {{
    size_t i;
    for (i = 0; i < sizeof words / sizeof words[0]; ++i) {{
        unsigned long long bits = 0;
        memcpy(&bits, &words[i], sizeof words[i]);
        printf("%llu\\n", bits);
    }}
    return 0;
}}
"""
    found = output(tmp_path, command, render_header(words.instruction_set, lang, "set.h"), source).split()
    assert list(map(int, found)) == list(map(int, pairs.values()))


def test_generate_writes_the_header_of_a_file(tmp_path):
    source, output = tmp_path / "small.json", tmp_path / "2 sets.h"
    source.write_text(json.dumps(SMALL))
    done = generate("--input", source, "--output", output, "--lang", "c")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    text = output.read_text()
    assert text == render_header(describe_instruction_set(SMALL), "c", "2 sets.h")
    assert "#ifndef _2_SETS_H\n" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2 sets.h", "small.json"]
    done = generate("--input", source, "--output", source, "--lang", "c")
    assert (done.returncode, done.stderr) == (2, f"{source}: would overwrite the input {source}\n")
    assert json.loads(source.read_text()) == SMALL


def test_a_mistake_is_one_line_and_exit_code_2_and_the_output_stays(tmp_path):
    source, output = tmp_path / "set.json", tmp_path / "set.h"
    source.write_text(json.dumps({**SMALL, "two\nlines": 1}))
    output.write_text("as it was")
    done = generate("--input", source, "--output", output, "--lang", "cpp")
    told = f"{source}: key 'two\\nlines': Extra inputs are not permitted\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)
    assert output.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.h", "set.json"]
