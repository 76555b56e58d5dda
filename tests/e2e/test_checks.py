"""Flux that breaks in a Ready cluster, over the wire: the API and the commit status say what is so."""

from __future__ import annotations

from typing import Any

from localcloud.runtime.options import Options
from shared.fleet.kubernetes.flux_objects import KUSTOMIZATION, NAMESPACE, SOURCE
from shared.fleet.kubernetes.flux_readiness import ready_condition
from shared.fleet.resource_ids import ObjectRef
from shared.ports import KubernetesApi
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes, over_newest, reconcile_now
from tests.support.local_cloud_start import Start

AT_ONCE = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5", "UNHEALTHY_MINUTES": "0"})
FILES = fleet_files.fleet("one")
BROKEN = FILES | {"platform/broken.yaml": b"kind: [unfinished"}
CONTROLLER = ObjectRef("apps/v1", "Deployment", "kustomize-controller", NAMESPACE)


def flux_healthy(operator: Operator) -> dict[str, Any]:
    """Return the condition, {} before the first check."""
    conditions = operator.api.get("clusters/one")["conditions"]
    return next((each for each in conditions if each["type"] == "FluxHealthy"), {})


def failed_in_tree(operator: Operator) -> list[str]:
    """Return what of Flux the tree names as unhealthy."""
    groups = operator.api.tree("one")["flux"]
    return sorted(f"{each['kind']} {each['name']}" for group in groups for each in group["unhealthy"])


def wait_for_flux(operator: Operator, api: KubernetesApi, status: str) -> None:
    """Have Flux fetch and apply the newest commit, until its Kustomization has a status."""

    def applied() -> bool:
        live = api.get(KUSTOMIZATION)
        return bool(live and (ready_condition(live) or {}).get("status") == status)

    reconcile_now(api, SOURCE, KUSTOMIZATION)
    operator.wait(applied, f"the Kustomization is Ready={status}")


def check(operator: Operator, status: str) -> dict[str, Any]:
    """Have the cluster checked until the condition has a status; return the condition."""
    operator.api.refresh(["one"])
    operator.wait(lambda: flux_healthy(operator).get("status") == status, f"FluxHealthy is {status}")
    return flux_healthy(operator)


def test_flux_that_a_commit_breaks_or_somebody_deletes_is_shown_until_it_is_repaired(start: Start) -> None:
    operator = start(AT_ONCE)
    operator.wait_for_status(operator.push(FILES), "success")
    assert check(operator, "True")["observedGeneration"] == 1
    with kubernetes(operator, "one") as api:
        commit = operator.push(BROKEN)
        operator.wait_for_status(commit, "success")
        wait_for_flux(operator, api, "False")
        found = check(operator, "False")
        assert found["reason"] == "BuildFailed"
        assert f"(Flux tried commit {commit[:8]} and applied " in found["message"]
        assert f" last; since then {commit[:8]} by " in found["message"]
        assert "Kustomization flux-system" in failed_in_tree(operator)
        assert "FluxUnhealthy: the Kustomization" in operator.wait_for_status(commit, "failure")
        doing = operator.api.get("clusters/one/why")["doing"]
        assert doing.startswith("is not Ready any more: the Kustomization flux-system in flux-system: ")
        commit = operator.push(FILES)
        wait_for_flux(operator, api, "True")
        check(operator, "True")
        operator.wait_for_status(commit, "success")
        over_newest(api, CONTROLLER, api.delete)
        assert "the Deployment kustomize-controller in flux-system" in check(operator, "False")["message"]
        assert failed_in_tree(operator) == ["Deployment kustomize-controller"]
        operator.wait_for_status(commit, "failure")
        operator.api.replay("one")
        operator.wait_for_status(commit, "success")
        check(operator, "True")
        assert failed_in_tree(operator) == []
    assert operator.phases() == {"one": "Ready"}
