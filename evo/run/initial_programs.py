"""The programs that generation 0 is given: `search.initial.programs`.

Owns the way from files, texts and other runs' elites to words, and what is refused. Runs none of them, and no other run's task.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.config import RunConfig
from evo.errors import UserError, os_errors_as
from evo.language.infix import parse_infix
from evo.language.program import Language, parse_program
from evo.native.stack_ptx_words import WordType
from evo.native.vary import program_lengths
from evo.run.loaded_task import Problem
from evo.run.restore import load
from evo.run.run_dir import RunDir
from evo.storage.files import exists, read_text
from evo.tasks.answers import method_place, task_errors

INITIAL_PROGRAMS = "search.initial.programs"
_LIKE_A_PATH = re.compile(r"[^\s()*]*(/|\.[A-Za-z]\w*$)[^\s()*]*")


def read_initial(problem: Problem) -> NDArray[np.uint64]:
    """Reads the config's programs, in its order, and the task's, as words `(num_programs, width)`; no wider than they need.

    Raises:
        UserError: one cannot be read, is too long, or uses what the config's programs may not; the message says where.
    """
    entries = problem.config.search.initial.programs
    parts = [_read(problem, entry, f"{INITIAL_PROGRAMS}.{number}") for number, entry in enumerate(entries)]
    with task_errors(type(problem.task), "programs"):
        answer = problem.task.programs()
        texts = [answer] if isinstance(answer, str) else list(answer)
    if wrong := [text for text in texts if not isinstance(text, str)]:
        location = method_place(type(problem.task), "programs")
        raise UserError(f"programs() must return formulas or programs as text, got {wrong[0]!r}", location)
    for text in texts:
        with suppress(UserError):  # the vocabulary is the user's
            parts.append(_parse(problem, text, "programs()"))
    words = np.concatenate([np.zeros((0, problem.config.program.max_length), np.uint64), *parts])
    return words[:, : int(program_lengths(words).max(initial=0)) + 1]


def with_digest(problem: Problem, words: NDArray[np.uint64]) -> Problem:
    """The problem with the digest of `read_initial`'s words in its config. Raises UserError: the config has another one."""
    if not len(words):
        return problem
    digest = hashlib.sha256()
    for row, length in zip(words, program_lengths(words), strict=True):
        digest.update(np.append(row[:length], np.uint64(WordType.RETURN)).astype("<u8").tobytes())
    initial = problem.config.search.initial
    current = digest.hexdigest()
    if initial.digest not in (None, current):
        raise UserError(
            "the programs are not those that the config was written with; to take them as they are now: "
            "--set search.initial.digest=null",
            "search.initial.digest",
        )
    return replace(problem, config=_with_initial(problem.config, current))


def _with_initial(config: RunConfig, digest: str) -> RunConfig:
    initial = config.search.initial.model_copy(update={"digest": digest})
    return config.model_copy(update={"search": config.search.model_copy(update={"initial": initial})})


def _read(problem: Problem, entry: str, key: str) -> NDArray[np.uint64]:
    """The programs of an entry: a run folder, a file with a program, or a text, which messages call by the key."""
    path = Path(entry)
    if not exists(path):
        try:
            return _parse(problem, entry, key)
        except UserError as error:
            raise no_file_nor_formula(key, entry, error) from None
    if path.is_dir():
        return _elites_of_run(problem, path)
    with os_errors_as(f"{path}: cannot read the program"):
        return _parse(problem, read_text(path), str(path))


def no_file_nor_formula(source: str, text: str, error: UserError) -> UserError:
    """Why a text, which is not a formula by an error, cannot be read: it may have been meant as a path."""
    if not _LIKE_A_PATH.fullmatch(text):
        return error
    return UserError(f"there is no file or folder '{text}', and it is not a formula: {error.reason}", source)


def _parse(problem: Problem, text: str, source: str) -> NDArray[np.uint64]:
    """A program in text form, or a formula."""
    language, program = problem.language, problem.config.program
    if not is_text_form(language, text):
        allowed, units = program.vocabulary.instructions, problem.task.input_scaling()
        return parse_infix(language, text, source, program.max_length, allowed, units)[None]
    words = parse_program(language, text, source, program.max_length)[None]

    lines = [number for number, line in enumerate(text.splitlines(), 1) for _ in line.partition("#")[0].split()]
    _check(problem, words, lambda _, word: f"{source}:{lines[word]}")
    return words


def is_text_form(language: Language, text: str) -> bool:
    """Return whether a text is a program's text form (`evo.language.program`), right or wrong, rather than a formula: it has an
    input with its %, an instruction by itself, or nothing but tokens.
    """
    tokens = [token for line in text.splitlines() for token in line.partition("#")[0].split()]
    names = {instruction.name for instruction in language.instruction_set.instructions}
    if any(token in names or (token.startswith("%") and len(token) > 1) for token in tokens):
        return True
    return bool(tokens) and all(map(language.is_token, tokens))


def _elites_of_run(problem: Problem, path: Path) -> NDArray[np.uint64]:
    meta, arrays, _ = load(RunDir(path, writable=False))
    _check_instruction_set(problem, path, meta)
    return _elites(problem, path, arrays["elites.solution"], arrays["elites.cell"])


def _check_instruction_set(problem: Problem, path: Path, meta: dict[str, Any]) -> None:
    if meta["instruction_set_digest"] != problem.instruction_set_digest:
        raise UserError(
            f"its programs are of another instruction set than program.instruction_set, "
            f"'{problem.config.program.instruction_set}'",
            path,
        )


def _elites(problem: Problem, path: Path, solution: NDArray[np.uint64], cell: NDArray[np.int64]) -> NDArray[np.uint64]:
    max_length = problem.config.program.max_length
    if not len(solution):
        raise UserError("has no elites", path)
    lengths = program_lengths(solution)
    longest = int(np.argmax(lengths))
    if lengths[longest] > max_length:
        raise UserError(f"cell {cell[longest]}: {lengths[longest]} words, but program.max_length is {max_length}", path)
    words = np.zeros((len(solution), max_length), np.uint64)
    width = min(max_length, solution.shape[1])
    words[:, :width] = solution[:, :width]
    words[np.arange(max_length) >= lengths[:, None]] = 0
    ends = np.flatnonzero(lengths < max_length)
    words[ends, lengths[ends]] = WordType.RETURN
    _check(problem, words, lambda row, _: f"{path}: cell {cell[row]}")
    return words


def _check(problem: Problem, words: NDArray[np.uint64], location_of: Callable[[int, int], str]) -> None:
    """Refuses words that the config's programs cannot have. location_of: names a word of a row in messages."""
    language = problem.language
    names = [instruction.name for instruction in language.instruction_set.instructions]
    may_use = np.isin(names, list(problem.config.program.vocabulary.instructions))
    kinds, payloads = (words & np.uint64(0xFFFF)).astype(np.int64), (words >> np.uint64(32)).astype(np.int64)
    is_used = np.arange(words.shape[1]) < program_lengths(words)[:, None]
    is_known = (kinds == WordType.PTX) & (payloads < len(names))
    refused = {
        "is not in program.vocabulary.instructions": is_known & ~may_use[np.where(is_known, payloads, 0)],
        "is not an instruction of program.instruction_set": (kinds == WordType.PTX) & ~is_known,
        "is not an input of the task": (kinds == WordType.INPUT) & (payloads >= len(language.inputs)),
        "is not for a search: it has neither special registers nor routines": np.isin(
            kinds, (WordType.SPECIAL, WordType.ROUTINE)
        ),
    }
    for reason, is_wrong in refused.items():
        for row, column in np.argwhere(is_wrong & is_used)[:1].tolist():
            token = language.decode(int(words[row, column]))
            raise UserError(f"'{token}' {reason}", location_of(row, column))
