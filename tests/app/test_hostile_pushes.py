"""A hostile folder on the tracked branch makes itself invalid, and delays or breaks nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.text import printable
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import plan_view
from shared.app.planner.commit_status import Progress, Standing, status_of
from shared.cluster.record_parts import Phase
from shared.plan.plan import Plan
from shared.ports import FleetConfig, PlanLimits, Timing
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, status

UNSAFE = "clusters/x\x1b[2J\nand a line/cluster.yaml"


def texts(value: Any) -> list[str]:
    """Return every text in JSON, keys included."""
    if isinstance(value, dict):
        return [text for item in value.items() for text in texts(list(item))]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("hostile", [UNSAFE, "clusters/\u202eevil/cluster.yaml", f"clusters/{'a' * 999}/x"])
def test_an_unsafe_folder_breaks_no_status_and_no_view_and_the_others_are_created(hostile: str) -> None:
    cloud = MemoryCloud()
    commit = push(cloud, fleet_files.fleet("one") | {hostile: b"a: b\n"})
    cloud.run(until=lambda: phases(cloud).get("one") is Phase.READY)
    cloud.run()
    state, description = status(cloud, commit)
    assert state == "failure"
    assert description.isprintable()
    assert len(description) <= 140
    view = plan_view(commit, cloud.ports)
    assert view is not None
    shown = texts(json.loads(json.dumps(view)))
    assert any("the folder's name must be" in text for text in shown)
    assert all(text.isprintable() for text in shown)
    assert printable(shown) == shown


@pytest.mark.parametrize("number", [1, 3])
def test_folders_that_take_too_much_work_are_invalid_and_the_others_are_planned(number: int) -> None:
    cloud = MemoryCloud(
        config=FleetConfig(
            "example", "example/fleet", timing=Timing(poll_seconds=5), limits=PlanLimits(plan_work=30_000)
        )
    )
    large = b"".join(b"      key%d: 1\n" % key for key in range(8_000))
    names = [f"big-{n}" for n in range(number)]
    files = fleet_files.fleet("one", "zz", *names)
    for name in names:
        files[f"clusters/{name}/cluster.yaml"] += b"  azure:\n    properties:\n" + large
    commit = push(cloud, files)
    cloud.run()
    assert {name for name, phase in phases(cloud).items() if phase is Phase.READY} >= {"one", "zz"}
    plan = cloud.state.plan(commit)
    assert plan is not None
    for name, problem in zip(names, plan.plan.problems, strict=True):
        assert problem.startswith(f"clusters/{name}/cluster.yaml:1:1: is not read: all manifests together")
        assert problem.endswith("make it smaller")
    assert status(cloud, commit)[0] == "failure"


def test_a_reason_with_line_breaks_is_one_line_of_a_commit_status() -> None:
    problem = 'one: Failed: QuotaExceeded: {\r\n  "code": "x",\n\t"message": "\x1b[1mno"\n}'
    progress = Progress(1, problems=[problem])
    shown = status_of(Plan("c" * 40), progress, link="")
    assert shown.description == 'one: Failed: QuotaExceeded: { "code": "x", "message": " [1mno" }'
    waiting = status_of(Plan("c" * 40), Progress(1, {Standing.WAITS: ["a\nb"]}), link="")
    assert waiting.description.isprintable()
