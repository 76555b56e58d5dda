"""Whoever writes 63 texts, of which one has the next character of a secret, learns nothing."""

from __future__ import annotations

import io
import json
import logging
import re
import string
from collections.abc import Sequence

import pytest
from standardwebhooks.webhooks import Webhook

from localcloud.memory.memory_cloud import MemoryCloud
from shared import logs
from tests.support import fleet_files
from tests.support.console_pages import shown
from tests.support.function_calls import APPROVAL_KEYS
from tests.support.notified import notified_fleet
from tests.support.pipeline_runs import push
from tests.support.proposals import Repo
from tests.support.reporting_flux import KEY as FLUX_KEY
from tests.support.reporting_flux import event, reporting, signed
from tests.support.written_texts import (
    SECRETS,
    as_role,
    assert_alike,
    each_secret,
    form,
    guarded,
    guesses,
    masker,
    requested,
    wrong_clusters,
)

ALPHABET = string.ascii_letters + string.digits + "-"


def offers(secret: str, known: int) -> list[str]:
    """Return the texts of somebody who has so many characters of a secret and tries the next one."""
    return [f"{secret[max(0, known - 14) : known]}{letter}" for letter in ALPHABET]


@pytest.mark.lives
@pytest.mark.parametrize("known", [9, 12, 34])
@each_secret
@pytest.mark.parametrize("app", [True, False])
def test_a_fork_learns_nothing_from_annotations_comment_and_status(
    secret: str, known: int, app: bool
) -> None:
    written = offers(secret, min(known, len(secret) - 1))
    cloud = MemoryCloud()
    cloud.git_host.is_app = app
    repo = Repo(guarded(cloud))
    repo.push(fleet_files.fleet("one"))
    names = [f"c{number:02}" for number in range(len(written))]
    wrong = wrong_clusters(dict(zip(names, written, strict=True)))
    pull = repo.propose(fleet_files.fleet("one") | wrong, fork=True)
    (comment,) = repo.comments(pull)
    rows = [line for name in names for line in comment.splitlines() if name in line]
    places = [row.replace(name, "NAME") for name, row in zip(names, rows, strict=True)]
    assert len({form(row, guess) for row, guess in zip(places, written, strict=True)}) == 1
    head = cloud.repository.head("topic")
    if app:
        (check,) = cloud.repository.pulls.checks(head)
        notes = {note["path"]: note["message"] for note in check.annotations}
        said = [notes[f"clusters/{name}/cluster.yaml"] for name in names]
        assert said == [said[0].replace(written[0], guess) for guess in written]
    else:
        assert repo.status(head)[2] == f"{len(written)} problems in the manifests"


@pytest.mark.lives
@each_secret
def test_whoever_merges_learns_nothing_from_plan_page_and_status(secret: str) -> None:
    cloud = guarded(MemoryCloud())
    seen, written = [], guesses(secret)
    for guess in written:
        commit = push(cloud, fleet_files.fleet() | wrong_clusters({"one": guess[:40]}))
        cloud.run()
        answer = requested(cloud, "plan", {"commit": commit}, headers=as_role("Reader"))
        latest = cloud.repository.statuses.latest(commit)[0].status
        page = re.sub(
            r"[\d-]+ [\d:]+ UTC", "MOMENT", shown(cloud.ports, f"/plans/{commit}", role="Reader").text
        )
        plan = json.loads(answer.get_body())
        moments = (commit, commit[:8], plan["plannedAt"])
        texts = (*plan["problems"], page, f"{latest.state}: {latest.description}")
        seen.append("\n".join(without(text, moments) for text in texts))
    assert_alike(seen, [guess[:40] for guess in written])


def without(text: str, moments: Sequence[str]) -> str:
    for moment in moments:
        text = text.replace(moment, "MOMENT")
    return text


@pytest.mark.lives
@each_secret
def test_an_operator_learns_nothing_from_the_reason_of_a_replay_in_audit_and_events(
    secret: str, written: io.StringIO
) -> None:
    cloud = guarded(MemoryCloud())
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    shown, reasons = [], guesses(secret)
    for reason in reasons:
        body = json.dumps({"reason": reason}).encode()
        cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
        answer = requested(cloud, "replay", {"name": "one"}, headers=as_role("Operator"), body=body)
        assert answer.status_code == 202
        act = json.loads(requested(cloud, "audit", {}, headers=as_role("Reader")).get_body())["acts"][0]
        events = json.loads(requested(cloud, "events", {"name": "one"}, headers=as_role("Reader")).get_body())
        replayed = next(document for document in events["events"] if document["reason"] == "Replayed")
        shown.append(f"{act['reason']} / {replayed['message']}")
        cloud.run()
    assert_alike(shown, reasons)


@pytest.mark.lives
@pytest.mark.parametrize("secret", [*SECRETS.values(), FLUX_KEY], ids=[*SECRETS, "the key itself"])
def test_whoever_has_the_key_of_a_clusters_events_learns_nothing_from_these_events(secret: str) -> None:
    cloud = guarded(reporting())
    shown, messages = [], guesses(secret)
    for message in messages:
        body = event(cloud, message=message)
        assert (
            requested(cloud, "flux", {"cluster": "one"}, headers=signed(body), body=body).status_code == 202
        )
        events = json.loads(requested(cloud, "events", {"name": "one"}, headers=as_role("Reader")).get_body())
        shown.append(
            next(document["message"] for document in events["events"] if document["reason"] == "FluxReported")
        )
        cloud.run(seconds=5, until=lambda: False)
    assert_alike(shown, messages)
    whole = event(cloud, message=f"I have {FLUX_KEY}")
    requested(cloud, "flux", {"cluster": "one"}, headers=signed(whole), body=whole)
    assert FLUX_KEY not in repr(cloud.state.events("one", 50))


@each_secret
def test_a_system_that_approves_learns_nothing_from_the_reason_of_its_approval(secret: str) -> None:
    cloud = guarded(MemoryCloud())
    shown, reasons = [], guesses(secret)
    for reason in reasons:
        said = {"fleet": "example", "commit": "0" * 40, "stage": "production", "by": "", "reason": reason}
        body = json.dumps(said).encode()
        signature = Webhook(APPROVAL_KEYS["CHANGES"]).sign("msg", cloud.clock(), body.decode())
        seconds = str(int(cloud.clock().timestamp()))
        headers = {"webhook-id": "msg", "webhook-timestamp": seconds, "webhook-signature": signature}
        requested(cloud, "system_approval", {"system": "CHANGES"}, headers=headers, body=body)
        shown.append(cloud.state.acts(1)[0].reason)
        cloud.run(seconds=1, until=lambda: False)
    assert_alike(shown, reasons)


@pytest.mark.lives
@each_secret
def test_a_route_learns_nothing_from_what_a_cluster_says_of_itself(secret: str) -> None:
    shown, messages = [], guesses(secret)
    for message in messages:
        cloud = guarded(MemoryCloud())
        cloud.azure.interventions.fail_next("one", "InvalidParameter", f"there is no {message}")
        push(cloud, notified_fleet("one"))
        cloud.run()
        (delivered,) = cloud.routes.delivered["ops"]
        (record,) = cloud.state.clusters()
        shown.append(f"{delivered.text.split('Why: ')[1].splitlines()[0]} / {record.job.reason}")
    assert_alike(shown, messages)


@each_secret
def test_a_log_line_and_an_error_of_a_service_do_not_depend_on_a_part_of_a_secret_at_any_end(
    secret: str, written: io.StringIO
) -> None:
    mask = masker()
    logs.configure(mask)
    reasons = [guess for guess in guesses(secret, 100) if mask(guess) == guess]
    assert len(reasons) > 20
    for reason in reasons:
        logging.getLogger("some_client").warning("%s: %s", "the reason is", reason)
    assert_alike(written.getvalue().splitlines(), reasons)
