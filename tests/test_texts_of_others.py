"""Whoever chooses a text, and sees what becomes of it, learns nothing of a secret that they do not have."""

from __future__ import annotations

import base64
import html
import io
import json
import logging
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import azure.functions as func
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from handlers.sign_in import KEY as KEY_HEADER
from localcloud.github.world.pull_requests_port import WorldPullRequests
from localcloud.memory.memory_cloud import MemoryCloud
from shared import logs, masking
from shared.app.pull_requests.markdown import prose
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.masking import Masker
from shared.ports.masked import masked
from shared.settings import load_settings
from tests.support import fleet_files
from tests.support.function_calls import APPROVAL_KEYS, KEYS, functions
from tests.support.notified import notified_fleet
from tests.support.pipeline_runs import push
from tests.support.proposals import Repo
from tests.support.reporting_flux import KEY as FLUX_KEY
from tests.support.reporting_flux import event, reporting, signed
from tests.support.sweeps import sweep, tag_by_hand

SECRETS = {
    "NOTIFY_OPS": "https://hooks.slack.com/services/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",
    "GITHUB_TOKEN": "ghp_q7W8e9R0t1Y2u3I4o5P6a7S8d9F0g1H2j3K4",
    "FLUX_GIT_PASSWORD": "github_pat_11ABCDEFG0q7W8e9R0t1Y2_u3I4o5P6a7S8d9F0g1H2j3K4l5Z6x7C8v9B0n1M2q3W4e",
    "APPROVAL_KEY_CHANGES": APPROVAL_KEYS["CHANGES"],
    "API_KEY_APPROVER": "correct-horse/battery+staple=7",
}
EXAMPLE: dict[str, str] = json.loads(
    (Path(__file__).parent.parent / "local.settings.example.json").read_text()
)["Values"]
PLACEHOLDER = "(what they wrote)"
each_secret = pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())


def masker() -> Masker:
    return Masker(load_settings(EXAMPLE | SECRETS).secrets)


def guarded(cloud: MemoryCloud) -> MemoryCloud:
    """Return a cloud whose functions have the ports of the app."""
    mask = masker()
    cloud.with_ports(lambda ports: masked(ports, mask))
    return cloud


def guesses(secret: str) -> list[tuple[str, str]]:
    """Return pairs of texts of which one begins, ends or continues a secret, and the other does not."""
    found = []
    for size in (7, 8, 9, 12, 16, len(secret) // 2, len(secret) - 1):
        for right in (secret[:size], secret[-size:], secret[3 : 3 + size]):
            found.append((right, f"{right[:-1]}{'B' if right[-1] == 'A' else 'A'}"))
    return [(right, wrong) for right, wrong in found if secret not in (right, wrong)]


def form(text: str, guess: str) -> str:
    """Return a text with what somebody wrote taken out."""
    for written in (guess, html.escape(guess), json.dumps(guess)[1:-1], prose(guess)):
        text = text.replace(written, PLACEHOLDER)
    return text


def assert_alike(shown: Sequence[str], written: Sequence[str]) -> None:
    """Assert that of each pair, a right guess and a wrong one, nothing is shown but what was written."""
    forms = [form(text, guess) for text, guess in zip(shown, written, strict=True)]
    assert forms[::2] == forms[1::2]
    assert any(PLACEHOLDER in text for text in forms), forms


def requested(
    cloud: MemoryCloud,
    function: str,
    route: Mapping[str, str],
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> func.HttpResponse:
    """Call a function of the app with a request."""
    request = func.HttpRequest(
        "POST" if body else "GET", "/api", body=body, route_params=dict(route), headers=dict(headers)
    )
    reply: func.HttpResponse = functions(cloud.ports)[function].get_user_function()(request)
    return reply


def as_role(role: str) -> dict[str, str]:
    key = next(key for key, held in KEYS.items() if held == role)
    return {KEY_HEADER: key, "content-type": "application/json"}


# What nobody wrote

PIECES = st.one_of(st.text(max_size=20), st.sampled_from([*SECRETS.values(), "***", "{}", "/", "…", "..."]))


def in_base64(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


def in_url(secret: str) -> str:
    return quote(secret, safe="")


def in_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


ENCODINGS: Sequence[Callable[[str], str]] = (str, in_base64, quote, in_url, in_json)


@st.composite
def texts_around(draw: st.DrawFn, secrets: Sequence[str]) -> str:
    """Return a text of parts of secrets in any encoding, and of other pieces."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        secret = draw(st.sampled_from(secrets))
        encoded = draw(st.sampled_from(ENCODINGS))(secret)
        start, end = sorted((draw(st.integers(0, len(encoded))), draw(st.integers(0, len(encoded)))))
        parts += [draw(PIECES), encoded[start:end]]
    return "".join(parts)


@given(st.data(), st.lists(st.text(min_size=1, max_size=40), max_size=3))
def test_a_text_without_a_whole_secret_and_without_a_shape_stays_as_it_is(
    data: st.DataObject, more: list[str]
) -> None:
    secrets = [*more, *SECRETS.values()]
    text = data.draw(texts_around(secrets))
    whole = [secret for secret in secrets if len(secret) >= 16]
    assume(not any(encode(secret) in text for secret in whole for encode in ENCODINGS))
    assume(Masker([])(text) == text)
    mask = Masker(secrets)
    assert mask.of_others(text) == text
    masking.use(mask)
    for limit in (0, 5, 17, 300):
        assert masking.cut(text, limit) == text[:limit]


@each_secret
@pytest.mark.parametrize("encode", ENCODINGS)
def test_a_whole_secret_is_masked_in_a_text_of_others_too(secret: str, encode: Callable[[str], str]) -> None:
    assert masker().of_others(f"they wrote <{encode(secret)}>") == "they wrote <***>"


def test_a_short_secret_and_a_part_of_an_address_are_masked_in_what_services_say_alone() -> None:
    mask = Masker(["short-secret", SECRETS["NOTIFY_OPS"]])
    for part in ("short-secret", "T024BE7LD", "x9Zk2LmPq7RtVw3YbNc5Df8G"):
        assert mask(f"the status 500 at {part}") == "the status 500 at ***"
        assert mask.of_others(f"I guess {part}") == f"I guess {part}"


@given(st.integers(0, 120), st.integers(3, 120), st.text(max_size=40))
def test_no_cut_leaves_a_part_of_a_secret(before: int, limit: int, after: str) -> None:
    mask = Masker(["Zq7-Xw9-Kv3-Jp5-" * 4])
    masking.use(mask)
    text = f"{'.' * before}{'Zq7-Xw9-Kv3-Jp5-' * 4}{after}"
    shown = masking.cut(text, limit, "...")
    assert "Zq" not in mask.of_others(shown)
    assert len(shown) <= limit


def test_a_long_text_is_cut_where_no_secret_is_cut_although_much_before_it_was_masked() -> None:
    secret = "Zq7-Xw9-Kv3-Jp5-" * 200
    masking.use(Masker([secret]))
    for gap in range(0, 9000, 700):
        shown = masking.cut(f"{secret}{'.' * gap}{secret}{'.' * 20_000}", 9000)
        assert "Zq7" not in shown
        assert shown.startswith("***")


# What the app cuts or escapes, it masks first

CANARY = "Zq7_Xw9.a1b2c3d4e5f60718-Jp5Lm8"
"""A secret with what Markdown escapes, and with digits between which a comment has spaces without width."""
PADS = (
    0,
    20,
    45,
    *range(100, 160, 8),
    *range(270, 310, 8),
    *range(370, 410, 8),
    *range(470, 510, 8),
    780,
    990,
)


def parts_in(text: str) -> list[str]:
    """Return what a text has of the secret; what comments insert is taken out."""
    plain = text.replace("\u200b", "").replace("\\", "")
    return [part for at in range(len(CANARY) - 7) if (part := CANARY[at : at + 8]) in plain]


def with_canary() -> MemoryCloud:
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: masked(ports, Masker([CANARY])))
    return cloud


def test_no_part_of_a_secret_is_left_of_the_reason_of_an_act() -> None:
    cloud = with_canary()
    cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs are left")
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    for pad in PADS:
        body = json.dumps({"reason": f"{'-' * pad} {CANARY} {'+' * 600}"}).encode()
        requested(cloud, "replay", {"name": "one"}, headers=as_role("Operator"), body=body)
        requested(
            cloud, "approve", {"commit": f"{'-' * pad}{CANARY}"}, headers=as_role("Approver"), body=body
        )
        requested(cloud, "sync", {}, headers=as_role("Operator"), body=body)
    stored = repr((cloud.state.acts(200), cloud.state.events("one", 500), cloud.state.clusters()))
    assert "***" in stored
    assert parts_in(stored) == []


def test_no_part_of_a_secret_is_left_of_what_flux_says() -> None:
    cloud = reporting()
    cloud.with_ports(lambda ports: masked(ports, Masker([CANARY])))
    for pad in PADS:
        body = event(cloud, message=f"{'-' * pad} {CANARY} {'+' * 900}", reason=f"{'-' * pad}{CANARY}")
        requested(cloud, "flux", {"cluster": "one"}, headers=signed(body), body=body)
    stored = repr((cloud.state.events("one", 500), cloud.state.clusters()))
    assert "***" in stored
    assert parts_in(stored) == []


def test_no_part_of_a_secret_is_left_of_what_azure_says() -> None:
    for pad in PADS:
        cloud = with_canary()
        cloud.azure.interventions.fail_next("one", "QuotaExceeded", f"{'-' * pad} {CANARY} {'+' * 2000}")
        push(cloud, notified_fleet("one"))
        cloud.run()
        (record,) = cloud.state.clusters()
        assert "QuotaExceeded" in record.job.reason
        commit = cloud.repository.head("main")
        told = (cloud.channels.delivered, cloud.repository.statuses.latest(commit), cloud.state.plan(commit))
        assert parts_in(repr((record, cloud.state.summaries(), cloud.state.events("one", 500), *told))) == []


@pytest.mark.parametrize("fork", [True, False])
def test_no_part_of_a_secret_is_left_of_a_manifest_in_a_comment_a_plan_or_a_status(fork: bool) -> None:
    repo = Repo(with_canary())
    repo.push(fleet_files.fleet("one"))
    pads = [*range(0, 70, 6), 150, 230]
    values = {f"c{pad}": f"{'-' * pad}{CANARY}{'+' * 90}" for pad in pads}
    wrong = wrong_clusters(values)
    tags = json.dumps({f"t{name}": value for name, value in values.items()})
    tagged = fleet_files.cluster("one", extra=f"  tags: {tags}\n")
    changed = fleet_files.fleet("one") | wrong | {"clusters/one/cluster.yaml": tagged}
    shown = repo.comments(repo.propose(changed, fork=fork))
    commit = repo.push(fleet_files.fleet("one") | wrong)
    plan = repr(repo.cloud.state.plan(commit))
    assert r"got \*\*\*+++" in "".join(shown)
    assert parts_in("".join((*shown, plan, *repo.status(commit)))) == []


def test_no_part_of_a_secret_is_left_of_a_value_that_differs_in_azure() -> None:
    cloud = with_canary()
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    (record,) = cloud.state.clusters()
    for pad in (0, 30, *range(370, 410, 6)):
        tag_by_hand(cloud, record.desired.id, note=f"{'-' * pad}{CANARY}{'+' * 100}")
        sweep(cloud)
        (record,) = cloud.state.clusters()
        assert record.drift is not None
        assert parts_in(repr((record, cloud.state.events("one", 500), cloud.state.notices(50)))) == []


def test_no_part_of_a_secret_is_left_of_a_dead_letter() -> None:
    cloud = with_canary()
    before = ("-" * pad for pad in (*PADS, 32_750, 32_760))
    for number, start in enumerate((*before, "ä" * 16_375)):
        text = f"{start}{CANARY}{'+' * 900}"
        letter = ReceivedDeadLetter("jobs", f"{number}", cloud.clock(), b"", text, text, text)
        handle_dead_letter(letter, cloud.ports)
    assert parts_in(repr((cloud.state.dead_letters(100), cloud.state.notices(100)))) == []


# The attacks: 63 texts, of which one has the next character of a secret


ALPHABET = string.ascii_letters + string.digits + "-"


def offers(secret: str, known: int) -> list[str]:
    """Return the texts of somebody who has so many characters of a secret and tries the next one."""
    return [f"{secret[max(0, known - 14) : known]}{letter}" for letter in ALPHABET]


@pytest.mark.parametrize("known", [9, 12, 34])
@each_secret
@pytest.mark.parametrize("app", [True, False])
def test_a_fork_learns_nothing_from_annotations_comment_and_status(
    secret: str, known: int, app: bool
) -> None:
    written = offers(secret, min(known, len(secret) - 1))
    cloud = MemoryCloud()
    port = WorldPullRequests(cloud.repository.pulls, app=app)
    cloud.with_ports(lambda ports: replace(ports, pulls=port))
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


def wrong_clusters(values: Mapping[str, str]) -> dict[str, bytes]:
    """Return manifests by name, each with a value in a place where only a network may be."""
    return {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(
            name, extra=f"  networkProfile: {{podCidr: {json.dumps(value)}}}\n"
        )
        for name, value in values.items()
    }


@each_secret
def test_whoever_merges_learns_nothing_from_plan_page_and_status(secret: str) -> None:
    cloud = guarded(MemoryCloud())
    shown, written = [], [guess for pair in guesses(secret) for guess in pair]
    for guess in written:
        commit = push(cloud, fleet_files.fleet() | wrong_clusters({"one": guess[:40]}))
        cloud.run()
        route = {"commit": commit}
        answers = [requested(cloud, name, route, headers=as_role("Reader")) for name in ("plan", "plan_page")]
        latest = cloud.repository.statuses.latest(commit)[0].status
        texts = [*(answer.get_body().decode() for answer in answers), f"{latest.state}: {latest.description}"]
        plan = json.loads(texts[0])
        moments = (commit, commit[:8], plan["plannedAt"])
        shown.append("\n".join(without(text, moments) for text in (*plan["problems"], *texts[1:])))
    assert_alike(shown, [guess[:40] for guess in written])


def without(text: str, moments: Sequence[str]) -> str:
    for moment in moments:
        text = text.replace(moment, "MOMENT")
    return text


@each_secret
def test_an_operator_learns_nothing_from_the_reason_of_a_replay_in_audit_and_events(
    secret: str, written: io.StringIO
) -> None:
    cloud = guarded(MemoryCloud())
    cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs are left")
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    shown, reasons = [], [guess for pair in guesses(secret) for guess in pair]
    for reason in reasons:
        body = json.dumps({"reason": reason}).encode()
        cloud.azure.interventions.fail_next("one", "QuotaExceeded", "no vCPUs are left")
        answer = requested(cloud, "replay", {"name": "one"}, headers=as_role("Operator"), body=body)
        assert answer.status_code == 202
        act = json.loads(requested(cloud, "audit", {}, headers=as_role("Reader")).get_body())["acts"][0]
        events = json.loads(requested(cloud, "events", {"name": "one"}, headers=as_role("Reader")).get_body())
        replayed = next(each for each in events["events"] if each["reason"] == "Replayed")
        shown.append(f"{act['reason']} / {replayed['message']}")
        cloud.run()
    assert_alike(shown, reasons)


@pytest.mark.parametrize("secret", [*SECRETS.values(), FLUX_KEY], ids=[*SECRETS, "the key itself"])
def test_whoever_has_the_key_of_a_clusters_events_learns_nothing_from_these_events(secret: str) -> None:
    cloud = guarded(reporting())
    shown, messages = [], [guess for pair in guesses(secret) for guess in pair]
    for message in messages:
        body = event(cloud, message=message)
        assert (
            requested(cloud, "flux", {"cluster": "one"}, headers=signed(body), body=body).status_code == 202
        )
        events = json.loads(requested(cloud, "events", {"name": "one"}, headers=as_role("Reader")).get_body())
        shown.append(next(each["message"] for each in events["events"] if each["reason"] == "FluxReported"))
        cloud.run(seconds=5, until=lambda: False)
    assert_alike(shown, messages)
    whole = event(cloud, message=f"I have {FLUX_KEY}")
    requested(cloud, "flux", {"cluster": "one"}, headers=signed(whole), body=whole)
    assert FLUX_KEY not in repr(cloud.state.events("one", 50))


@each_secret
def test_a_system_that_approves_learns_nothing_from_the_reason_of_its_approval(secret: str) -> None:
    cloud = guarded(MemoryCloud())
    shown, reasons = [], [guess for pair in guesses(secret) for guess in pair]
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


@each_secret
def test_a_channel_learns_nothing_from_what_a_cluster_says_of_itself(secret: str) -> None:
    shown, messages = [], [guess for pair in guesses(secret) for guess in pair]
    for message in messages:
        cloud = guarded(MemoryCloud())
        cloud.azure.interventions.fail_next("one", "QuotaExceeded", f"there is no {message}")
        push(cloud, notified_fleet("one"))
        cloud.run()
        (delivered,) = cloud.channels.delivered["ops"]
        (record,) = cloud.state.clusters()
        shown.append(f"{delivered.text.split('Why: ')[1].splitlines()[0]} / {record.job.reason}")
    assert_alike(shown, messages)


@each_secret
def test_a_log_line_and_an_error_of_a_service_do_not_depend_on_a_part_of_a_secret_at_any_end(
    secret: str, written: io.StringIO
) -> None:
    mask = masker()
    logs.configure(mask)
    reasons = [guess for pair in guesses(secret) for guess in pair if mask(guess) == guess]
    assert len(reasons) > 20
    for reason in reasons:
        logging.getLogger("some_client").warning("%s: %s", "the reason is", reason)
    assert_alike(written.getvalue().splitlines(), reasons)
