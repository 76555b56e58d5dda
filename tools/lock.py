"""The lock of what is deployed: the libraries that it has for a Python, their hashes, and who needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DECLARED = "-r requirements.in"
"""What ``needed_by`` has for a library that the app imports itself."""


@dataclass(frozen=True)
class Locked:
    """One library; ``hashes`` are the SHA-256 of its files, ``needed_by`` names other libraries."""

    name: str
    version: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]


def locked(lock: Path, python: str) -> list[Locked]:
    """Return the libraries that a lock has for a version of Python on Linux, such as "3.13", by name."""
    environment = {
        **{"python_version": python, "python_full_version": f"{python}.0", "extra": ""},
        **{"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
        **{"implementation_name": "cpython", "platform_python_implementation": "CPython", "os_name": "posix"},
    }
    return sorted(_entries(lock.read_text(), environment), key=lambda each: each.name)


def _entries(text: str, environment: dict[str, str]) -> Iterator[Locked]:
    for entry in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]:
        requirement = Requirement(entry.partition("\\\n")[0])
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        via = re.findall(r"^ +#(?: via)? +(?!via$)(.+)$", entry, re.MULTILINE)
        yield Locked(
            name=canonicalize_name(requirement.name),
            version=str(requirement.specifier).removeprefix("=="),
            hashes=tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)),
            needed_by=tuple(
                document if document == DECLARED else canonicalize_name(document) for document in via
            ),
        )
