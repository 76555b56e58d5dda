"""Planted secrets, under faults: no table, message, log or answer contains one."""

from __future__ import annotations

import base64
import json
import re
import ssl
import string
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import httpx
import pytest
import yaml
from standardwebhooks.webhooks import Webhook

from cli.errors import RequestRefused
from localcloud.memory.memory_cloud import QUEUES
from localcloud.runtime.inspection import bus_messages, table_entities
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.github_app import AS_APP
from tests.support.local_cloud_start import Start
from tests.support.pull_request_author import Author
from tests.support.reporting_flux import EVENTS, KEY, reporting_files, signed

TOKEN = "canary-github-token-51ab"
QUICK = {"POLL_SECONDS": "0.5", "RETRY_LIMITS": "Unavailable=15/1 Unauthenticated=6/1"}
PLANTED = {
    "GITHUB_TOKEN": TOKEN,
    "FLUX_GIT_PASSWORD": TOKEN,
    "GITHUB_WEBHOOK_SECRET": "canary-webhook-secret-72cd",
    "GITHUB_WEBHOOK_SECRET_PREVIOUS": "canary-old-webhook-secret-93ef",
    "IDENTITY_HEADER": "canary-identity-header-14ab",
}
JWT = re.compile(r"eyJ[\w-]{10,}\.[\w-]{10,}\.")


def inject_faults(operator: Operator) -> None:
    urls = operator.cloud.urls
    refuse = {"status": 401, "body": {"error": {"code": "InvalidAuthenticationToken", "message": "no"}}}
    operator.faults(
        urls.arm,
        [
            {"match": "^PUT .*/managedClusters/", "times": 1, **refuse},
            {"match": "listClusterUserCredential", "status": 500, "times": 1, "after": True},
            {"match": "^GET .*/managedClusters/", "status": 503, "times": 4},
        ],
    )
    operator.faults(urls.github, [{"match": "/git/", "status": 401, "times": 1, "body": {"message": "Bad"}}])


def secrets(operator: Operator) -> Iterator[str]:
    """Yield what must appear nowhere: the planted values, and the keys inside the kubeconfigs."""
    yield from PLANTED.values()
    for path in (operator.cloud.state / "kubeconfigs").iterdir():
        user = yaml.safe_load(path.read_text())["users"][0]["user"]
        key = base64.b64decode(user["client-key-data"]).decode()
        yield user["client-key-data"][:60]
        yield key.splitlines()[3]


def recorded(operator: Operator) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of everything that is stored or shown."""
    cloud = operator.cloud
    yield "tables", repr(table_entities(cloud))
    for path in (cloud.state / "logs").iterdir():
        yield path.name, path.read_text()
    yield "api", json.dumps(operator.api.get("clusters"))
    for name in ("one", "two", "broken"):
        yield f"api {name}", json.dumps(operator.api.get(f"clusters/{name}"))


@pytest.mark.long
def test_no_secret_is_in_any_table_message_log_or_answer(start: Start) -> None:
    operator = start(Options(create_seconds=4, plan_schedule="*/3 * * * * *", extra={**PLANTED, **QUICK}))
    messages: list[str] = []
    inject_faults(operator)
    files = fleet_files.fleet("one", "two", "broken")
    files["clusters/broken/cluster.yaml"] += b"  kubernetesVersion: '1.99'\n"
    operator.push(files)

    def ready() -> bool:
        # The queues that this fleet uses: reading each takes time, in which messages come and go unseen.
        for queue in 3 * ("plans", "changes"):
            messages.extend(bus_messages(operator.cloud, queue))
        phases = operator.phases()
        return phases == {"one": "Ready", "two": "Ready", "broken": "Failed"}

    operator.wait(ready, "one and two are Ready, broken is Failed", seconds=90)
    assert len(set(messages)) > 3, "too few messages for a result"
    messages.extend(body for queue in QUEUES for body in bus_messages(operator.cloud, queue))
    planted = list(secrets(operator))
    assert len(planted) >= len(PLANTED) + 4
    for place, text in [*recorded(operator), ("messages", "\n".join(messages))]:
        assert [secret[:8] for secret in planted if secret in text] == [], place
        assert not JWT.search(text), place


TARGETS = {
    "NOTIFY_OPS": "https://hooks.slack.com/services/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",
    "GITHUB_WEBHOOK_SECRET_PREVIOUS": "github_pat_11ABCDEFG0q7W8e9R0t1Y2_u3I4o5P6a7S8d9F0g1H2j3K4l5Z6x7C8",
    "APPROVAL_KEY_CHANGES": "whsec_" + base64.b64encode(b"a key of the system for changes").decode(),
}
LETTERS = string.ascii_letters + string.digits + "-"


def next_letters(known: str) -> list[str]:
    """Return what somebody writes who knows the beginning of a secret, and looks for the next letter."""
    return [f"{known[-20:]}{letter}" for letter in LETTERS]


def as_one_answer(shown: list[str], written: list[str]) -> set[str]:
    """Return the answers without what was written: one, where nothing depends on it."""
    return {text.replace(guess, "GUESS") for text, guess in zip(shown, written, strict=True)}


@pytest.mark.long
def test_who_guesses_the_next_letter_of_a_secret_sees_no_difference(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={**AS_APP, **TARGETS, **QUICK}))
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    vault = f"https://127.0.0.1:{operator.cloud.ports['vault']}/_local/secrets/flux-one"
    httpx.put(vault, json={"value": KEY}, verify=trust, trust_env=False).raise_for_status()
    operator.wait_for_status(operator.push(reporting_files(EVENTS)), "success")

    fork = Author(operator, "fork")
    guesses = next_letters(TARGETS["NOTIFY_OPS"][: len("https://hooks.slack.com/services/T")])
    names = [f"c{number:02}" for number in range(len(guesses))]
    wrong = {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(
            name, extra=f'  networkProfile: {{podCidr: "{guess}"}}\n'
        )
        for name, guess in zip(names, guesses, strict=True)
    }
    head = fork.push(reporting_files(EVENTS) | wrong)
    fork.propose(fork=True)
    fork.wait_for("This pull request comes from a fork")
    (check,) = fork.checks(head)
    notes = {note["path"]: note["message"] for note in check["annotations"]}
    said = [notes[f"clusters/{name}/cluster.yaml"] for name in names]
    assert as_one_answer(said, guesses) == {
        "spec.networkProfile.podCidr: must be a network such as 10.0.0.0/16, got GUESS"
    }

    for secret in (*TARGETS.values(), operator.cloud.settings["GITHUB_TOKEN"], KEY):
        guesses = [f"{secret[:16]}{letter}" for letter in (secret[16], "~", "*")]
        for guess in guesses:
            with suppress(RequestRefused):
                operator.api.post("clusters/one/replay", {"reason": guess})
        reasons = [act["reason"] for act in operator.api.get(f"audit?limit={len(guesses)}")["acts"]]
        assert reasons == guesses[::-1]

        bodies = [flux_event(guess) for guess in guesses]
        for body in bodies:
            url = f"{operator.api.url}/api/flux/one"
            httpx.post(url, content=body, headers=signed(body), trust_env=False).raise_for_status()
        events = operator.api.get("clusters/one/events?limit=200")["events"]
        shown = [event["message"].rpartition(": ")[2] for event in events if "Guessed" in event["message"]]
        assert sorted(shown[: len(guesses)]) == sorted(guesses)

        for guess in guesses:
            statement = {"fleet": "example", "commit": "0" * 40, "stage": "x", "by": "", "reason": guess}
            sent = json.dumps(statement)
            now = datetime.now(UTC)
            signature = Webhook(TARGETS["APPROVAL_KEY_CHANGES"]).sign("msg", now, sent)
            seconds = str(int(now.timestamp()))
            headers = {"webhook-id": "msg", "webhook-timestamp": seconds, "webhook-signature": signature}
            httpx.post(
                f"{operator.api.url}/api/approvals/CHANGES", content=sent, headers=headers, trust_env=False
            )
        acts = operator.api.get(f"audit?limit={len(guesses)}")["acts"]
        assert [(act["action"], act["reason"]) for act in acts] == [
            ("rollout-approve", guess) for guess in guesses[::-1]
        ]


def flux_event(message: str) -> bytes:
    """Return the body of an event of Flux of now."""
    involved = {"kind": "Kustomization", "name": "flux-system", "namespace": "flux-system"}
    told = {"severity": "info", "reason": "Guessed", "message": message}
    return json.dumps(
        {"involvedObject": involved, **told, "timestamp": datetime.now(UTC).isoformat()}
    ).encode()
