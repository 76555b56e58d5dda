"""Texts of git, of Azure, of Flux and of people are inert on every page of the console."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.console.pages import PAGES
from shared.app.console.recent import SECONDS
from tests.support.console_fleet import busy_fleet
from tests.support.console_pages import Shown, browse
from tests.support.hostile_texts import ATTACK, attack_pages

pytestmark = pytest.mark.lives

CONTROL = {*"\u202e\x1b\x00\r"}
SCRIPTS = 2
"""The elements of the console itself."""
MICROSOFT = "https://learn.microsoft.com/"


@pytest.fixture(scope="module")
def cloud() -> MemoryCloud:
    return busy_fleet(1)


def pages_of(cloud: MemoryCloud) -> list[str]:
    """Return the address of a page of each kind, as a filter has it too."""
    commit = cloud.state.fleet().commit
    parts = {"name": "shop-weu-1", "commit": commit, "number": "1"}
    return [*(page.address.format(**parts) for page in PAGES), "/clusters/shop-eus-1"]


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
