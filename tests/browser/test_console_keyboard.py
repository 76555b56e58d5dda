"""Whatever the console offers can be done with the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.console import pages
from shared.app.recovery.dead_letters import ReceivedDeadLetter, handle_dead_letter
from shared.cluster.queues.message_parts import Approval
from shared.cluster.queues.messages import PlanRequest
from shared.frozen import replace
from shared.ports.state.fleet import Pause
from tests.support import self_service
from tests.support.browsers import tab
from tests.support.console_fleet import busy_fleet
from tests.support.console_pages import acts_without_effect, browse, shown
from tests.support.one_cluster import ONE, cluster, ready
from tests.support.served_api import served
from tests.support.sleepers import on_monday, until
from tests.support.sweeps import sweep, tag_by_hand

ASKS = "{roles: [Admin], classes: [small], environments: [development], locations: [eastus], atOnce: 1}"
OLD_IMAGE = "AKSUbuntu-2204gen2containerd-202002.01.0"
MOST_TABS = 300


def offered() -> set[str]:
    """Return the acts of which a page has a form, as their templates name them."""
    files = [path for path in Path(pages.__file__).parent.iterdir() if path.suffix in (".html", ".py")]
    text = "\n".join(path.read_text() for path in files)
    return set(re.findall(r"""(?:\b(?:act|button)\(|"/acts", |\bact=)"([a-z_]+)\"""", text)) | {"replay"}


def of_a_busy_fleet() -> tuple[MemoryCloud, list[str]]:
    """Return one that somebody paused, with dead letters, in the midst of a rollout."""
    cloud = busy_fleet(1)
    fleet, now = cloud.state.fleet(), cloud.clock()
    cloud.state.save_fleet(replace(fleet, pause=Pause("ann", now, "a holiday")))
    approval = Approval(commit=fleet.commit, clusters=("shop-neu-1",), by="ann", at=now)
    body = PlanRequest(again=True, approval=approval).model_dump_json()
    handle_dead_letter(ReceivedDeadLetter("plans", "7:m", now, body.encode(), body), cloud.ports)
    commit, versions = fleet.commit, "/versions?environment=development&to=1.37"
    clusters = ["/clusters", "/clusters/shop-weu-1", "/clusters/shop-eus-1"]
    return cloud, ["/", *clusters, f"/plans/{commit}", f"/rollouts/{commit}", versions, "/activity"]


def of_a_paused_rollout() -> tuple[MemoryCloud, list[str]]:
    cloud = busy_fleet(1)
    page = f"/rollouts/{cloud.state.fleet().commit}"
    form = {"token": shown(cloud.ports, page).hidden["token"], "path:commit": cloud.state.fleet().commit}
    browse(cloud.ports, "/acts/rollout_pause", form=form)
    cloud.run(60)
    return cloud, [page]


def of_sleepers(hour: int) -> tuple[MemoryCloud, list[str]]:
    """Return a fleet of one that sleeps at night, and whose lifetime ends."""
    cloud = on_monday(extra="  lifetime: 30d\n")
    until(cloud, hour)
    return cloud, ["/clusters/one"]


def of_a_contested_cluster() -> tuple[MemoryCloud, list[str]]:
    cloud = ready()
    tags = {**cluster(cloud)["tags"], "roadstead-contested-by": "0a0b0c0d@staging"}
    cloud.azure.patch_cluster(ONE, {"tags": tags})
    sweep(cloud)
    return cloud, ["/clusters/one"]


def of_an_added_tag() -> tuple[MemoryCloud, list[str]]:
    cloud = ready()
    tag_by_hand(cloud, ONE, owner="ann")
    sweep(cloud)
    return cloud, ["/clusters/one"]


def of_a_correction() -> tuple[MemoryCloud, list[str]]:
    cloud = ready('  minNodeImageVersion: "202101.01"\n  drift: {action: correct}\n')
    cloud.azure.interventions.set_node_image(ONE, "system", OLD_IMAGE)
    sweep(cloud)
    return cloud, ["/clusters/one"]


def fleets() -> Iterator[tuple[MemoryCloud, list[str]]]:
    """Yield fleets that together have each form, and the pages of these."""
    yield of_a_busy_fleet()
    yield of_a_paused_rollout()
    yield of_sleepers(13)
    yield of_sleepers(18)
    yield of_a_contested_cluster()
    yield of_an_added_tag()
    yield of_a_correction()
    yield self_service.fleet(ASKS), ["/requests"]


FORMS = """() => [...document.querySelectorAll("main form[method=post] button")]
    .map(button => button.hasAttribute("formaction") ? button.formAction : button.form.action)
    .map(address => new URL(address).pathname)
    .filter(path => path.startsWith("/acts/")).map(path => path.slice(6))"""
ACTIVE = """() => {
    const at = document.activeElement, button = at.closest("main") && at.tagName === "BUTTON" && at.form;
    const text = at.tagName === "INPUT" && at.type === "text" && at.closest("main form[method=post]");
    const inside = at.tagName === "SUMMARY" ? at.parentElement.querySelector("form") : null;
    return {
        opens: inside ? new URL(inside.action).pathname : "",
        sends: button ? new URL(at.hasAttribute("formaction") ? at.formAction : button.action).pathname : "",
        writes: text ? at.name : "",
        selects: at.name === "clusters" && !at.checked,
        empty: at.value === "",
    };
}"""


def do(page: Page, act: str) -> None:
    """Do an act of the page that is open, as somebody does who has no mouse."""
    address, selected = f"/acts/{act}", False
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        at = page.evaluate(ACTIVE)
        if at["opens"] == address:
            page.keyboard.press("Enter")
        elif at["selects"] and not selected:
            selected = True
            page.keyboard.press("Space")
        elif at["writes"] and at["empty"]:
            page.keyboard.type("because")
        elif at["sends"] == address:
            with page.expect_navigation():
                page.keyboard.press("Enter")
            return
    raise AssertionError(f"{page.url}: {act} is not reached")


def test_each_act_that_a_page_offers_is_done_by_the_keyboard_alone(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list(fleets())
    done = acts_without_effect(monkeypatch)
    for cloud, addresses in made:
        with served(cloud.ports) as url, tab(browser, url) as opened:
            opened.open("/")
            opened.sign_in("Admin")
            for address in addresses:
                opened.open(address)
                for act in dict.fromkeys(opened.page.evaluate(FORMS)):
                    if act in done:
                        continue
                    opened.open(address)
                    do(opened.page, act)
                    expect(opened.page.get_by_role("status")).to_contain_text("Accepted: ")
                    assert done[-1] == act, address
    assert set(done) == offered()
