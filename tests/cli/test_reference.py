"""The reference is generated from the models and describes every field in a table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from cli.pages import reference
from cli.schemas import generated
from shared.azure.changes.field_effects import FIELD_EFFECTS, Effect
from shared.azure.changes.writes import field_effect
from shared.language.model.kinds import Cluster, Environment, Fleet, System

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def page() -> str:
    return reference.page()


@pytest.fixture(scope="module")
def table(page: str) -> list[list[str]]:
    """Return the cells of each field."""
    return [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]


def test_the_reference_in_the_repository_is_current(page: str) -> None:
    assert (ROOT / reference.PAGE).read_text() == page, "make generate writes it again"


def test_every_field_has_a_meaning(table: list[list[str]]) -> None:
    assert table
    assert [cells[0] for cells in table if not re.search(r"\w", cells[-1].removesuffix("|"))] == []


@pytest.mark.parametrize("model", [Fleet, Environment, Cluster, System])
def test_every_field_of_every_model_is_there(page: str, model: type[BaseModel]) -> None:
    names = {name for part in generated(model)["$defs"].values() for name in part.get("properties", {})}
    assert names
    for name in names:
        assert re.search(rf"[`.]{re.escape(name)}(\[\])?(\.enabled)?`", page), name


def test_every_field_of_a_cluster_has_its_table(page: str) -> None:
    others = page.partition(f"### {reference.OTHERS}\n")[2]
    assert others == "", "give these fields a place in GROUPS of cli/pages/reference.py"
    titles = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    assert set(reference.GROUPS) <= set(titles)
    assert len(set(titles)) == len(titles)


def test_every_link_of_the_index_leads_to_a_heading(page: str) -> None:
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^##+ (.+)$", page, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= anchors


def test_the_effect_of_a_change_is_that_of_the_table_of_effects(page: str, table: list[list[str]]) -> None:
    effects = {cells[0].strip("| `"): cells[3] for cells in table if len(cells) == 5}
    for record in FIELD_EFFECTS:
        if record.effect is Effect.AZURE:
            assert f"`{record.pattern}`" in page
        elif effects.get(record.pattern):
            assert effects[record.pattern].startswith(record.effect.value), record.pattern
    assert field_effect("nodePools[].vmSize") is not None
    assert effects["nodePools[].vmSize"] == "node pool replacement"
    assert effects["nodePools[].networkProfile.nodePublicIPTags[].tag"] == "node pool replacement"
    assert effects["networkProfile.networkDataplane"] == (
        "needs recreation; in place, nodes are reimaged (with networkPlugin: azure, once an earlier commit "
        "has turned node auto-provisioning off): `azure` or nothing to `cilium`"
    )
    assert effects["httpProxyConfig.httpProxy"] == "in place, nodes are reimaged"
    assert (
        "open connections end (in a subnet of your own, without node auto-provisioning): `loadBalancer`"
        in (effects["networkProfile.outboundType"])
    )
