"""GitHub with the fleet's repository, empty at the start; a push calls the functions' webhook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from localcloud.parts.config import Config, repositories, request_log, run
from localcloud.servers.github import GitHubServer


@contextmanager
def serve(config: Config) -> Iterator[None]:
    """Serve with the token and the webhook secret of the settings."""
    settings = config.settings
    with GitHubServer(
        repositories(config.state),
        port=config.ports["github"],
        token=settings["GITHUB_TOKEN"],
        webhook_secret=settings["GITHUB_WEBHOOK_SECRET"],
        webhook_url=f"{config.urls['functions']}/api/github",
        log_file=request_log(config.state, "github"),
    ) as server:
        server.create_repository(settings["GITHUB_REPOSITORY"], settings["GITHUB_BRANCH"])
        yield


if __name__ == "__main__":
    run("github", serve)
