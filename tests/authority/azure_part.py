"""The Azure part of a local cloud whose clusters are real: ``Options(modules={"azure": __name__})``.

Real Flux reads git over TLS only, so the repositories of the GitHub part are also served with TLS here, at
the address in ``FLUX_GIT_HOST``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.common.certificates import Authority
from localcloud.common.control_plane import ControlPlane
from localcloud.runtime.parts.azure_part import serve
from localcloud.runtime.parts.part import Config, kubeconfigs, run
from tests.authority.git_tls import GitOverTls
from tests.authority.real_plane import RealPlane

PRIVATE = "git.private"
"""The file in the state folder while nobody reads git without credentials."""
_CLUSTERS = 1


@contextmanager
def real_clusters(config: Config, authority: Authority, _identity: IdentityServer) -> Iterator[ControlPlane]:
    """Yield the real control planes."""
    state = config.state
    logging.getLogger("httpx").setLevel(logging.WARNING)  # the nodes ask ten times a second
    port = int(config.settings["FLUX_GIT_HOST"].rpartition(":")[2])
    git = GitOverTls(authority, config.urls["github"], port=port, private=state / PRIVATE)
    with closing(git):
        plane = RealPlane(
            state / "real", authority, ca=state / "ca.pem", kubeconfigs=kubeconfigs(state), most=_CLUSTERS
        )
        with closing(plane):
            yield plane


if __name__ == "__main__":
    run("azure", partial(serve, clusters=real_clusters))
