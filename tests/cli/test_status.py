"""``roadstead status``, run as a process, against an API over HTTP."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from werkzeug.wrappers import Request, Response

from cli.terminal import render, render_cluster
from localcloud.common.http_server import HttpServer
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.clusters import cluster_detail, fleet_view
from shared.app.api.views.why import why_view
from shared.cluster.failures.errors import Unauthenticated
from shared.ports import BranchHead
from tests.support import fleet_files
from tests.support.one_cluster import ENTRA
from tests.support.pipeline_runs import cloud_with, push, record_of
from tests.support.pipeline_runs import ready as ready_fleet
from tests.support.replaced_ports import around
from tests.support.roadstead_command import OWN, ROADSTEAD, on_terminal, plain, roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    made = MemoryCloud()
    made.azure.interventions.fail_next(
        "three", "InvalidParameter", "no vCPUs are left in eastus for the family standardDSv5Family"
    )
    names = ("one", "three", "with-quite-a-long-name")
    signed_in = {f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=ENTRA) for name in names}
    push(made, fleet_files.fleet() | signed_in)
    made.run(until=lambda: any(record.job.step.name == "verify" for record in made.state.clusters()))
    return made


def test_the_fleet_as_a_table_and_as_json(url: str) -> None:
    shown = roadstead("status", ROADSTEAD_URL=url)
    assert shown.returncode == 0, shown.stderr
    assert "example: 0 of 3 clusters Ready" in shown.stdout
    assert "with-quite-a-long-name" in shown.stdout
    as_json = json.loads(roadstead("status", "--output", "json", "--url", url).stdout)
    assert [cluster["name"] for cluster in as_json["clusters"]] == ["one", "three", "with-quite-a-long-name"]


def test_one_cluster_with_its_conditions_and_events(url: str) -> None:
    shown = roadstead("status", "three", "--url", url)
    assert shown.returncode == 0
    assert "Failed" in shown.stdout
    assert "no vCPUs are left" in " ".join(shown.stdout.split())
    assert "Events, newest first" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--key-file", "key"],
            "refused the key from the file key: this app does not know the key: this needs the role Reader; "
            "give it a key of this app: one of its settings API_KEY_READER to API_KEY_ADMIN",
        ),
        (["nope"], "there is no cluster nope"),
        (["--url", "http://127.0.0.1:1"], "no answer from http://127.0.0.1:1"),
        (["--url", "127.0.0.1:7071"], "127.0.0.1:7071 does not begin with http://"),
        (["--url", "http://."], "http://. is not an address"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(
    tmp_path: Path, url: str, arguments: list[str], message: str
) -> None:
    (tmp_path / "key").write_text("wrong\n")
    shown = roadstead("status", *arguments, cwd=tmp_path, ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout) == (1, "")
    assert message in shown.stderr
    assert "wrong" not in shown.stderr, "the key itself is never shown"
    assert shown.stderr.count("\n") == 1


def test_a_refused_key_of_the_environment_is_named_and_not_shown(url: str) -> None:
    shown = roadstead("status", "--url", url, ROADSTEAD_KEY="not-the-right-one")
    assert (shown.returncode, shown.stdout) == (1, "")
    assert f"{url} refused the key from ROADSTEAD_KEY: this app does not know the key" in shown.stderr
    assert "not-the-right-one" not in shown.stderr


def test_without_a_key_nothing_was_refused(url: str) -> None:
    shown = roadstead("status", "--url", url, ROADSTEAD_KEY="")
    assert "does not know you: sign in first: this needs the role Reader; choose a context" in shown.stderr


def test_another_service_at_the_address_is_recognised() -> None:
    @Request.application
    def other(request: Request) -> Response:
        return Response("<html>", 200)

    with HttpServer(other) as running:
        shown = roadstead("status", "--url", running.url)
    assert shown.returncode == 1
    assert "is it a Roadstead app?" in shown.stderr


def test_deletes_that_need_approval_are_shown_with_the_command_and_a_long_name_fits() -> None:
    cloud, name = MemoryCloud(), "a-cluster-with-a-name-of-forty-two-letters"
    push(cloud, fleet_files.fleet("one", "three", name))
    cloud.run()
    commit = push(cloud, fleet_files.fleet("three"))[:8]
    cloud.run()
    with served(cloud.ports) as url:
        shown = plain(on_terminal("status", ROADSTEAD_URL=url)[1])
        alone = roadstead("status", "one", ROADSTEAD_URL=url).stdout
    text = " ".join(shown.split())
    assert f"2 removals need approval (roadstead approve {commit}): {name}, one" in text
    assert text.count("needs approval: the commit removes 2 clusters") == 2
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "roadstead approve releases the deletes" in " ".join(alone.split())


def test_an_unconfirmed_head_is_shown_with_the_time_of_its_plan() -> None:
    cloud = MemoryCloud()
    first = cloud.repository.push(fleet_files.fleet())
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    cloud.repository.reset(first)
    forced = push(cloud, fleet_files.fleet("one", "two"))[:8]
    assert cloud.step()
    with served(cloud.ports) as url:
        shown = roadstead("status", ROADSTEAD_URL=url).stdout
        why = roadstead("why", "one", ROADSTEAD_URL=url).stdout
        one = roadstead("status", "one", ROADSTEAD_URL=url).stdout
        new = roadstead("why", "two", ROADSTEAD_URL=url).stderr
    message = f"{forced} may be a forced push or a stale read: it is planned at"
    assert message in " ".join(shown.split())
    assert message in " ".join(why.split())
    assert message in " ".join(one.split())
    assert (
        f"there is no cluster two in the fleet example; a newer commit is not planned yet: {message}" in new
    )


def test_a_repository_that_cannot_be_read_is_shown_with_the_suggested_action() -> None:
    cloud = cloud_with(fleet_files.fleet("one"))

    def refused(branch: str) -> BranchHead:
        raise Unauthenticated("the token has expired")

    around(cloud, "git_host", read_head=refused)
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(seconds=60)
    with served(cloud.ports) as url:
        shown = plain(on_terminal("status", ROADSTEAD_URL=url)[1])
        new = roadstead("status", "two", ROADSTEAD_URL=url).stderr
    text = " ".join(shown.split())
    assert "the repository could not be read: Unauthenticated: the token has expired" in text
    assert "The timer plans again at the latest" in text
    assert "renews the token or the key with which it reads the repository" in text
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "a newer commit is not planned yet: the repository could not be read" in new


def test_a_cluster_that_is_not_created_because_its_manifest_is_invalid_is_named() -> None:
    cloud = MemoryCloud()
    broken = fleet_files.cluster("two") + b"  locaton: nowhere\n"
    push(cloud, {**fleet_files.fleet("one"), "clusters/two/cluster.yaml": broken})
    cloud.run()
    with served(cloud.ports) as url:
        shown = roadstead("status", ROADSTEAD_URL=url).stdout
        alone = roadstead("status", "two", ROADSTEAD_URL=url).stdout
    assert "not created, manifest invalid: two; see roadstead why NAME" in shown
    assert re.search(r"invalid: clusters/two/cluster.yaml:.* for \d+[smhd]", " ".join(alone.split()))


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ({"seconds": -5}, "in 0s"),
        ({"seconds": 20}, "in 20s"),
        ({"minutes": 59, "seconds": 59}, "in 59m 59s"),
        ({"hours": 3, "minutes": 5}, "in 3h 5m (2026-01-01T15:05:00+00:00)"),
        ({"days": 364, "hours": 23}, "in 364d 23h (2027-01-01T11:00:00"),
    ],
)
def test_a_distant_time_is_shown_in_hours_and_days_with_its_date(
    cloud: MemoryCloud, left: dict[str, float], expected: str
) -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    view = why_view("one", cloud.ports)
    assert view is not None
    view["nextAt"] = (now + timedelta(**left)).isoformat()
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(render_cluster.why(view, now))
    assert expected in " ".join(console.export_text().split())


@pytest.mark.parametrize("width", [60, 80, 100, 300])
def test_a_wide_table_breaks_between_columns_and_in_no_id(cloud: MemoryCloud, width: int) -> None:
    view = fleet_view(cloud.ports)
    console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
    console.print(render.fleet(view, cloud.clock(), wide=True))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert max(map(len, lines)) <= width
    values = {text for line in lines for text in line.split()}
    for cluster in view["clusters"]:
        assert {cluster["name"], cluster["commit"][:8], cluster["resourceGroup"]} <= values
    assert (len(lines) == 2 + len(view["clusters"])) == (width == 300)


def test_clusters_are_listed_by_condition_class_label_and_commit(url: str, cloud: MemoryCloud) -> None:
    commit = cloud.state.fleet().commit[:8]

    def shown(*filters: str) -> list[str]:
        listed = roadstead("status", "-o", "name", *filters, ROADSTEAD_URL=url)
        assert listed.returncode == 0, listed.stderr
        return listed.stdout.split()

    everything = [f"cluster/{record.name}" for record in cloud.state.clusters()]
    assert shown("--condition", "Ready=False") == everything
    assert shown("--condition", "Stalled") == ["cluster/three"]
    assert shown("--commit", commit) == shown("--label", "team") == shown("--class", "small") == []
    unknown = roadstead("status", "--commit", "0badcafe", ROADSTEAD_URL=url)
    assert (unknown.returncode, unknown.stderr) == (
        1,
        "roadstead: no commit in roadstead plans begins with 0badcafe\n",
    )


def test_a_wider_terminal_shows_more_columns_of_the_fleet_and_none_that_is_empty() -> None:
    cloud = ready_fleet("one", "a-cluster-with-a-name-of-forty-two-letters")
    view = fleet_view(cloud.ports)

    def heads(width: int) -> list[str]:
        console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
        console.print(render.fleet(view, cloud.clock()))
        lines = console.export_text().splitlines()
        assert max(map(len, lines)) <= width
        return lines[1].split()

    narrow, usual, large = heads(80), heads(140), heads(200)
    assert narrow[:5] == ["NAME", "PHASE", "STEP", "GEN", "SINCE"]
    assert len(narrow) < len(usual) == len(large)
    assert (large[: len(usual)], usual[: len(narrow)]) == (usual, narrow)
    assert large[5:] == ["VERSION", "RUNNING", "NODES", "LOCATION", "FLUX"]


@pytest.mark.parametrize("width", [80, 120])
def test_every_view_fits_its_terminal(cloud: MemoryCloud, width: int) -> None:
    now = cloud.clock() + timedelta(hours=3)
    console = Console(width=width, record=True, force_terminal=True, file=io.StringIO())
    console.print(render.fleet(fleet_view(cloud.ports), now))
    for record in cloud.state.clusters():
        view = cluster_detail(record.name, cloud.ports)
        assert view is not None
        console.print(render_cluster.cluster(view, now))
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= width
    for name in ("one", "three", "with-quite-a-long-name", "Failed", "Provisioning", "3h"):
        assert name in text


@pytest.mark.parametrize("request_id", ["[/bold]", "[red]", ":smile:"])
def test_what_a_service_sends_is_shown_as_it_is_and_never_as_markup(
    cloud: MemoryCloud, url: str, request_id: str
) -> None:
    """An API server names its requests itself: kubernetes.io/docs/reference/config-api/apiserver-audit.v1."""
    record = record_of(cloud, "three")
    assert record.job.step.failure is not None
    failure = replace(record.job.step.failure, request_id=request_id)
    job = replace(record.job, step=replace(record.job.step, failure=failure))
    cloud.state.save(replace(record, job=job))
    shown = roadstead("status", "three", "--url", url)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.search(rf"request id +{re.escape(request_id)}\n", shown.stdout)


@pytest.mark.parametrize("key", ["schl\N{LATIN SMALL LETTER U WITH DIAERESIS}ssel", "two\nlines"])
def test_what_cannot_be_a_key_is_not_sent(tmp_path: Path, key: str) -> None:
    (tmp_path / "key").write_text(key, encoding="utf-8")
    for origin, given in (("ROADSTEAD_KEY", ()), ("the file key", ("--key-file", "key"))):
        shown = roadstead("status", *given, cwd=tmp_path, ROADSTEAD_KEY=key)
        assert (shown.returncode, shown.stdout) == (2, "")
        assert shown.stderr == (
            f"roadstead: {origin} has no key: one has printable ASCII characters alone, on one line\n"
        )


def test_a_full_disk_is_one_line_and_exit_code_1() -> None:
    with Path("/dev/full").open("wb") as full:
        shown = subprocess.run(
            [ROADSTEAD, "schema", "cluster"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (shown.returncode, shown.stderr.count(b"\n")) == (1, 1)
    assert b"No space left on device" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--timeout", "999999999999h"],
            "--timeout '999999999999h' must be a duration such as 30s, 5m or 1h",
        ),
        (["--prefix", "\udcff"], "an argument is not UTF-8"),
    ],
)
def test_an_argument_that_nothing_can_be_sent_with_is_one_line_and_exit_code_2(
    url: str, arguments: list[str], message: str
) -> None:
    shown = roadstead("status", *arguments, ROADSTEAD_URL=url)
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", f"roadstead: {message}\n")


def test_a_terminal_without_unicode_shows_what_it_has_no_letter_for_as_its_number(
    cloud: MemoryCloud, url: str
) -> None:
    record = record_of(cloud, "three")
    job = replace(
        record.job, next_run=replace(record.job.next_run, reason="\N{GREEK SMALL LETTER ALPHA} waits")
    )
    cloud.state.save(replace(record, job=job))
    environment = {**os.environ, **OWN, "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(
        [ROADSTEAD, "status", "--url", url], env=environment, capture_output=True, check=False
    )
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"\\u03b1 waits" in shown.stdout
