"""Names and headers of C and C++.

Owns what all generated C has in common. Knows nothing of what a header is for.
"""

import re
from collections.abc import Sequence

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
    new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
    typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    """.split()
)
"""Keywords of C99 and C++20."""


def header(remark: Sequence[str], body: Sequence[str], file_name: str) -> str:
    """A header: lines of an opening remark, then those between its guards, which are named after the file."""
    guard = "_" * file_name[:1].isdigit() + re.sub(r"[^A-Za-z0-9_]", "_", file_name).upper()
    opening = ["/*", *(f" * {line}".rstrip() for line in remark), " */"]
    return "\n".join([*opening, "", f"#ifndef {guard}", f"#define {guard}", "", *body, "", f"#endif /* {guard} */", ""])
