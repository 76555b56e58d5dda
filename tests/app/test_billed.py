"""What Azure has billed is read once a day, one question for each subscription."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.rate_limiter import RateLimiter
from shared.app.api.views.costs import costs_view
from shared.app.costs.known_costs import AGAIN, NOT_PERMITTED, read_costs
from shared.azure.rate_limits import ARM_READ
from shared.cluster.failures.errors import Throttled, Unauthorized, Unavailable
from shared.ports import Ports
from shared.ports.azure import GetCosts
from shared.ports.azure.calls import AzureCall
from shared.ports.state import SubscriptionCosts
from tests.support import fleet_files
from tests.support.proposals import Repo
from tests.support.replaced_ports import Around

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    repo = Repo(MemoryCloud())
    repo.push(fleet_files.fleet("one", "two"))
    repo.cloud.run()
    return repo.cloud


def asked(
    cloud: MemoryCloud, answer: Callable[[GetCosts], Any] | None = None
) -> tuple[Ports, list[GetCosts]]:
    """Return ports whose questions of costs are counted, and answered by a function where one is given."""
    questions, azure = list[GetCosts](), cloud.ports.azure

    def call(operation: AzureCall[Any]) -> Any:
        if isinstance(operation, GetCosts):
            questions.append(operation)
            if answer is not None:
                return answer(operation)
        return azure.call(operation)

    changed: Any = Around(cloud.ports.azure, call=call)
    return replace(cloud.ports, azure=changed), questions


def refuse(error: Exception) -> Callable[[GetCosts], Any]:
    def raised(_: GetCosts) -> Any:
        raise error

    return raised


def only(cloud: MemoryCloud) -> SubscriptionCosts:
    (costs,) = cloud.state.costs()
    return costs


def test_one_question_of_a_subscription_has_the_costs_of_all_its_clusters(cloud: MemoryCloud) -> None:
    ports, questions = asked(cloud)
    read_costs(ports)

    assert len(questions) == 1
    yesterday = cloud.clock().date() - timedelta(days=1)
    assert (questions[0].since, questions[0].until) == (
        (yesterday - timedelta(days=29)).isoformat(),
        yesterday.isoformat(),
    )
    view = costs_view(ports)
    # a node costs 1 an hour there, for 30 days of 24 hours, and a tier 0.1
    billed = [(found["name"], found["billed"]) for found in view["clusters"]]
    assert [(name, cost["cost"], cost["currency"]) for name, cost in billed if cost] == [
        ("one", 792.0, "USD"),
        ("two", 792.0, "USD"),
    ]
    assert view["problems"] == []


def test_a_second_run_on_the_same_day_asks_nothing(cloud: MemoryCloud) -> None:
    ports, questions = asked(cloud)
    read_costs(ports)
    read_costs(ports)
    assert len(questions) == 1
    cloud.clock.advance(AGAIN.total_seconds())
    read_costs(ports)
    assert len(questions) == 2


def test_every_page_is_read(cloud: MemoryCloud) -> None:
    cloud.azure.engine.page_size = 1
    ports, questions = asked(cloud)
    read_costs(ports)
    assert [question.skip for question in questions] == ["", "1", "2", "3"]
    assert set(only(cloud).clusters) == {"one", "two"}


def test_without_the_right_the_view_says_which_parameter_gives_it(cloud: MemoryCloud) -> None:
    ports, _ = asked(cloud, refuse(Unauthorized("AuthorizationFailed")))
    read_costs(ports)
    (problem,) = costs_view(ports)["problems"]
    assert problem["problem"] == NOT_PERMITTED


@pytest.mark.parametrize("error", [Throttled("429"), Unavailable("500")])
def test_what_was_read_before_stays_when_azure_refuses(cloud: MemoryCloud, error: Exception) -> None:
    read_costs(cloud.ports)
    before = only(cloud)
    cloud.clock.advance(AGAIN.total_seconds())
    ports, _ = asked(cloud, refuse(error))

    read_costs(ports)

    after = only(cloud)
    assert (after.at, after.clusters) == (before.at, before.clusters)
    assert after.problem
    assert after.tried > before.tried


def test_a_refusal_leaves_the_subscriptions_other_reads_alone(cloud: MemoryCloud) -> None:
    ports, questions = asked(cloud, refuse(Throttled("429", retry_after=3600)))
    read_costs(ports)

    (question,) = questions
    limiter = RateLimiter(None, cloud.ports)
    assert limiter.call(question.target.subscription, (ARM_READ,), lambda: "read") == "read"


def test_after_a_quota_is_used_up_the_others_come_first(cloud: MemoryCloud) -> None:
    other = "00000000-0000-0000-0000-000000000000"  # the first by its name
    old = cloud.clock() - 2 * AGAIN
    cloud.state.save_costs(SubscriptionCosts(other, old + AGAIN / 2))
    fleet = cloud.state.fleet()
    rules = replace(fleet.rules, subscriptions=(other,))
    cloud.state.save_fleet(replace(fleet, rules=rules))
    ports, questions = asked(cloud, refuse(Throttled("429")))

    read_costs(ports)

    assert [question.target.subscription for question in questions] != [other]


def test_costs_of_a_subscription_that_the_fleet_has_left_are_removed(cloud: MemoryCloud) -> None:
    left = "99999999-1111-1111-1111-111111111111"
    cloud.state.save_costs(
        SubscriptionCosts(left, cloud.clock() - timedelta(days=31), problem="not permitted")
    )
    read_costs(cloud.ports)
    assert costs_view(cloud.ports)["problems"] == []
    assert only(cloud).subscription != left


def test_an_answer_that_leads_on_for_ever_ends(cloud: MemoryCloud) -> None:
    def endless(question: GetCosts) -> Any:
        link = f"https://management.azure.com/?$skiptoken={question.skip}x"
        columns = [{"name": name} for name in ("Cost", "ResourceId", "Currency")]
        return {"properties": {"columns": columns, "rows": [], "nextLink": link}}

    ports, questions = asked(cloud, endless)
    read_costs(ports)
    assert len(questions) == 20
    assert "more than 20 pages" in only(cloud).problem


def test_a_fleet_without_subscriptions_asks_nothing() -> None:
    ports, questions = asked(MemoryCloud())
    read_costs(ports)
    assert questions == []
