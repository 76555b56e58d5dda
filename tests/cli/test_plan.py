"""``roadstead plan``: the planner's own answer about the working tree, against the API's recorded state."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from rich.console import Console
from werkzeug.wrappers import Request, Response

from cli.fleet_api.recorded import Against
from cli.terminal import plan_view
from cli.worktree import open_worktree
from localcloud.common.http_server import HttpServer, json_response
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.approval import approve
from shared.app.api.parts import ClusterPage
from shared.app.api.views.plans import plan_view as planned_view
from shared.app.api.views.plans import recorded_view
from shared.app.api.views.versions import offers_view
from shared.azure.changes.field_effects import Effect
from shared.plan.differences import FieldChange
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action, Item, Plan
from shared.ports.azure import GetCluster
from tests.support import fleet_files
from tests.support.desired_clusters import NOW
from tests.support.git_folders import WITHOUT_APP, committed
from tests.support.one_cluster import ONE, SUBSCRIPTION
from tests.support.pipeline_runs import cloud_with, push
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

PUSHED = fleet_files.fleet("one", "two", "three")


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(PUSHED)


@pytest.fixture
def url(cloud: MemoryCloud) -> Iterator[str]:
    @Request.application
    def answer(request: Request) -> Response:
        if request.path == "/api/offers":
            result = offers_view(request.get_json()["clusters"], cloud.ports)
            return json_response(result.status, dict(result.body))
        if request.path != "/api/recorded":
            return json_response(404, {"error": "there is no such function"})
        page = ClusterPage(request.args.get("after", ""), 2)
        return json_response(200, recorded_view(cloud.ports, page))

    with HttpServer(answer) as running:
        yield running.url


def changed(*removed: str, **clusters: bytes) -> dict[str, bytes]:
    """Return the pushed files with some clusters removed and others replaced."""
    files = {
        path: content
        for path, content in PUSHED.items()
        if path.split("/")[1:2] not in [[n] for n in removed]
    }
    return files | {f"clusters/{name}/cluster.yaml": content for name, content in clusters.items()}


def moved(name: str) -> bytes:
    return fleet_files.cluster(name).replace(b"eastus", b"westus2")


@pytest.mark.parametrize(
    ("files", "status", "summary"),
    [
        (changed(), 0, "3 unchanged"),
        (changed(four=fleet_files.cluster("four")), 3, "1 create, 3 unchanged"),
        (changed(one=fleet_files.cluster("one", count=3)), 3, "1 update, 2 unchanged"),
        (changed("one"), 3, "1 delete, 2 unchanged"),
        (changed("one", "two"), 3, "2 needs approval, 1 unchanged"),
        (changed(one=b"kind: Cluster"), 1, "1 invalid, 2 unchanged"),
    ],
)
def test_the_exit_status_shows_whether_there_are_changes(
    tmp_path: Path, url: str, files: Mapping[str, bytes], status: int, summary: str
) -> None:
    write(tmp_path, files)
    done = roadstead("plan", "--exit-code", "--url", url, cwd=tmp_path)
    assert done.stdout.splitlines()[0].endswith(summary), done.stdout + done.stderr
    assert done.returncode == status
    assert roadstead("plan", cwd=tmp_path, ROADSTEAD_URL=url).returncode == (1 if status == 1 else 0)


def test_who_follows_a_branch_without_stages_is_said_with_an_app_and_without_one(
    tmp_path: Path, url: str
) -> None:
    committed(tmp_path, fleet_files.following_branch(PUSHED))
    app, commit = ({"ROADSTEAD_URL": url}, ()), (WITHOUT_APP, ("--against", "HEAD"))
    for environment, options in (app, commit):
        done = roadstead("plan", *options, cwd=tmp_path, **environment)
        said = "3 clusters follow main of example/fleet by themselves: what is new there is on them at once"
        assert said in " ".join(done.stdout.split()), done.stdout + done.stderr
        view = json.loads(roadstead("plan", "-o", "json", *options, cwd=tmp_path, **environment).stdout)
        assert [text.startswith("3 clusters follow") for text in view["platform"]["followed"]] == [True]
    write(tmp_path, PUSHED)
    assert "by themselves" not in roadstead("plan", "--against", "HEAD", cwd=tmp_path, **WITHOUT_APP).stdout


def test_what_azure_does_not_have_is_shown_and_changes_no_exit_status(
    tmp_path: Path, url: str, cloud: MemoryCloud
) -> None:
    cloud.azure.engine.quotas.limit(SUBSCRIPTION, "eastus", "cores", 13)
    write(tmp_path, changed(four=fleet_files.cluster("four", count=3)))
    done = roadstead("plan", "--url", url, cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert "What Azure has: quota: eastus has 1 of 13 cores left, this commit needs 12" in text
    assert done.returncode == 0
    (sentence,) = json.loads(roadstead("plan", "-o", "json", "--url", url, cwd=tmp_path).stdout)["azure"]
    assert sentence.endswith("1 cluster would fail (four)")


def test_an_app_that_does_not_say_what_azure_has_stops_no_plan(tmp_path: Path, cloud: MemoryCloud) -> None:
    @Request.application
    def older(request: Request) -> Response:
        if request.path != "/api/recorded":
            return json_response(404, {"error": "there is no such function"})
        return json_response(200, recorded_view(cloud.ports, ClusterPage("", 10)))

    write(tmp_path, changed(four=fleet_files.cluster("four")))
    with HttpServer(older) as running:
        done = roadstead("plan", "--exit-code", "--url", running.url, cwd=tmp_path)
    assert done.returncode == 3
    assert "what Azure has is unknown: " in " ".join(done.stdout.split())


def test_each_change_is_shown_with_its_effect_and_place(tmp_path: Path, url: str) -> None:
    write(tmp_path, changed("three", one=fleet_files.cluster("one", count=3), two=moved("two")))
    done = roadstead("plan", "--url", url, cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert "nodePools[system].count: 1 -> 3 in place, clusters/one/cluster.yaml:10" in text
    assert "spec.location cannot change from eastus to westus2" in text
    places = [text.index(line) for line in ("on hold two", "delete three deletes the cluster", "update one")]
    assert places == sorted(places)


def test_a_lowered_version_is_promised_to_stay_and_the_job_leaves_it(
    tmp_path: Path, url: str, cloud: MemoryCloud
) -> None:
    before = cloud.ports.azure.call(GetCluster(ONE))
    lowered = changed(one=fleet_files.cluster("one", extra='  kubernetesVersion: "1.35"\n'))
    shown = roadstead("plan", "--url", url, cwd=write(tmp_path, lowered)).stdout
    text = " ".join(shown.split())
    assert "kubernetesVersion: 1.36 -> 1.35 never lowered: a newer version that runs stays" in text
    assert "reimages nodes" not in text
    push(cloud, lowered)
    cloud.run()
    after = cloud.ports.azure.call(GetCluster(ONE))
    assert before
    assert after
    running = "currentKubernetesVersion"
    assert after["properties"][running] == before["properties"][running]


def test_deletes_over_the_budget_share_one_reason_and_a_recorded_plan_shows_how_to_approve(
    tmp_path: Path, url: str, cloud: MemoryCloud
) -> None:
    commit = push(cloud, changed("one", "two"))
    cloud.run()
    done = roadstead("plan", "--url", url, cwd=write(tmp_path, changed("one", "two")))
    text = " ".join(done.stdout.split())
    assert f"2 removals need approval (roadstead approve {commit[:8]}): one, two" in text
    assert text.count("the commit removes 2 clusters") == 1
    approve(commit, ["one", "two"], "ada", cloud.ports)
    cloud.run(until=lambda: any(record.deleting for record in cloud.state.clusters()))
    approved = roadstead("plan", "--url", url, cwd=tmp_path).stdout
    assert f"ada approved the delete of one, two at {commit[:8]}, for that commit" in " ".join(
        approved.split()
    )
    view = json.loads(roadstead("plan", "-o", "json", "--url", url, cwd=tmp_path).stdout)
    assert view["recorded"]["approval"]["clusters"] == ["one", "two"]


def test_json_has_the_fields_of_the_api(tmp_path: Path, url: str, cloud: MemoryCloud) -> None:
    write(tmp_path, changed("three", one=fleet_files.cluster("one", count=3)))
    view = json.loads(roadstead("plan", "-o", "json", "--url", url, cwd=tmp_path).stdout)
    assert (view["fleet"], view["against"], view["summary"]) == (
        "example",
        cloud.state.fleet().commit,
        "1 update, 1 delete, 1 unchanged",
    )
    items = {item["cluster"]: item for item in view["items"]}
    assert items["one"]["changes"][0]["path"] == "spec.nodePools[system].count"
    assert (items["one"]["destructive"], items["three"]["destructive"]) == (False, True)


def test_it_decides_as_the_planner_does_when_the_same_files_are_pushed(
    tmp_path: Path, url: str, cloud: MemoryCloud
) -> None:
    files = changed("three", one=fleet_files.cluster("one", count=3), four=fleet_files.cluster("four"))
    local = json.loads(roadstead("plan", "-o", "json", "--url", url, str(write(tmp_path, files))).stdout)
    commit = push(cloud, files)
    cloud.run()
    planned = planned_view(commit, cloud.ports)
    assert planned is not None
    assert planned["summary"] == local["summary"]
    for there, here in zip(planned["items"], local["items"], strict=True):
        expected = {**there, "since": None}  # what is not pushed is on hold since no time
        assert {key: here[key] for key in there} == expected


def test_an_empty_fleet_needs_no_api(tmp_path: Path) -> None:
    write(tmp_path, fleet_files.example())
    done = roadstead("plan", "--empty", "--exit-code", cwd=tmp_path, ROADSTEAD_URL="http://127.0.0.1:1")
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, "Compared with an empty fleet: 3 create")


def test_one_cluster_alone_with_what_the_whole_commit_does_to_it(tmp_path: Path, url: str) -> None:
    write(tmp_path, changed("one", "two"))
    done = roadstead("plan", "--cluster", "one", "--url", url, cwd=tmp_path)
    assert "removes 2 clusters" in " ".join(done.stdout.split())
    assert "two" not in done.stdout.split("\n", 3)[2]
    assert roadstead("plan", "--cluster", "three", "--exit-code", "--url", url, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--cluster", "ones"], 1, "there is no cluster ones; did you mean one?"),
        (["--url", "http://127.0.0.1:1"], 1, "no answer from"),
        (["nowhere"], 2, "there is no folder nowhere"),
        (["--nope"], 2, "No such option"),
    ],
)
def test_errors_have_the_exit_codes_of_every_command(
    tmp_path: Path, url: str, arguments: list[str], code: int, message: str
) -> None:
    done = roadstead("plan", "--exit-code", *arguments, cwd=write(tmp_path, PUSHED), ROADSTEAD_URL=url)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_another_fleet_is_never_compared_with(tmp_path: Path, url: str) -> None:
    files = {**PUSHED, "fleet.yaml": PUSHED["fleet.yaml"].replace(b"name: example", b"name: other")}
    done = roadstead("plan", "--url", url, cwd=write(tmp_path, files))
    assert (done.returncode, done.stdout) == (1, "")
    assert "serves the fleet example, this repository is other" in done.stderr


def test_a_plan_with_long_values_fits_a_narrow_terminal(tmp_path: Path, cloud: MemoryCloud) -> None:
    tags = "  tags:\n    note: " + "long words " * 20 + "\n"
    files = changed(one=fleet_files.cluster("one", extra=tags), two=b"x")
    records = {record.name: record for record in cloud.state.clusters()}
    made = make_plan("", open_worktree(write(tmp_path, files)).resolve(), records, now=NOW)
    out = Console(width=60, force_terminal=True, color_system=None, file=io.StringIO(), record=True)
    out.print(plan_view.table(made, made.items, Against("a fleet")))
    assert max(map(len, out.export_text().splitlines())) <= 60


@pytest.mark.parametrize(
    ("effect", "said"),
    [(Effect.EGRESS, "changes outbound addresses"), (Effect.INTERRUPTED, "interrupts it shortly")],
)
def test_a_change_in_place_says_what_it_does_to_traffic(effect: Effect, said: str) -> None:
    change = FieldChange("spec.networkProfile.outboundType", "a", "b", effect)
    item = Item("one", Action.UPDATE, 2, changes=(change,))
    assert (plan_view.destruction(item), plan_view.disruption(item)) == ("", said)


def test_a_change_that_reimages_nodes_says_so_and_is_not_destructive() -> None:
    change = FieldChange("spec.httpProxyConfig.httpProxy", "a", "b", Effect.REIMAGED)
    item = Item("one", Action.UPDATE, 2, changes=(change,))
    assert (plan_view.destruction(item), plan_view.disruption(item)) == ("", "reimages nodes")
    out = Console(width=100, file=io.StringIO(), record=True)
    out.print(plan_view.table(Plan("", (item,)), [item], Against("a fleet")))
    assert "one  reimages nodes" in out.export_text()


def test_one_line_that_changes_many_clusters_is_shown_once_with_their_names() -> None:
    change = FieldChange("spec.sku.tier", "Free", "Standard", Effect.IN_PLACE, "classes/small.yaml:4")
    items = [Item(f"dev-{number}", Action.UPDATE, 2, changes=(change,)) for number in range(12)]
    other = Item("dev-a", Action.UPDATE, 2, changes=(FieldChange("spec.sku.tier", "Free", "Premium"),))
    out = Console(width=80, file=io.StringIO(), record=True)
    out.print(plan_view.table(Plan("", (*items, other)), [*items, other], Against("a fleet")))
    text = out.export_text()
    assert text.count("sku.tier: Free -> Standard") == 1
    assert text.count("update         dev-") == 13
    assert text.index("dev-9") < text.index("sku.tier: Free -> Standard") < text.index("dev-a")


def test_what_the_rollout_waits_for_after_its_last_stage_is_shown(tmp_path: Path, url: str) -> None:
    gate = "finalGate: {owner: somebody, reason: r, after: 2h, commitChecks: [smoke, load]}"
    fleet = PUSHED["fleet.yaml"] + f"  rollout: {{{gate}}}\n".encode()
    files = {**changed(one=fleet_files.cluster("one", count=3)), "fleet.yaml": fleet}
    done = roadstead("plan", "--url", url, cwd=write(tmp_path, files))
    assert "after the last stage  waits 2h, waits for 2 checks" in done.stdout
    view = json.loads(roadstead("plan", "-o", "json", "--url", url, cwd=tmp_path).stdout)
    assert view["rollout"]["finalGate"] == {
        "afterSeconds": 7200,
        "notBefore": None,
        "checks": ["smoke", "load"],
    }
