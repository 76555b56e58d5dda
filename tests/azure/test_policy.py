"""What happens to each field that differs: the most careful rule counts, and nothing that destroys starts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.azure.differences import Difference
from shared.azure.drift.policy import DriftDecision, decide
from shared.language.model.cluster.drift import DriftAction, DriftPolicy, DriftRule

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
LIVE: dict[str, Any] = {
    "properties": {
        "kubernetesVersion": "1.36.3",
        "agentPoolProfiles": [{"name": "apps", "osType": "Linux", "orchestratorVersion": "1.36.3"}],
    }
}
POOLS = {pool["name"]: pool for pool in LIVE["properties"]["agentPoolProfiles"]}
EXEMPTION = {"action": "ignore", "owner": "team-a", "reason": "a test", "expires": "2027-03-01"}


def policy(*rules: dict[str, Any], action: str = "report") -> DriftPolicy:
    named = [{"name": f"rule-{number}", **rule} for number, rule in enumerate(rules)]
    return DriftPolicy.model_validate({"action": action, "rules": named})


def count(git: int = 2, live: int = 5) -> Difference:
    return Difference("nodePools[apps].count", git, live)


def actions(given_policy: DriftPolicy | None, *differences: Difference, **more: Any) -> list[tuple[str, str]]:
    return [(field.action.value, field.note) for field in decided(given_policy, *differences, **more)]


def decided(given_policy: DriftPolicy | None, *differences: Difference, **more: Any) -> list[DriftDecision]:
    return decide(differences, given_policy, LIVE, **{"pools": POOLS, "exhausted": (), "now": NOW, **more})


def test_drift_is_reported_where_no_policy_says_otherwise() -> None:
    assert actions(None, count()) == [("report", "")]


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("tags.*", "tags.cost", True),
        ("tags.*", "tags.example.com/own", True),
        ("tags.cost", "tags.cost-center", False),
        ("nodePools[*].count", "nodePools[apps].count", True),
        ("nodePools[apps].count", "nodePools[web].count", False),
        ("nodePools[apps]", "nodePools[apps].nodeLabels.tier", True),
        ("nodePools[*]", "nodePools[apps]", True),
        ("nodePools", "nodePools[apps].count", True),
        ("networkProfile", "networkProfile.loadBalancerProfile.managedOutboundIPs.count", True),
        ("networkProfile", "networkProfiles.x", False),
        ("*", "sku.tier", True),
        ("*.tier", "sku.tier", True),
        ("*.tier", "networkProfile.a.tier", False),
    ],
)
def test_a_rule_covers_its_fields_and_what_is_below_them(pattern: str, path: str, covered: bool) -> None:
    rule = DriftRule.model_validate({"name": "a", "fields": [pattern], "action": "report"})
    assert rule.covers(path) is covered


def test_what_azure_policy_sets_is_never_drift_whatever_the_rules_say_and_has_no_end() -> None:
    rule = {"name": "tags", "fields": ["tags"], "action": "correct"}
    owned = DriftPolicy.model_validate({"azurePolicy": ["tags.cost*", "tags.stamp"], "rules": [rule]})
    stamp, centre = (
        Difference("tags.stamp", None, "x", left_alone=True),
        Difference("tags.costCentre", "a", "b"),
    )
    other = Difference("tags.team", "a", "b")
    assert actions(owned, stamp, centre, other) == [("ignore", ""), ("ignore", ""), ("correct", "")]
    assert actions(owned, Difference("tags.stamps", "a", "b")) == [("correct", "")]


def test_of_several_rules_the_one_that_changes_least_counts() -> None:
    report, correct = (
        {"fields": ["nodePools[*].count"], "action": action} for action in ("report", "correct")
    )
    ignore = {"fields": ["nodePools"], **EXEMPTION}
    assert actions(policy(correct, report), count()) == [("report", "")]
    assert actions(policy(correct, ignore, report), count()) == [("ignore", "")]
    assert actions(policy(correct), count()) == [("correct", "")]


def test_a_rule_counts_more_than_the_action_of_the_policy() -> None:
    report, correct = (
        {"fields": ["nodePools[*].count"], "action": action} for action in ("report", "correct")
    )
    assert actions(policy(report, action="correct"), count()) == [("report", "")]
    assert actions(policy(correct, action="report"), count()) == [("correct", "")]


@pytest.mark.parametrize("action", ["report", "correct"])
def test_an_exemption_lasts_until_the_end_of_its_day_and_is_named_afterwards(action: str) -> None:
    exempt = policy({"fields": ["nodePools"], **EXEMPTION}, action=action)
    assert actions(exempt, count()) == [("ignore", "")]
    after = datetime(2027, 3, 2, 0, 1, tzinfo=UTC)
    note = "the exemption rule-0 of team-a ended on 2027-03-01"
    assert actions(exempt, count(), now=after) == [(action, note)]


@pytest.mark.parametrize(
    ("difference", "effect"),
    [
        (Difference("nodePools[apps].vmSize", "Standard_D4s_v5", "Standard_D8s_v5"), "node pool replacement"),
        (
            Difference("nodePools[apps].minNodeImageVersion", "202511.01", "x"),
            "in place, nodes are reimaged",
        ),
        (Difference("nodePools[apps]", None, {"count": 1}), "the node pool is deleted"),
        (
            Difference("httpProxyConfig.httpProxy", "http://a", "http://b"),
            "in place, nodes are reimaged",
        ),
        (Difference("kubernetesVersion", "1.37", "1.36.3"), "in place, nodes are reimaged"),
        (Difference("nodePools[apps].powerState.code", "Stopped", "Running"), "in place, nodes are stopped"),
        (
            Difference("oidcIssuerProfile.enabled", True, False),
            "in place, with a short interruption",
        ),
    ],
)
def test_what_replaces_deletes_reimages_stops_or_interrupts_waits_for_an_approval(
    difference: Difference, effect: str
) -> None:
    (found,) = decided(policy(action="correct"), difference)
    assert (found.action, found.effect, found.note) == (DriftAction.APPROVE, effect, "")
    assert actions(policy(action="report"), difference) == [("report", "")]


@pytest.mark.parametrize(
    ("difference", "why"),
    [
        (Difference("networkProfile.networkPlugin", "azure", "kubenet"), "needs recreation"),
        (Difference("tags.own", None, "x", left_alone=True), "no job changes it"),
    ],
)
def test_what_no_job_can_do_is_reported(difference: Difference, why: str) -> None:
    ((action, note),) = actions(policy(action="correct"), difference)
    assert action == "report"
    assert why in note


def test_a_pool_is_not_replaced_while_another_field_of_it_is_left_as_it_is() -> None:
    size = Difference("nodePools[apps].vmSize", "Standard_D4s_v5", "Standard_D8s_v5")
    label = Difference("nodePools[apps].nodeLabels.own", None, "x", left_alone=True)
    (found, _) = decided(policy(action="correct"), size, label)
    assert (found.action, found.effect) == (DriftAction.REPORT, "")
    assert found.note == "not corrected while nodePools[apps].nodeLabels.own differs"
    (found, _) = decided(policy(action="correct"), size, count())
    assert found.action == DriftAction.APPROVE


@pytest.mark.parametrize(
    "difference",
    [
        count(),
        Difference("tags.cost", "a", "b"),
        Difference("nodePools[apps]", {"count": 2}, None),
        Difference("nodePools[apps].nodeTaints", [], ["k=v:NoSchedule"]),
        Difference("nodePools[apps].securityProfile.sshAccess", "Disabled", "LocalUser"),
    ],
)
def test_what_changes_in_place_and_a_missing_pool_is_corrected(difference: Difference) -> None:
    assert actions(policy(action="correct"), difference) == [("correct", "")]


def test_drift_that_was_corrected_three_times_is_reported() -> None:
    ((action, note),) = actions(policy(action="correct"), count(), exhausted={"nodePools[apps].count"})
    assert (action, note) == ("report", "something changes it back: it was corrected 3 times")


OLDER = Difference("nodePools[apps].orchestratorVersion", "1.36", "1.35.7")


def test_nothing_is_corrected_while_an_upgrade_is_left_to_a_person() -> None:
    corrects_counts = policy({"fields": ["nodePools[*].count"], "action": "correct"})
    found = actions(corrects_counts, count(), OLDER)
    assert [action for action, _ in found] == ["report", "report"]
    assert found[0][1] == "not corrected while nodePools[apps].orchestratorVersion differs"


def test_what_the_job_of_an_upgrade_writes_waits_for_the_approval_of_the_upgrade() -> None:
    found = decided(policy(action="correct"), count(), OLDER)
    assert [(field.action, field.effect) for field in found] == [
        (DriftAction.APPROVE, "in place"),
        (DriftAction.APPROVE, "in place, nodes are reimaged"),
    ]
    newer = Difference("kubernetesVersion", "1.36", "1.37.0", left_alone=True)
    assert [action for action, _ in actions(policy(action="correct"), count(), newer)] == [
        "correct",
        "report",
    ]


_RULES = st.lists(
    st.tuples(
        st.sampled_from(["*", "tags.*", "nodePools[*].count", "nodePools"]),
        st.sampled_from(["report", "correct", "ignore"]),
    ),
    max_size=4,
)


@given(_RULES, st.sampled_from(["report", "correct"]))
def test_no_rule_makes_another_one_less_careful(rules: list[tuple[str, str]], action: str) -> None:
    order = ["ignore", "report", "correct"]
    made = [
        {"fields": [field], **(EXEMPTION if rule == "ignore" else {"action": rule})} for field, rule in rules
    ]
    found = [
        chosen for chosen, _ in actions(policy(*made, action=action), count(), Difference("tags.a", "1", "2"))
    ]
    for path, got in zip(("nodePools[apps].count", "tags.a"), found, strict=True):
        covering = [
            rule
            for (field, rule) in rules
            if DriftRule.model_validate({"name": "a", "fields": [field], "action": "report"}).covers(path)
        ]
        assert got == min(covering, key=order.index, default=action)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"fields": ["tags.*"], "action": "ignore"}, "needs owner and reason and expires"),
        ({"fields": ["tags.*"], "action": "report", "owner": "a"}, "owner: only a rule with action: ignore"),
        ({"fields": ["tags.*"], **EXEMPTION, "expires": "2027-02-30"}, "must be a date such as 2027-06-30"),
        ({"fields": ["spec.tags.a"], "action": "report"}, "leave out the spec."),
        ({"fields": ["nodePools[apps"], "action": "report"}, "must be the path of a field below spec"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("[", r"\[")):
        policy(rule)


def test_a_whole_cluster_is_exempt_only_by_name_and_until_the_last_day() -> None:
    named = policy({"fields": ["tags", "stoppedCluster"], **EXEMPTION})
    found = named.exemption("stoppedCluster", NOW)
    assert found is not None
    assert found.owner == "team-a"
    assert named.exemption("missingCluster", NOW) is None
    assert named.exemption("stoppedCluster", datetime(2027, 3, 2, 0, 1, tzinfo=UTC)) is None
    assert policy({"fields": ["*"], **EXEMPTION}).exemption("stoppedCluster", NOW) is None
    with pytest.raises(ValidationError, match="fields of a rule with action: ignore"):
        policy({"fields": ["missingCluster"], "action": "correct"})


def proposed(*differences: Difference) -> list[tuple[str, str]]:
    rules = policy(action="propose")
    return actions(rules, *differences)


def test_drift_is_proposed_where_the_policy_says_so_also_what_git_does_not_name() -> None:
    own = Difference("tags.own", None, "x", left_alone=True)
    assert proposed(count(), own) == [("propose", "")] * 2


def test_a_rule_that_proposes_changes_more_than_a_report_and_less_than_a_correction() -> None:
    report, propose, correct = (
        {"fields": ["nodePools[*].count"], "action": action} for action in ("report", "propose", "correct")
    )
    assert actions(policy(propose, report), count())[0][0] == "report"
    assert actions(policy(propose, correct), count())[0][0] == "propose"


@pytest.mark.parametrize(
    ("difference", "reason"),
    [
        (Difference("nodePools[apps]", {"count": 2}, None), "adds or removes no node pool"),
        (Difference("nodePools[apps].minNodeImageVersion", "202511.01", "AKSx"), "the oldest image"),
        (Difference("nodePools[apps].vmSize", "Standard_D4s_v5", "Standard_D8s_v5"), "node pool replacement"),
        (Difference("networkProfile.serviceCidr", "10.0.0.0/16", "10.1.0.0/16"), "needs recreation"),
        (Difference("maintenanceWindows[default].durationHours", 4, 8), "by hand"),
    ],
)
def test_what_a_pull_request_cannot_change_safely_is_reported_with_the_reason(
    difference: Difference, reason: str
) -> None:
    ((action, note),) = proposed(difference)
    assert action == "report"
    assert note.startswith("no pull request: ")
    assert reason in note
