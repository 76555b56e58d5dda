"""What Azure Policy found of a cluster: a check reads it, and the API shows of when it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record import from_json, to_json
from shared.cluster.record_parts import Phase
from shared.ports.azure import ListPolicyAssignments, QueryPolicyStates
from tests.support.checks import check
from tests.support.one_cluster import ONE, files, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.policies import AUDITED, DENIED, POLICIES
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import sweep


def shown(cloud: MemoryCloud) -> dict[str, Any]:
    """Return what the API shows of each policy: its state, how many are non-compliant, and when."""
    view = cluster_detail("one", cloud.ports)
    assert view is not None
    return {policy["name"]: policy for policy in view["policies"]}  # type: ignore[typeddict-item]


def test_compliance_is_shown_with_the_time_of_which_it_is_and_never_as_newer() -> None:
    cloud = ready(POLICIES)
    assert {name: document["state"] for name, document in shown(cloud).items()} == {
        "privileged": "",
        "private": "",
    }
    check(cloud)
    private = shown(cloud)["private"]
    assert (private["state"], private["evaluatedAt"]) == ("NotEvaluated", None)
    assert private["readAt"]
    found, yesterday = cloud.azure.policies.found, cloud.clock() - timedelta(days=1)
    found(ONE, DENIED, "Compliant", cloud.clock(), reference="a")
    found(ONE, DENIED, "NonCompliant", yesterday, reference="b")
    found(ONE, AUDITED, "Compliant", cloud.clock())
    assert shown(cloud)["private"]["state"] == "NotEvaluated", "nothing is shown before it was read"
    check(cloud)
    privileged = shown(cloud)["privileged"]
    assert (privileged["state"], privileged["nonCompliant"]) == ("NonCompliant", 1)
    assert privileged["evaluatedAt"] == yesterday.isoformat(timespec="seconds")
    assert shown(cloud)["private"]["state"] == "Compliant"
    assert phases(cloud) == {"one": Phase.READY}, "no policy changes Ready"
    assert from_json(to_json(record(cloud)), "v1") == record(cloud)


def test_compliance_that_cannot_be_read_stays_as_it_was_and_the_check_goes_on() -> None:
    cloud = ready(POLICIES)
    cloud.azure.policies.found(ONE, DENIED, "NonCompliant", cloud.clock())
    check(cloud)
    before = record(cloud).observation.companions

    def refuse(_: Any) -> Any:
        raise Unavailable("Azure did not answer")

    on_azure(cloud, QueryPolicyStates, refuse)
    cloud.azure.policies.found(ONE, DENIED, "Compliant", cloud.clock())
    check(cloud)
    assert before.compliance is not None
    assert record(cloud).observation.companions == before
    healthy = record(cloud).condition("FluxHealthy")
    assert healthy is not None
    assert healthy.status


def test_a_check_costs_two_calls_for_a_cluster_with_policies_and_none_without() -> None:
    cloud = ready(POLICIES)
    azure, calls = cloud.ports.azure, list[str]()
    for kind in (ListPolicyAssignments, QueryPolicyStates):

        def noted(operation: Any) -> Any:
            calls.append(operation.name)
            return azure.call(operation)

        on_azure(cloud, kind, noted)
    sweep(cloud)
    assert calls == []
    check(cloud)
    assert calls == ["list_policy_assignments", "query_policy_states"]
    push(cloud, files())
    cloud.run()
    calls.clear()
    check(cloud)
    assert calls == []
    assert record(cloud).observation.companions.compliance is None
