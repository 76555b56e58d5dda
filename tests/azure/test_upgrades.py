"""Upgrades proceed one minor at a time, the control plane before its pools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.azure.changes.upgrades import behind, next_version, no_newer_than, not_offered, old_nodes
from shared.kubernetes_versions import needs_upgrade, numbers

OFFERED = ["1.34.9", "1.35.6", "1.35.7", "1.36.2", "1.37.1"]


def test_no_minor_is_skipped() -> None:
    assert next_version("1.37", "1.34.9") == "1.35"
    assert next_version("1.37.1", "1.35.7") == "1.36"
    assert next_version("1.37.1", "1.36.2") == "1.37.1"


def test_a_version_that_runs_needs_no_upgrade() -> None:
    assert next_version("1.36", "1.36.2") == ""
    assert next_version("1.35", "1.36.2") == ""
    assert next_version("1.36.3", "1.36.2") == "1.36.3"


@given(wanted=st.integers(20, 45), start=st.integers(20, 45), patch=st.integers(0, 20))
def test_hops_end_at_the_desired_version_and_never_go_back(wanted: int, start: int, patch: int) -> None:
    current, hops = f"1.{start}.{patch}", 0
    while hop := next_version(f"1.{wanted}", current):
        assert numbers(hop)[1] - numbers(current)[1] == 1
        current, hops = f"{hop}.3", hops + 1
    assert hops == max(0, wanted - start)
    assert not needs_upgrade(f"1.{wanted}", current)


@pytest.mark.parametrize("text", ["", "1.x", "1.36-preview", f"1.{'9' * 5000}"])
def test_what_is_no_version_has_no_numbers(text: str) -> None:
    assert numbers(text) == ()


def test_a_pool_never_requests_a_newer_version_than_the_control_plane_runs() -> None:
    assert no_newer_than("1.35.7", "1.37") == "1.35"
    assert no_newer_than("1.35.7", "1.35.10") == "1.35.7"
    assert no_newer_than("1.35.7", "1.34") == "1.34"
    assert no_newer_than("1.35.7", "1.35") == "1.35"
    assert no_newer_than("", "1.37") == "1.37"


def test_the_control_plane_waits_for_pools_that_follow_it_and_not_for_pinned_ones() -> None:
    pools = {"follows": ("1.37", "1.34.9"), "pinned": ("1.34", "1.34.9"), "there": ("1.37", "1.35.6")}
    assert behind("1.35.7", pools) == ["follows"]


def test_a_version_that_is_not_offered_is_reported_with_those_that_are() -> None:
    assert not_offered("1.37", "1.34.9", OFFERED) == ""
    assert not_offered("1.36.2", "1.35.7", OFFERED) == ""
    why = not_offered("1.38", "1.35.7", OFFERED)
    assert why.startswith("Azure does not offer Kubernetes 1.38 here; it offers 1.34.9, 1.35.6")
    assert "1.36.7" in not_offered("1.36.7", "1.35.7", OFFERED)
    assert "1.36" in not_offered("1.37", "1.35.7", ["1.35.7", "1.37.1"])


def test_a_node_with_an_older_kubelet_than_its_pool_is_named() -> None:
    def node(name: str, pool: str, kubelet: str) -> dict[str, object]:
        labels = {"kubernetes.azure.com/agentpool": pool}
        info = {"nodeInfo": {"kubeletVersion": kubelet}}
        return {"metadata": {"name": name, "labels": labels}, "status": info}

    nodes = [node("a", "apps", "v1.35.7"), node("b", "apps", "v1.34.9"), node("c", "foreign", "v1.2.3")]
    assert old_nodes(nodes, {"apps": "1.35.7"}) == ["b runs 1.34.9, its pool 1.35.7"]
