"""Texts of git, of Azure, of Flux and of people are inert on every page of the console."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.requests import open_requests
from shared.app.console.pages import PAGES
from shared.app.console.recent import SECONDS
from shared.cluster.lifetime import REQUESTS
from shared.ports.state import ListedClusters, SubscriptionCosts
from shared.prices.cost_groups import ListedCluster
from tests.support.console_fleet import busy_fleet, files
from tests.support.console_pages import Shown, browse
from tests.support.hostile_texts import ATTACK, attack_pages

pytestmark = pytest.mark.lives

CONTROL = {*"\u202e\x1b\x00\r"}
SCRIPTS = 2
"""The elements of the console itself."""
SHOWN = {"/clusters/shop-weu-1?show=costs": "USD", "/requests": "new"}
"""A text of what is no view of the API, with the address of a page that has it."""
MICROSOFT = "https://learn.microsoft.com/"


@pytest.fixture(scope="module")
def cloud() -> MemoryCloud:
    """Return a fleet of whose costs something is known, and for which somebody asks for a cluster."""
    created = busy_fleet(1)
    now, price = created.clock(), ListedCluster(10, 20, 1, 2, unpriced=1)
    listed = ListedClusters(now, "2026-01-01", "USD", {"shop-weu-1": price}, ("a disk",))
    billed = SubscriptionCosts("0" * 8, now, now, "2025-12-01", "2025-12-31", "USD", {"shop-weu-1": 9.0})
    created.state.save_costs(replace(billed, listed=listed, problem="AuthorizationFailed", own={"a/b": 1.0}))
    branch = f"{REQUESTS}{created.ports.config.fleet}/ada/new-12345678"
    created.repository.reset(created.repository.head("main"), branch)
    created.repository.push(files(1, "r4"), branch=branch)
    created.repository.pulls.open("ada asks for new", branch, "main")
    assert open_requests(created.ports)
    return created


def pages_of(cloud: MemoryCloud) -> list[str]:
    """Return the address of a page of each kind, as a filter has it too."""
    commit = cloud.state.fleet().commit
    parts = {"name": "shop-weu-1", "commit": commit, "number": "1"}
    more = ("/clusters/shop-eus-1", "/clusters/shop-weu-1?show=costs", "/clusters?columns=cost,billed")
    return [*(page.address.format(**parts) for page in PAGES), *more]


def test_no_text_of_the_fleet_becomes_an_element_an_attribute_or_a_link(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = {address: browse(cloud.ports, address).get_body().decode() for address in pages_of(cloud)}
    cloud.clock.advance(SECONDS)  # for so long visits share a page
    attack_pages(monkeypatch)
    found = 0
    own = [Shown(page) for page in clean.values()]
    tags = set[str]().union(*(page.tags for page in own))
    attributes = set[str]().union(*(page.attributes for page in own)) | {"required"}
    for address in clean:
        reply = browse(cloud.ports, address)
        body = reply.get_body().decode()
        seen = Shown(body)
        assert reply.status_code == 200, address
        assert (seen.tags - tags, seen.attributes - attributes) == (set(), set()), address
        assert body.count("<script") == SCRIPTS, address
        assert not {*body} & CONTROL, address
        assert not [link for link in seen.links if not link.startswith(("/", "#main", MICROSOFT))], address
        found += "<script>alert(1)</script>" in seen.text
        assert f"{SHOWN.get(address, '')}\"'><script>" in seen.text or address not in SHOWN, address
    assert found >= len(clean) - 1, "as a text, wherever a page has one of the fleet"


@pytest.mark.parametrize(
    "name", ["text", "phase", "label", "owner", "sort", "columns", "after", "before", "person"]
)
def test_no_text_of_an_address_becomes_an_element(cloud: MemoryCloud, name: str) -> None:
    given = quote(ATTACK, safe="")
    for path in ("/clusters", "/activity", "/systems", f"/clusters/{given}", f"/plans/{given}", f"/{given}"):
        reply = browse(cloud.ports, f"{path}?{name}={given}")
        assert reply.status_code in (200, 400, 404), path
        body = reply.get_body().decode()
        seen = Shown(body)
        assert body.count("<script") == SCRIPTS, path
        assert ("img" in seen.tags, "onerror" in seen.attributes) == (False, False), path
        assert not {*body} & CONTROL, path
