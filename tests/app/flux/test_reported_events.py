"""What the Flux of a cluster reports: verified, bounded, stored, and the end of a wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from localcloud.flux.notification_controller import nowhere
from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.intake.flux_event import (
    BURST,
    KEPT_SECONDS,
    KEY_SECONDS,
    MAX_BODY_BYTES,
    NAMES_SECONDS,
    EventKeys,
)
from shared.cluster.failures.errors import VaultUnavailable
from shared.cluster.findings.conditions import FLUX_REPORTS
from shared.cluster.findings.health import HealthCondition
from shared.cluster.history import Event
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.cluster.reporting.events import FLUX_REPORTED
from shared.cluster.reporting.summary import ClusterSummary
from shared.kubernetes.sync_objects import ALERT, PROVIDER
from tests.support.checks import check, condition
from tests.support.one_cluster import ENTRA, api, files, live, pool, record, suspended, world
from tests.support.pipeline_runs import phases, push, step_until
from tests.support.replaced_ports import around, calls_of
from tests.support.reporting_flux import (
    EVENTS,
    KEY,
    NEXT_KEY,
    URL,
    cloud_with_key,
    event,
    reporting,
    reporting_files,
    sent,
    signed,
)

pytestmark = pytest.mark.lives

MAP = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: default}\n"
BROKEN = {"platform/broken.yaml": b"kind: [unfinished"}


def reported(cloud: MemoryCloud) -> list[Event]:
    return [event for event in cloud.state.events("one", 500) if event.reason == FLUX_REPORTED]


def test_the_sync_step_applies_what_has_flux_report_and_its_events_are_stored() -> None:
    cloud = reporting()
    assert live(cloud, PROVIDER)["spec"] == {
        "type": "generic-hmac",
        "address": f"{URL}/api/flux/one",
        "secretRef": {"name": "roadstead-events"},
    }
    assert live(cloud, ALERT)["spec"]["providerRef"] == {"name": "roadstead"}
    push(cloud, reporting_files() | {"platform/late.yaml": MAP})
    cloud.run(seconds=300, until=lambda: False)
    messages = [event.message for event in reported(cloud)]
    commit = cloud.repository.head("main")
    assert (
        f"GitRepository flux-system/flux-system: NewArtifact: stored artifact for commit '{commit}'"
        in messages
    )
    assert any(
        text.startswith("Kustomization flux-system/flux-system: Progressing: ") and "late created" in text
        for text in messages
    )


def test_switched_off_nothing_reports_any_more() -> None:
    cloud = reporting()
    push(cloud, reporting_files(""))
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert (api(cloud).get(ALERT), api(cloud).get(PROVIDER)) == (None, None)
    body = event(cloud)
    cloud.clock.advance(KEPT_SECONDS)
    assert sent(cloud, body) == 401


def test_an_alert_of_somebody_else_stays() -> None:
    cloud = reporting("")
    theirs = {
        "apiVersion": ALERT.api_version,
        "kind": ALERT.kind,
        "metadata": {"name": ALERT.name, "namespace": ALERT.namespace},
        "spec": {"providerRef": {"name": "x"}, "eventSources": [{"kind": "Kustomization", "name": "*"}]},
    }
    kind = world(cloud).kind(ALERT.api_version, ALERT.kind)
    assert kind is not None
    world(cloud).apply(
        At(kind, ALERT.name, ALERT.namespace), theirs, WriteMode(manager="kubectl", force=True)
    )
    push(cloud, reporting_files("  tags: {a: b}\n"))
    cloud.run()
    assert api(cloud).get(ALERT) is not None


def test_components_without_the_controller_are_refused_with_what_to_write() -> None:
    cloud = cloud_with_key()
    push(cloud, files(EVENTS))
    cloud.run()
    assert record(cloud).phase is Phase.FAILED
    assert (
        "spec.flux.events needs Alert, Provider, which flux/gotk-components.yaml" in record(cloud).job.reason
    )
    assert "its notification-controller" in record(cloud).job.reason


def test_an_app_without_an_address_says_which_setting_it_needs() -> None:
    cloud = cloud_with_key(url="")
    push(cloud, reporting_files())
    cloud.run()
    assert "set PUBLIC_URL" in record(cloud).job.reason


def waiting(cloud: MemoryCloud) -> bool:
    """Return whether the cluster's job waits for Flux, in no message."""
    found = cloud.state.cluster("one")
    job = found.job if found else None
    return job is not None and job.active and job.step.name is Step.VERIFY and job.lease is None


def test_an_event_ends_the_wait_of_a_step_at_once() -> None:
    cloud = reporting(EVENTS + ENTRA)
    cloud.posts = nowhere
    push(cloud, reporting_files(EVENTS + ENTRA + "  tags: {a: b}\n"))
    step_until(cloud, lambda: waiting(cloud))
    before, due = record(cloud).job.sequence, record(cloud).job.next_run.at
    cloud.sleep(2.2)
    assert (due - cloud.clock()).total_seconds() > 0.5, "the step waits for longer than an event needs"
    assert sent(cloud, event(cloud)) == 202
    while cloud.step():
        pass
    assert record(cloud).job.sequence > before
    assert cloud.clock() < due
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}


def test_an_event_changes_nothing_of_a_step_that_runs_or_that_an_error_delays() -> None:
    cloud = reporting()
    before = record(cloud)
    push(cloud, reporting_files(EVENTS + "  tags: {a: b}\n"))
    step_until(cloud, lambda: record(cloud).job.step.name is Step.CLUSTER)
    step = record(cloud)
    assert sent(cloud, event(cloud)) == 202
    assert record(cloud).etag == step.etag
    cloud.run()
    assert record(cloud).generation == before.generation + 1


def test_an_error_has_an_idle_cluster_checked_and_the_end_of_it_too() -> None:
    cloud = reporting()
    check(cloud)
    push(cloud, reporting_files() | BROKEN)
    cloud.run(seconds=600, until=lambda: False)
    found = condition(record(cloud), HealthCondition.FLUX)
    assert (found.status, found.reason) == (False, "BuildFailed")
    assert any(event.warning for event in reported(cloud))
    push(cloud, reporting_files() | {"platform/late.yaml": MAP})
    cloud.run(seconds=600, until=lambda: False)
    assert condition(record(cloud), HealthCondition.FLUX).status is True


def suspend(cloud: MemoryCloud) -> None:
    push(cloud, reporting_files(EVENTS + suspended(cloud, 24)))
    cloud.run(seconds=60)


def fail(cloud: MemoryCloud) -> None:
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs")
    push(cloud, reporting_files(pool(count=2) + EVENTS))
    cloud.run()


@pytest.mark.parametrize(("unfinished", "phase"), [(suspend, Phase.SUSPENDED), (fail, Phase.FAILED)])
def test_an_error_has_a_cluster_checked_whose_job_is_suspended_or_failed(
    unfinished: Callable[[MemoryCloud], None], phase: Phase
) -> None:
    cloud = reporting()
    check(cloud)
    unfinished(cloud)
    assert phases(cloud) == {"one": phase}
    push(cloud, dict(cloud.repository.files(cloud.repository.head("main"))) | BROKEN)
    cloud.run(seconds=300, until=lambda: not condition(record(cloud)).status)
    assert condition(record(cloud)).reason == "BuildFailed"


def test_an_event_that_comes_twice_is_stored_once() -> None:
    cloud = reporting()
    body, before = event(cloud), len(reported(cloud))
    assert (sent(cloud, body), sent(cloud, body)) == (202, 202)
    cloud.clock.advance(600)
    assert sent(cloud, body) == 202
    assert len(reported(cloud)) == before + 1
    assert sent(cloud, event(cloud, message="another")) == 202
    assert sent(cloud, event(cloud, message="a third of the same second")) == 202
    assert len(reported(cloud)) == before + 3


@pytest.mark.parametrize(
    ("cluster", "key"), [("one", "wrong"), ("one", ""), ("two", KEY), ("", KEY), ("one/..", KEY)]
)
def test_who_has_no_key_of_the_cluster_is_refused_with_one_answer(cluster: str, key: str) -> None:
    cloud = reporting()
    before = len(reported(cloud))
    body = event(cloud)
    result = cloud.reported(cluster, signed(body, key) if key else {}, body)
    assert (result.status, result.body) == (
        401,
        {"error": "the signature is not that of the key of this cluster"},
    )
    assert len(reported(cloud)) == before


def test_the_key_of_one_cluster_signs_nothing_for_another() -> None:
    cloud = reporting()
    manifest = reporting_files()["clusters/one/cluster.yaml"]
    two = manifest.replace(b"name: one", b"name: two").replace(b"flux-one", b"flux-two")
    cloud.vault.set("flux-two", NEXT_KEY)
    push(cloud, reporting_files() | {"clusters/two/cluster.yaml": two})
    cloud.run()
    cloud.clock.advance(NAMES_SECONDS)
    body = event(cloud)
    assert sent(cloud, body, NEXT_KEY, "two") == 202
    assert sent(cloud, body, KEY, "two") == 401
    assert sent(cloud, body, NEXT_KEY, "one") == 401


@pytest.mark.parametrize(
    "changed",
    [
        {"timestamp": "2026-01-01T00:00:00"},
        {"timestamp": "1999-01-01T00:00:00Z"},
        {"timestamp": "2999-01-01T00:00:00Z"},
        {"involvedObject": {"kind": "Kustomization"}},
        {"involvedObject": None},
        {"message": None},
        {"severity": 7},
    ],
)
def test_what_is_signed_and_no_event_of_now_is_refused(changed: dict[str, object]) -> None:
    cloud = reporting()
    before = len(reported(cloud))
    assert sent(cloud, event(cloud, **changed)) == 400
    assert sent(cloud, json.dumps([]).encode()) == 400
    assert len(reported(cloud)) == before


def test_what_is_too_large_is_refused_before_anything_is_read() -> None:
    cloud = reporting()
    read = calls_of(cloud, "state", "cluster")
    assert cloud.reported("one", {}, b"x" * (MAX_BODY_BYTES + 1)).status == 413
    assert read == []


def test_a_flood_of_one_cluster_stops_that_cluster_alone_and_for_seconds() -> None:
    cloud = reporting()
    manifest = reporting_files()["clusters/one/cluster.yaml"]
    two = manifest.replace(b"name: one", b"name: two")
    push(cloud, reporting_files() | {"clusters/two/cluster.yaml": two})
    cloud.run()
    cloud.clock.advance(KEPT_SECONDS)
    statuses = [sent(cloud, event(cloud, message=str(number))) for number in range(int(BURST) + 20)]
    assert statuses.count(202) == BURST
    assert set(statuses) == {202, 429}
    assert sent(cloud, event(cloud), cluster="two") == 202
    cloud.clock.advance(5)
    assert sent(cloud, event(cloud)) == 202


def test_a_flood_of_what_nobody_signed_reads_nothing_and_keeps_no_cluster_from_reporting() -> None:
    cloud = reporting()
    cloud.vaults.reads.clear()
    records, lists, summaries = calls_of(cloud, "state", "cluster"), list[None](), cloud.state.summaries

    def listed() -> Sequence[ClusterSummary]:
        lists.append(None)
        return summaries()

    around(cloud, "state", summaries=listed)
    keys = EventKeys(cloud.ports)
    body = event(cloud)
    for number in range(200):
        assert not keys.verifies(f"nobody-{number}", body, signed(body)["X-Signature"])
        assert not keys.verifies("one", body, signed(body, "wrong")["X-Signature"])
    assert (len(lists), len(records), len(cloud.vaults.reads)) == (1, 1, 1)
    assert keys.verifies("one", body, signed(body)["X-Signature"])
    assert sent(cloud, event(cloud)) == 202


def test_a_rotated_key_is_read_again_and_the_old_one_counts_no_more() -> None:
    cloud = reporting()
    assert sent(cloud, event(cloud)) == 202
    cloud.vault.set("flux-one", NEXT_KEY)
    assert sent(cloud, event(cloud)) == 202, "the cluster has the old key until its check"
    cloud.clock.advance(KEY_SECONDS)
    assert sent(cloud, event(cloud), NEXT_KEY) == 202
    assert sent(cloud, event(cloud)) == 401
    check(cloud)
    push(cloud, reporting_files() | {"platform/late.yaml": MAP})
    cloud.run(seconds=300, until=lambda: False)
    assert any("late created" in event.message for event in reported(cloud)), "it signs with the new one"


def test_a_vault_that_does_not_answer_is_said_to_the_controller_which_tries_again() -> None:
    cloud = reporting()
    cloud.clock.advance(KEPT_SECONDS)
    cloud.vaults.failing["platform"] = VaultUnavailable("the vault platform did not answer")
    body = event(cloud)
    refused = cloud.reported("one", signed(body), body)
    assert (refused.status, refused.body) == (503, {"error": "the key of this cluster cannot be read now"})
    cloud.vaults.failing.clear()
    cloud.clock.advance(KEY_SECONDS)
    assert sent(cloud, body) == 202


def test_no_event_or_answer_has_the_key() -> None:
    cloud = reporting()
    push(cloud, reporting_files() | BROKEN)
    cloud.run(seconds=300, until=lambda: False)
    assert KEY not in str([vars(event) for event in cloud.state.events("one", 500)])
    assert KEY not in str(record(cloud))
    assert KEY not in repr(vars(cloud.event_keys))


def test_a_cluster_that_does_something_and_says_nothing_is_silent_until_it_reports_again() -> None:
    cloud = reporting()
    cloud.run(seconds=300, until=lambda: False)
    push(cloud, reporting_files() | {"platform/late.yaml": MAP})
    cloud.run(seconds=300, until=lambda: False)
    check(cloud)
    found = record(cloud).condition(FLUX_REPORTS)
    assert found is not None
    assert (found.status, found.reason) == (True, "Reporting")
    cloud.posts = nowhere
    push(cloud, reporting_files() | {"platform/late.yaml": MAP.replace(b"late", b"later")})
    cloud.run(seconds=300, until=lambda: False)
    check(cloud)
    found = record(cloud).condition(FLUX_REPORTS)
    assert found is not None
    assert (found.status, found.reason) == (False, "Silent")
    assert "no event of that, or later, has come" in found.message
    assert phases(cloud) == {"one": Phase.READY}, "it works all the same"
    assert sent(cloud, event(cloud)) == 202
    cloud.run(seconds=120, until=lambda: False)
    found = record(cloud).condition(FLUX_REPORTS)
    assert found is not None
    assert found.status is True


def test_a_cluster_in_which_nothing_happens_is_not_silent() -> None:
    cloud = reporting()
    cloud.posts = nowhere
    cloud.clock.advance(timedelta(days=1).total_seconds())
    check(cloud)
    assert record(cloud).condition(FLUX_REPORTS) is None


def test_an_alert_that_somebody_deletes_is_reported() -> None:
    cloud = reporting()
    api(cloud).delete(live(cloud, ALERT))
    check(cloud)
    found = condition(record(cloud), HealthCondition.FLUX)
    assert (found.status, found.reason) == (False, "ObjectMissing")
    assert "the Alert roadstead" in found.message


def test_a_provider_that_somebody_points_elsewhere_is_reported() -> None:
    cloud = reporting()
    provider = live(cloud, PROVIDER)
    api(cloud).replace({**provider, "spec": {**provider["spec"], "address": "https://example.com/"}})
    check(cloud)
    found = condition(record(cloud), HealthCondition.FLUX)
    assert (found.status, found.reason) == (False, "ObjectChanged")
    assert "the Provider roadstead" in found.message


def test_a_key_that_the_app_cannot_read_is_refused_in_the_plan() -> None:
    cloud = cloud_with_key()
    push(cloud, reporting_files("  flux:\n    events: {secretRef: {name: roadstead-events}}\n"))
    cloud.run()
    plan = cloud.state.plan(cloud.repository.head("main"))
    assert plan is not None
    (problem,) = plan.plan.problems
    assert "bootstrapSecrets for the Secret roadstead-events in flux-system, with the key token" in problem
