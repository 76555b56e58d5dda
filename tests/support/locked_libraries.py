"""What the project declares and what its lock has, read without the tools that write a release."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
LOCK = (ROOT / "requirements.txt").read_text()
LOCKED = [Requirement(line) for line in re.findall(r"^([A-Za-z0-9].*?) *\\?$", LOCK, re.MULTILINE)]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("entra", "mcp", "setup")
"""What the command can have besides; the rest is for developers."""
COMMAND = [
    Requirement(line)
    for part in (PROJECT["dependencies"], *(PROJECT["optional-dependencies"][name] for name in EXTRAS))
    for line in part
]
PYTHONS = [line.rpartition(" ")[2] for line in PROJECT["classifiers"]]
"""The supported versions, as "3.11"."""
DECLARED = [
    Requirement(line.partition("#")[0])
    for line in (ROOT / "requirements.in").read_text().splitlines()
    if line.partition("#")[0].strip()
]


def for_python(requirements: list[Requirement], version: str) -> list[Requirement]:
    """Return the requirements that apply to a version of Python, on this platform."""
    environment = {"python_version": version, "python_full_version": f"{version}.0", "extra": ""}
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate(environment)
    ]


def pins(version: str) -> dict[str, str]:
    """Return the version of each library that the lock has for a version of Python."""
    found = for_python(LOCKED, version)
    assert len({requirement.name for requirement in found}) == len(found), (
        f"two versions of a library for {version}"
    )
    return {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in found
    }


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}
