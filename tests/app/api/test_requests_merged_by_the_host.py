"""Requests that no person has to merge: what the host merges, and the list prices up to which it does."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from localcloud.github.world_host import WorldHost
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.http_result import HttpResult
from shared.ports import Capability, CommitStatus, Pull, PullText
from shared.ports.pull_requests import AutoMerge
from shared.prices.price_file import written
from tests.support.recorded_prices import prices_of
from tests.support.replaced_ports import around
from tests.support.rollbacks import open_pulls
from tests.support.self_service import ASKED, RULE, ask, fleet

pytestmark = pytest.mark.lives

AUTO = RULE.replace("atOnce: 1", "atOnce: 5, merge: auto")
REQUIRED = "roadstead/plan"


def allowing(cloud: MemoryCloud) -> MemoryCloud:
    """Return a cloud whose repository allows auto-merge, on a branch that requires the plan."""
    cloud.repository.pulls.allows_auto_merge = True
    cloud.repository.pulls.required_checks = (REQUIRED,)
    return cloud


def planned(cloud: MemoryCloud, state: str = "success") -> None:
    (pull,) = open_pulls(cloud)
    cloud.ports.git_host.set_status(pull.sha, CommitStatus(state, "planned", REQUIRED))


def test_where_the_policy_needs_no_person_the_host_merges_what_has_its_plan() -> None:
    cloud = allowing(fleet(AUTO))
    body = ask(cloud).body
    assert (body["autoMerge"], body["merge"]) == (True, AutoMerge.ENABLED.value)
    (pull,) = open_pulls(cloud)
    assert AutoMerge.ENABLED.value in pull.body
    planned(cloud, "failure")
    assert len(open_pulls(cloud)) == 1
    planned(cloud)
    assert open_pulls(cloud) == []
    assert "clusters/test-aks/cluster.yaml" in cloud.repository.files(cloud.repository.head("main"))


def test_where_the_policy_needs_a_person_nothing_is_merged_by_itself() -> None:
    cloud = allowing(fleet(RULE))
    assert ask(cloud).body["autoMerge"] is False
    planned(cloud)
    assert len(open_pulls(cloud)) == 1


@pytest.mark.parametrize(
    ("allowed", "required", "lacks", "says"),
    [
        (False, (REQUIRED,), (), AutoMerge.NOT_ALLOWED),
        (True, (), (), AutoMerge.NO_RULES),
        (True, (REQUIRED,), (Capability.AUTO_MERGE,), AutoMerge.LACKING),
    ],
)
def test_where_the_host_does_not_merge_it_says_who_must(
    allowed: bool, required: tuple[str, ...], lacks: tuple[Capability, ...], says: AutoMerge
) -> None:
    cloud = fleet(AUTO)
    cloud.repository.pulls.allows_auto_merge, cloud.repository.pulls.required_checks = allowed, required
    host = cloud.ports.git_host
    assert isinstance(host, WorldHost)
    host.lacks = frozenset(lacks)
    body = ask(cloud).body
    assert (body["autoMerge"], body["merge"]) == (False, says.value)
    assert says.value.partition(":")[0] in open_pulls(cloud)[0].body


def test_of_two_requests_at_the_same_moment_none_is_over_what_a_person_may_have() -> None:
    cloud = allowing(fleet(AUTO.replace("atOnce: 5", "atOnce: 1")))
    host, answers = cloud.ports.git_host, list[HttpResult]()

    def meanwhile(branch: str, base: str, text: PullText) -> Pull:
        if not answers:
            answers.append(HttpResult(0))
            answers[0] = ask(cloud, replace(ASKED, name="second-aks"))
        return host.open_pull(branch, base, text)

    around(cloud, "git_host", open_pull=meanwhile)
    first = ask(cloud)
    assert (first.status, "at the same moment" in str(first.body["error"])) == (409, True)
    assert answers[0].status == 201
    (pull,) = open_pulls(cloud)
    assert "second-aks" in pull.title
    assert len(host.branches("roadstead/request/")) == 1


def priced(limit: str, *, prices: bool = True, at_once: int = 5) -> MemoryCloud:
    """Return a cloud whose rule has a price limit, with the prices of what may be asked for."""
    cloud = allowing(fleet(AUTO.replace("atOnce: 5", f"atOnce: {at_once}, priceLimit: {limit}")))
    if prices:
        specs = [record.desired.spec for record in cloud.state.clusters()]
        there = [spec.model_copy(update={"location": "eastus"}) for spec in specs]
        content = written(prices_of([*specs, *there]))
        cloud.repository.commit({"prices.yaml": content.encode()})
    return cloud


def test_a_cluster_that_is_listed_at_more_than_the_limit_is_refused_with_the_numbers() -> None:
    refused = ask(priced("{cluster: 10}"))
    assert refused.status == 403
    assert re.fullmatch(
        r"test-aks is listed at \$\d+ a month, and one cluster may be at \$10.00", str(refused.body["error"])
    )
    assert ask(priced("{cluster: 100000}")).body["autoMerge"] is True


def test_what_a_person_has_is_priced_together_in_git_and_in_open_pull_requests() -> None:
    cloud = priced("{person: 500}")
    first = ask(cloud)
    assert first.status == 201
    while (more := ask(cloud, replace(ASKED, name=f"more-{len(open_pulls(cloud))}"))).status == 201:
        pass
    assert (more.status, "by request are listed at" in str(more.body["error"])) == (409, True)


def test_a_list_price_that_is_not_known_needs_a_person() -> None:
    body = ask(priced("{cluster: 100000}", prices=False)).body
    assert (body["autoMerge"], "its list price is not known" in str(body["merge"])) == (False, True)
