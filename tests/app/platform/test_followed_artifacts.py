"""Clusters and systems that follow the tag of an artifact by rollout."""

from __future__ import annotations

import json
import random

import pytest

from localcloud.common.flux_manifests import definition
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.cluster.record_parts import Phase
from shared.kubernetes.sync_objects import SOURCE_API
from shared.plan.holds import Hold
from shared.ports.artifact import MAX_LAYER
from shared.promotions import FOLLOWS as FOLLOWED
from shared.resource_ids import ObjectRef
from tests.support.flux_components import FILE
from tests.support.pipeline_runs import phases, push, record_of, status
from tests.support.promotions import ask, pulls
from tests.support.proposals import Repo
from tests.support.staged_fleets import DEV, NAMESPACE, PROD, staged
from tests.support.team_systems import DEPLOYMENT, system
from tests.support.team_systems import URL as TEAM_URL

pytestmark = pytest.mark.lives

URL = "oci://example.azurecr.io/platform"
FOLLOWS = f"  flux: {{repository: {URL}, tag: stable, follow: rollout, path: ./platform}}\n"


def following() -> tuple[MemoryCloud, str]:
    """Return a cloud whose clusters follow a tag, and its digest."""
    cloud = MemoryCloud()
    first = cloud.stores.push("platform", "stable", {"platform/a.yaml": NAMESPACE})
    files = staged(extra=FOLLOWS)
    push(cloud, files | {FILE: files[FILE] + f"---\n{json.dumps(definition('OCIRepository'))}\n".encode()})
    settle(cloud)
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    return cloud, first


def settle(cloud: MemoryCloud) -> None:
    cloud.run(seconds=3600, until=lambda: False)


def on(cloud: MemoryCloud, digest: str) -> set[str]:
    return {name for name in (*DEV, *PROD) if _digest(cloud, name) == digest}


def _digest(cloud: MemoryCloud, name: str) -> str:
    record = record_of(cloud, name)
    ref = ObjectRef(SOURCE_API, "OCIRepository", "flux-system", "flux-system")
    live = cloud.kubernetes.connect(record.desired.id).get(ref)
    assert live is not None
    return str(live["spec"]["ref"].get("digest") or "")


def test_a_new_digest_of_a_tag_goes_through_the_stages() -> None:
    cloud, first = following()
    assert on(cloud, first) == {*DEV, *PROD}
    second = cloud.stores.push("platform", "stable", {"platform/b.yaml": NAMESPACE})
    cloud.run(until=lambda: bool(on(cloud, second) & {*PROD}))
    assert on(cloud, second) >= {*DEV}
    settle(cloud)
    assert on(cloud, second) == {*DEV, *PROD}
    assert status(cloud, cloud.repository.head("main"))[0] == "success"
    (followed,) = cloud.state.fleet().origin.followed
    newest = second.removeprefix("sha256:")[:8]
    assert str(followed) == f"7 clusters follow stable of {URL} by rollout; newest digest {newest}"


def test_a_tag_that_goes_back_moves_the_clusters_back() -> None:
    cloud, first = following()
    cloud.stores.push("platform", "stable", {"platform/b.yaml": NAMESPACE})
    settle(cloud)
    assert cloud.stores.push("platform", "stable", {"platform/a.yaml": NAMESPACE}) == first
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)


def test_a_tag_that_is_gone_moves_nothing_and_says_who_must_act() -> None:
    cloud, first = following()
    cloud.stores.registry.untag("platform", "stable")
    settle(cloud)
    assert on(cloud, first) == {*DEV, *PROD}
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    hold = plan.plan.items[0].hold
    assert hold is not None
    assert hold.cause == f"Flux keeps the commit that it has: stable of {URL} cannot be read: Dependency"
    assert "AcrPull" in hold.remedy()


OTHER = NAMESPACE.replace(b"monitoring", b"other")
BOTH = {"platform/a.yaml": NAMESPACE, "platform/b.yaml": OTHER}


def hold_of(cloud: MemoryCloud, name: str = DEV[0]) -> Hold:
    """Return why the newest plan holds a cluster."""
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    hold = next(item.hold for item in plan.plan.items if item.cluster == name)
    assert hold is not None
    return hold


def approve_all(cloud: MemoryCloud) -> None:
    """Approve what the newest plan would destroy."""
    result = approve(cloud.repository.head("main"), {*DEV, *PROD}, "ops", cloud.ports)
    assert result.status == 202, result.body
    settle(cloud)


def with_both() -> tuple[MemoryCloud, str]:
    """Return a cloud whose clusters have an artifact with two namespaces, and its digest."""
    cloud, _ = following()
    digest = cloud.stores.push("platform", "stable", BOTH)
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    return cloud, digest


def test_a_digest_that_removes_a_namespace_waits_for_an_approval_of_its_own() -> None:
    cloud, digest = with_both()
    less = cloud.stores.push("platform", "stable", {"platform/a.yaml": NAMESPACE})
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    hold = hold_of(cloud)
    assert hold.needs_approval
    assert "Namespace other is deleted, with everything in it" in hold.cause
    approve_all(cloud)
    assert on(cloud, less) == {*DEV, *PROD}
    cloud.stores.push("platform", "stable", {"platform/c.yaml": OTHER})
    settle(cloud)
    assert on(cloud, less) == {*DEV, *PROD}, "nobody has approved this one"


def test_a_digest_that_flux_could_not_build_is_refused() -> None:
    cloud, digest = with_both()
    cloud.stores.push("platform", "stable", {**BOTH, "platform/c.yaml": b"a: [\n"})
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    assert not hold_of(cloud).needs_approval
    assert "platform/c.yaml" in hold_of(cloud).cause


def test_a_digest_that_changes_nothing_that_flux_pulls_moves_no_cluster() -> None:
    cloud, digest = with_both()
    newer = cloud.stores.push("platform", "stable", {**BOTH, "README.md": b"# platform\n"})
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    assert cloud.state.fleet().origin.followed[0].commit == newer
    assert status(cloud, cloud.repository.head("main"))[0] == "success"


def test_an_artifact_that_is_too_large_to_be_read_needs_an_approval_and_says_why() -> None:
    cloud, digest = with_both()
    large = {**BOTH, "large.bin": random.Random(1).randbytes(MAX_LAYER + 1)}
    newer = cloud.stores.push("platform", "stable", large)
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    hold = hold_of(cloud)
    assert hold.needs_approval
    assert f"at most {MAX_LAYER} are read" in hold.cause
    approve_all(cloud)
    assert on(cloud, newer) == {*DEV, *PROD}
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)


def test_what_a_purged_digest_had_counts_as_removed() -> None:
    cloud, digest = with_both()
    third = NAMESPACE.replace(b"monitoring", b"third")
    newer = cloud.stores.push("platform", "stable", {**BOTH, "platform/c.yaml": third})
    cloud.stores.registry.purge("platform")
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    assert hold_of(cloud).needs_approval
    assert f"what was in stable of {URL} is not known" in hold_of(cloud).cause
    approve_all(cloud)
    assert on(cloud, newer) == {*DEV, *PROD}


def test_a_pull_request_shows_what_another_folder_of_an_artifact_takes_away() -> None:
    cloud, _ = following()
    cloud.stores.push("platform", "stable", {**BOTH, "less/a.yaml": NAMESPACE})
    settle(cloud)
    repo, git = Repo(cloud), cloud.repository
    git.reset(git.head("main"), "topic")
    path = f"clusters/{DEV[0]}/cluster.yaml"
    content = staged(extra=FOLLOWS.replace("./platform", "./less"))[path]
    head = git.commit({path: content}, branch="topic")
    number = git.pulls.open("Less", "topic", "main").number
    repo.announce(number, head, "opened")
    cloud.run()
    (body,) = repo.comments(number)
    assert "- Namespace other" in body
    assert "needs approval" in body


CLAIM = b"""---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: orders}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""


def test_what_an_artifact_of_a_team_destroys_needs_an_approval() -> None:
    cloud = MemoryCloud()
    cloud.stores.push("shop", "stable", {"apps/shop/web.yaml": DEPLOYMENT + CLAIM})
    source = "{repository: oci://example.azurecr.io/shop, tag: stable, follow: rollout,"
    manifest = system("shop", "a1, b1").replace(f"{{repository: {TEAM_URL},".encode(), source.encode())
    files = staged() | {"systems/shop.yaml": manifest}
    push(cloud, files | {FILE: files[FILE] + f"---\n{json.dumps(definition('OCIRepository'))}\n".encode()})
    settle(cloud)
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    cloud.stores.push("shop", "stable", {"apps/shop/web.yaml": DEPLOYMENT})
    settle(cloud)
    hold = hold_of(cloud, "b1")
    assert hold.needs_approval
    assert "shop stay as they are, because PersistentVolumeClaim shop/orders is deleted" in hold.cause


def test_a_registry_that_stopped_answering_stops_no_plan_of_the_fleet() -> None:
    cloud, digest = with_both()
    cloud.stores.push("other", "stable", BOTH)
    cloud.stores.registry.purge("platform", tagged=True)
    files = dict(cloud.repository.files(cloud.repository.head("main")))
    for name in DEV:
        path = f"clusters/{name}/cluster.yaml"
        files[path] = files[path].replace(URL.encode(), URL.replace("platform", "other").encode())
    path = f"clusters/{PROD[0]}/cluster.yaml"
    push(cloud, files | {path: files[path].replace(b"spec:\n", b"spec:\n  tags: {change: one}\n")})
    settle(cloud)
    assert on(cloud, digest) == {*DEV, *PROD}
    assert hold_of(cloud).needs_approval
    assert f"what was in stable of {URL} is not known" in hold_of(cloud).cause
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    assert next(item for item in plan.plan.items if item.cluster == PROD[0]).changes


def test_a_tag_that_stages_follow_is_no_revision_that_a_promotion_gives() -> None:
    """Each environment follows a tag of its own; what that leads to is in its pins."""
    cloud, files = MemoryCloud(), staged()
    for environment, tag in (("development", "next"), ("production", "stable")):
        cloud.stores.push("platform", tag, {"platform/a.yaml": NAMESPACE})
        flux = f"{{repository: {URL}, tag: {tag}, follow: rollout, path: ./platform}}"
        head = f"apiVersion: roadstead.dev/v1alpha1\nkind: Environment\nmetadata: {{name: {environment}}}\n"
        files[f"environments/{environment}.yaml"] = f"{head}spec:\n  defaults:\n    flux: {flux}\n".encode()
    push(cloud, files | {FILE: files[FILE] + f"---\n{json.dumps(definition('OCIRepository'))}\n".encode()})
    settle(cloud)
    assert phases(cloud) == dict.fromkeys((*DEV, *PROD), Phase.READY)
    assert ask(cloud, "platform").body["error"] == f"platform: a1 of development names no value: {FOLLOWED}"
    assert pulls(cloud) == []
