"""Pictures of the console for the documentation: ``python -m tests.support.screenshots`` makes them again."""

from __future__ import annotations

from pathlib import Path

from tests.support.browsers import Theme, started, tab
from tests.support.console_fleet import busy_fleet
from tests.support.served_api import served

TO = Path("/tmp/shots")
LARGEST = 150_000
"""Bytes of a picture, so that the repository stays small."""


def take(to: Path) -> None:
    """Write a picture of each page of a fleet."""
    to.mkdir(exist_ok=True)
    cloud = busy_fleet()
    commit = cloud.state.fleet().commit
    pages = {
        "fleet": "/",
        "clusters": "/clusters",
        "cluster": "/clusters/shop-weu-1",
        "drift": "/clusters/shop-eus-4",
        "plans": "/plans",
        "plan": f"/plans/{commit}",
        "rollout": f"/rollouts/{commit}",
        "versions": "/versions",
        "systems": "/systems",
        "activity": "/activity",
    }
    themes: tuple[Theme, ...] = ("light", "dark")
    with served(cloud.ports) as url, started() as browser:
        for theme in themes:
            for width in (1280, 320):
                with tab(browser, url, theme=theme, width=width) as opened:
                    opened.open("/")
                    opened.sign_in("Admin")
                    for name, address in pages.items():
                        opened.open(address)
                        opened.page.screenshot(path=to / f"{name}-{width}-{theme}.png", full_page=True)
                    print(opened.errors, opened.elsewhere)


if __name__ == "__main__":
    take(TO)
