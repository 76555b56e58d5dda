"""GitHub with the fleet's repository, empty at the start; a push calls the functions' webhook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cryptography.hazmat.primitives import serialization

from localcloud.github.wire.github_auth import GitHubApp
from localcloud.github.wire.github_server import GitHubServer
from localcloud.runtime.parts.part import Config, repositories, request_log, run


def registered_app(settings: Mapping[str, str]) -> GitHubApp | None:
    """Return what GitHub knows of the GitHub App that the settings sign in as, None when they name none."""
    key = settings.get("GITHUB_APP_PRIVATE_KEY", "").replace("\\n", "\n")
    if not key:
        return None
    public = serialization.load_pem_private_key(key.encode(), None).public_key()
    shown = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()
    return GitHubApp(
        settings["GITHUB_APP_ID"], shown, installation=int(settings["GITHUB_APP_INSTALLATION_ID"])
    )


@contextmanager
def serve(config: Config) -> Iterator[None]:
    """Serve with the token, the GitHub App and the webhook secret of the settings."""
    settings = config.settings
    with GitHubServer(
        repositories(config.state),
        port=config.ports["github"],
        token=settings["GITHUB_TOKEN"],
        app=registered_app(settings),
        webhook_secret=settings["GITHUB_WEBHOOK_SECRET"],
        webhook_url=f"{config.urls['functions']}/api/github",
        log_file=request_log(config.state, "github"),
    ) as server:
        server.create_repository(settings["GITHUB_REPOSITORY"], settings["GITHUB_BRANCH"])
        yield


if __name__ == "__main__":
    run("github", serve)
