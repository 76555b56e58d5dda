"""The path of a push, as the architecture lists it, is the one that the code takes."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import azure.functions as func

from tests.support import fleet_files
from tests.support.function_calls import functions
from tests.support.pipeline_runs import cloud_with, phases
from tests.support.webhook_deliveries import payload, sign

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


Place = tuple[str, str]
"""A file, and a function in it."""


def listed() -> list[Place]:
    """Return the places that the page lists, in its order."""
    section = PAGE.partition("## The path of a push")[2].partition("\n\n|")[2].partition("\n\n")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \| `(\w+)` \|", section, re.MULTILINE)


@contextmanager
def visited() -> Iterator[list[Place]]:
    """Yield the functions of the app, each once, in the order of their first calls."""
    found: list[Place] = []
    seen: set[Place] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        place = frame.f_code.co_filename, frame.f_code.co_name
        if event == "call" and place not in seen:
            seen.add(place)
            if place[0].startswith((f"{ROOT}/shared/", f"{ROOT}/handlers/")):
                found.append((Path(place[0]).relative_to(ROOT).as_posix(), place[1]))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def test_a_push_takes_the_path_that_the_architecture_lists() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))
    github = functions(cloud.ports)["github"].get_user_function()
    files = fleet_files.fleet("one")
    files["clusters/one/cluster.yaml"] += b"  tags: {owner: shop}\n"
    commit = cloud.repository.push(files)
    body = payload(after=commit)
    headers = {"X-GitHub-Event": "push", "X-GitHub-Delivery": "d2", "X-Hub-Signature-256": sign(body)}
    with visited() as found:
        reply = github(func.HttpRequest("POST", "/api/github", body=body, headers=headers))
        cloud.run()
    assert reply.status_code == 202
    assert set(phases(cloud).values()) == {"Ready"}
    path = listed()
    assert len(path) == 23
    assert [place for place in found if place in path] == path
