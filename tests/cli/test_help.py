"""Help texts show placeholders instead of Python types, and commands in the order in which a user meets them."""

from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from embinit.cli import app

GROUP = typer.main.get_command(app)
COMMANDS = sorted(GROUP.commands)  # type: ignore[attr-defined]
_TYPE = re.compile(r"<[a-z][a-z |\[\]]*>")
#: Special tokens that help texts name.
_TOKENS = {"<mask>", "<eos>"}


def shown(*words: str) -> str:
    """Return what a command prints in a terminal of 80 columns."""
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    assert result.exit_code in (0, 2), result.output
    return result.output


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=lambda words: " ".join(words) or "embinit")
def test_help_shows_no_python_types(words: list[str]) -> None:
    text = shown(*words, "--help")
    assert "--help" in text
    assert set(_TYPE.findall(text)) <= _TOKENS


def test_tokens_in_help_texts_are_printed() -> None:
    """Typer reads help texts as Markdown, in which a bare `<eos>` is a tag without a text."""
    text = shown("prepare", "--help")
    assert all(token in text for token in _TOKENS)


def test_a_number_has_a_placeholder_and_a_flag_has_none() -> None:
    lines = shown("inspect", "--help").splitlines()
    seed = next(line for line in lines if line.startswith("│ --seed "))
    assert re.search(r"--seed +N\b", seed)
    assert re.search(r"--lower +With ", next(line for line in lines if line.startswith("│ --lower ")))


def test_embinit_alone_lists_commands_along_the_usual_path() -> None:
    listed = re.findall(r"^│ (\w+)  ", shown(), re.MULTILINE)
    assert set(listed) == set(COMMANDS)
    path = [name for name in listed if name in ("inspect", "make", "new", "run", "report")]
    assert path == sorted(path, key=("inspect", "make", "new", "run", "report").index)
