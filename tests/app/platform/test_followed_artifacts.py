"""Clusters and systems that follow the tag of an artifact by rollout."""

from __future__ import annotations

import json

from localcloud.common.flux_manifests import definition
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.record_parts import Phase
from shared.kubernetes.sync_objects import SOURCE_API
from shared.resource_ids import ObjectRef
from tests.support.flux_components import FILE
from tests.support.pipeline_runs import phases, push, status
from tests.support.staged_fleets import DEV, NAMESPACE, PROD, staged

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
    record = cloud.state.cluster(name)
    assert record is not None
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
    (followed,) = cloud.state.fleet().followed
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
