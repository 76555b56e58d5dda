"""Promotions by a rule of fleet.yaml: after a soak, and never over a hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.plans import promotions_view
from shared.app.outbox import send
from shared.app.proposals import promote
from shared.app.proposals.texts import PROMOTION_OVER as OVER
from shared.cluster.divergence.drift import Drift, DriftedField
from shared.cluster.findings.conditions import with_condition
from shared.cluster.findings.health import HealthCondition
from shared.cluster.queues.messages import CLOCKS_DIFFER, PromoteRequest
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Condition, Phase
from tests.support.drift_proposals import calls_to_host
from tests.support.pipeline_runs import phases, record_of
from tests.support.promotions import (
    BRANCH,
    PROD,
    RULE,
    TEST,
    ask,
    change,
    decided,
    environment,
    files,
    fleet_with,
    holds,
    merge,
    problem,
    production,
    pulls,
    stored,
)
from tests.support.replaced_ports import around
from tests.support.sleepers import sleeping, until
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives

HOUR = 3600


def proposed() -> MemoryCloud:
    """Return a cloud in which the rule has proposed 1.36 to production."""
    cloud = fleet_with(files(extra=RULE))
    change(cloud, files(test="1.36", extra=RULE))
    cloud.run(seconds=HOUR + 60)
    assert [pull_request.state for pull_request in pulls(cloud)] == ["open"]
    return cloud


def merged() -> MemoryCloud:
    cloud = proposed()
    merge(cloud, pulls(cloud)[0].number)
    assert pulls(cloud) == []
    return cloud


def test_a_rule_proposes_what_has_been_ready_for_its_soak_and_not_before() -> None:
    cloud = fleet_with(files(extra=RULE))
    change(cloud, files(test="1.36", extra=RULE), seconds=HOUR - 600)
    assert phases(cloud) == dict.fromkeys((*TEST, *PROD), Phase.READY)
    assert pulls(cloud, state="all") == []
    assert problem(cloud).startswith("promotion: development is watched until 2026-01-01 ")
    cloud.run(seconds=HOUR)
    (pull,) = pulls(cloud)
    assert "A rule of `fleet.yaml` asks for this." in pull.body
    assert (problem(cloud), holds(cloud)) == ("", [])


def test_a_rule_proposes_when_the_soak_ends_also_while_the_clusters_sleep() -> None:
    own, rule = dict.fromkeys(TEST, sleeping()), RULE.replace("1h", "6h")
    cloud = MemoryCloud()
    cloud.clock.advance((datetime(2026, 1, 12, 10, tzinfo=UTC) - cloud.clock()).total_seconds())
    change(cloud, files(extra=rule, own=own), seconds=HOUR)
    change(cloud, files(test="1.36", extra=rule, own=own), seconds=HOUR)
    until(cloud, 22)
    assert phases(cloud) == dict.fromkeys(TEST, Phase.SLEEPING) | dict.fromkeys(PROD, Phase.READY)
    assert len(pulls(cloud)) == 1, problem(cloud)


def test_a_rule_proposes_when_the_soak_ends_also_by_an_instance_whose_clock_is_behind() -> None:
    cloud = fleet_with(files(extra=RULE))
    change(cloud, files(test="1.36", extra=RULE), seconds=HOUR - 600)
    ready = (summary.times.ready_since for summary in cloud.state.summaries() if summary.name in TEST)
    ends = max(at for at in ready if at is not None) + timedelta(seconds=HOUR)
    cloud.with_ports(lambda ports: replace(ports, clock=lambda: cloud.clock() - CLOCKS_DIFFER / 2))
    cloud.run(seconds=(ends - cloud.clock()).total_seconds() + 30)
    assert len(pulls(cloud)) == 1


def test_a_merge_ends_it_and_what_the_environment_had_before_is_held() -> None:
    cloud = merged()
    assert cloud.ports.git_host.tip(BRANCH) is None
    assert holds(cloud) == [("1.35", "withdrawn")]
    sweep(cloud)
    assert len(pulls(cloud, state="all")) == 1


def test_a_revert_is_a_hold_that_no_rule_undoes() -> None:
    cloud = merged()
    change(cloud, files(test="1.36", extra=RULE))
    assert holds(cloud) == [("1.36", "withdrawn")]
    for _ in range(3):
        cloud.run(seconds=2 * HOUR)
        sweep(cloud)
    assert len(pulls(cloud, state="all")) == 1
    assert problem(cloud) == (
        "version: production had 1.36, and a commit took it back: no rule gives it again"
    )


def test_a_cluster_that_leaves_takes_no_value_back() -> None:
    own = {"b2": "  kubernetesVersion: '1.36'\n  deletionProtection: false\n"}
    cloud = fleet_with(files(extra=RULE, own=own))
    without = _without_b2(files(extra=RULE))
    change(cloud, without, seconds=HOUR)
    assert ({*phases(cloud)}, holds(cloud)) == ({*TEST, "b1"}, [])
    change(cloud, without | {"environments/development.yaml": environment("development", "1.36")})
    assert len(pulls(cloud)) == 1


@pytest.mark.parametrize("together", [True, False])
def test_a_value_is_taken_back_where_a_cluster_that_stays_had_it_too(*, together: bool) -> None:
    own = dict.fromkeys(PROD, "  kubernetesVersion: '1.36'\n  deletionProtection: false\n")
    cloud = fleet_with(files(extra=RULE, own=own))
    lowered = own | {"b1": "  kubernetesVersion: '1.35'\n"}
    if not together:
        own["b2"] = own["b2"].replace("false", "true")
        change(cloud, files(extra=RULE, own=own), seconds=HOUR)
        change(cloud, _without_b2(files(extra=RULE, own=own)), seconds=HOUR)
        assert ({*phases(cloud)}, holds(cloud)) == ({*TEST, *PROD}, [])  # protected: its delete waits
    change(cloud, _without_b2(files(extra=RULE, own=lowered)), seconds=HOUR)
    assert holds(cloud) == [("1.36", "withdrawn")]


def _without_b2(tree: dict[str, bytes]) -> dict[str, bytes]:
    return {path: text for path, text in tree.items() if "/b2/" not in path}


def test_a_person_lifts_a_hold_until_the_next_revert() -> None:
    cloud = merged()
    change(cloud, files(test="1.36", extra=RULE))
    assert ask(cloud, "version").status == 202
    (pull,) = pulls(cloud)
    merge(cloud, pull.number)
    assert holds(cloud) == [("1.35", "withdrawn")]
    change(cloud, files(test="1.36", extra=RULE))
    cloud.run(seconds=2 * HOUR)
    assert holds(cloud) == [("1.36", "withdrawn")]
    assert pulls(cloud) == []


def test_a_commit_lifts_a_hold_by_giving_the_value_again_or_by_proving_another_one() -> None:
    cloud = merged()
    change(cloud, files(test="1.36", extra=RULE))
    change(cloud, files(test="1.36", prod="1.36", extra=RULE))
    assert holds(cloud) == [("1.35", "withdrawn")]
    change(cloud, files(test="1.36", extra=RULE))
    change(cloud, files(test="1.37", extra=RULE))
    cloud.run(seconds=2 * HOUR)
    assert [pull_request.state for pull_request in pulls(cloud)] == ["open"]
    assert "'1.37'" in production(cloud)


def test_what_is_closed_without_a_merge_is_not_proposed_again_unless_it_is_reopened() -> None:
    cloud = proposed()
    (pull,) = pulls(cloud)
    cloud.ports.git_host.close_pull(pull.number)
    decided(cloud, pull.number, "closed")
    change(cloud, files(test="1.36", extra=RULE) | {"notes.txt": b"x"})
    cloud.run(seconds=2 * HOUR)
    assert (pulls(cloud), holds(cloud)) == ([], [("1.36", "declined")])
    cloud.repository.pulls.change(pull.number, state="open")
    decided(cloud, pull.number, "reopened")
    assert holds(cloud) == []
    assert len(pulls(cloud)) == 1


def test_a_person_opens_another_one_for_what_was_declined() -> None:
    cloud = proposed()
    (pull,) = pulls(cloud)
    cloud.ports.git_host.close_pull(pull.number)
    decided(cloud, pull.number, "closed")
    assert ask(cloud, "version").status == 202
    assert [pull_request.number for pull_request in pulls(cloud)] == [pull.number + 1]
    assert holds(cloud) == []


def test_a_pull_request_that_a_person_asked_for_is_left_to_that_person() -> None:
    cloud = fleet_with(files(test="1.36", extra=RULE))
    ask(cloud)
    body = pulls(cloud)[0].body
    change(cloud, files(test="1.37", extra=RULE))
    cloud.run(seconds=2 * HOUR)
    assert "'1.36'" in production(cloud)
    assert pulls(cloud)[0].body == body


def test_a_newer_value_brings_the_pull_request_of_a_rule_up_to_date() -> None:
    cloud = proposed()
    change(cloud, files(test="1.37", extra=RULE), seconds=HOUR - 600)
    assert "'1.36'" in production(cloud)
    cloud.run(seconds=2 * HOUR)
    assert "'1.37'" in production(cloud)
    assert len(pulls(cloud, state="all")) == 1


def test_a_commit_that_gives_the_value_closes_the_pull_request_without_a_decline() -> None:
    cloud = proposed()
    change(cloud, files(test="1.36", prod="1.36", extra=RULE))
    cloud.run(seconds=60)
    assert pulls(cloud) == []
    assert stored(cloud).declined == ()
    assert cloud.ports.git_host.tip(BRANCH) is None


def test_so_it_is_where_flux_follows_a_branch_and_no_revision_can_be_promoted() -> None:
    rule = RULE.replace("what: [version], ", "")
    cloud = fleet_with(files(extra=rule))
    change(cloud, files(test="1.36", extra=rule))
    cloud.run(seconds=HOUR + 60)
    assert [pull_request.state for pull_request in pulls(cloud)] == ["open"]
    change(cloud, files(test="1.36", prod="1.36", extra=rule))
    cloud.run(seconds=60)
    assert (pulls(cloud), stored(cloud).declined) == ([], ())
    over = cloud.ports.git_host.comment(1, OVER)
    assert over is not None
    assert "version: production has 1.36 already; " in over.body


def test_a_pull_request_that_would_change_no_cluster_any_more_is_closed() -> None:
    cloud = proposed()
    own = dict.fromkeys(PROD, "  kubernetesVersion: '1.35'\n")
    change(cloud, files(test="1.36", own=own, extra=RULE))
    cloud.run(seconds=60)
    assert (pulls(cloud), stored(cloud).declined) == ([], ())


def test_what_its_source_took_back_is_closed_also_if_something_is_in_the_way_of_another_value() -> None:
    cloud = proposed()
    change(cloud, files(test="1.35", extra=RULE))
    cloud.run(seconds=HOUR + 60)
    assert problem(cloud).startswith("version: a1 of development runs another version than git asks for: ")
    assert (pulls(cloud), stored(cloud).declined) == ([], ())


def test_a_pull_request_stays_open_while_fleet_yaml_is_invalid() -> None:
    cloud = proposed()
    tree = files(test="1.36", extra=RULE)
    tree["fleet.yaml"] += b"  colour: red\n"
    change(cloud, tree)
    sweep(cloud)
    assert [pull_request.state for pull_request in pulls(cloud)] == ["open"]


def test_nothing_is_read_from_github_while_nothing_changes() -> None:
    cloud = proposed()
    calls = calls_to_host(cloud)
    sweep(cloud)
    cloud.run(seconds=HOUR)
    assert [call for call in calls if call != "read_head"] == []


def test_a_target_whose_file_is_no_text_keeps_no_other_one_from_its_promotion() -> None:
    archive = "    - {from: development, to: archive, what: [version], soak: 1h}\n"
    tree = files(extra=RULE.replace("promotions:\n", f"promotions:\n{archive}"))
    tree["fleet.yaml"] = tree["fleet.yaml"].replace(b"production]", b"archive, production]", 1)
    tree["environments/archive.yaml"] = environment("archive", "1.35")
    cloud = fleet_with(tree)
    tree["environments/archive.yaml"] += b"# caf\xe9\n"
    change(cloud, tree | {"environments/development.yaml": environment("development", "1.36")})
    cloud.run(seconds=HOUR + 60)
    assert [pull_request.head for pull_request in pulls(cloud)] == [BRANCH]
    problems = {
        promotion["target"]: promotion["problem"] for promotion in promotions_view(cloud.ports)["promotions"]
    }
    assert problems["production"] == ""
    assert "environments/archive.yaml is not UTF-8 text" in problems["archive"]


def test_a_cluster_that_is_not_ready_stops_the_rule() -> None:
    cloud = fleet_with(files(extra=RULE))
    cloud.azure.interventions.fail_next("a1", "InvalidParameter", "no vCPUs are left")
    change(cloud, files(test="1.36", extra=RULE))
    sweep(cloud)
    assert pulls(cloud, state="all") == []
    assert problem(cloud) == "promotion: not every cluster of development is Ready and healthy: a1"


def test_a_rule_waits_while_a_check_has_found_flux_unhealthy_and_proposes_once_it_is_healthy() -> None:
    cloud = fleet_with(files(extra=RULE))
    change(cloud, files(test="1.36", extra=RULE), seconds=HOUR - 600)
    record, now = record_of(cloud, "a1"), cloud.clock()
    broken = Condition(HealthCondition.FLUX, False, "BuildFailed", "it is broken", now, 1, now)
    saved = cloud.state.save(with_condition(record, broken))
    cloud.run(seconds=HOUR)
    assert problem(cloud) == "promotion: not every cluster of development is Ready and healthy: a1"
    cloud.state.save(with_condition(saved, replace(broken, status=True)))
    send(PromoteRequest(), cloud.ports)
    cloud.run()
    assert (len(pulls(cloud)), problem(cloud)) == (1, "")


def test_a_rule_looks_again_once_azure_has_the_value_of_git() -> None:
    cloud = fleet_with(files(extra=RULE))
    change(cloud, files(test="1.36", extra=RULE), seconds=HOUR - 600)
    record = cloud.state.cluster("a1")
    assert record is not None
    fields = (DriftedField("nodePools[system].orchestratorVersion", '"1.36"', '"1.35.7"', cloud.clock()),)
    differing = cloud.state.save(replace(record, divergence=replace(record.divergence, drift=Drift(fields))))
    cloud.run(seconds=HOUR)
    assert problem(cloud) == "version: in Azure, a1 of development has another value than in git"
    cloud.state.save(replace(differing, divergence=record.divergence))
    send(PromoteRequest(), cloud.ports)
    cloud.run()
    assert (len(pulls(cloud)), problem(cloud)) == (1, "")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{from: production, to: development}", "must come after"),
        ("{from: development, to: staging}", "is not in environments"),
        ("{from: development, to: development}", "must come after"),
    ],
)
def test_a_rule_that_goes_nowhere_is_a_problem_of_the_file(rule: str, message: str) -> None:
    cloud = fleet_with(files())
    commit = change(cloud, files(test="1.36", extra=f"  promotions: [{rule}]\n"))
    found = cloud.repository.statuses.latest(commit)[0].status
    plan = cloud.state.plan(commit)
    assert found.state == "failure"
    assert plan is not None
    assert any(message in problem for problem in plan.plan.problems)


def test_several_rules_read_the_records_of_the_fleet_once() -> None:
    rules = RULE + "    - {from: production, to: staging, what: [version], soak: 1h}\n"
    tree = files(test="1.36", extra=rules) | {"environments/staging.yaml": environment("staging", "1.35")}
    order = b"[development, production]"
    tree["fleet.yaml"] = tree["fleet.yaml"].replace(order, b"[development, production, staging]")
    cloud = fleet_with(tree)
    for promotion in cloud.state.promotions():
        cloud.state.save_promotion(replace(promotion, digest=""))
    whole, clusters = list[str](), cloud.state.clusters

    def all_of_them() -> Sequence[ClusterRecord]:
        whole.append("all of them")
        return clusters()

    around(cloud, "state", clusters=all_of_them)
    promote.handle(PromoteRequest(), cloud.ports)
    assert [bool(promotion.digest) for promotion in cloud.state.promotions()] == [True, True]
    assert whole == ["all of them"]
