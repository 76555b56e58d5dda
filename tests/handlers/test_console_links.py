"""What the app writes on a commit, on a pull request or to people leads to pages that they may open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.frozen import replace
from tests.support import fleet_files
from tests.support.console_pages import browse
from tests.support.notified import ALL, notified_fleet
from tests.support.proposals import Repo

pytestmark = pytest.mark.lives

APP = "https://app.example"
ROLES = ("Reader", "Operator", "Approver", "Admin")
NAMES = ("failed", "gone", "second", "third", "stays")
INVALID = b"spec: ["


def without(files: Mapping[str, bytes], *names: str) -> dict[str, bytes]:
    gone = {f"clusters/{name}/cluster.yaml" for name in names}
    return {path: text for path, text in files.items() if path not in gone}


def proposed(repo: Repo, files: Mapping[str, bytes], branch: str, *, fork: bool = False) -> tuple[int, str]:
    """Open a pull request; return its number and its head."""
    git = repo.cloud.repository
    git.reset(git.head("main"), branch)
    head = git.push(dict(files), branch=branch)
    number = git.pulls.open("A change", branch, "main", fork=fork).number
    repo.tell(number, head, "opened")
    return number, head


def written(*, app: bool) -> tuple[MemoryCloud, Mapping[str, str]]:
    """Return a fleet in which much has happened, and all that its app wrote, by where."""
    cloud = MemoryCloud()
    cloud.git_host.is_app = app
    cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, public_url=APP)))
    repo, git = Repo(cloud), cloud.repository
    files = notified_fleet(*NAMES, routes=(ALL,))
    cloud.azure.interventions.fail_next("failed", "InvalidParameter", "no vCPUs are left")
    commits = {"created": repo.push(files)}
    new = fleet_files.cluster("new")
    changes = {
        "a pull request": (files | {"clusters/new/cluster.yaml": new}, False),
        "one of a fork": (files | {"clusters/new/cluster.yaml": new}, True),
        "an invalid one": (files | {"clusters/new/cluster.yaml": INVALID}, False),
        "one without a fleet": (files | {"fleet.yaml": INVALID}, False),
    }
    numbers = list[int]()
    for what, (change, fork) in changes.items():
        number, commits[what] = proposed(repo, change, f"topic-{len(numbers)}", fork=fork)
        numbers.append(number)
    left = without(files, "gone")
    for what, change in {
        "deleted": left,
        "refused": without(left, "second", "third"),
        "unplanned": left | {"fleet.yaml": INVALID},
        "half invalid": left | {"clusters/stays/cluster.yaml": INVALID},
    }.items():
        commits[what] = repo.push(change)
        cloud.run(600)
    texts = {f"comment {number}": said.body for number in numbers for said in git.pulls.comments(number)}
    for what, commit in commits.items():
        texts[f"status: {what}"] = " ".join(
            status.status.target_url for status in git.statuses.history(commit)
        )
        texts[f"check run: {what}"] = " ".join(
            f"{run.details_url} {run.output}" for run in git.pulls.checks(commit)
        )
    for message in (sent for route in cloud.routes.delivered.values() for sent in route):
        texts[f"message: {message.title}"] = f"{message.text} {' '.join(message.labelled_links)}"
    return cloud, texts


def linked(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each address of the app, with where it was written."""
    for where, text in texts.items():
        for address in re.findall(rf"{re.escape(APP)}([^\s\"')>\\]*)", text):
            yield where, address


@pytest.mark.parametrize("app", [False, True])
def test_each_link_to_the_console_opens_a_page_for_each_role(app: bool) -> None:
    cloud, texts = written(app=app)
    found = sorted(linked(texts))
    of = {where.partition(":")[0].partition(" ")[0] for where, _ in found}
    assert of == ({"comment", "check", "status", "message"} if app else {"comment", "status", "message"})
    pages = {address for _, address in found}
    assert {page.split("/")[1] for page in pages} == {"", "clusters", "plans", "pulls"}
    assert "/clusters/gone" in pages, "one that was deleted has a page, too"
    for page in pages:
        answers = {role: browse(cloud.ports, page, role=role).status_code for role in ROLES}
        assert answers == dict.fromkeys(ROLES, 200), (page, [where for where, to in found if to == page])
