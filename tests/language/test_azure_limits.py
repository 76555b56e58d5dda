"""What clusters share of Azure's limits is counted over the fleet, and the one too many is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.resolver import resolve
from shared.language.resolve.reuse import KnownCluster
from shared.language.resolve.rules.between_clusters import over_limits
from tests.support import fleet_files
from tests.support.fleet_limits import fleet, messages
from tests.support.identity_access import ISSUER, SHOP
from tests.support.resolved_fleets import files_of
from tests.support.sources import WITH_IDENTITY
from tests.support.team_systems import system

QUOTAS = b"""\
spec:
  clusterQuotas:
    - {clusters: 5}
    - {location: eastus, clusters: 2}
    - {subscriptionId: 00000000-0000-0000-0000-000000000009, clusters: 0}
"""


def credentials(count: int, identity: str = SHOP.resource) -> str:
    """Return YAML of so many federated credentials of an identity."""
    each = f"    - {{name: api-%d, identity: {identity}, namespace: shop, serviceAccount: api-%d}}\n"
    return ISSUER + "  federatedCredentials:\n" + "".join(each % (n, n) for n in range(count))


def test_an_identity_takes_twenty_federated_credentials_of_all_clusters_together() -> None:
    assert messages(fleet({"a": credentials(12), "b": credentials(8)})) == []
    resolved = fleet({"a": credentials(12), "b": credentials(8), "c": credentials(1)})
    assert set(resolved.clusters) == {"a", "b"}
    assert messages(resolved) == [
        "clusters/c/cluster.yaml spec.federatedCredentials[api-0].identity: the identity shop takes 20 "
        "federated credentials, and git has 21: of a (12), b (8), c (1); name another identity"
    ]


def acting(extra: str) -> str:
    """Return YAML of a Flux with more fields, on a cluster that lets pods act as identities."""
    return f"{WITH_IDENTITY}  flux: {{{extra}}}\n"


CLIENT = "00000000-0000-0000-0000-00000000000a"
EXTENSION = f"""install: extension, extension: {{configurationSettings: {{
  workloadIdentity.enable: "true", workloadIdentity.azureClientId: {CLIENT}}}}}"""


def names(count: int) -> list[str]:
    return [f"c{number:02}" for number in range(count)]


@pytest.mark.parametrize(
    ("flux", "field", "shown"),
    [
        (f"workloadIdentity: {{clientId: {CLIENT}}}", "workloadIdentity.clientId", CLIENT),
        (f"workloadIdentity: {{identity: {SHOP.resource}}}", "workloadIdentity.identity", "shop"),
        (EXTENSION, "extension.configurationSettings.workloadIdentity.azureClientId", CLIENT),
    ],
)
def test_the_flux_of_twenty_clusters_acts_as_one_identity_whoever_federates_it(
    flux: str, field: str, shown: str
) -> None:
    assert messages(fleet(dict.fromkeys(names(20), acting(flux)))) == []
    resolved = fleet(dict.fromkeys(names(21), acting(flux)), known=names(21)[1:])
    assert messages(resolved) == [
        f"clusters/c00/cluster.yaml spec.flux.{field}: the identity {shown} takes 20 federated credentials, "
        "and git has 21: of c01 (1), c02 (1), c03 (1), c04 (1), c05 (1) and 16 more; name another identity, "
        "or one for each cluster: flux.workloadIdentity.identity with {name} in it"
    ]


def test_an_identity_for_each_cluster_has_no_limit_and_a_named_credential_counts_once() -> None:
    own = f'"{SHOP.resource.replace("/shop", "/flux-{name}")}"'
    extra = credentials(20, own) + acting(f"workloadIdentity: {{identity: {own}}}").removeprefix(ISSUER)
    assert messages(fleet(dict.fromkeys(names(30), extra))) == []


def test_an_identity_of_a_cluster_alone_is_in_no_other_manifest() -> None:
    extra = f"  identities:\n    - {{name: flux, identity: {SHOP.resource}}}\n"
    resolved = fleet({"a": extra, "b": extra}, known=["b"])
    assert messages(resolved) == [
        "clusters/a/cluster.yaml spec.identities[flux].identity: the identity shop is that of b, and each "
        "cluster has its own; write {name} into its name"
    ]


def team(name: str, clusters: Collection[str], client: str = CLIENT) -> bytes:
    """Return a system on some clusters that pulls as an identity."""
    acts = f"provider: azure, workloadIdentity: {{clientId: {client}, tenantId: {CLIENT}}}"
    return system(name, ", ".join(clusters)).replace(b"path: ./", f"{acts}, path: ./".encode())


def of_teams(systems: Mapping[str, bytes], before: Mapping[str, bytes] = {}) -> DesiredFleet:
    """Return a fleet of 21 clusters with systems; those of ``before`` are recorded."""
    clusters = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=WITH_IDENTITY) for name in names(21)
    }
    files = fleet_files.fleet() | clusters
    former = files | {f"systems/{name}.yaml": content for name, content in before.items()}
    recorded = {
        name: KnownCluster(desired.document(), desired.digest)
        for name, desired in resolve("example", files_of(former), former).clusters.items()
    }
    files |= {f"systems/{name}.yaml": content for name, content in systems.items()}
    return resolve("example", files_of(files), files, known=recorded)


def test_systems_with_one_identity_are_on_twenty_clusters_together_and_what_works_stays() -> None:
    shop = {"shop": team("shop", names(15))}
    assert messages(of_teams(shop | {"cart": team("cart", names(5))})) == []
    resolved = of_teams(shop | {"cart": team("cart", names(6))}, before=shop)
    assert messages(resolved) == [
        f"systems/cart.yaml spec.source.workloadIdentity.clientId: the identity {CLIENT} takes 20 federated "
        "credentials, one for each cluster of a system, and git has 21: shop (on 15 clusters), cart (on 6 "
        "clusters); give each 20 clusters an identity: in environments, or with a system for each part of "
        "the clusters"
    ]
    assert set(resolved.systems) == {"shop"}
    wider = of_teams({"shop": team("shop", names(21))}, before={"shop": team("shop", names(20))})
    assert [len(cluster.systems) for cluster in wider.clusters.values()] == [1] * 20 + [0]
    assert messages(of_teams({"shop": team("shop", names(21), CLIENT.replace("a", "b"))})) != []


def test_letters_of_another_case_are_the_same_identity() -> None:
    resolved = fleet({"a": credentials(20), "b": credentials(1, SHOP.resource.upper())})
    assert set(resolved.clusters) == {"a"}


def test_another_identity_has_its_own_twenty() -> None:
    other = SHOP.resource.replace("/shop", "/other")
    assert messages(fleet({"a": credentials(20), "b": credentials(20, other)})) == []


def test_what_is_recorded_stays_and_what_is_new_is_refused_whatever_the_names() -> None:
    resolved = fleet({"a": credentials(10), "b": credentials(15)}, known=["b"])
    assert set(resolved.clusters) == {"b"}
    assert len(resolved.invalid["a"]) == 5


def test_what_an_invalid_cluster_has_in_azure_counts() -> None:
    recorded = fleet({"b": credentials(15)}).clusters["b"]
    files = fleet_files.fleet() | {
        "clusters/a/cluster.yaml": fleet_files.cluster("a", extra=credentials(10)),
        "clusters/b/cluster.yaml": fleet_files.cluster("b", extra="  nonsense: 1\n"),
    }
    known = {"b": KnownCluster(recorded.document(), recorded.digest)}
    resolved = resolve("example", files_of(files), files, known=known)
    assert any("takes 20 federated credentials" in message for message in messages(resolved))
    assert "a" in resolved.invalid


def test_a_region_has_as_many_clusters_as_its_quota_says_and_those_that_exist_stay() -> None:
    resolved = fleet(dict.fromkeys("abc", ""), known=["c"], head=QUOTAS)
    assert set(resolved.clusters) == {"a", "c"}
    (message,) = messages(resolved)
    assert message == (
        "clusters/b/cluster.yaml spec.location: git has 3 clusters in eastus of the subscription "
        "00000000-0000-0000-0000-000000000001, whose quota in fleet.yaml is 2; choose another region, or "
        "raise the quota in Azure and in fleet.yaml"
    )


def test_the_quota_that_names_the_subscription_counts_more_than_that_of_the_region() -> None:
    elsewhere = "  subscriptionId: 00000000-0000-0000-0000-000000000009\n"
    resolved = fleet({"a": elsewhere, "b": ""}, head=QUOTAS)
    assert set(resolved.clusters) == {"b"}
    assert "whose quota in fleet.yaml is 0" in messages(resolved)[0]


def test_a_cluster_that_is_adopted_exists_already_and_is_not_refused() -> None:
    adopt = b"  annotations: {roadstead.dev/adopt: when-equal}\nspec:\n"
    files = fleet_files.fleet("a", "b", "c")
    files["clusters/c/cluster.yaml"] = files["clusters/c/cluster.yaml"].replace(b"spec:\n", adopt, 1)
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"spec:\n", QUOTAS, 1)
    resolved = resolve("example", files_of(files), files)
    assert set(resolved.clusters) == {"a", "c"}


def test_a_subscription_has_five_thousand_clusters_at_most() -> None:
    (one,) = fleet({"a": ""}).clusters.values()
    clusters = {f"c-{number:04}": one for number in range(5001)}
    ((name, ((path, message),)),) = over_limits(clusters, {}, ()).items()
    assert (name, path) == ("c-5000", ("subscriptionId",))
    assert message.startswith("a subscription has 5,000 clusters at most, and git has 5,001 in 00000000-")
