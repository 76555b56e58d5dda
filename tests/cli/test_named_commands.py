"""Every command that a message of the app or of the command line names is one that the command line takes."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.app import COMMANDS, ROLLOUT
from cli.errors import ExitCode
from tests.support import fleet_files
from tests.support.git_folders import committed
from tests.support.pipeline_runs import ready
from tests.support.roadstead_command import roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent
NAME = "abcdef12"
"""The name of a cluster, and the beginning of a commit."""
PLACEHOLDERS = {
    "NAME": NAME,
    "COMMIT": NAME,
    "TEXT": "text",
    "TIME": "2h",
    "VERSION": "1.36.3",
    "IMAGE": "202511.01.0",
    "RESOURCE_ID": "/subscriptions/1",
}


def texts(source: str) -> Iterator[str]:
    """Yield the texts of a module, without its docstrings; a value in one is a name."""
    nodes = [*ast.walk(ast.parse(source))]
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    other = documents | inner
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else NAME for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in other:
            yield node.value


def named() -> dict[str, str]:
    """Return each command line that a text names, with a module that has it."""
    found: dict[str, str] = {}
    for folder in ("cli", "handlers", "shared"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text()
            for text in texts(source) if "`roadstead " in source else ():  # each worker collects this
                for line in re.findall(r"`(roadstead [^`]+)`", text):
                    words = (PLACEHOLDERS.get(word, word) for word in re.sub(r"\{\w*\}", NAME, line).split())
                    found.setdefault(" ".join(words), path.relative_to(ROOT).as_posix())
    return found


NAMED = named()
ENTRIES = {name: entry for section in COMMANDS.values() for name, entry in section.items()}
OF_ROLLOUTS = {name for section in ROLLOUT.values() for name in section}


def test_texts_name_commands() -> None:
    assert len(NAMED) > 20
    assert any("--override" in line for line in NAMED)


@pytest.mark.parametrize("line", sorted(NAMED))
def test_a_command_that_a_text_names_is_taken(line: str, tmp_path: Path) -> None:
    """A text may name a command alone. With more words it says what to type, and that is no wrong usage."""
    words = shlex.split(line)[1:]
    command = words[:2] if words[0] == "rollout" else words[:1]
    assert command[0] in ENTRIES, NAMED[line]
    assert command[0] != "rollout" or command[1] in OF_ROLLOUTS, NAMED[line]
    if words != command:
        if command in (
            ["plan"],
            ["versions"],
            ["prices"],
        ):  # they read the fleet that they are typed in
            commit = committed(tmp_path, fleet_files.fleet("one"))
            words = [commit if word == NAME else word for word in words]
        done = roadstead(*words, cwd=tmp_path, ROADSTEAD_URL="http://127.0.0.1:1")
        assert done.returncode != ExitCode.USAGE, (NAMED[line], done.stderr)


@pytest.mark.parametrize(
    "command", ["status", "why", "tree", "events", "drift", "output", "refresh", "replay"]
)
def test_a_misspelt_cluster_is_answered_with_the_one_that_was_meant(command: str) -> None:
    with served(ready("harbour-aks", "quay-aks").ports) as address:
        done = roadstead(command, "harbuor-aks", ROADSTEAD_URL=address)
    assert done.returncode != 0
    assert "there is no cluster harbuor-aks in the fleet example; did you mean harbour-aks?" in done.stderr
