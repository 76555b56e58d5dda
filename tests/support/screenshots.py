"""Pictures of the console and of a comment for the documentation: ``make screenshots`` takes them again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from markdown_it import MarkdownIt

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.browsers import Tab, Theme, started, tab
from tests.support.console_fleet import busy_fleet
from tests.support.proposals import Repo
from tests.support.scaffolded_fleets import changed, with_chart
from tests.support.served_api import served

DOCS = Path(__file__).resolve().parents[2] / "docs"
LARGEST = 150_000
"""Bytes of a picture, so that the repository stays small."""
NARROW = ("fleet", "rollout")
HEIGHTS = {"fleet": 740, "clusters": 640, "cluster": 580, "rollout": 780, "versions": 720}
"""How high the picture of a page is, where that is not the usual."""
USUAL = 520
STYLE = """
body { margin: 16px; font: 14px/1.5 system-ui, sans-serif; color: #1f2328 }
article { border: 1px solid #d1d9e0; border-radius: 6px; width: 728px }
header { background: #f6f8fa; border-bottom: 1px solid #d1d9e0; padding: 7px 16px; color: #59636e }
header b { color: #1f2328 }
main { padding: 6px 16px }
code, pre { font: 12px/1.5 monospace; background: #eff1f3; border-radius: 6px; padding: 2px 4px }
pre { padding: 12px } pre code { padding: 0; background: none }
table { border-collapse: collapse } th, td { border: 1px solid #d1d9e0; padding: 6px 12px; text-align: left }
"""
"""As on GitHub, more or less."""


def take(to: Path) -> None:
    """Write a picture of each page, of some as on a telephone, and of one as in the dark."""
    to.mkdir(exist_ok=True)
    cloud = busy_fleet(4)
    commit = cloud.state.fleet().commit
    pages = {
        "fleet": "/",
        "clusters": "/clusters",
        "cluster": "/clusters/shop-weu-1",
        "plan": f"/plans/{commit}",
        "pull": "/pulls/1",
        "rollout": f"/rollouts/{commit}",
        "versions": "/versions?environment=development&to=1.37",
        "systems": "/systems",
        "activity": "/activity",
    }
    with served(cloud.ports) as url, started() as browser:

        @contextmanager
        def signed_in(width: int, theme: Theme = "light") -> Iterator[Tab]:
            with tab(browser, url, theme=theme, width=width) as opened:
                opened.open("/")
                opened.sign_in("Admin")
                yield opened

        def picture(opened: Tab, name: str, file: str, width: int = 1280) -> None:
            opened.page.set_viewport_size({"width": width, "height": HEIGHTS.get(name, USUAL)})
            opened.open(pages[name])
            opened.page.locator("main h1").wait_for()
            taken = opened.page.screenshot(path=to / f"{file}.png")
            if len(taken) > LARGEST:
                raise ValueError(f"{file}.png has {len(taken)} bytes, more than {LARGEST}: make it less high")

        with signed_in(1280) as opened:
            for name, reason in (
                ("shop-eus-4", "who changed the tag?"),
                ("shop-weu-1", "is the quota raised?"),
            ):
                opened.open(f"/clusters/{name}")
                opened.act("Compare with Azure now", reason)
            cloud.run(120)
            for name in pages:
                picture(opened, name, name)
        with signed_in(1280, "dark") as opened:
            picture(opened, "fleet", "fleet-dark")
        with signed_in(320) as opened:
            for name in NARROW:
                picture(opened, name, f"{name}-narrow", 320)


def take_comment(to: Path) -> None:
    """Write a picture of the comment on a pull request that changes a class and two files of the platform."""
    repo, files = Repo(MemoryCloud()), with_chart()
    repo.push(files)
    (body,) = repo.comments(repo.propose(changed(files)))
    # The details stay closed, as on GitHub.
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    head = f"<!doctype html><style>{STYLE}</style><article><header><b>roadstead</b> commented</header><main>"
    with started() as browser, tab(browser, "", width=794) as opened:
        opened.page.set_content(head + parser.render(body))
        opened.page.locator("article").screenshot(path=to / "comment.png")


if __name__ == "__main__":
    take(DOCS / "console")
    take_comment(DOCS / "images")
