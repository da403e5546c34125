"""evo --help: what a newcomer reads first."""

import re

from click.testing import CliRunner

from evo.cli import main


def test_help_has_the_whole_first_sentence_of_each_verb():
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).stdout
    listed = " ".join(shown.partition("Commands:")[2].split())
    for name, command in main.commands.items():
        first = re.split(r"(?<=\.)\s", " ".join(command.help.split()))[0]
        assert f"{name} {first}" in listed
