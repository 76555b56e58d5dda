"""Policies that somebody changes, and what Azure Policy found: a check reads both."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail
from shared.cluster.failures.errors import Unavailable
from shared.cluster.record import Phase
from shared.cluster.stored_record import from_json, to_json
from shared.ports.azure import ListPolicyAssignments, QueryPolicyStates
from tests.support.checks import check
from tests.support.one_cluster import ONE, files, ready, record
from tests.support.pipeline_runs import phases, push
from tests.support.policies import AUDITED, DENIED, POLICIES, change_by_hand, policies
from tests.support.replaced_ports import on_azure
from tests.support.sweeps import drifted, sweep, tag_by_hand

EFFECT = "policies[privileged].effect"
CORRECT = "  drift: {action: correct}\n"
AUDIT = {"effect": {"value": "Audit"}, "excludedNamespaces": {"value": ["kube-system"]}}


def shown(cloud: MemoryCloud) -> dict[str, Any]:
    """Return what the API shows of each policy: its state, how many are non-compliant, and when."""
    view = cluster_detail("one", cloud.ports)
    assert view is not None
    return {each["name"]: each for each in view["policies"]}  # type: ignore[typeddict-item]


def test_a_policy_that_somebody_changes_is_drift_until_it_is_put_back() -> None:
    cloud = ready(POLICIES)
    change_by_hand(cloud, DENIED, parameters=AUDIT)
    check(cloud)
    assert drifted(record(cloud)) == {EFFECT: ('"Deny"', '"Audit"')}
    (field,) = record(cloud).drift.fields  # type: ignore[union-attr]
    assert field.source.startswith("clusters/one/cluster.yaml:")
    assert phases(cloud) == {"one": Phase.READY}
    cloud.azure.delete_policy_assignment(ONE, DENIED)
    check(cloud)
    ((path, (_, live)),) = drifted(record(cloud)).items()
    assert (path, live) == ("policies[privileged]", "")
    push(cloud, files(POLICIES + "  tags: {a: b}\n"))
    cloud.run()
    assert set(policies(cloud)) == {DENIED, AUDITED}
    check(cloud)
    assert drifted(record(cloud)) == {}


def test_a_policy_is_corrected_where_the_policy_of_drift_says_so() -> None:
    cloud = ready(POLICIES + CORRECT)
    change_by_hand(cloud, DENIED, parameters=AUDIT)
    check(cloud)
    cloud.run()
    assert policies(cloud)[DENIED]["parameters"]["effect"] == {"value": "Deny"}
    assert drifted(record(cloud)) == {}


def test_a_policy_that_is_exempt_is_left_alone_by_the_correction_of_a_tag() -> None:
    rule = "{name: a, fields: [policies], action: ignore, owner: a, reason: b, expires: '2030-01-01'}"
    cloud = ready(POLICIES + f"  tags: {{cost: a}}\n  drift: {{action: correct, rules: [{rule}]}}\n")
    change_by_hand(cloud, DENIED, parameters=AUDIT)
    check(cloud)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    live = cloud.azure.peek(ONE)
    assert live is not None
    assert live["tags"]["cost"] == "a"
    assert policies(cloud)[DENIED]["parameters"]["effect"] == {"value": "Audit"}
    assert drifted(record(cloud)) == {}


def test_no_pull_request_proposes_a_policy_and_nobody_is_named_who_changed_it() -> None:
    cloud = ready(POLICIES + "  drift: {action: propose}\n")
    with cloud.azure.called_by("ann@example.com"):
        change_by_hand(cloud, DENIED, parameters=AUDIT)
    with cloud.azure.called_by("bob@example.com"):
        tag_by_hand(cloud, ONE, own="x")
    check(cloud)
    field = next(each for each in record(cloud).drift.fields if each.path == EFFECT)  # type: ignore[union-attr]
    assert (field.action, field.by) == ("report", "")
    assert field.note == "no pull request: a policy assignment is taken into the manifest by hand"


def test_compliance_is_shown_with_the_time_of_which_it_is_and_never_as_newer() -> None:
    cloud = ready(POLICIES)
    assert {name: each["state"] for name, each in shown(cloud).items()} == {"privileged": "", "private": ""}
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


@pytest.mark.parametrize("refused", [ListPolicyAssignments, QueryPolicyStates])
def test_what_cannot_be_read_stays_as_it_was_and_the_check_goes_on(refused: type[Any]) -> None:
    cloud = ready(POLICIES)
    change_by_hand(cloud, DENIED, parameters=AUDIT)
    cloud.azure.policies.found(ONE, DENIED, "NonCompliant", cloud.clock())
    check(cloud)
    before = record(cloud)

    def refuse(_: Any) -> Any:
        raise Unavailable("Azure did not answer")

    on_azure(cloud, refused, refuse)
    cloud.azure.policies.found(ONE, DENIED, "Compliant", cloud.clock())
    check(cloud)
    assert record(cloud).companions.differences == before.companions.differences
    assert drifted(record(cloud)) == {EFFECT: ('"Deny"', '"Audit"')}
    compliance = record(cloud).companions.compliance
    assert compliance is not None
    if refused is QueryPolicyStates:
        assert compliance == before.companions.compliance
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
    assert record(cloud).companions.compliance is None
