"""Kernel templates: what travels, and that stubs find their sites in whatever order those are."""

import pytest

from evo.kernel.template import POINTWISE, fill_sites, task_ptx, task_template
from evo.native.ptx_inject import AnnotatedPtx

SITE = "{{\n.reg .f32 %_x0;\n// PTX_INJECT_START site_{0}\n// _x0 o f32 F32 y\n// PTX_INJECT_END\nst.f32 [{0}], %_x0;\n}}\n"


def test_a_tasks_own_kernel_is_sent_as_ptx():
    ptx = b"".join(SITE.format(i).encode() for i in range(64))
    template = task_template(ptx, 64)
    assert len(template.content) < len(ptx) / 5
    assert task_ptx(template.content) == ptx
    assert template.num_sites == 64
    assert task_template(ptx + b" ", 64).content != template.content


def test_the_content_of_another_template_is_refused():
    with pytest.raises(ValueError, match="template b'pointwise-1' is unknown"):
        task_ptx(POINTWISE.content)


def test_stubs_are_at_the_sites_of_their_numbers_and_further_sites_are_empty():
    inject = AnnotatedPtx("".join(SITE.format(i) for i in (2, 0, 3, 1, 0)))
    lines = fill_sites(inject, ["first", "second", "third"]).decode().splitlines()
    after = {i: f"st.f32 [{i}], %_x0;" for i in range(4)}
    expected = ["third", after[2], "first", after[0], after[3], "second", after[1], "first", after[0]]
    assert [line for line in lines if line and not line.startswith((".reg", "{", "}"))] == expected
