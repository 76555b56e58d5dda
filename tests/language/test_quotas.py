"""Quotas count over some clusters: what a commit adds beyond one is refused, with the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.language.model.fleet_rules import ClusterQuota
from shared.language.resolve.rules.quota_rules import over_budget
from shared.language.resolve.rules.size_rules import SizeName
from tests.support.fleet_limits import fleet, messages

POOL = "    - {{name: apps, vmSize: {size}, {count}}}\n"


def quotas(*entries: str) -> bytes:
    lines = "".join(f"    - {{{entry}}}\n" for entry in entries)
    return f"spec:\n  clusterQuotas:\n{lines}".encode()


def pool(count: str, size: str = "Standard_D4s_v5") -> str:
    return POOL.format(size=size, count=count)


def test_the_clusters_beyond_a_quota_are_refused_with_what_would_fit() -> None:
    names = dict.fromkeys("abcdef", "")
    assert messages(fleet(names, known="abc", head=quotas("clusters: 4, perLabel: tier"))) == []
    resolved = fleet(names, known="abc", head=quotas("nodes: 4"))
    assert set(resolved.clusters) == {"a", "b", "c", "d"}
    assert messages(resolved)[0] == (
        "clusters/e/cluster.yaml spec.nodePools: the fleet: 6 of 4 nodes; this commit adds 3; 1 would fit; "
        "take some back, or raise it in fleet.yaml"
    )


def test_an_environment_has_a_quota_of_its_own() -> None:
    own = "  environment: development\n"
    resolved = fleet({"a": own, "b": own, "c": ""}, head=quotas("environment: development, clusters: 1"))
    assert set(resolved.clusters) == {"a", "c"}
    (message,) = messages(resolved)
    assert "environment development: 2 of 1 clusters; this commit adds 2; 1 would fit" in message


def test_cores_are_those_of_the_names_of_the_sizes_at_the_most_that_a_pool_scales_to() -> None:
    of_autoscaled = pool("minCount: 1, maxCount: 10", "Standard_E8ads_v5")
    assert messages(fleet({"a": of_autoscaled}, head=quotas("cores: 84"))) == []
    (message,) = messages(fleet({"a": of_autoscaled}, head=quotas("cores: 83")))
    assert "the fleet: 84 of 83 cores" in message


def test_what_exists_stays_and_what_grows_beyond_a_quota_is_refused() -> None:
    recorded = fleet({"a": "", "b": ""}).clusters
    grown = {**recorded, "b": fleet({"b": pool("count: 2")}).clusters["b"]}
    quota = ClusterQuota(nodes=1)
    assert over_budget(recorded, recorded, quota) == {}
    assert over_budget(grown, recorded, quota).keys() == {"b"}


@pytest.mark.parametrize(
    ("size", "cores"),
    [
        *(("Standard_D4s_v5", 4), ("standard_nc24ads_a100_v4", 24), ("Standard_B2s", 2), ("Special", 0)),
        *(("Standard_DS3_v2", 4), ("standard_ds14_V2", 16), ("Standard_D5_v2_Promo", 16), ("Standard_D4", 8)),
        *(("Standard_DS12-2_v2", 4), ("Standard_GS5", 32), ("Standard_D4_v3", 4), ("Standard_DS9_v2", 0)),
    ],
)
def test_the_name_of_a_size_says_its_cores_also_where_its_number_does_not(size: str, cores: int) -> None:
    assert SizeName.of(size).cores == cores


def test_a_cluster_that_comes_into_a_quota_is_added_to_it() -> None:
    recorded = fleet({"a": "", "b": "", "c": ""}).clusters
    own = "  environment: development\n"
    moved = fleet({"a": own, "b": own, "c": ""}).clusters
    quota = ClusterQuota(environment="development", clusters=1)
    found = over_budget(moved, recorded, quota)
    assert found.keys() == {"b"}
    assert "2 of 1 clusters; this commit adds 2; 1 would fit" in found["b"][0][1]
    assert over_budget(moved, moved, quota) == {}


def test_a_quota_of_cores_refuses_a_new_size_of_which_nobody_knows_them() -> None:
    (message,) = messages(fleet({"a": pool("count: 1", "Special_X1")}, head=quotas("cores: 1000")))
    assert "the name of the size Special_X1 does not say how many vCPUs it has" in message


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("environment: development", "needs a limit: clusters, nodes, cores or listPrice"),
        ("perLabel: owner, clusters: -1", "clusterQuotas[0].clusters"),
    ],
)
def test_a_quota_without_a_limit_and_a_wrong_one_are_refused(entry: str, problem: str) -> None:
    assert any(problem in message for message in messages(fleet({"a": ""}, head=quotas(entry))))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 4), min_size=1),
    st.sets(st.sampled_from("abcdefgh")),
    st.integers(0, 20),
)
def test_what_is_admitted_fits_unless_what_exists_does_not(
    sizes: dict[str, int], known: set[str], limit: int
) -> None:
    clusters = {name: pool(f"count: {count}") for name, count in sizes.items()}
    found = fleet(clusters, known & sizes.keys()).clusters
    recorded = {name: found[name] for name in known & sizes.keys()}
    refused = over_budget(found, recorded, ClusterQuota(nodes=limit))
    assert not refused.keys() & recorded.keys()
    admitted = sum(1 + sizes[name] for name in found.keys() - refused.keys())
    existing = sum(1 + sizes[name] for name in recorded)
    assert admitted <= max(limit, existing)
