"""The fleet is planned from one repository and one branch; another one of the same name is not believed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.fleet import accept_source
from shared.app.api.views.clusters import fleet_view
from shared.app.intake.accept import accept
from shared.app.intake.github_webhook import read_delivery
from shared.app.intake.webhook import PullChange
from shared.cluster.record_parts import Phase
from shared.ports import Source
from shared.ports.state import Promotion
from tests.support import fleet_files
from tests.support.drift_proposals import drifting, pull_requests
from tests.support.one_cluster import ONE, cluster, files, ready, record
from tests.support.pipeline_runs import accepted, phases, push, pushed
from tests.support.sweeps import sweep, tag_by_hand
from tests.support.webhook_deliveries import payload, sign

pytestmark = pytest.mark.lives


def with_other_name_holder(*, tombstoned: bool = False) -> tuple[MemoryCloud, str]:
    """Return a cloud whose repository's name has passed to another repository, and the first head there."""
    cloud = ready()
    if tombstoned:
        push(cloud, fleet_files.fleet())
        while phases(cloud) != {"one": Phase.DELETING}:
            if not cloud.step():
                cloud.clock.advance(1)
    cloud.repository.id = 2
    return cloud, push(cloud, fleet_files.fleet() | {"README.md": b"theirs"})


def test_a_repository_that_has_taken_the_name_over_is_not_planned() -> None:
    cloud, theirs = with_other_name_holder()
    before = accepted(cloud)
    cloud.run(seconds=900, until=lambda: False)
    assert phases(cloud) == {"one": Phase.READY}
    assert accepted(cloud) == before
    assert cloud.repository.statuses.latest(theirs) == []
    view = fleet_view(cloud.ports)
    assert "example/fleet is another repository on GitHub than before: its id is 2, not 1" in view["problem"]
    assert "roadstead takeover --repository" in view["fleetSuggestedAction"]


def test_the_timer_finds_another_repository_with_the_same_history() -> None:
    cloud = ready()
    cloud.repository.id = 2
    cloud.run(seconds=300, until=lambda: False)
    assert "its id is 2, not 1" in fleet_view(cloud.ports)["problem"]
    cloud.repository.id = 1
    cloud.run(seconds=300, until=lambda: False)
    assert fleet_view(cloud.ports)["problem"] == ""


def test_no_delete_begins_by_the_word_of_another_repository() -> None:
    cloud, _ = with_other_name_holder(tombstoned=True)
    cloud.run(seconds=900, until=lambda: False)
    assert accepted(cloud)["delete", "one"] == 0
    assert record(cloud).job.reason.startswith("OtherRepository: ")


def test_an_operator_accepts_the_repository_that_was_refused() -> None:
    cloud = ready()
    assert accept_source("jo", cloud.ports).status == 409
    cloud.repository.id = 2
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run(seconds=300, until=lambda: False)
    result = accept_source("jo", cloud.ports)
    assert (result.status, dict(result.body)) == (202, {"repositoryId": 2, "branch": "main", "by": "jo"})
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    assert cluster(cloud)["tags"]["team"] == "shop"
    assert fleet_view(cloud.ports)["problem"] == ""


def test_an_acceptance_is_of_the_repository_that_was_read_and_of_no_later_one() -> None:
    cloud, _ = with_other_name_holder()
    cloud.run(seconds=300, until=lambda: False)
    cloud.repository.id = 3
    assert accept_source("jo", cloud.ports).status == 202
    cloud.run(seconds=300, until=lambda: False)
    assert phases(cloud) == {"one": Phase.READY}
    assert "its id is 3, not 2" in fleet_view(cloud.ports)["problem"]


def test_another_branch_in_the_settings_is_planned_only_once_it_is_accepted() -> None:
    cloud = ready()
    cloud.repository.reset(cloud.repository.push(fleet_files.fleet(), branch="staging"), "staging")
    cloud.with_ports(lambda ports: replace(ports, config=replace(ports.config, branch="staging")))
    cloud.run(seconds=300, until=lambda: False)
    assert phases(cloud) == {"one": Phase.READY}
    problem = fleet_view(cloud.ports)["problem"]
    assert "the fleet was planned from the branch main, not from staging" in problem
    assert accept_source("jo", cloud.ports).status == 202
    cloud.run()
    assert phases(cloud) == {}


def test_a_fleet_without_a_source_has_that_of_its_next_plan() -> None:
    cloud = ready()
    cloud.state.save_fleet(
        replace(cloud.state.fleet(), origin=replace(cloud.state.fleet().origin, source=None))
    )
    push(cloud, files("  tags: {team: shop}\n"))
    cloud.run()
    assert cloud.state.fleet().origin.source == Source(1, "main")


@pytest.mark.parametrize(("number", "status"), [(1, 202), (2, 200), (None, 202)])
def test_a_push_of_another_repository_of_the_same_name_is_ignored(number: int | None, status: int) -> None:
    cloud = ready()
    body = payload(repository={"full_name": "example/fleet", "id": number})
    headers = {"X-Hub-Signature-256": sign(body), "X-GitHub-Event": "push", "X-GitHub-Delivery": "d"}
    delivery = read_delivery(headers, body, secrets=("new",), repository="example/fleet", branch="main")
    answer = accept(delivery, cloud.ports)
    assert answer.status == status
    assert ("whose id is 1" in json.dumps(answer.body)) == (status == 200)


def test_a_pull_request_of_another_repository_of_the_same_name_is_ignored() -> None:
    cloud = ready()
    changed = PullChange("d", "digest", 1, "c" * 40, "opened", repository=2)
    assert accept(changed, cloud.ports).status == 200
    assert accept(replace(changed, repository=1), cloud.ports).status == 202


def test_the_first_plan_records_the_repository() -> None:
    cloud = MemoryCloud()
    commit = cloud.repository.push(files())
    assert cloud.state.fleet().origin.source is None
    assert accept(pushed(cloud, commit), cloud.ports).status == 202
    cloud.run()
    assert cloud.state.fleet().origin.source == Source(1, "main")


def test_no_pull_request_of_a_repository_that_has_taken_the_name_over_is_closed() -> None:
    cloud = drifting()
    cloud.repository.id = 2
    cloud.run(seconds=300, until=lambda: False)
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    assert len(pull_requests(cloud)) == 1
    cloud.repository.id = 1
    cloud.run(seconds=300, until=lambda: False)
    sweep(cloud)
    assert pull_requests(cloud) == []


def test_the_numbers_of_the_former_repository_say_nothing_in_the_accepted_one() -> None:
    cloud = drifting()
    cloud.state.save_promotion(Promotion("production", number=1, url="https://example.com/1"))
    cloud.repository.id = 2
    cloud.run(seconds=300, until=lambda: False)
    assert accept_source("jo", cloud.ports).status == 202
    cloud.run()
    assert [promotion.number for promotion in cloud.state.promotions()] == [0]
    tag_by_hand(cloud, ONE, cost="a")
    sweep(cloud)
    assert len(pull_requests(cloud)) == 1  # theirs, which has the number of ours
