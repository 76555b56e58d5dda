"""The console: what its pages show, and what its forms do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from threading import Barrier, Thread
from typing import Any

import azure.functions as func
import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.views.rollouts import rollout_view
from shared.app.console.pages import PAGES, SECTIONS
from shared.app.console.recent import SECONDS, recent
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.cluster.record_parts import Phase
from shared.ports.state import PullPlanRecord
from tests.support import fleet_files
from tests.support.checks import check
from tests.support.console_fleet import busy_fleet
from tests.support.console_pages import Shown, browse, shown
from tests.support.function_calls import ADMIN_KEY
from tests.support.identity_access import ACCESS, REGISTRY, SHOP, with_identity
from tests.support.notified import with_failures
from tests.support.one_cluster import files
from tests.support.pipeline_runs import cloud_with, phases, push, with_two_removed
from tests.support.rollbacks import open_pulls
from tests.support.staged_fleets import ready_fleet, staged, tags

pytestmark = pytest.mark.lives

APPROVED = """\
  rollout:
    stages:
      - {name: first, select: {environments: [development]}, groups: [{maxConcurrency: "100%"}]}
      - name: second
        approval: true
        groups: [{maxConcurrency: "100%"}]
"""


@pytest.fixture(scope="module")
def staged_cloud() -> MemoryCloud:
    cloud = ready_fleet(APPROVED)
    push(cloud, staged(APPROVED, tags("one")))
    cloud.run()
    return cloud


@pytest.fixture
def cloud() -> MemoryCloud:
    return with_two_removed()


def text_of(reply: func.HttpResponse) -> str:
    return Shown(reply.get_body().decode()).text


def cookie_of(reply: func.HttpResponse) -> str:
    """Return the cookie that a browser sends back."""
    (morsel,) = SimpleCookie(reply.headers["Set-Cookie"]).values()
    return f"{morsel.key}={morsel.coded_value}"


def send(
    cloud: MemoryCloud, page: str, act: str, fields: Mapping[str, Any], role: str = "Admin"
) -> tuple[int, str]:
    """Send a form of a page; return the status, and what the page then says of it."""
    token = shown(cloud.ports, page, role=role).hidden["token"]
    done = browse(cloud.ports, act, role=role, form={"token": token, "back": page, **fields})
    if "Location" not in done.headers:
        return done.status_code, text_of(done)
    said = browse(cloud.ports, done.headers["Location"], role=role, headers={"cookie": cookie_of(done)})
    return done.status_code, text_of(said)


def test_each_page_opens_and_each_link_of_it_leads_to_a_page(staged_cloud: MemoryCloud) -> None:
    ports, commit = staged_cloud.ports, staged_cloud.state.fleet().commit
    ports.state.save_pull(PullPlanRecord(1, "a" * 40, commit, ports.clock(), "1 update"))
    name = min(record.name for record in staged_cloud.state.clusters())
    for route in PAGES:
        address = route.address.format(name=name, commit=commit, number=1)
        reply = browse(ports, address)
        assert reply.status_code == 200, address
        page = Shown(reply.get_body().decode())
        assert {address for _, address in SECTIONS} <= set(page.links)
        for link in {link for link in page.links if link.startswith(("/clusters/", "/rollouts/"))}:
            assert browse(ports, link).status_code == 200, (address, link)


def test_the_first_page_says_what_needs_whom(cloud: MemoryCloud, staged_cloud: MemoryCloud) -> None:
    assert (
        "2 removals of the newest commit: approval needed one , two Who acts: an Approver Look and approve"
        in shown(cloud.ports, "/").text
    )
    commit = staged_cloud.state.fleet().commit
    assert "waits for an approval of the stage second" in shown(staged_cloud.ports, "/").text
    assert f"Rollout of {commit[:8]} Waiting for approval" in shown(staged_cloud.ports, "/").text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("text=T", ["two", "three"]),
        ("phase=Failed", []),
        ("version=1.36", ["one", "two", "three"]),
        ("version=1.35", []),
        ("owner=nobody", []),
        ("label=tier%3Dweb", []),
    ],
)
def test_filters_select_clusters(cloud: MemoryCloud, query: str, names: list[str]) -> None:
    links = shown(cloud.ports, f"/clusters?{query}").links
    assert [name for name in ("one", "two", "three") if f"/clusters/{name}" in links] == names


def test_an_unknown_filter_is_named(cloud: MemoryCloud) -> None:
    reply = browse(cloud.ports, "/clusters?phase=Broken")
    assert (reply.status_code, "The phases are Provisioning" in text_of(reply)) == (400, True)


@pytest.mark.parametrize(
    "address", ["/nothing", "/clusters/none", f"/plans/{'0' * 40}", f"/rollouts/{'0' * 40}"]
)
def test_what_is_not_there_is_a_page_that_says_so(cloud: MemoryCloud, address: str) -> None:
    reply = browse(cloud.ports, address)
    assert reply.status_code == 404
    assert "To the fleet" in text_of(reply)


def test_a_form_approves_for_the_commit_that_it_shows(cloud: MemoryCloud) -> None:
    commit = cloud.state.fleet().commit
    page, fields = (
        f"/plans/{commit}",
        {"path:commit": commit, "clusters": ["one", "two"], "reason": "end of use"},
    )
    status, text = send(cloud, page, "/acts/approve", fields)
    assert (status, "Accepted: approve." in text) == (303, True), text
    cloud.run()
    (act,) = cloud.state.acts(1)
    assert (act.action, act.clusters, act.reason) == ("approve", ("one", "two"), "end of use")
    assert [record.name for record in cloud.state.clusters()] == ["three"]


def test_a_form_that_lacks_something_does_nothing_and_says_what_it_takes(cloud: MemoryCloud) -> None:
    status, text = send(cloud, "/clusters", "/acts/refresh", {})
    assert status == 303
    assert "give clusters, or all" in text
    assert not cloud.state.acts(1)


def test_a_role_that_may_not_act_sees_which_one_may(staged_cloud: MemoryCloud) -> None:
    page = f"/rollouts/{staged_cloud.state.fleet().commit}"
    seen = shown(staged_cloud.ports, page, role="Reader")
    assert "Pause: needs the role Operator" in seen.text
    assert "Approve second: needs the role Approver" in seen.text
    assert not [action for action in seen.actions if action.startswith("/acts/")]
    fields = {"path:commit": staged_cloud.state.fleet().commit}
    token = {"token": shown(staged_cloud.ports, "/", role="Reader").hidden.get("token", "")}
    assert not token["token"], "a page without a form has no token"
    status = browse(
        staged_cloud.ports, "/acts/rollout_pause", role="Reader", form={**fields, **token}
    ).status_code
    assert status == 303
    assert not staged_cloud.state.acts(1)


def test_an_unchanged_page_is_not_sent_again(cloud: MemoryCloud) -> None:
    first = browse(cloud.ports, "/clusters")
    again = browse(cloud.ports, "/clusters", headers={"if-none-match": first.headers["ETag"]})
    assert (again.status_code, again.get_body()) == (304, b"")


def test_a_key_opens_a_session_that_never_has_the_key(cloud: MemoryCloud) -> None:
    away = browse(cloud.ports, "/clusters?phase=Ready", role="")
    assert (away.status_code, away.headers["Location"]) == (302, "/sign-in?next=%2Fclusters%3Fphase%3DReady")
    wrong = browse(cloud.ports, "/sign-in", role="", form={"key": "wrong", "next": "/clusters"})
    assert (wrong.status_code, "does not know the key" in text_of(wrong)) == (401, True)
    done = browse(
        cloud.ports, "/sign-in", role="", form={"key": ADMIN_KEY, "next": "https://elsewhere.example"}
    )
    assert (done.status_code, done.headers["Location"]) == (303, "/")
    cookie = done.headers["Set-Cookie"]
    assert ADMIN_KEY not in cookie
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Max-Age=3600"} <= {
        part.strip() for part in cookie.split(";")
    }
    session = {"cookie": cookie_of(done)}
    assert browse(cloud.ports, "/", role="", headers=session).status_code == 200
    forged = {"cookie": session["cookie"][:-1] + "0"}
    assert browse(cloud.ports, "/", role="", headers=forged).status_code == 302
    cloud.sleep(3601)
    assert browse(cloud.ports, "/", role="", headers=session).status_code == 302


def test_a_page_that_is_open_when_its_session_ends_learns_that(cloud: MemoryCloud) -> None:
    reply = browse(cloud.ports, "/", role="", headers={"hx-request": "true"})
    assert reply.status_code == 401


def test_visits_at_the_same_time_share_a_read(cloud: MemoryCloud) -> None:
    reads: list[str] = []
    seconds = [0.0]

    class Counted:
        def fleet_and_sweep(self) -> object:
            reads.append("fleet")
            return cloud.state.fleet_and_sweep()

    ports = recent(
        cloud.ports.__class__(**{**vars(cloud.ports), "state": Counted(), "elapsed": lambda: seconds[0]})
    )
    start = Barrier(8)

    def visit() -> None:
        start.wait()
        ports.state.fleet()

    threads = [Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reads == ["fleet"]
    seconds[0] = SECONDS
    ports.state.fleet()
    assert len(reads) == 2


def test_a_page_cannot_write(cloud: MemoryCloud) -> None:
    with pytest.raises(AttributeError, match="only reads"):
        recent(cloud.ports).state.save_fleet  # noqa: B018


def test_files_are_kept_by_browsers_and_nothing_else_is_served(cloud: MemoryCloud) -> None:
    page = shown(cloud.ports, "/")
    files = [link for link in page.links if link.startswith("/assets/")]
    assert len(files) == 4
    for address in files:
        reply = browse(cloud.ports, address, role="")
        assert (reply.status_code, reply.headers["Cache-Control"]) == (
            200,
            "public, max-age=31536000, immutable",
        )
    for address in ("/assets/../render.py", "/assets/htmx.LICENSE.txt"):
        assert browse(cloud.ports, address, role="").status_code == 404


def test_versions_and_systems_are_objects_of_the_api(cloud: MemoryCloud) -> None:
    from tests.support.function_calls import call

    status, body = call(cloud.ports, "versions")
    assert (status, body["environments"][0]["versions"]) == (200, {"1.36.3": 3}), json.dumps(body)
    assert call(cloud.ports, "systems") == (200, {"systems": []})


def test_what_is_done_to_selected_clusters_is_decided_and_audited_for_each() -> None:
    made = busy_fleet(1)
    form = {"clusters": ["shop-weu-1", "dev-weu-1", "nobody"], "reason": "the quota is raised"}
    status, text = send(made, "/clusters", "/acts/replay", form)
    assert (status, "Accepted: replay of 1 of 3 clusters. Refused: dev-weu-1 has not failed" in text) == (
        303,
        True,
    )
    acts = {act.clusters: act for act in made.state.acts(9) if act.action == "replay"}
    assert acts["shop-weu-1",].result == "accepted"
    assert acts["dev-weu-1",].result.startswith("refused")
    assert {act.reason for act in acts.values()} == {"the quota is raised"}
    made.run(900)
    assert phases(made)["shop-weu-1"] is Phase.READY


def test_more_clusters_than_a_page_can_select_are_not_replayed_by_a_form(cloud: MemoryCloud) -> None:
    many = [f"c{number}" for number in range(201)]
    send(cloud, "/clusters", "/acts/replay", {"clusters": many})
    assert not [act for act in cloud.state.acts(9) if act.action == "replay"]


def test_the_activity_of_a_cluster_has_its_events(cloud: MemoryCloud) -> None:
    assert "What happened to" not in shown(cloud.ports, "/activity").text
    assert "What happened to one 20" in shown(cloud.ports, "/activity?cluster=one").text
    assert "Nothing is known of it." in shown(cloud.ports, "/activity?cluster=nobody").text


def test_a_dead_letter_is_replayed_by_a_button_where_it_is_stored_whole(cloud: MemoryCloud) -> None:
    commit = cloud.state.fleet().commit
    approval = Approval(commit=commit, clusters=("one", "two"), by="ada", at=cloud.clock())
    for name, body in (("7:m", PlanRequest(again=True, approval=approval).model_dump_json()), ("8:m", "{}x")):
        letter = ReceivedDeadLetter("plans", name, cloud.clock(), body.encode(), body)
        handle_dead_letter(letter, cloud.ports)
    page = shown(cloud.ports, "/activity")
    assert (page.actions.count("/acts/replay_letters"), page.actions.count("/acts/dismiss")) == (1, 2)
    assert "It cannot be replayed" in page.text
    assert "Replay: needs the role Operator" in shown(cloud.ports, "/activity", role="Reader").text
    _, text = send(cloud, "/activity", "/acts/replay_letters", {"deadLetters": ["plans 7:m"]}, "Operator")
    assert "Accepted: replay letters" in text
    cloud.run()
    assert [record.name for record in cloud.state.clusters()] == ["three"]
    assert [letter.id for letter in cloud.state.dead_letters(9)] == ["8:m"]


def test_the_activity_says_what_was_sent_to_whom_and_whether_it_arrived() -> None:
    made = with_failures("one")
    assert "Route What Arrived" in shown(made.ports, "/activity").text
    assert (
        "ops example: 1 cluster failed in eastus: InvalidManifest yes" in shown(made.ports, "/activity").text
    )


def test_selected_clusters_are_suspended_by_one_pull_request_to_which_the_page_leads() -> None:
    made = cloud_with(fleet_files.fleet("one", "two", "three"))
    form = {"clusters": ["one", "two"], "for": "7d", "reason": "an audit"}
    status, text = send(made, "/clusters", "/acts/suspend", form, "Operator")
    (pull,) = open_pulls(made)
    assert (status, "Accepted: suspend. Nothing changes before the merge of http" in text) == (303, True), (
        text
    )
    assert f"/pull/{pull.number}" in text
    (act,) = made.state.acts(1)
    assert (act.action, act.clusters, act.reason) == ("suspend", ("one", "two"), "an audit")
    assert "/acts/suspend" not in browse(made.ports, "/clusters", role="Reader").get_body().decode()


def test_a_cluster_shows_what_its_identities_may_do_and_where_that_differs() -> None:
    made = with_identity()
    push(made, files(ACCESS))
    made.run()
    text = shown(made.ports, "/clusters/one").text
    assert f"shop : pods of shop/api act as {SHOP.resource} given" in text
    assert f"pull : kubelet has AcrPull at {REGISTRY} given" in text
    made.azure.identities.delete_identity(SHOP.subscription, SHOP.resource_group, SHOP.name)
    check(made)
    made.clock.advance(SECONDS)
    text = shown(made.ports, "/clusters/one").text
    assert f"{SHOP.resource} differs from git, see above" in text
    assert f"pull : kubelet has AcrPull at {REGISTRY} given" in text


def test_a_system_that_no_check_has_read_is_not_called_healthy() -> None:
    made = busy_fleet(1)
    named = "shop 4: shop-eus-1 , shop-neu-1 , shop-sea-1 and 1 more"
    assert f"{named} not read yet" in shown(made.ports, "/systems").text
    check(made)
    made.clock.advance(SECONDS)
    assert re.search(rf"{named} main@[0-9a-f]{{8}} on 4 none", shown(made.ports, "/systems").text)


def test_a_paused_rollout_says_who_resumes_it() -> None:
    made = busy_fleet(1)
    commit = made.state.fleet().commit
    send(made, f"/rollouts/{commit}", "/acts/rollout_pause", {"path:commit": commit})
    made.run(60)
    assert "Who acts: an Operator, who resumes it" in shown(made.ports, "/").text


def test_the_pace_of_a_rollout_has_a_bar_for_each_part_of_the_time_in_which_clusters_ended() -> None:
    made = busy_fleet(1)
    commit = made.state.fleet().commit
    body = browse(made.ports, f"/rollouts/{commit}").get_body().decode()
    assert 'aria-label="4 ready, 0 failed"' in body, "development"
    assert 'aria-label="0 ready, 1 failed"' in body, "the first region"
    assert body.count("<rect") == 2
    view = rollout_view(commit, made.ports)
    assert view is not None
    assert [sum(part["ready"] for part in stage["pace"]) for stage in view["stages"]] == [4, 0, 0]
    assert view["paceSeconds"] == 60


def test_columns_say_how_old_each_fact_is_and_what_to_set_for_prices() -> None:
    made = busy_fleet(1)
    text = shown(made.ports, "/clusters?columns=compared,flux,updated,cost&text=shop-eus").text
    assert "Compared with Azure Flux read Changed A month" in text
    assert len(re.findall(r"2026-01-01 00:\d\d:\d\d UTC", text)) == 4, "with the time of the page"
    assert "roadstead prices update writes prices.yaml" in text
    assert "the parameter readCosts of the deployment" in shown(made.ports, "/costs").text
