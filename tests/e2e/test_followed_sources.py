"""Clusters that follow another repository by rollout, over the wire."""

from __future__ import annotations

import pytest

from localcloud.github.world.git_repository import GitRepository
from localcloud.runtime.options import Options
from shared.kubernetes.flux_objects import SOURCE
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead

QUICK = Options(
    create_seconds=1,
    lock_seconds=5,
    plan_schedule="*/2 * * * * *",
    resend_schedule="*/2 * * * * *",
    extra={"POLL_SECONDS": "0.5", "LEASE_SECONDS": "5"},
)
NAMES = {"dev-1": "development", "prod-1": "production"}
FOLLOWS = b"""\
  flux:
    repository: https://github.com/contoso/platform
    follow: rollout
    path: ./platform
"""


def following() -> dict[str, bytes]:
    """Return a fleet whose clusters follow another repository."""
    files = fleet_files.fleet(*NAMES)
    for name, environment in NAMES.items():
        path = f"clusters/{name}/cluster.yaml"
        own = f"spec:\n  environment: {environment}\n".encode() + FOLLOWS
        files[path] = files[path].replace(b"spec:\n", own)
    return files


def pins(operator: Operator) -> dict[str, str]:
    """Return the commit that Flux pulls on each cluster."""
    return {name: _pulled(operator, name) for name in NAMES}


def _pulled(operator: Operator, name: str) -> str:
    with kubernetes(operator, name) as api:
        live = api.get(SOURCE)
    assert live is not None
    return str(live["spec"]["ref"]["commit"])


def said(operator: Operator, *command: str) -> str:
    """Return what a command says, on one line."""
    done = roadstead(*command, "--url", operator.cloud.urls.functions)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def namespace(name: str) -> bytes:
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n".encode()


@pytest.mark.long
def test_a_commit_of_another_repository_goes_through_the_stages_and_a_forced_push_moves_nothing(
    start: Start,
) -> None:
    operator = start(QUICK)
    folder = operator.cloud.state / "repositories" / "contoso" / "platform.git"
    with GitRepository.create(folder) as platform:
        first = platform.commit({"platform/a.yaml": namespace("a")})
        fleet = operator.push(following())
        operator.wait_for_status(fleet, "success")
        assert pins(operator) == dict.fromkeys(NAMES, first)
        follow = "2 clusters follow main of contoso/platform by rollout; newest commit"
        assert f"{follow} {first[:8]}" in said(operator, "status")

        second = platform.commit({"platform/b.yaml": namespace("b")})
        operator.wait(lambda: pins(operator)["dev-1"] == second, "development has the commit", every=0.1)
        operator.cloud.kill_functions()
        operator.cloud.start_functions()
        operator.wait(lambda: pins(operator)["prod-1"] == second, "production has it, too")
        operator.wait_for_status(fleet, "success")
        assert f"{follow} {second[:8]}" in said(operator, "status")

        platform.reset(first)
        third = platform.commit({"platform/c.yaml": namespace("c")})
        operator.wait_for_status(fleet, "failure")
        why = said(operator, "why", "prod-1")
        assert f"{third[:8]} does not contain {second[:8]}" in why
        assert f"ush a commit that contains {second[:8]} to main of contoso/platform" in why
        assert pins(operator) == dict.fromkeys(NAMES, second)
        platform.reset(second)
        operator.wait_for_status(fleet, "success")
