"""Pictures of the console for the documentation: ``make screenshots`` takes them again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.browsers import Tab, Theme, started, tab
from tests.support.console_fleet import busy_fleet
from tests.support.served_api import served

TO = Path(__file__).resolve().parents[2] / "docs" / "console"
LARGEST = 150_000
"""Bytes of a picture, so that the repository stays small."""
NARROW = ("fleet", "rollout")
HEIGHTS = {"fleet": 860, "clusters": 640, "cluster": 580, "rollout": 780, "versions": 720}
"""How high the picture of a page is, where that is not the usual."""
USUAL = 520


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


if __name__ == "__main__":
    take(TO)
