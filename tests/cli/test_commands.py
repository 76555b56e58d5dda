"""docs/commands.md has every command, and every command says what it is for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cli.main import app

PAGE = (Path(__file__).parent.parent.parent / "docs" / "commands.md").read_text()


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command of the app by its whole name."""
    todo: list[tuple[str, Any]] = [("roadstead", typer.main.get_command(app))]
    while todo:
        name, command = todo.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            todo += [(f"{name} {word}", below) for word, below in inner.items()]


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_section_with_an_example_and_says_what_it_is_for(name: str) -> None:
    assert re.search(rf"^### {name}\n```console\n(\$ )?{name}\b", PAGE, re.MULTILINE)
    assert COMMANDS[name].help


def test_the_page_names_no_command_and_no_option_that_is_not_there() -> None:
    assert set(re.findall(r"^### (.+)$", PAGE, re.MULTILINE)) == set(COMMANDS)
    examples = "\n".join(re.findall(r"```console\n(.*?)```", PAGE, re.S)).replace("\\\n", " ")
    for text in re.findall(r"^(?:\$ )?(roadstead .*)$", examples, re.MULTILINE):
        words = shlex.split(text)
        command = COMMANDS.get(" ".join(words[:2])) or COMMANDS[" ".join(words[:3])]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, text
