"""Clusters and systems that follow another repository, or an artifact, by rollout, over the wire."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localcloud.common.flux_manifests import definition
from localcloud.git.world.git_repository import GitRepository
from localcloud.runtime.options import Options
from shared.kubernetes.flux_objects import SOURCE
from shared.kubernetes.sync_objects import SOURCE_API
from shared.resource_ids import ObjectRef
from tests.support import fleet_files, team_systems
from tests.support.artifact_pushes import Pusher, archive
from tests.support.fleet_operator import Operator
from tests.support.flux_components import FILE
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


def _pulled(operator: Operator, name: str, source: ObjectRef = SOURCE) -> str:
    """Return the commit, or the digest, that a source pulls; "" where it is not there yet."""
    with kubernetes(operator, name) as api:
        live = api.get(source)
    ref = live["spec"]["ref"] if live else {}
    return str(ref.get("commit") or ref.get("digest") or "")


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


SHOP = ObjectRef(SOURCE_API, "GitRepository", "shop", "shop")
WEB, BAD = "apps/shop/web.yaml", "apps/shop/bad.yaml"
WRONG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Apps_Bad}\n"


def with_a_system() -> dict[str, bytes]:
    """Return a fleet with a system of a team, which follows the team's repository."""
    files = fleet_files.fleet(*NAMES)
    for name, environment in NAMES.items():
        path = f"clusters/{name}/cluster.yaml"
        files[path] = files[path].replace(b"spec:\n", f"spec:\n  environment: {environment}\n".encode())
    source = "{repository: https://github.com/contoso/shop, follow: rollout,"
    manifest = team_systems.system("shop", ", ".join(NAMES))
    given = f"{{repository: {team_systems.URL},".encode()
    return files | {"systems/shop.yaml": manifest.replace(given, source.encode())}


@pytest.mark.long
def test_a_bad_commit_of_a_team_stops_in_the_first_stage_and_its_revert_passes(start: Start) -> None:
    operator = start(QUICK)
    folder = operator.cloud.state / "repositories" / "contoso" / "shop.git"

    def on(commit: str) -> set[str]:
        return {name for name in NAMES if _pulled(operator, name, SHOP) == commit}

    with GitRepository.create(folder) as team:
        first = team.commit({WEB: team_systems.DEPLOYMENT})
        fleet = operator.push(with_a_system())
        operator.wait_for_status(fleet, "success")
        assert on(first) == {*NAMES}

        second = team.commit({WEB: team_systems.DEPLOYMENT.replace(b"replicas: 1", b"replicas: 2")})
        operator.wait(lambda: on(second) == {*NAMES}, "the commit is on both")
        operator.wait_for_status(fleet, "success")

        bad = team.commit({BAD: WRONG})
        operator.wait(lambda: "Apps_Bad" in said(operator, "why", "dev-1"), "it says why", every=2)
        assert (on(bad), on(second)) == ({"dev-1"}, {"prod-1"})
        assert "waits for group 1 of stage development: dev-1" in said(operator, "why", "prod-1")

        team.commit({BAD: None})
        operator.wait_for_status(fleet, "success")
        assert on(bad) == set()


def with_an_artifact() -> dict[str, bytes]:
    """Return the fleet of ``following`` whose clusters follow the tag of an artifact."""
    files = following()
    for name in NAMES:
        path = f"clusters/{name}/cluster.yaml"
        url = b"oci://example.azurecr.io/fleet\n    tag: stable"
        files[path] = files[path].replace(b"https://github.com/contoso/platform", url)
    return files | {FILE: files[FILE] + f"---\n{json.dumps(definition('OCIRepository'))}\n".encode()}


def artifact(pusher: Pusher, layer: bytes) -> str:
    """Push an archive as what the tag leads to; return the digest."""
    pushed = pusher.manifest("stable", config=pusher.blob(b"{}"), layer=pusher.blob(layer))
    assert pushed.status == 201
    return str(pushed.headers["Docker-Content-Digest"])


@pytest.mark.long
def test_an_artifact_is_planned_as_a_commit_is(start: Start) -> None:
    operator = start(QUICK)
    authority = Path(operator.cloud.state / "ca.pem").read_bytes()
    pusher = Pusher(operator.cloud.urls.registry, authority)
    good = {"platform/a.yaml": namespace("a")}

    def on(digest: str) -> set[str]:
        return {name for name in NAMES if _digest(operator, name) == digest}

    first = artifact(pusher, archive(good))
    fleet = operator.push(with_an_artifact())
    operator.wait_for_status(fleet, "success")
    assert on(first) == {*NAMES}

    more = archive({**good, "platform/b.yaml": namespace("b")})
    second = artifact(pusher, more)
    operator.wait(lambda: on(second) == {*NAMES}, "the digest is on both")
    operator.wait_for_status(fleet, "success")

    artifact(pusher, archive({**good, "platform/b.yaml": namespace("Apps_Bad")}))
    operator.wait(lambda: "Apps_Bad" in said(operator, "why", "dev-1"), "it says why", seconds=120)
    assert on(second) == {*NAMES}

    less = artifact(pusher, archive({**good, "README.md": b"without b"}))
    loss = "Namespace b is deleted, with everything in it"
    operator.wait(lambda: loss in said(operator, "why", "dev-1"), "it says what is lost", seconds=120)
    assert on(second) == {*NAMES}
    said(operator, "approve", fleet, "--yes")
    operator.wait(lambda: on(less) == {*NAMES}, "what was approved is on both", seconds=120)
    operator.wait_for_status(fleet, "success")

    assert artifact(pusher, more) == second
    operator.wait(lambda: on(second) == {*NAMES}, "the tag went back, and both with it", seconds=120)


def _digest(operator: Operator, name: str) -> str:
    return _pulled(operator, name, ObjectRef(SOURCE_API, "OCIRepository", SOURCE.name, SOURCE.namespace))
