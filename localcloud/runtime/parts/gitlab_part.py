"""GitLab with the fleet's project, empty at the start; it runs in the place of GitHub.

With a secret, a push calls the webhook of the functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from localcloud.gitlab.wire.gitlab_server import GitLabServer
from localcloud.gitlab.wire.gitlab_webhooks import PREFIX, Hook
from localcloud.runtime.parts.part import Config, repositories, request_log, run


@contextmanager
def serve(config: Config) -> Iterator[None]:
    """Serve with the token and the webhook secret of the settings, at the port of the git host."""
    settings = config.settings
    secret = settings.get("GIT_WEBHOOK_SECRET", "")
    hook = Hook(
        f"{config.urls['functions']}/api/webhook" if secret else None,
        token="" if secret.startswith(PREFIX) else secret,
        signing_token=secret if secret.startswith(PREFIX) else "",
    )
    with GitLabServer(
        repositories(config.state),
        port=config.ports["github"],
        token=settings["GIT_PASSWORD"],
        hook=hook,
        log_file=request_log(config.state, "gitlab"),
    ) as server:
        server.create_repository(settings["GITHUB_REPOSITORY"], settings["GIT_BRANCH"])
        yield


if __name__ == "__main__":
    run("github", serve)
