"""A fleet whose drift policy proposes, and what tests ask of its pull requests."""

from __future__ import annotations

from dataclasses import replace

from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.parts import FIRST_PAGE
from shared.app.api.views.drift import drift_view
from shared.app.intake.accept import accept
from shared.app.proposals.proposals import handle
from shared.cluster.queues.messages import ProposeRequest
from shared.ports.state import Proposal
from tests.support.one_cluster import ONE, ready
from tests.support.pipeline_runs import pushed
from tests.support.replaced_ports import Noted
from tests.support.sweeps import sweep, tag_by_hand

PROPOSE = "  drift: {action: propose}\n"
BRANCH = "roadstead/drift/example/one"


def drifting(tags: str = "  tags: {cost: a}\n") -> MemoryCloud:
    """Return a cloud with a cluster whose tag cost somebody has changed, and a sweep that saw it."""
    cloud = ready(tags + PROPOSE)
    tag_by_hand(cloud, ONE, cost="b")
    sweep(cloud)
    return cloud


def pull_requests(cloud: MemoryCloud, *, state: str = "open") -> list[PullRecord]:
    """Return the pull requests in a state, oldest first."""
    return [*reversed(cloud.repository.pulls.listed(state=state))]


def manifest(cloud: MemoryCloud, branch: str = BRANCH, name: str = "one") -> str:
    """Return the manifest of a cluster on a branch."""
    commit = cloud.repository.head(branch)
    return cloud.repository.files(commit)[f"clusters/{name}/cluster.yaml"].decode()


def changed_lines(cloud: MemoryCloud, branch: str = BRANCH, name: str = "one") -> list[str]:
    """Return the lines that a branch adds and removes."""
    before, after = manifest(cloud, "main", name).split("\n"), manifest(cloud, branch, name).split("\n")
    gone = [f"-{line.strip()}" for line in before if line not in after]
    return [*gone, *(f"+{line.strip()}" for line in after if line not in before)]


def merge(cloud: MemoryCloud, number: int) -> None:
    """Merge a pull request, and let what follows end."""
    record = cloud.repository.pulls.merged_into_base(number)
    accept(pushed(cloud, record.merge_commit), cloud.ports)
    cloud.run()


def proposal(cloud: MemoryCloud, name: str = "one") -> Proposal:
    """Return what is stored of a cluster's proposal."""
    found = cloud.state.proposal(name)
    assert found is not None
    return found


def notes(cloud: MemoryCloud) -> dict[str, str]:
    """Return the note of each field that differs."""
    found = drift_view(cloud.ports, FIRST_PAGE)["clusters"]
    return {field["path"]: field["note"] for drifted in found for field in drifted["fields"]}


def calls_to_host(cloud: MemoryCloud) -> list[str]:
    """Return the list to which the name of every call to the git host is added from now on."""
    made: list[str] = []
    cloud.ports = replace(cloud.ports, git_host=Noted(cloud.git_host, made.append))
    return made


def bring_up_to_date(cloud: MemoryCloud) -> None:
    """Carry out one message about proposals."""
    handle(ProposeRequest(), cloud.ports)
