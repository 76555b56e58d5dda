"""``roadstead mcp``: an assistant's program starts it, and reads the fleet through its tools."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.pipeline_runs import cloud_with
from tests.support.roadstead_command import OWN, roadstead

pytestmark = pytest.mark.lives

TOOLS = {"status", "why", "events", "drift", "plans", "plan", "rollouts", "rollout", "cost", "health"}


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(fleet_files.fleet("one", "two"))


def asked(url: str, questions: Callable[[Client], Awaitable[Any]]) -> Any:
    """Return what the questions to a started command give."""
    environment = {**os.environ, **OWN, "ROADSTEAD_URL": url}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "cli.main", "mcp"], env=environment, cwd=Path.cwd()
    )

    async def ask() -> Any:
        async with Client(command, read_timeout_seconds=60) as client:
            return await questions(client)

    # A thread of its own: a browser that an earlier test drives has the loop of this one.
    with ThreadPoolExecutor(max_workers=1) as own:
        return own.submit(asyncio.run, ask()).result()


async def answer(client: Client, tool: str, **given: Any) -> Any:
    """Return the object that a tool answers with."""
    found = await client.call_tool(tool, given)
    (content,) = found.content
    assert content.type == "text"
    assert not found.is_error, content.text
    return json.loads(content.text)


def test_an_assistant_reads_what_the_command_line_reads(url: str, cloud: MemoryCloud) -> None:
    async def questions(client: Client) -> Any:
        listed = (await client.list_tools()).tools
        fleet = await answer(client, "status", limit=1)
        rest = await answer(client, "status", limit=1, after=fleet["next"])
        return {
            "tools": {tool.name: tool.annotations for tool in listed},
            "fleet": [*fleet["clusters"], *rest["clusters"]],
            "cluster": await answer(client, "status", cluster="one"),
            "ready": await answer(client, "status", phase="Ready", text="tw"),
            "why": await answer(client, "why", cluster="one"),
            "events": await answer(client, "events", cluster="one", limit=2),
            "drift": await answer(client, "drift"),
            "plans": await answer(client, "plans"),
            "plan": await answer(client, "plan", commit=cloud.repository.head("main")[:7]),
            "newest": await answer(client, "plan"),
            "rollouts": await answer(client, "rollouts"),
            "cost": await answer(client, "cost"),
            "cost of one": await answer(client, "cost", cluster="one"),
            "health": await answer(client, "health"),
        }

    found = asked(url, questions)
    assert set(found["tools"]) == TOOLS
    assert all(hints.read_only_hint for hints in found["tools"].values())
    assert [cluster["name"] for cluster in found["fleet"]] == ["one", "two"]
    assert [cluster["name"] for cluster in found["ready"]["clusters"]] == ["two"]
    for command in (("why", "one"), ("status", "one"), ("plans",)):
        shown = json.loads(roadstead(*command, "-o", "json", ROADSTEAD_URL=url).stdout)
        tool = found["cluster" if command[0] == "status" else command[0]]
        assert tool.keys() == shown.keys()
    assert found["events"]["events"][0]["reason"] == "Ready"
    assert found["plan"] == found["newest"]
    assert found["drift"]["count"] == 0
    assert found["rollouts"]["rollouts"] == []
    assert found["cost"]["clusterCount"] == 2
    assert (found["cost of one"]["name"], found["cost of one"]["billed"]) == ("one", None)
    assert found["health"]["ready"]


def test_what_cannot_be_answered_is_said_as_on_the_command_line(url: str, cloud: MemoryCloud) -> None:
    async def questions(client: Client) -> list[str]:
        calls: Sequence[tuple[str, dict[str, Any]]] = (
            ("why", {"cluster": "three"}),
            ("why", {"cluster": "../audit"}),
            ("rollout", {}),
            ("plan", {"commit": "fffffff"}),
            ("status", {"limit": 5000}),
            ("status", {"phase": "X"}),
        )
        ends = [await client.call_tool(tool, given) for tool, given in calls]
        assert all(end.is_error for end in ends)
        return [str(end.content[0]) for end in ends]

    none, path, rollout, plan, limit, phase = asked(url, questions)
    assert "three" in none
    assert "../audit" in path
    assert "there is no rollout" in rollout
    assert "no commit in roadstead plans begins with fffffff" in plan
    assert "100" in limit
    assert "phase" in phase


def test_an_app_that_does_not_answer_ends_no_conversation(cloud: MemoryCloud) -> None:
    async def questions(client: Client) -> list[Any]:
        return [await client.call_tool("health", {}) for _ in range(2)]

    first, second = asked("http://127.0.0.1:9", questions)
    assert first.is_error
    assert second.is_error
    assert "no answer from http://127.0.0.1:9" in str(second.content[0])


def test_without_the_library_the_command_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cli.commands.run.mcp_server", None)
    monkeypatch.setattr(sys, "argv", ["roadstead", "mcp"])
    from cli.main import main

    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "roadstead[mcp]" in capsys.readouterr().err
