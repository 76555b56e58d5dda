"""A fleet on a git server that is nothing more: no webhook, no status, no pull request."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess

import httpx
import pytest

from localcloud.git.wire.ssh_server import known_hosts
from localcloud.runtime.options import Options
from localcloud.runtime.parts.part import repositories
from tests.support import fleet_files
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.sources_over_ssh import HOST_KEY, KEY, OTHER, served

GIT = {"GIT_HOST": "git", "POLL_SECONDS": "0.5"}


OVER_SSH = """\
  bootstrapSecrets:
    - name: fleet-key
      vault: platform
      keys: {{identity: fleet-ssh-key, known_hosts: fleet-known-hosts}}
  flux:
    repository: {}
    secretRef: {{name: fleet-key}}
"""
"""As docs/how-to/connect-git.md has it."""


def polling(start: Start, **more: str) -> Operator:
    """Start a cloud whose app reads the repository by git alone; nobody delivers a webhook."""
    operator = start(Options(create_seconds=1, plan_schedule="*/2 * * * * *", extra=GIT | more))
    url = f"{operator.cloud.urls.github}/_local/webhooks"
    httpx.put(url, json={"drop": 1000}, trust_env=False).raise_for_status()
    return operator


def test_polling_finds_each_push_and_a_cluster_becomes_ready_changes_and_goes(start: Start) -> None:
    operator = polling(start)
    first = operator.push(fleet_files.fleet("one", "two"))
    operator.wait(lambda: operator.phases() == {"one": "Ready", "two": "Ready"}, "both are Ready")
    assert operator.plan(first) is not None
    grown = fleet_files.fleet("one", "two")
    grown["clusters/one/cluster.yaml"] = fleet_files.cluster("one", extra="  tags: {team: a}\n")
    second = operator.push(grown)
    operator.wait(lambda: operator.plan(second) is not None, "the change is planned")
    operator.wait(lambda: operator.api.get("clusters/one")["observedGeneration"] == 2, "it is verified")
    operator.push({path: content for path, content in grown.items() if "clusters/two" not in path})
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "two is deleted")
    asked = {call["path"].partition("?")[0] for call in operator.cloud.requests("github")}
    assert not [path for path in asked if path.startswith(("/repos/", "/app/"))], "git alone is spoken"
    lacks = operator.api.get("health")["lacks"]
    assert any(line.startswith("commit statuses:") for line in lacks)


def test_a_history_that_is_another_repositorys_is_held_and_nothing_is_deleted(start: Start) -> None:
    operator = polling(start)
    operator.push(fleet_files.fleet("one"))
    operator.wait(lambda: operator.phases() == {"one": "Ready"}, "it is Ready")
    operator.checkout.replace_all(fleet_files.fleet())
    for arguments in (
        ["checkout", "--quiet", "--orphan", "other"],
        ["add", "--all"],
        ["commit", "--quiet", "-m", "another beginning"],
        ["push", "--quiet", "--force", "origin", "HEAD:main"],
    ):
        who = ("-c", "user.name=Operator", "-c", "user.email=operator@example.com")
        subprocess.run(["git", "-C", str(operator.checkout.folder), *who, *arguments], check=True)
    operator.wait(
        lambda: "another repository" in str(operator.api.get("clusters").get("problem")), "it is held"
    )
    assert operator.phases() == {"one": "Ready"}


def in_vault(operator: Operator, name: str, value: str) -> None:
    """Set a secret of the vault as its owner does."""
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    url = f"https://127.0.0.1:{operator.cloud.ports['vault']}/_local/secrets/{name}"
    httpx.put(url, json={"value": value}, verify=trust, trust_env=False).raise_for_status()


def shown(operator: Operator, *paths: str) -> str:
    return json.dumps([operator.api.get(path) for path in paths])


@pytest.mark.long
def test_over_ssh_a_cluster_becomes_ready_changes_and_holds_where_the_server_shows_another_key(
    start: Start,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    url, known = f"ssh://git@127.0.0.1:{port}/example/fleet.git", known_hosts(HOST_KEY, port)
    operator = polling(start, GIT_URL=url, GIT_SSH_KEY=KEY, GIT_KNOWN_HOSTS=known)
    root = repositories(operator.cloud.state)
    in_vault(operator, "fleet-ssh-key", KEY)
    in_vault(operator, "fleet-known-hosts", known)
    one = fleet_files.cluster("one", extra=OVER_SSH.format(url.removesuffix(".git")))
    files = fleet_files.fleet() | {"clusters/one/cluster.yaml": one}

    def applied(commit: str) -> bool:
        ready = operator.phases() == {"one": "Ready"}
        return ready and commit in str(operator.api.get("clusters/one")["fluxRevision"])

    with served(root, port=port):
        first = operator.push(files)
        operator.wait(lambda: applied(first), "it is Ready with the first commit")
        changed = files | {"clusters/one/cluster.yaml": one + b"  tags: {team: a}\n"}
        second = operator.push(changed)
        operator.wait(lambda: applied(second), "it is Ready with the second commit")
    with served(root, OTHER, port):
        operator.push(files)
        problem = "shows another key than GIT_KNOWN_HOSTS has"
        operator.wait(lambda: problem in shown(operator, "clusters"), "somebody is in between")
    assert operator.phases() == {"one": "Ready"}
    asked = {call["path"].partition("?")[0] for call in operator.cloud.requests("github")}
    assert not [path for path in asked if path.startswith(("/repos/", "/app/"))], "git alone is spoken"
    assert KEY.splitlines()[1] not in shown(operator, "clusters", "clusters/one/events")
