"""What the app cuts or escapes, it masks first: no part of a secret is left."""

from __future__ import annotations

import json

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.masking import Masker
from shared.ports.masked import masked
from tests.support import fleet_files
from tests.support.notified import notified_fleet
from tests.support.pipeline_runs import push
from tests.support.proposals import Repo
from tests.support.reporting_flux import event, reporting, signed
from tests.support.sweeps import sweep, tag_by_hand
from tests.support.written_texts import (
    as_role,
    requested,
    wrong_clusters,
)

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
    cloud.azure.interventions.fail_next("one", "InvalidParameter", "no vCPUs are left")
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


@pytest.mark.lives
def test_no_part_of_a_secret_is_left_of_what_azure_says() -> None:
    for pad in PADS:
        cloud = with_canary()
        cloud.azure.interventions.fail_next("one", "InvalidParameter", f"{'-' * pad} {CANARY} {'+' * 2000}")
        push(cloud, notified_fleet("one"))
        cloud.run()
        (record,) = cloud.state.clusters()
        assert "InvalidManifest" in record.job.reason
        commit = cloud.repository.head("main")
        told = (cloud.routes.delivered, cloud.repository.statuses.latest(commit), cloud.state.plan(commit))
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
        assert record.divergence.drift is not None
        assert parts_in(repr((record, cloud.state.events("one", 500), cloud.state.notifications(50)))) == []


@pytest.mark.lives
def test_no_part_of_a_secret_is_left_of_a_dead_letter() -> None:
    cloud = with_canary()
    before = ("-" * pad for pad in (*PADS, 32_750, 32_760))
    for number, start in enumerate((*before, "ä" * 16_375)):
        text = f"{start}{CANARY}{'+' * 900}"
        letter = ReceivedDeadLetter("jobs", f"{number}", cloud.clock(), b"", text, text, text)
        handle_dead_letter(letter, cloud.ports)
    assert parts_in(repr((cloud.state.dead_letters(100), cloud.state.notifications(100)))) == []
