"""The git credentials of the app, which a deployment may replace while a job waits for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localcloud.flux.sources.fetched import SourceRevision
from localcloud.flux.sources.git_source import GitRef
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.cluster import replay
from shared.cluster.recipes import Step
from shared.cluster.record_parts import Phase
from shared.kubernetes.flux_objects import GitCredentials
from tests.support.one_cluster import ONE, advice, cluster, files, record
from tests.support.pipeline_runs import accepted, phases, push
from tests.support.sleepers import runs, sleeping, until
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives


class PrivateCloud(MemoryCloud):
    """A cloud whose git host asks for a password."""

    accepted_password = "right"

    def _source(self, url: str, ref: GitRef) -> SourceRevision | None:
        found = super()._source(url, ref)
        return found and replace(found, accepts=lambda _, password: password == self.accepted_password)


def with_password(cloud: MemoryCloud, password: str) -> None:
    """Deploy the app with other git credentials."""
    credentials = GitCredentials("git", password) if password else None
    config = replace(cloud.ports.config, git_credentials=credentials)
    cloud.with_ports(lambda ports: replace(ports, config=config))


@pytest.mark.parametrize("before", ["", "expired"])
def test_a_job_that_waits_for_git_credentials_goes_on_with_those_of_the_next_deployment(before: str) -> None:
    cloud = PrivateCloud(throttle=False)
    with_password(cloud, before)
    push(cloud, files())
    cloud.run(seconds=1800)
    assert record(cloud).job.step.name is Step.VERIFY
    assert "authentication required" in record(cloud).job.reason
    assert replay("one", "ops", cloud.ports).status == 409, "so nothing else starts it again"
    assert "set FLUX_GIT_PASSWORD to a token that may read the repository, and deploy" in advice(cloud)
    with_password(cloud, "right")
    cloud.run(seconds=1800)
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).job.restarts == 1


def test_a_job_that_waits_for_git_credentials_does_not_start_again_without_others() -> None:
    cloud = PrivateCloud(throttle=False)
    with_password(cloud, "expired")
    push(cloud, files())
    cloud.run(seconds=1800)
    before = record(cloud).job.restarts
    with_password(cloud, "expired")
    cloud.run(seconds=1800)
    assert (record(cloud).job.restarts, before) == (0, 0)
    assert record(cloud).job.step.name is Step.VERIFY


OF_THE_VAULT = """\
  bootstrapSecrets:
    - name: git
      vault: platform
      keys: {username: git-user, password: git-token}
  flux:
    secretRef: {name: git}
"""


def test_a_job_that_waits_for_credentials_of_a_vault_goes_on_with_their_next_version() -> None:
    cloud = PrivateCloud(throttle=False)
    for name, value in (("git-user", "git"), ("git-token", "expired")):
        cloud.vault.set(name, value)
    push(cloud, files(OF_THE_VAULT))
    cloud.run(seconds=1800)
    assert "authentication required" in record(cloud).job.reason
    assert record(cloud).job.restarts == 0
    cloud.vault.set("git-token", "right")
    cloud.run(seconds=1800)
    assert phases(cloud) == {"one": Phase.READY}
    assert record(cloud).job.restarts == 1


@pytest.mark.parametrize("left", [(), ("tags.owner",)])
def test_a_cluster_wakes_with_the_credentials_that_a_vault_has_had_since_it_fell_asleep(
    left: tuple[str, ...],
) -> None:
    cloud = PrivateCloud(throttle=False)
    for name, value in (("git-user", "git"), ("git-token", "right")):
        cloud.vault.set(name, value)
    push(cloud, files(sleeping() + "  tags: {owner: ann}\n" + OF_THE_VAULT))
    until(cloud, 16)
    for path in left:
        cloud.azure.interventions.tag(ONE, path.removeprefix("tags."), "bob")
        sweep(cloud)
    until(cloud, 18)
    assert phases(cloud) == {"one": Phase.SLEEPING}
    cloud.accepted_password = "next"
    cloud.vault.set("git-token", "next")
    writes = accepted(cloud)
    until(cloud, 5, 1, 45)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.READY}, True)
    assert record(cloud).job.restarts == 1
    assert accepted(cloud) - writes == {("start", "one"): 1}, "nothing else of it is written to Azure"
    assert cluster(cloud)["tags"]["owner"] == ("bob" if left else "ann")
    drift = record(cloud).divergence.drift
    assert tuple(field.path for field in (drift.fields if drift else ())) == left
    until(cloud, 18)
    assert (phases(cloud), runs(cloud)) == ({"one": Phase.SLEEPING}, False)
