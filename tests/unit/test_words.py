"""The English of pages, docstrings, messages and public headers: turns that readers stumble over, and what to write instead."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PATTERNS = ("[ACRS]*.md", "docs/**/*.md", "docs/**/*.ipynb", "runs/*.md", "tasks/**/*.md", "templates/**/*.md")
PATTERNS += ("evo/**/*.py", "evo/**/*.pyx", "tasks/**/*.py", "templates/**/*.py", "csrc/*.h")
FILES = sorted({path for pattern in PATTERNS for path in REPOSITORY.glob(pattern)} - {REPOSITORY / "CHANGELOG.md"})

# Forbidden words -> an engineer's.
TURNS = {
    r"\bso many\b": "the number's name, or 'this many'",
    r"\b(?:than|from|by|to) which (?:none|no)\b": "a sentence of its own",
    r"\blet in\b": "admitted, accepted",
    r"\bof all[.,;:]": "of all elites, of all runs",
    r"\ball the same\b": "equal; still",
    r"\bin the place of\b": "in place of, instead of",
    r"\b[Ss]ome (?:\d|tens |ten |hundred)": "about 10, dozens, about a hundred",
    r"\b(?:un)?dear(?:er|est)?\b": "expensive",
    r"\bshall\b": "should, will",
    r"\byoungest\b": "newest",
    r'(?:[.:;|] |""")Of ': "subject first: 'the 10 runs: three find', 'if two are equal, the first wins'",
    r"\bmeanwhile[.,;:]": "during the run, at the same time",
    r"\b[Ii]n that case not\b": "unless",
    r"\b[Tt]hose (?:are|is) \w+ (?:from|by|to|of) which\b": "subject first: 'records without living descendants are dropped'",
    r"\bone's own\b": "your own",
    r"\bfor want of\b": "because it lacks",
    r"\b(?:comes?|came) to (?:no|an) end\b": "ends, times out",
    r"\bnot surely\b": "not significantly",
    r"\b(?<!there )(?<!There )(?:is|are) no (?!longer\b|more\b|less\b|wider\b|better\b|worse\b)[a-z]": "is not a",
    r"\btold of\b": "given, says",
    r"\bgoes round\b": "runs through one loop",
    r"\basks nobody\b": "sends no requests",
    r'(?:"""|/\* )(?:What|Those|How|Where|Which|Who)\b': "a verb or the noun first",
}


def test_no_page_docstring_or_message_has_a_turn_that_readers_stumble_over():
    for path in FILES:
        text = re.sub(r"\s*\n\s*(?:# |\* |// )?", " ", path.read_text())  # as one line, without the marks of comments
        for turn, better in TURNS.items():
            turns = [text[max(0, m.start() - 40) : m.end() + 40] for m in re.finditer(turn, text)]
            assert not turns, f"{path}: write instead: {better}"
