"""What is proven in an environment, by git and by the records of its clusters."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shared.azure.running_versions import RunningVersions
from shared.cluster.divergence.drift import Drift, DriftedField
from shared.cluster.divergence.trial import Trial
from shared.cluster.findings.health import HealthCondition
from shared.cluster.record_parts import ClusterObservation, Condition, Divergence, Ownership, Phase
from shared.language.desired import Desired
from shared.language.model.cluster.drift import DriftAction
from shared.promotions import (
    HoldReason,
    Obstacle,
    Promotable,
    Proof,
    Value,
    describe,
    proven,
    value_of,
    values_in,
)
from tests.support.cluster_records import NOW, later, record
from tests.support.desired_clusters import desired


def with_spec(name: str = "one", *, blob: str = "", **spec: Any) -> Desired:
    """Return a cluster of the environment test."""
    document = json.loads(json.dumps(desired(name).document()))
    document["spec"] |= spec | {"flux": document["spec"]["flux"] | spec.get("flux", {})}
    return Desired(document | {"name": name, "environment": "test"} | ({"components": blob} if blob else {}))


def ready(wanted: Desired, at: float = 0, **changes: Any) -> Any:
    """Return the record of a cluster that is Ready with what git asks for."""
    condition = Condition("Ready", True, "Done", "", later(at), 1, later(at))
    base = record()
    found = replace(
        base,
        name=wanted.name,
        document=wanted.document(),
        observed_generation=1,
        phase=Phase.READY,
        job=replace(base.job, active=False),
        conditions=(condition,),
    )
    return replace(found, **changes)


def prove(what: Promotable, *clusters: tuple[Desired | None, Any]) -> Proof | Obstacle:
    wanted = {cluster.name: cluster for cluster, _ in clusters if cluster is not None}
    return proven(
        what, "test", wanted, {cluster.name: cluster for _, cluster in clusters if cluster is not None}
    )


ONE = with_spec(kubernetesVersion="1.36")
TRIAL = Trial(7, "c" * 40, "files", "ann@example.com", NOW, later(3600))


def test_a_value_is_proven_once_every_cluster_is_ready_with_it() -> None:
    two = with_spec("two", kubernetesVersion="1.36")
    found = prove(Promotable.VERSION, (ONE, ready(ONE, 5)), (two, ready(two, 9)))
    assert found == Proof(Promotable.VERSION, Value("kubernetesVersion", "1.36"), ("one", "two"), later(9))


def test_an_environment_without_clusters_of_aks_proves_no_version_and_is_not_called_empty() -> None:
    assert prove(Promotable.VERSION) == Obstacle(HoldReason.EMPTY, "test")
    outside: Any = {
        "provider": "existing",
        "existing": {"kubeconfig": {"vault": "keys", "secret": "harbour"}},
    }
    one = with_spec(**outside)
    found = prove(Promotable.VERSION, (one, ready(one)))
    assert isinstance(found, Obstacle)
    assert describe("version", found) == "version: test has no cluster that this is for"


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": Phase.UPDATING, "conditions": ()},
        {"phase": Phase.FAILED},
        {"observed_generation": 0},
        {"ownership": Ownership(recovering=True)},
        {"divergence": Divergence(trial=TRIAL)},
        {"conditions": (Condition("Ready", False, "ClusterMissing", "", NOW, 1, NOW),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_cluster_that_is_not_ready_now_proves_nothing(changes: dict[str, Any]) -> None:
    found = prove(Promotable.VERSION, (ONE, ready(ONE, **changes)))
    assert found == Obstacle(HoldReason.NOT_READY, "test", ("one",))


@pytest.mark.parametrize("kind", HealthCondition)
def test_what_a_check_found_to_be_unhealthy_proves_nothing_also_before_that_ends_its_being_ready(
    kind: HealthCondition,
) -> None:
    found = ready(ONE)
    for status, proves in ((False, False), (None, True), (True, True)):
        health = Condition(kind, status, "", "", later(5), 1, later(5))
        proof = prove(Promotable.VERSION, (ONE, replace(found, conditions=(*found.conditions, health))))
        assert isinstance(proof, Proof) is proves, status


def test_a_cluster_without_a_record_is_not_ready() -> None:
    assert prove(Promotable.VERSION, (ONE, None)) == Obstacle(HoldReason.NOT_READY, "test", ("one",))


def test_a_value_that_git_has_and_the_cluster_not_yet_is_pending() -> None:
    newer = with_spec(kubernetesVersion="1.37")
    assert prove(Promotable.VERSION, (newer, ready(ONE))) == Obstacle(HoldReason.PENDING, "test", ("one",))


def test_a_cluster_that_git_has_no_valid_manifest_of_is_pending() -> None:
    assert prove(Promotable.VERSION, (None, ready(ONE))) == Obstacle(HoldReason.PENDING, "test", ("one",))


def test_a_components_file_that_changed_since_is_pending() -> None:
    before, after = with_spec(blob="a" * 40), with_spec(blob="b" * 40)
    assert prove(Promotable.COMPONENTS, (after, ready(before))) == Obstacle(
        HoldReason.PENDING, "test", ("one",)
    )
    assert isinstance(prove(Promotable.COMPONENTS, (after, ready(after))), Proof)


@pytest.mark.parametrize(("runs", "proof"), [("1.36.3", True), ("1.37.1", False), ("1.35.9", False)])
def test_a_version_is_proven_by_what_runs(runs: str, proof: bool) -> None:
    found = prove(
        Promotable.VERSION, (ONE, ready(ONE, observation=ClusterObservation(RunningVersions(runs))))
    )
    assert isinstance(found, Proof) == proof
    assert proof or found == Obstacle(HoldReason.NEWER, "test", ("one",), runs)


def test_a_value_that_somebody_changed_in_azure_is_not_proven() -> None:
    drifted = Drift((DriftedField("kubernetesVersion", '"1.36"', '"1.37"', NOW, action=DriftAction.REPORT),))
    found = prove(Promotable.VERSION, (ONE, ready(ONE, divergence=Divergence(drifted))))
    assert found == Obstacle(HoldReason.DRIFTED, "test", ("one",))


@pytest.mark.parametrize(
    ("what", "field", "own", "proof"),
    [
        (Promotable.IMAGES, "minNodeImageVersion", "", False),
        (Promotable.IMAGES, "orchestratorVersion", "", True),
        (Promotable.VERSION, "orchestratorVersion", "", False),
        (Promotable.VERSION, "orchestratorVersion", "1.35", True),
        (Promotable.VERSION, "count", "", True),
    ],
)
def test_a_value_is_not_proven_of_nodes_that_have_another_one(
    what: Promotable, field: str, own: str, proof: bool
) -> None:
    """A pool with a version of its own shows nothing of the version that git has for the cluster."""
    pools = [{"name": "apps", "vmSize": "Standard_D4s_v5", "count": 1}]
    pools[0] |= {"orchestratorVersion": own} if own else {}
    one = with_spec(kubernetesVersion="1.36", minNodeImageVersion="202511.01", nodePools=pools)
    drifted = Drift((DriftedField(f"nodePools[apps].{field}", '"new"', '"old"', NOW),))
    found = prove(what, (one, ready(one, divergence=Divergence(drifted))))
    assert isinstance(found, Proof) is proof
    assert proof or found == Obstacle(HoldReason.DRIFTED, "test", ("one",))


@pytest.mark.parametrize(
    ("flux", "expected"),
    [
        ({"tag": "v2"}, Value("flux.tag", "v2")),
        ({"commit": "c" * 40}, Value("flux.commit", "c" * 40)),
        ({"branch": "main"}, None),
        ({"semver": "1.x"}, None),
    ],
)
def test_a_platform_is_a_tag_or_a_commit(flux: dict[str, str], expected: Value | None) -> None:
    one = with_spec(flux=flux)
    assert value_of(Promotable.PLATFORM, one.document()["spec"]) == expected
    assert isinstance(prove(Promotable.PLATFORM, (one, ready(one))), Proof) == bool(expected)


def test_the_commit_that_a_rollout_gives_a_cluster_is_no_value_and_no_difference() -> None:
    """Stages bring it to every environment: a promotion neither waits for it nor writes it."""

    def pinned(name: str, commit: str) -> Desired:
        document = with_spec(name, kubernetesVersion="1.36").document()
        return Desired(document | {"pin": {"commit": commit * 40, "pulls": f"files {commit}"}})

    one = pinned("one", "b"), ready(pinned("one", "a"))
    two = pinned("two", "b"), ready(pinned("two", "b"))
    assert isinstance(prove(Promotable.VERSION, one, two), Proof)
    found = prove(Promotable.PLATFORM, one, two)
    assert isinstance(found, Obstacle)
    assert (found.reason, found.clusters) == (HoldReason.NO_VALUE, ("one",))
    assert values_in(one[0].document()["spec"]) == {Value("kubernetesVersion", "1.36")} | values_in(
        {"flux": {"components": one[0].components_path}}
    )


def test_a_cluster_that_is_no_aks_cluster_of_roadstead_has_no_version_to_prove() -> None:
    other = with_spec("two", provider="existing", existing={"kubeconfig": {"vault": "v", "secret": "s"}})
    assert isinstance(prove(Promotable.VERSION, (ONE, ready(ONE)), (other, ready(other))), Proof)
    assert prove(Promotable.VERSION, (other, ready(other))) == Obstacle(HoldReason.EMPTY, "test")


def test_the_extension_has_a_version_in_place_of_components() -> None:
    spec = {"flux": {"install": "extension", "components": "x.yaml", "extension": {"version": "1.19.5"}}}
    assert value_of(Promotable.COMPONENTS, spec) == Value("flux.extension.version", "1.19.5")
    assert value_of(Promotable.COMPONENTS, {"flux": {"install": "extension"}}) is None


@pytest.mark.parametrize("reason", HoldReason)
def test_every_obstacle_has_a_sentence(reason: HoldReason) -> None:
    text = describe("version", Obstacle(reason, "test", tuple("abcdefg"), "1.36"))
    assert text.startswith("version: ")
    assert "test" in text or "files" in text or "1.36" in text
