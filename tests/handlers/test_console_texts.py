"""Texts of git, of Azure, of Flux and of people are inert on every page of the console."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.console.pages import PAGES
from tests.support.console_fleet import busy_fleet
from tests.support.console_pages import Shown, browse

CONTROL = {*"\u202e\x1b\x00\r"}
ATTACK = (
    "\"'><script>alert(1)</script><img src=x onerror=alert(1)>`<b>`[a](javascript:a)\u202e\x1b[2J\x00\r\n"
)
SCRIPTS = 2
"""The elements of the console itself."""
MICROSOFT = "https://learn.microsoft.com/"
VIEWS = {"cluster_detail", "drift_of_cluster", "describe_unknown"}
"""What the pages read, apart from what is named ``..._view``."""
NAMED = {"labels", "outputs"}
"""What has names of the fleet as its keys."""
TIME = re.compile(r"\d{4}-\d\d-\d\d")


@pytest.fixture(scope="module")
def cloud() -> MemoryCloud:
    return busy_fleet(1)


def attacked(value: Any, keys: bool = False) -> Any:
    """Return an object of the API in which every text but a time ends with an attack."""
    if isinstance(value, str):
        return value if TIME.match(value) else value + ATTACK
    if isinstance(value, dict):
        return {key + ATTACK * keys: attacked(part, key in NAMED) for key, part in value.items()}
    return [attacked(part) for part in value] if isinstance(value, list) else value


def pages_of(cloud: MemoryCloud) -> list[str]:
    """Return the address of a page of each kind, as a filter has it too."""
    commit = cloud.state.fleet().commit
    parts = {"name": "shop-weu-1", "commit": commit, "number": "1"}
    return [*(page.address.format(**parts) for page in PAGES), "/clusters/shop-eus-1"]


def test_no_text_of_the_fleet_becomes_an_element_an_attribute_or_a_link(
    cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = {address: browse(cloud.ports, address).get_body().decode() for address in pages_of(cloud)}

    def attacking(read: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: attacked(read(*given, **named))

    for module in {page.make.__globals__["__name__"]: page.make.__globals__ for page in PAGES}.values():
        for name in [name for name in module if name.endswith("_view") or name in VIEWS]:
            if name != "health_view":
                monkeypatch.setitem(module, name, attacking(module[name]))
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
