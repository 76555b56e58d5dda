"""Clusters that have most of their spec in common are resolved as if each were alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.language.model.cluster.spec import ClusterSpec
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.layers import EMPTY, Base
from shared.language.resolve.reuse import MANY, OWN, CommonSpecs
from shared.language.resolve.rules.cross_field_rules import findings
from tests.support import fleet_files
from tests.support.counted_work import lines_of
from tests.support.resolved_fleets import GOOD, HEAD, resolved
from tests.support.sample import examples

OWN_LINES = st.sampled_from(
    [
        *("location: westeurope", "location: eastus", "location: East US", "location: null", "location: 7"),
        *("resourceGroup: rg-{name}-x", "resourceGroup: rg-{location}", "resourceGroup: rg-{nmae}"),
        *("nodeResourceGroup: nodes-{name}", "nodeResourceGroup: ends."),
        f"resourceGroup: rg-{'long-' * 12}{{name}}",
        *(
            "tags: {team: one}",
            "tags: {team: two, environment: null}",
            "tags: {Team: a, team: b}",
            "tags: {}",
        ),
        *("tags: {team: '{name}'}", "tags: {team: 1}", "tags: [a]", "location: '{class}'"),
    ]
)
SHARED_LINES = st.sampled_from(
    [
        *("nodePools: [{name: system, count: 1}]", "nodePools: [{name: system, count: true}]"),
        *("nodePools: [{name: system, count: 1.0}]", "nodePools: [{name: apps, $patch: delete}]"),
        *("flux: {path: './{name}'}", "flux: {path: './{environment}'}", "flux: {path: './{location}'}"),
        *("flux: {path: './{enviroment}'}", "deletionProtection: true", "deletionProtection: null"),
        *('kubernetesVersion: "1.35"', "kubernetesVersion: 1.35", "dnsPrefix: dns-{name}"),
        *("subscriptionId: 00000000-0000-0000-0000-000000000002", "provider: aks", "provider: existing"),
        *(
            "fqdnSubdomain: web",
            "sku: {tier: Free}",
            "nodeTypo: 1",
            "azure: {properties: {x: [0, 0.0, false]}}",
        ),
    ]
)
CHOICES = st.sampled_from(["", "class: web", "class: plain", "environment: dev", "environment: prod"])
METADATA = st.sampled_from(
    [
        *("", "  labels: {tier: one}\n", "  labels: {tier: '{location}'}\n", "  labels: {tier: 1}\n"),
        *("  annotations: {roadstead.dev/adopt: when-equal}\n", "  typo: 1\n"),
        "  annotations: {roadstead.dev/rebuild: 2026-01-02T03:04:05Z}\n",
        "  annotations: {roadstead.dev/replaces: c1}\n",
    ]
)
CLUSTER = st.tuples(
    st.lists(CHOICES, max_size=2, unique=True),
    st.lists(SHARED_LINES, max_size=2, unique=True),
    st.lists(OWN_LINES, max_size=3, unique=True),
    METADATA,
)
FLEETS = st.lists(CLUSTER, min_size=1, max_size=2).flatmap(
    lambda kinds: st.lists(
        st.tuples(st.sampled_from(kinds), st.none() | st.lists(OWN_LINES, max_size=2, unique=True)),
        min_size=2,
        max_size=4,
    )
)
"""Few kinds of clusters, and several clusters of each that differ in their own fields alone."""
SHARED = {path: text for path, text in GOOD.items() if not path.startswith(("clusters/", "systems/"))}


def outcome(fleet: DesiredFleet, name: str) -> Any:
    """Return everything that a fleet says of one cluster."""
    cluster = fleet.clusters.get(name)
    if cluster is None:
        return [str(problem) for problem in fleet.invalid[name]]
    return cluster.document(), cluster.rebuild, cluster.spec, cluster.spec.model_fields_set


@pytest.mark.lives
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(FLEETS, st.booleans())
def test_a_cluster_among_others_like_it_is_what_it_is_alone(fleet: list[Any], named: bool) -> None:
    shared = dict(SHARED)
    if named:
        shared["fleet.yaml"] = shared["fleet.yaml"].replace("path: ./platform", "path: ./platform/{name}")
    files = {path: text.encode() for path, text in shared.items()}
    manifests = {}
    for number, ((choices, rest, own, metadata), other) in enumerate(fleet):
        lines = "".join(
            f"  {line}\n" for line in [*choices, *rest, *(own if other is None else other)] if line
        )
        text = HEAD.format("Cluster", f"c{number}") + metadata + "spec:\n" + lines
        manifests[f"clusters/c{number}/cluster.yaml"] = text.encode()
    together = resolved(files | manifests)
    for path, content in manifests.items():
        name = path.split("/")[1]
        assert outcome(together, name) == outcome(resolved(files | {path: content}), name)


def test_a_removal_that_matches_nothing_is_reported_also_in_a_cluster_like_others() -> None:
    files = fleet_files.fleet("one", "two")
    files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra="  tags: {team: a}\n")
    files["clusters/two/cluster.yaml"] = fleet_files.cluster("two", extra="  tags: {absent: null}\n")
    fleet = resolved(files)
    assert set(fleet.clusters) == {"one"}
    assert "there is nothing to remove" in str(fleet.invalid["two"][0])


def test_clusters_that_differ_in_their_own_fields_are_validated_once() -> None:
    names = [f"cluster-{number}" for number in range(60)]
    like = fleet_files.fleet(*names)
    unlike = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, count=number + 1)
        for number, name in enumerate(names)
    }
    resolved(like)  # models are built at their first use
    assert lines_of(lambda: resolved(like)) < 0.75 * lines_of(lambda: resolved(like | unlike))


def test_common_specs_are_looked_for_while_enough_clusters_have_one() -> None:
    cluster = resolved(fleet_files.fleet("one")).clusters["one"]
    for like, are_found in ((MANY // 2, True), (MANY // 4 + 1, True), (MANY // 4, False)):
        specs = CommonSpecs()
        specs.add("known", cluster, 100, Base(EMPTY, None, {}, (), 0), EMPTY)
        for number in range(MANY):
            assert specs.are_found
            specs.get("known" if number < like else None)
        assert specs.are_found is are_found


class Watched(ClusterSpec):
    """A spec that notes which of its fields the rules read."""

    def __getattribute__(self, name: str) -> Any:
        read.add(name)
        return super().__getattribute__(name)


read: set[str] = set()


def test_no_rule_inside_a_spec_reads_a_field_that_clusters_have_of_their_own() -> None:
    own = {name for name, field in ClusterSpec.model_fields.items() if (field.alias or name) in OWN}
    assert len(own) == len(OWN)
    for fleet in (resolved(fleet_files.example()), resolved({p: t.encode() for p, t in GOOD.items()})):
        for cluster in fleet.clusters.values():
            read.clear()
            assert list(findings(Watched.model_validate(cluster.document()["spec"]))) == []
            assert "node_pools" in read
            assert not own & read
