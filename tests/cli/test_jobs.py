"""``roadstead why``, ``events``, ``replay`` and ``dead-letters``, run against the functions over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import httpx
import pytest

from cli.commands.act.replay import replay
from cli.errors import CommandError
from cli.fleet_api.client import Api
from cli.options import Address
from localcloud.memory.memory_cloud import MemoryCloud
from shared.cluster.queues.messages import PreviewRequest
from shared.ports import DeadLetter
from tests.support import fleet_files
from tests.support.function_calls import ADMIN, ADMIN_KEY
from tests.support.pipeline_runs import failed, phases, push, record_of
from tests.support.roadstead_command import on_terminal, plain, roadstead

pytestmark = pytest.mark.lives

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def cloud() -> MemoryCloud:
    return failed()[0]


def test_why_shows_the_error_and_the_suggested_action(url: str) -> None:
    code, shown = on_terminal("why", "one", ROADSTEAD_URL=url)
    assert code == 0, shown
    text = " ".join(plain(shown).split())
    assert "failed in the step cluster (2 of " in text
    assert "last error InvalidManifest" in text
    assert "Correct the value in the message." in text
    assert max(len(line) for line in plain(shown).splitlines()) <= 80
    assert json.loads(roadstead("why", "one", "-o", "json", "--url", url).stdout)["phase"] == "Failed"


def test_events_are_listed_newest_first(url: str) -> None:
    shown = roadstead("events", "one", "--limit", "2", ROADSTEAD_URL=url)
    assert shown.returncode == 0, shown.stderr
    as_json = json.loads(roadstead("events", "one", "-o", "json", "--url", url).stdout)["events"]
    assert as_json[-1]["reason"] == "Accepted"
    first, second = as_json[0], as_json[1]
    assert first["reason"] == "Failed"
    assert shown.stdout.index("Failed") < shown.stdout.index(f" {second['reason']} ")
    assert f"{datetime.fromisoformat(first['at']):%m-%d %H:%M:%SZ}" in shown.stdout
    before = shown.stdout.splitlines()[-1].removeprefix("older events: --before ")
    older = roadstead("events", "one", "--before", before, "-o", "json", ROADSTEAD_URL=url)
    assert json.loads(older.stdout)["events"] == as_json[len(shown.stdout.splitlines()) - 1 :]


def test_older_events_are_requested_by_a_time(url: str) -> None:
    shown = roadstead("events", "one", "--before", "yesterday", ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "--before 'yesterday' must be a time such as 2026-01-31T12:00:00Z" in shown.stderr


@pytest.mark.parametrize("which", [["one"], ["--all"], ["--error-class", "InvalidManifest"]])
def test_a_failed_job_is_started_again(cloud: MemoryCloud, url: str, which: list[str]) -> None:
    shown = roadstead("replay", *which, ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout) == (0, "one: started again\n")
    cloud.run()
    assert {phase.value for phase in phases(cloud).values()} == {"Ready"}


@pytest.mark.parametrize("which", [["two"], ["--all"], ["--error-class", "Refused"]])
def test_a_job_that_is_refused_is_started_again(cloud: MemoryCloud, url: str, which: list[str]) -> None:
    files = fleet_files.all_at_once(fleet_files.fleet("one", "two"))
    cloud.azure.interventions.deny("two", "RequestDisallowedByPolicy")
    push(cloud, files | {"clusters/two/cluster.yaml": fleet_files.cluster("two", count=3)})
    cloud.run(7200)
    assert phases(cloud)["two"].value == "Stalled"
    cloud.azure.interventions.unblock("two")
    shown = roadstead("replay", *which, ROADSTEAD_URL=url)
    assert shown.returncode == 0
    assert "two: started again\n" in shown.stdout
    cloud.run(600)
    assert phases(cloud)["two"].value == "Ready"


def test_a_replay_records_who_the_key_belongs_to_and_not_what_the_client_calls_itself(url: str) -> None:
    shown = roadstead("replay", "one", ROADSTEAD_URL=url, LOGNAME="somebody-else")
    assert (shown.returncode, shown.stdout) == (0, "one: started again\n"), shown.stderr
    as_json = json.loads(roadstead("events", "one", "-o", "json", "--url", url).stdout)
    message = next(event["message"] for event in as_json["events"] if event["reason"] == "Replayed")
    assert message == "replayed by the key of Admin"


def test_the_audit_shows_who_did_what_and_why_and_wide_from_where(url: str) -> None:
    assert roadstead("replay", "one", "--reason", "the quota was raised", ROADSTEAD_URL=url).returncode == 0
    shown = roadstead("audit", "-o", "wide", ROADSTEAD_URL=url)
    assert shown.returncode == 0, shown.stderr
    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert lines[0].endswith("the key of Admin  replay one")
    assert lines[1:3] == ["reason: the quota was raised", "accepted"]
    assert lines[3].startswith("from key:Admin, python-httpx/")
    why = " ".join(roadstead("why", "one", ROADSTEAD_URL=url).stdout.split())
    assert "ago by the key of Admin: the quota was raised (accepted)" in why
    older = roadstead("audit", "--limit", "1", "-o", "json", "--url", url)
    before = json.loads(older.stdout)["next"]
    assert roadstead("audit", "--before", before, ROADSTEAD_URL=url).stdout == "there are no acts\n"


def test_a_cluster_deleted_since_it_was_listed_does_not_prevent_the_other_replays(
    cloud: MemoryCloud, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [{"name": name, "phase": "Failed", "failure": None} for name in ("deleted", "one", "two")]
    monkeypatch.setenv("ROADSTEAD_KEY", ADMIN_KEY)
    monkeypatch.setattr(Api, "fleet", lambda _, **__: {"clusters": listed})
    replay(Address(url), everything=True)
    assert capsys.readouterr().out.splitlines() == [
        "there is no cluster deleted in the fleet example",
        "one: started again",
        "two has not failed: it is idle: generation 1 was verified Ready",
        "Started 1 of 3.",
    ]


def test_a_replay_of_all_that_starts_none_has_failed(
    cloud: MemoryCloud, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROADSTEAD_KEY", ADMIN_KEY)
    monkeypatch.setattr(Api, "fleet", lambda _, **__: {"clusters": [{"name": "two", "phase": "Failed"}]})
    with pytest.raises(CommandError, match="started none of 1"):
        replay(Address(url), everything=True)
    assert capsys.readouterr().out == "two has not failed: it is idle: generation 1 was verified Ready\n"


@pytest.mark.parametrize("command", ["why", "events", "replay", "status"])
@pytest.mark.parametrize("name", ["a?b", "../plans", "a/b", "..", "One"])
def test_an_invalid_cluster_name_is_a_usage_error(url: str, command: str, name: str) -> None:
    shown = roadstead(command, name, ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "roadstead: NAME must be 1 to 63 lowercase letters, digits and hyphens" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["two"], 1, "two has not failed: it is idle"),
        (["nope"], 1, "there is no cluster nope"),
        ([], 2, "give a cluster, or --all, or --error-class CLASS"),
        (["one", "--all"], 2, "give a cluster, or --all"),
        (["--error-class", "Quota"], 2, "there is no error class 'Quota'"),
    ],
)
def test_an_impossible_replay_is_a_one_line_error(
    url: str, arguments: list[str], status: int, message: str
) -> None:
    shown = roadstead("replay", *arguments, ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout) == (status, "")
    assert message in shown.stderr


def test_a_class_without_failed_clusters_is_reported(url: str) -> None:
    shown = roadstead("replay", "--error-class", "Unavailable", ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout) == (0, "No cluster has failed with Unavailable.\n")


def test_dead_letters_are_shown_and_counted(cloud: MemoryCloud, url: str) -> None:
    assert "no dead letters" in roadstead("dead-letters", ROADSTEAD_URL=url).stdout
    cloud.state.save_dead_letter(
        DeadLetter("jobs", "7:m", cloud.clock(), "TooOften", "ten times", "{unreadable\n", 12)
    )
    shown = roadstead("dead-letters", ROADSTEAD_URL=url).stdout
    assert "TooOften: ten times" in shown
    assert "{unreadable" in shown
    assert "1 dead letter; see roadstead dead-letters" in roadstead("status", ROADSTEAD_URL=url).stdout


def test_dead_letters_that_were_seen_are_dismissed_and_no_others(cloud: MemoryCloud, url: str) -> None:
    for name in ("7:m", "8:m/?#", "9:m"):
        cloud.state.save_dead_letter(DeadLetter("jobs", name, cloud.clock(), "", "", "{unreadable", 4))
    refused = roadstead("dead-letters", "--dismiss", ROADSTEAD_URL=url)
    assert (refused.returncode, cloud.state.count_dead_letters()) == (1, 3)
    typo = roadstead("dead-letters", "8:m/?#", "7:typo", "--dismiss", "--yes", ROADSTEAD_URL=url)
    assert (typo.returncode, cloud.state.count_dead_letters()) == (1, 3)
    assert "no listed dead letter has the id 7:typo" in typo.stderr
    shown = roadstead("dead-letters", "8:m/?#", "--dismiss", "--yes", ROADSTEAD_URL=url)
    assert (shown.returncode, "1 dead letter dismissed." in shown.stdout) == (0, True), shown.stderr
    assert {letter.id for letter in cloud.state.dead_letters(5)} == {"7:m", "9:m"}
    assert "2 dead letters dismissed." in roadstead("dead-letters", "--dismiss", "--yes", "--url", url).stdout
    assert cloud.state.count_dead_letters() == 0


def test_dead_letters_that_are_stored_whole_are_replayed(cloud: MemoryCloud, url: str) -> None:
    body = PreviewRequest(pull=3).model_dump_json()
    cloud.state.save_dead_letter(DeadLetter("previews", "7:m", cloud.clock(), "", "", body, len(body)))
    cloud.state.save_dead_letter(DeadLetter("jobs", "8:m", cloud.clock(), "", "", "{unreadable", 400))
    refused = roadstead("dead-letters", "--replay", "--yes", ROADSTEAD_URL=url)
    assert (refused.returncode, "8:m cannot be replayed" in " ".join(refused.stderr.split())) == (1, True)
    both = roadstead("dead-letters", "--replay", "--dismiss", ROADSTEAD_URL=url)
    assert "give --replay or --dismiss" in both.stderr
    done = roadstead("dead-letters", "7:m", "--replay", "--yes", ROADSTEAD_URL=url)
    assert (done.returncode, "1 dead letter replayed." in done.stdout) == (0, True), done.stderr
    assert [letter.id for letter in cloud.state.dead_letters(5)] == ["8:m"]


def test_an_invalid_dismissal_is_refused_with_the_reason(url: str) -> None:
    for body, problem in (
        (b"", "deadLetters: "),
        (b"[]", "deadLetters: "),
        (b'{"deadLetters": [7]}', "deadLetters.0: "),
    ):
        reply = httpx.post(f"{url}/api/dead-letters/dismiss", content=body, headers=ADMIN | JSON)
        assert (reply.status_code, reply.json()["error"].startswith(problem)) == (400, True)


def test_text_from_elsewhere_moves_no_cursor(cloud: MemoryCloud, url: str) -> None:
    escape = "\x1b]0;title\x07"
    cloud.state.save_dead_letter(
        DeadLetter(
            "jobs", f"7:{escape}", cloud.clock(), f"Too{escape}", f"ten{escape}", f"escaped{escape}", 5
        )
    )
    record = record_of(cloud, "one")
    escaped = replace(record.job.next_run, reason=f"no{escape}")
    cloud.state.save(replace(record, job=replace(record.job, next_run=escaped)))
    for command in (["dead-letters"], ["status"], ["status", "one"], ["why", "one"]):
        shown = roadstead(*command, ROADSTEAD_URL=url).stdout
        assert "]0;title" in shown
        assert not {"\x1b", "\x07"} & {*shown}


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=99999", "before=yesterday"])
def test_an_invalid_page_size_is_refused_with_the_reason(url: str, query: str) -> None:
    reply = httpx.get(f"{url}/api/clusters/one/events?{query}", headers=ADMIN)
    assert (reply.status_code, "limit must be 1 to 1000" in reply.json()["error"]) == (400, True)
