"""An animation as SVG: a stack program word by word, and what its stack holds. `docs/pictures.py` writes it."""

from __future__ import annotations

import html

from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula_text import INFIX
from evo.language.printer import lines_of
from evo.language.program import Language, parse_program

PROGRAM = "%y add_ftz_f32 0.5 mul_ftz_f32 %x %x mul_ftz_f32 add_ftz_f32 sin_approx_ftz_f32"
DEPTH = 3  # of the stack, at most
SECONDS = 1.6  # per word; the end stays three times as long
WIDTH, HEIGHT, TOP, ROW = 720, 300, 58, 26
SANS = 'font-family="Helvetica, Arial, sans-serif"'
MONOSPACE = 'font-family="Menlo, Consolas, monospace" font-size="13"'


def stacks(language: Language, words: list[str]) -> list[list[str]]:
    """Contents of the stack after each number of words, the top first."""
    found: list[list[str]] = [[]]
    for count in range(1, len(words) + 1):
        expression = dag_of(language, parse_program(language, " ".join(words[:count]), "PROGRAM", len(words) + 1))
        texts = lines_of(expression, INFIX).outputs
        found.append([text for text, value in zip(texts, expression.results, strict=True) if value is not None])
    return found


def what_happens(before: list[str], after: list[str]) -> str:
    if before == after:
        return "lacks an operand: skipped"
    if len(after) > len(before):
        return "is pushed"
    return f"takes {len(before) - len(after) + 1}, pushes 1"


def text(x: float, y: float, content: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{html.escape(content)}</text>'


def frame(words: list[str], index: int, held: list[list[str]]) -> str:
    """The words with that at `index` marked, and the stack after it; beyond the last word, the result."""
    parts = []
    if index < len(words):
        parts.append(f'<rect x="20" y="{TOP + ROW * index - 17}" width="330" height="23" rx="5" fill="#e4e0fa"/>')
        parts.append(text(178, TOP + ROW * index, what_happens(held[index], held[index + 1]), 'fill="#4b3f9e" font-size="13"'))
    stack = held[min(index + 1, len(words))]
    for place, value in enumerate(reversed(stack)):
        y = TOP + 2 * ROW + 34 * (DEPTH - 1 - place)
        is_result = index == len(words) and place == len(stack) - 1
        fill, stroke = ("#4b3f9e", "#4b3f9e") if is_result else ("#fff", "#7a7a8c")
        parts.append(f'<rect x="400" y="{y}" width="290" height="29" rx="5" fill="{fill}" stroke="{stroke}"/>')
        parts.append(text(412, y + 19, value, f'fill="{"#fff" if is_result else "#222"}" {MONOSPACE}'))
    if index == len(words):
        parts.append(text(400, TOP + 2 * ROW + 34 * DEPTH + 24, "What is on top is the output.", 'fill="#4b3f9e" font-size="13"'))
    return "\n".join(parts)


def shown(content: str, begin: float, end: float, total: float) -> str:
    """A part of the drawing that is there from `begin` to `end` seconds of each round."""
    times, values = [0.0, begin / total, end / total], ["hidden", "visible", "hidden"]
    if begin == 0.0:
        times, values = times[1:], values[1:]
    if end == total:
        times, values = times[:-1], values[:-1]
    animation = (
        f'<animate attributeName="visibility" values="{";".join(values)}" keyTimes="{";".join(f"{time:.5f}" for time in times)}" '
        f'calcMode="discrete" dur="{total:g}s" repeatCount="indefinite"/>'
    )
    still = "visible" if end == total else "hidden"  # where nothing moves, such as in print
    return f'<g visibility="{still}">{animation}\n{content}\n</g>'


def drawing() -> str:
    outputs = tuple((f"output_{index}", "f32") for index in range(DEPTH))
    language = Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), outputs)
    words = PROGRAM.split()
    held = stacks(language, words)
    total = SECONDS * (len(words) + 3)
    frames = [
        shown(frame(words, index, held), SECONDS * index, total if index == len(words) else SECONDS * (index + 1), total)
        for index in range(len(words) + 1)
    ]
    label = f"A stack program, word by word: {html.escape(held[-1][0])}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {SANS} role="img" aria-label="{label}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fbfbfd"/>',
        text(28, 28, "words", 'font-size="15" font-weight="bold" fill="#2b2466"'),
        text(400, 28, "stack", 'font-size="15" font-weight="bold" fill="#2b2466"'),
        f'<path d="M400 {TOP + 2 * ROW + 34 * DEPTH}H690" stroke="#7a7a8c" stroke-width="2"/>',
        *frames,
        *(text(28, TOP + ROW * index, word, f'fill="#222" {MONOSPACE}') for index, word in enumerate(words)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
