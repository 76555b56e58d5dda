"""What people complain of in the consoles of others, walked on this one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.console.recent import SECONDS
from shared.cluster.record_parts import Phase
from tests.support.browsers import tab
from tests.support.console_fleet import busy_fleet, files
from tests.support.notified import with_failures
from tests.support.pipeline_runs import phases, push
from tests.support.served_api import served

FIVE_SECONDS = 5_000
LIST = "/clusters?phase=Failed&sort=-name&columns=reason"
WIDE = (
    "/clusters?text=shop&columns=environment,location,version,commit,reason,nodes,subscription,compared,flux"
)


def test_filters_and_order_are_there_after_an_act_and_on_the_way_back(browser: Browser) -> None:
    """They reset after every action in argoproj/argo-cd#1055."""
    cloud = with_failures("one", "two")
    with served(cloud.ports) as url, tab(browser, url) as opened:
        opened.open(LIST)
        opened.sign_in("Operator")
        opened.page.get_by_label("Select two").check()
        opened.page.get_by_role("button", name="Replay", exact=True).click()
        expect(opened.page.get_by_role("status")).to_contain_text("Accepted: replay of 1 of 1 clusters")
        assert {*opened.address.partition("?")[2].split("&")} == {*LIST.partition("?")[2].split("&")}
        opened.page.get_by_role("link", name="one", exact=True).click()
        opened.page.go_back()
        expect(opened.page.locator("tbody a").get_by_text("one", exact=True)).to_have_count(1)
        expect(opened.page.get_by_label("Phase")).to_have_value("Failed")
        expect(opened.page.get_by_label("Order")).to_have_value("-name")
        opened.page.get_by_role("link", name="Name").click()
        assert "sort=name" in opened.address
        expect(opened.page.get_by_label("Phase")).to_have_value("Failed")


def test_a_list_follows_an_act_on_many_and_a_second_one_says_why_not(browser: Browser) -> None:
    """In rancher/dashboard#18347 clusters and their count stay as they were, and an error is of no use."""
    cloud = with_failures("one", "two", "three")
    with served(cloud.ports) as url, tab(browser, url) as opened:
        opened.page.clock.install()
        opened.open("/clusters")
        opened.sign_in("Operator")
        expect(opened.page.locator("tbody .bad")).to_have_count(3)
        opened.page.get_by_label("Select all on this page").check()
        opened.page.clock.run_for(3 * FIVE_SECONDS)
        expect(opened.page.get_by_label("Select two")).to_be_checked()
        opened.page.get_by_label("Select other").uncheck()
        for answer in ("Accepted: replay of 3 of 3 clusters.", "replay of 0 of 3 clusters. Refused: "):
            for name in ("one", "two", "three"):
                opened.page.get_by_label(f"Select {name}").check()
            opened.page.get_by_role("button", name="Replay", exact=True).click()
            expect(opened.page.get_by_role("status")).to_contain_text(answer)
            cloud.run(until=lambda: Phase.FAILED not in phases(cloud).values())
            cloud.clock.advance(SECONDS)
        assert re.search(r"(one|two|three).* is ", opened.page.get_by_role("status").inner_text())
        cloud.run()
        expect(opened.page.locator("tbody .bad")).to_have_count(0)
        with opened.page.expect_response("**/clusters"):
            opened.page.clock.run_for(FIVE_SECONDS)
        expect(opened.page.locator("tbody .good")).to_have_count(4)


def test_the_message_of_a_failure_is_there_in_full_on_a_telephone_too(browser: Browser) -> None:
    """A reason without its message, controlplaneio-fluxcd/flux-operator#697, and one that is cut off."""
    message = "The secret of the workload " + "a-long-name." * 12 + " was not found, and this is the end."
    for width in (320, 1280):
        cloud: MemoryCloud = busy_fleet(1)
        cloud.azure.interventions.fail_next("shop-weu-1", "InvalidParameter", message)
        with served(cloud.ports) as url, tab(browser, url, width=width) as opened:
            opened.open("/clusters/shop-weu-1")
            opened.sign_in("Operator")
            opened.act("Replay", "once more")
            cloud.run(900)
            for address in ("/clusters/shop-weu-1", "/clusters?phase=Failed", "/"):
                opened.open(address)
                expect(opened.page.get_by_text("and this is the end.").first).to_be_visible()
                assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, address


def test_what_somebody_reads_stays_where_it_is_while_the_page_follows_a_change(browser: Browser) -> None:
    """Clusters of other filters appear in argoproj/argo-cd#9690, a dozen steps lead back in #7872."""
    cloud = busy_fleet(1)
    with served(cloud.ports) as url, tab(browser, url) as opened:
        page = opened.page
        page.clock.install()
        opened.open("/")
        opened.sign_in("Reader")
        opened.open(WIDE)
        table, columns = page.locator(".wide"), page.locator("details#columns summary")
        table.evaluate("part => { part.scrollLeft = 30 }")
        columns.focus()
        steps = page.evaluate("history.length")
        push(cloud, files(1, "r4"))
        cloud.run(60)
        with page.expect_response(lambda answer: "text=shop" in answer.url):
            page.clock.run_for(FIVE_SECONDS)
        page.clock.run_for(100)
        expect(page.locator("tbody")).to_contain_text(cloud.state.fleet().commit[:8])
        assert table.evaluate("part => part.scrollLeft") == 30
        expect(columns).to_be_focused()
        assert (page.evaluate("history.length"), "dev-" in page.locator("tbody").inner_text()) == (
            steps,
            False,
        )
        page.evaluate("getSelection().selectAllChildren(document.querySelector('h1'))")
        page.on("request", lambda request: pytest.fail(request.url))
        page.clock.run_for(3 * FIVE_SECONDS)
        expect(page.locator("#read")).to_contain_text("Not read again while text is selected.")
