"""A fleet of two environments in which something is promoted, and what tests ask of its pull requests."""

from __future__ import annotations

import subprocess

from cli.fleet_api.client import Api
from localcloud.git.world.pull_requests import PullRecord
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.pulls import promote
from shared.app.api.views.plans import promotions_view
from shared.app.http_result import HttpResult
from shared.app.intake.accept import accept
from shared.app.intake.webhook import PullChange
from shared.app.outbox import send
from shared.cluster.queues.messages import PromoteRequest
from shared.cluster.record_parts import Phase
from shared.ports.state import Promotion
from tests.support import fleet_files
from tests.support.pipeline_runs import phases, push, pushed

BRANCH = "roadstead/promote/example/production"
TEST, PROD = ("a1", "a2"), ("b1", "b2")
RULE = """\
  promotions:
    - {from: development, to: production, what: [version], soak: 1h}
"""


def environment(name: str, version: str = "", comment: str = "") -> bytes:
    """Return the file of an environment, with a version of its own or without."""
    own = f"    kubernetesVersion: {version!r}{comment}\n" if version else ""
    return f"""\
# what {name} is for
apiVersion: roadstead.dev/v1alpha1
kind: Environment
metadata: {{name: {name}}}
spec:
  defaults:
{own}    tags: {{environment: {name}}}   # for the bill
""".encode()


def files(
    test: str = "1.35", prod: str = "1.35", *, extra: str = "", own: dict[str, str] | None = None
) -> dict[str, bytes]:
    """Return a fleet with two clusters in development and two in production, which sets versions.

    ``extra`` is in the spec of ``fleet.yaml``, and ``own`` in that of clusters.
    """
    found = fleet_files.all_at_once(fleet_files.fleet(*TEST, *PROD, budget=9))
    found["fleet.yaml"] += extra.encode()
    found["environments/development.yaml"] = environment("development", test)
    found["environments/production.yaml"] = environment("production", prod, "   # checked by the team")
    for name in (*TEST, *PROD):
        path, of = f"clusters/{name}/cluster.yaml", "development" if name in TEST else "production"
        spec = f"spec:\n  environment: {of}\n{(own or {}).get(name, '')}"
        found[path] = found[path].replace(b"spec:\n", spec.encode())
    return found


def fleet_with(tree: dict[str, bytes]) -> MemoryCloud:
    """Return the cloud with every cluster Ready."""
    cloud = MemoryCloud()
    change(cloud, tree)
    assert phases(cloud) == dict.fromkeys((*TEST, *PROD), Phase.READY)
    return cloud


def change(cloud: MemoryCloud, tree: dict[str, bytes], *, seconds: float | None = None) -> str:
    """Push files, and let what follows end, also every soak, or only what follows within some seconds."""
    commit = push(cloud, tree)
    if seconds is None:
        cloud.run()
    else:
        cloud.run(seconds=seconds)
    return commit


def ask(cloud: MemoryCloud, *what: str) -> HttpResult:
    """Promote by hand, and let what follows end."""
    result = promote("development", "production", what, "ops", cloud.ports, "tested")
    cloud.run()
    return result


def pulls(cloud: MemoryCloud, *, state: str = "open") -> list[PullRecord]:
    """Return the pull requests of promotions in a state, oldest first."""
    return [
        pull_request
        for pull_request in reversed(cloud.repository.pulls.listed(state=state))
        if pull_request.head == BRANCH
    ]


def production(cloud: MemoryCloud, branch: str = BRANCH) -> str:
    """Return the file of production on a branch."""
    return cloud.repository.files(cloud.repository.head(branch))["environments/production.yaml"].decode()


def merge(cloud: MemoryCloud, number: int) -> None:
    """Merge a pull request, and let what follows end."""
    record = cloud.repository.pulls.merged_into_base(number)
    accept(pushed(cloud, record.merge_commit), cloud.ports)
    decided(cloud, number, "closed")


def asked_again(cloud: MemoryCloud) -> None:
    """Ask for promotions as each sweep does, once what Azure and registries list is read again."""
    cloud.clock.advance(7 * 3600)
    send(PromoteRequest(), cloud.ports)
    cloud.run()


def decided(cloud: MemoryCloud, number: int, action: str) -> None:
    """Deliver the webhook of a pull request that somebody closed or reopened."""
    event = PullChange("d2", f"{action}-{number}-{cloud.clock()}", number, "a" * 40, action, promotion=True)
    accept(event, cloud.ports)
    cloud.run()


def stored(cloud: MemoryCloud) -> Promotion:
    """Return what is stored of the promotion to production."""
    found = cloud.state.promotion("production")
    assert found is not None
    return found


def problem(cloud: MemoryCloud) -> str:
    """Return why nothing is proposed to production."""
    (found,) = promotions_view(cloud.ports)["promotions"]
    return found["problem"]


def holds(cloud: MemoryCloud) -> list[tuple[str, str]]:
    """Return the values that no rule gives to production, each with the reason."""
    (found,) = promotions_view(cloud.ports)["promotions"]
    return [(hold["value"], hold["reason"]) for hold in found["holds"]]


def running(api: Api) -> set[str]:
    """Return the minor versions that the clusters of production run, as the API shows them."""
    return {api.get(f"clusters/{name}")["runningVersion"].rpartition(".")[0] for name in PROD}


def is_there(remote: str) -> bool:
    """Return whether a git server has the branch of the promotion."""
    command = ["git", "ls-remote", remote, f"refs/heads/{BRANCH}"]
    return bool(subprocess.run(command, capture_output=True, check=True).stdout)
