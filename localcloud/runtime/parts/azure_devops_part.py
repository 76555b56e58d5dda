"""Azure DevOps with the fleet's repository, empty at the start; it runs in the place of GitHub.

A token is accepted that the local Entra has issued for Azure DevOps. The service hooks lead to the app.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import jwt

from localcloud.azure.world.catalog import TENANT
from localcloud.azure_devops.devops_server import DevOpsServer
from localcloud.runtime.parts.part import Config, repositories, request_log, run
from shared.adapters.azure_devops.client import SCOPE


def accepts(keys: jwt.PyJWKClient, token: str) -> bool:
    """Return whether a token is one of the issuer, for Azure DevOps, and has not expired."""
    try:
        key = keys.get_signing_key_from_jwt(token).key
        jwt.decode(token, key, ["RS256"], audience=SCOPE.removesuffix("/.default"))
    except jwt.PyJWTError:
        return False
    return True


@contextmanager
def serve(config: Config) -> Iterator[None]:
    """Serve the repository of the settings."""
    keys = jwt.PyJWKClient(f"{config.urls['identity']}/{TENANT}/discovery/keys")
    with DevOpsServer(
        repositories(config.state),
        accepts=partial(accepts, keys),
        port=config.ports["github"],
        log_file=request_log(config.state, "github"),
    ) as server:
        server.hooks.url = f"{config.urls['functions']}/api/webhook"
        server.hooks.sign_in = ("roadstead", config.settings["GIT_WEBHOOK_SECRET"])
        server.create_repository(config.settings["GITHUB_REPOSITORY"], config.settings["GIT_BRANCH"])
        yield


if __name__ == "__main__":
    run("github", serve)
