"""The guide to a deployment counts what it asks for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parents[2]


def commands_of(title: str) -> list[str]:
    """Return the commands of a section of the guide."""
    guide = (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text()
    (section,) = re.findall(rf"^## {title}$(.*?)^## ", guide, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_each_path_of_the_guide_has_five_commands_with_the_sign_in_of_entra() -> None:
    path = commands_of("Deploy")
    entra = "roadstead setup entra FLEET"
    assert path == ["az login", "azd auth login", entra, "azd up", "roadstead setup github FLEET"]
    alone = commands_of("Deploy with the Azure CLI alone")
    looks = [command for command in alone if "--before" in command or "--what-if" in command]
    rest = [command for command in alone if command not in looks]
    assert len(looks) == 2
    assert [command.partition(" infra/")[0] for command in rest] == [
        *("az login", "cp", "make package", "roadstead deploy", "roadstead setup github FLEET")
    ]


def test_the_guide_counts_what_it_asks_for() -> None:
    guide = (ROOT / "docs" / "how-to" / "deploy-to-azure.md").read_text()
    rows = dict(re.findall(r"^\| ([a-z, ]+) \| [^|]+ \| (.+) \|$", guide, re.MULTILINE))
    alone = commands_of("Deploy with the Azure CLI alone")
    looks = [command for command in alone if "--before" in command or "--what-if" in command]
    least = f"{len(commands_of('Deploy'))} | {len(alone) - len(looks)}, and {len(looks)} that look"
    assert rows["commands"] == least
    verify = [command for command in commands_of("Verify") if command.startswith("roadstead")]
    assert rows["commands to verify it"].endswith(f" | {len(verify)}")
    (minutes,) = {*rows["minutes, estimated"].split(" | ")}
    steps = re.findall(r"\| (\d+) min \|$", guide, re.MULTILINE)
    assert int(minutes) == sum(map(int, steps)) + 2, "and two in the browser"
    example = (ROOT / "infra" / "example.bicepparam").read_text()
    lines = re.findall(r"^param (\w+) ", example, re.MULTILINE)
    assert rows["answers, or lines of the parameter file"] == f"5 | {len(lines)}"
