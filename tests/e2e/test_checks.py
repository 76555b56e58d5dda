"""Flux that breaks in Ready clusters, over the wire: found, shown, and treated as the policy says.

A commit breaks what Flux pulls by itself, and somebody deletes Flux: the conditions and the status of the
commit are true before, meanwhile, and after it.
"""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.runtime.options import Options
from shared.json_tree import Json
from shared.kubernetes.flux_objects import KUSTOMIZATION, NAMESPACE, SOURCE
from shared.kubernetes.flux_readiness import ready_condition
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes, over_newest, reconcile_now
from tests.support.local_cloud_start import Start
from tests.support.truth_on_the_wire import FLUX_FAILS, HEALTHY, wait_for

AT_ONCE = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5", "UNHEALTHY_MINUTES": "0"})
CORRECTED = fleet_files.cluster("two", extra="  drift: {fluxObjects: correct}\n")
FILES = fleet_files.following_branch(fleet_files.fleet("one") | {"clusters/two/cluster.yaml": CORRECTED})
BROKEN = FILES | {"platform/broken.yaml": b"kind: [unfinished"}
CONTROLLER = ObjectRef("apps/v1", "Deployment", "kustomize-controller", NAMESPACE)
BOTH = ("one", "two")


def flux_healthy(operator: Operator) -> dict[str, Any]:
    """Return the condition of the first cluster."""
    conditions = operator.api.get("clusters/one")["conditions"]
    return next(condition for condition in conditions if condition["type"] == "FluxHealthy")


def suspend(api: KubernetesApi) -> None:
    def write(live: Json) -> None:
        api.replace({**live, "spec": {**live["spec"], "suspend": True}})

    over_newest(api, KUSTOMIZATION, write)


def is_suspended(api: KubernetesApi) -> bool:
    live = api.get(KUSTOMIZATION)
    return live is not None and bool(live["spec"].get("suspend"))


def failed_in_tree(operator: Operator) -> list[str]:
    """Return what of Flux the tree names as unhealthy."""
    groups = operator.api.get("clusters/one/tree")["flux"]
    return sorted(
        f"{unhealthy['kind']} {unhealthy['name']}" for group in groups for unhealthy in group["unhealthy"]
    )


def wait_for_flux(operator: Operator, api: KubernetesApi, status: str) -> None:
    """Have Flux fetch and apply the newest commit, until its Kustomization has a status."""

    def applied() -> bool:
        live = api.get(KUSTOMIZATION)
        return bool(live and (ready_condition(live) or {}).get("status") == status)

    reconcile_now(api, SOURCE, KUSTOMIZATION)
    operator.wait(applied, f"the Kustomization is Ready={status}")


@pytest.mark.long
def test_flux_that_a_commit_breaks_or_somebody_deletes_is_shown_until_it_is_repaired(start: Start) -> None:
    operator = start(AT_ONCE)
    healthy, failing = dict.fromkeys(BOTH, HEALTHY), dict.fromkeys(BOTH, FLUX_FAILS)
    commit = operator.push(FILES)
    operator.wait_for_status(commit, "success")
    wait_for(operator, healthy, "both are healthy before", refresh=True)
    assert operator.status(commit).startswith("success")
    with kubernetes(operator, "one") as api, kubernetes(operator, "two") as other:
        commit = operator.push(BROKEN)
        operator.wait_for_status(commit, "success")
        for cluster in (api, other):
            wait_for_flux(operator, cluster, "False")
        wait_for(operator, failing, "what the commit breaks is found", refresh=True)
        found = flux_healthy(operator)
        assert (found["reason"], found["observedGeneration"]) == ("BuildFailed", 1)
        assert f"(Flux tried commit {commit[:8]} and applied " in found["message"]
        assert f" last; since then {commit[:8]} by " in found["message"]
        assert "Kustomization flux-system" in failed_in_tree(operator)
        assert "FluxUnhealthy: the Kustomization" in operator.wait_for_status(commit, "failure")
        doing = operator.api.get("clusters/one/why")["doing"]
        assert doing.startswith("is not Ready any more: the Kustomization flux-system in flux-system: ")
        commit = operator.push(FILES)
        for cluster in (api, other):
            wait_for_flux(operator, cluster, "True")
        wait_for(operator, healthy, "both are healthy again", refresh=True)
        operator.wait_for_status(commit, "success")

        for cluster in (api, other):
            over_newest(cluster, CONTROLLER, cluster.delete)
        operator.api.refresh([*BOTH])
        wait_for(operator, {"one": FLUX_FAILS}, "where Flux is deleted it is reported")
        assert "the Deployment kustomize-controller in flux-system" in flux_healthy(operator)["message"]
        assert failed_in_tree(operator) == ["Deployment kustomize-controller"]
        assert "one: Failed at verify: FluxUnhealthy" in operator.wait_for_status(commit, "failure")
        operator.wait(lambda: other.get(CONTROLLER) is not None, "the policy has Flux applied again")
        operator.wait(lambda: operator.phases()["two"] == "Ready", "its cluster is Ready again")
        assert api.get(CONTROLLER) is None, "what is only reported is left alone"
        suspend(other)
        operator.api.refresh(["two"])
        operator.wait(lambda: not is_suspended(other), "the policy resumes what somebody suspended")
        operator.wait(lambda: operator.phases()["two"] == "Ready", "its cluster is Ready once more")
        operator.api.replay("one")
        operator.wait_for_status(commit, "success")
        wait_for(operator, healthy, "both are healthy after", refresh=True)
        assert failed_in_tree(operator) == []
    assert operator.phases() == dict.fromkeys(BOTH, "Ready")
    assert operator.status(commit).startswith("success")
