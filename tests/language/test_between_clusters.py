"""Rules between clusters find the same whether a commit is resolved as a whole or in what it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import Files, blob_id
from shared.language.resolve.resolver import (
    ClusterStage,
    finish,
    first_files,
    resolve_clusters,
    resolve_shared,
)
from shared.language.resolve.reuse import KnownCluster, fingerprint_of
from shared.language.resolve.rules.between_clusters import (
    MOST_OF_A_SUBSCRIPTION,
    over_limits,
    replaced_clusters,
    unreachable,
    within_limits,
)
from shared.language.resolve.rules.common_rules import foreign_vaults, same_kubeconfigs
from shared.language.resolve.rules.refusal import Finding
from shared.plan.make_plan import make_plan
from tests.support import fleet_files
from tests.support.desired_clusters import NOW, Row
from tests.support.identity_access import ISSUER, SHOP
from tests.support.sample import examples

NAMES = ("a", "b", "c", "d")
VAULTS = frozenset({"ops"})
HEAD = "apiVersion: roadstead.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {}{}}}\nspec:\n"
CREDENTIALS = "".join(
    f"    - {{name: n{n}, identity: {SHOP.resource}, namespace: shop, serviceAccount: n{n}}}\n"
    for n in range(20)
)
PARTS = (
    "  resourceGroup: rg-a\n",
    "  resourceGroup: RG-A\n  dnsPrefix: A\n",
    "  dnsPrefix: a\n",
    "  nodeResourceGroup: rg-a\n",
    "  nodeResourceGroup: MC\n",
    "  nodeResourceGroup: mc\n",
    "  location: westeurope\n",
    "  location: WestEurope\n",
    "  apiServerAccessProfile: {enablePrivateCluster: true}\n",
    "  apiServerAccessProfile: {enablePrivateCluster: true}\n  tags: {size: small}\n",
    "  apiServerAccessProfile: {enablePrivateCluster: false}\n",
    "  bootstrapSecrets: [{name: one, vault: ops, keys: {k: one}}]\n",
    "  bootstrapSecrets: [{name: one, vault: other, keys: {k: one}}]\n",
    f"{ISSUER}  federatedCredentials:\n{CREDENTIALS}",
    f"{ISSUER}  tags: {{size: small}}\n  federatedCredentials:\n{CREDENTIALS}",
    "  tags: {size: big}\n",
    "  location: [eastus]\n",
    "  unknown: 1\n",
)
OUTSIDE = "  provider: existing\n  existing: {{kubeconfig: {{vault: {}, secret: {}}}}}\n"
ELSEWHERE = tuple(OUTSIDE.format(vault, secret) for vault in ("ops", "OPS", "other") for secret in ("x", "y"))
ANNOTATIONS = ("", *(f", annotations: {{roadstead.dev/replaces: {name}}}" for name in ("a", "d")))
FLEETS = (
    (b"", b""),
    (b"spec:\n", b"spec:\n  clusterQuotas: [{clusters: 3}]\n"),
    (b"spec:\n", b"spec:\n  clusterQuotas: [{location: westeurope, clusters: 1}]\n"),
    (b"location: eastus", b"location: westeurope"),
    (b"rg-{name}", b"rg-a"),
)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, bytes]:
    """Draw the clusters of a commit, some of which have names, places, vaults or a problem in common."""
    files = fleet_files.all_at_once(fleet_files.fleet())
    located = b"    location: eastus\n    kubernetesVersion:"
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"    kubernetesVersion:", located, 1)
    old, new = draw(st.sampled_from(FLEETS))
    files["fleet.yaml"] = files["fleet.yaml"].replace(old, new, 1)
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        own = st.lists(st.sampled_from(PARTS), max_size=2, unique=True)
        elsewhere = st.sampled_from(ELSEWHERE).map(lambda part: [part])
        parts: Sequence[str] = draw(st.one_of(own, own, own, elsewhere))
        keys = [part.split(":")[0] for part in parts]
        body = "".join(part for number, part in enumerate(parts) if keys[number] not in keys[:number])
        head = HEAD.format(name, draw(st.sampled_from(ANNOTATIONS)))
        files[f"clusters/{name}/cluster.yaml"] = f"{head}  environment: production\n{body}".encode()
    return files


def resolved(
    contents: Mapping[str, bytes], known: Mapping[str, KnownCluster], reaches_private: bool | None
) -> tuple[ClusterStage, DesiredFleet]:
    tree = Files({path: blob_id(content) for path, content in contents.items()})
    first = {path: contents[path] for path in first_files(tree, known)}
    shared = resolve_shared("example", tree, first, known=known, code_version="1")
    changed = {path: contents[path] for path in shared.needed}
    stage = resolve_clusters(shared, changed, vaults=VAULTS, reaches_private=reaches_private)
    return stage, finish(stage, {path: contents[path] for path in stage.needed})


def recorded(found: DesiredFleet) -> dict[str, KnownCluster]:
    return {
        name: KnownCluster(
            cluster.document(), cluster.digest, fingerprint_of(found.inputs.get(name, ""), cluster.digest)
        )
        for name, cluster in found.clusters.items()
    }


def asked_of_all(stage: ClusterStage, reaches_private: bool | None) -> dict[str, list[Any]]:
    """Return what the rules find when each of them is asked, whatever the clusters have."""
    clusters, shared = stage.clusters, stage.shared
    replaced = replaced_clusters(clusters, shared.gone)
    in_azure = [found for found in {**clusters, **replaced}.values() if not found.is_attached]
    quotas = shared.layers.manifest.spec.cluster_quotas if shared.layers.manifest else ()
    found: dict[str, list[Any]] = {}
    for name, findings in (
        *((name, [clash]) for name, clash in duplicates(in_azure) if name in clusters),
        *same_kubeconfigs(clusters).items(),
        *foreign_vaults(clusters, VAULTS).items(),
        *over_limits(clusters, {**shared.recorded, **replaced}, quotas).items(),
        *((name, [cluster]) for name, cluster in unreachable(clusters, reaches_private)),
    ):
        found[name] = sorted([*found.get(name, ()), *findings])
    return found


def duplicates(clusters: Sequence[Desired]) -> Iterator[tuple[str, Finding]]:
    """Yield the names in Azure that a cluster and the first one with it have, for both."""
    order = sorted(clusters, key=lambda cluster: cluster.name)
    for field, where in (("dnsPrefix", "group"), ("nodeResourceGroup", "subscription")):
        taken: dict[tuple[str, ...], str] = {}
        for cluster in order:
            spec, name = cluster.stored["spec"], cluster.name
            own = spec.get(field) or (name if field == "dnsPrefix" else None)
            place = (spec["subscriptionId"], *([spec["resourceGroup"]] if where == "group" else ()), own)
            first = taken.setdefault(tuple(str(part).lower() for part in place), name)
            if own is not None and first != name:
                for cluster_name, rival in ((name, first), (first, name)):
                    text = f"{rival} has {field} {own.lower()} in the same {where} too; they must differ"
                    yield cluster_name, ((field,), text)
    for cluster in order:
        group = (cluster.stored["spec"].get("nodeResourceGroup") or "").lower()
        owners = [other for other in order if other.id.group.name.lower() == group]
        if group and owners:
            text = f"{group} is the resourceGroup of {owners[-1].name}; AKS creates this group"
            yield cluster.name, (("nodeResourceGroup",), f"{text}: choose a new name")


@pytest.mark.lives
@settings(max_examples=examples(80))
@given(manifests(), manifests(), st.sampled_from([False, False, None]))
def test_a_commit_that_is_resolved_in_what_it_changes_asks_for_the_same(
    old: dict[str, bytes], new: dict[str, bytes], reaches_private: bool | None
) -> None:
    known = recorded(resolved(old, {}, reaches_private)[1])
    whole, quick = resolved(new, {}, reaches_private)[0], resolved(new, known, reaches_private)
    for stage in (whole, quick[0]):
        asked = asked_of_all(stage, reaches_private)
        assert {name: sorted(found) for name, found in stage.clashes.items()} == asked
    # The clusters that are recorded count first in limits, so the whole is resolved next to the records too.
    forgotten = {name: KnownCluster(cluster.document, cluster.digest) for name, cluster in known.items()}
    plain = resolved(new, forgotten, reaches_private)[1]
    assert quick[1] == plain
    assert recorded(quick[1]) == recorded(plain)
    rows = {name: Row(cluster.document) for name, cluster in known.items()}
    assert make_plan("c" * 40, quick[1], rows, now=NOW) == make_plan("c" * 40, plain, rows, now=NOW)


def test_the_clusters_of_a_subscription_are_counted_in_all_its_regions_and_however_it_is_written() -> None:
    places = {("AB", "eastus"): MOST_OF_A_SUBSCRIPTION - 1, ("ab", "westeurope"): 1}
    assert within_limits(places, ())
    assert not within_limits({**places, ("Ab", "westus"): 1}, ())
