"""Azure: Resource Manager, the clusters' Kubernetes APIs with Flux, managed identity, Key Vault, Teams.

Azure Monitor is here too. One process, because Resource Manager starts and stops the Kubernetes APIs, and
one authority signs all certificates. Flux reads the repositories of the GitHub part from disk, as that part
would serve them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import fields
from pathlib import Path

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.wire.event_delivery import EventDelivery
from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access import directory
from localcloud.azure.world.arm_resources import Timings
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.azure.world.catalog import TENANT
from localcloud.azure.world.clusters.credentials import SERVER_APPLICATION
from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.common.control_plane import ControlPlane
from localcloud.flux.flux_controllers import FluxOfClusters, GitRef, SourceRevision
from localcloud.flux.http_posts import HttpPosts
from localcloud.flux.sources.git_source import commit_of
from localcloud.flux.sources.wire_stores import wire_stores
from localcloud.git.world.git_repository import GitRepository
from localcloud.keyvault.example_secrets import EXAMPLE_VAULT, example_secrets
from localcloud.keyvault.vault_server import SECRETS_USER, VaultServer
from localcloud.keyvault.vault_world import VaultWorld
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.monitor.monitor_server import READ_LOGS, READ_METRICS, MonitorServer
from localcloud.registry.registry_app import RegistryServer
from localcloud.registry.registry_store import RegistryStore
from localcloud.runtime.parts.part import (
    Config,
    kubeconfigs,
    repositories,
    request_log,
    run,
    shown_notifications,
)
from localcloud.teams.teams_server import TeamsServer
from shared.app.examination import ALERTS, alert_rule

APP_IDS = (directory.FUNCTION_APP.id, *(app.id for app in directory.APPS.values()))
"""Whose writes the event subscription leaves out, as that of ``infra/event_subscription.bicep`` does."""
OpenPlane = Callable[[Config, Authority, IdentityServer], AbstractContextManager[ControlPlane]]
"""Opens the control planes of the clusters that Resource Manager creates."""


class Repositories:
    """Reads repositories by their clone URL, for Flux.

    URLs of github.com and dev.azure.com lead to the local ones, so a fleet that names its real repository
    works unchanged.
    """

    def __init__(self, root: Path, *, url: str, token: str) -> None:
        self._root, self._token = root.resolve(), token
        hosts = "|".join(re.escape(host) for host in (url, "https://github.com"))
        own = rf"(?:{hosts})/(?P<own>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
        of_devops = rf"(?:{re.escape(url)}|https://dev\.azure\.com)/[\w.-]+/(?P<project>[\w.-]+)/_git/(?P<name>[\w.-]+)/?"
        self._url = re.compile(rf"{of_devops}|{own}")
        self._lock = threading.Lock()
        self._open: dict[Path, GitRepository] = {}

    def __call__(self, url: str, ref: GitRef) -> SourceRevision | None:
        """Return what a ref of the repository leads to; None when there is no such repository."""
        match = self._url.fullmatch(url)
        name = match and (match["own"] or f"{match['project']}/{match['name']}")
        path = self._root / f"{name}.git" if name else self._root
        if ".." in path.parts or not (path / "HEAD").is_file():
            return None
        with self._lock:
            if path not in self._open:
                self._open[path] = GitRepository(path)
            repository = self._open[path]
        commit = commit_of(repository, ref)
        return SourceRevision(commit, lambda: _files(repository, commit), self._accepts)

    def close(self) -> None:
        """End the readers."""
        for repository in self._open.values():
            repository.close()

    def _accepts(self, _user: str, password: str) -> bool:
        return password in ("", self._token)


def _files(repository: GitRepository, commit: str) -> dict[str, bytes]:
    return {entry.path: repository.blob(entry.sha) for entry in repository.tree(commit) if entry.plain}


def timings(create_seconds: float) -> Timings:
    """Return the durations of Azure's operations, in proportion to the creation of a cluster."""
    usual = Timings()
    factor = create_seconds / usual.create_cluster
    return Timings(**{field.name: getattr(usual, field.name) * factor for field in fields(Timings)})


@contextmanager
def small_clusters(config: Config, authority: Authority, identity: IdentityServer) -> Iterator[ControlPlane]:
    """Yield the Kubernetes APIs of the local cloud, each with its small Flux."""
    settings, state = config.settings, config.state
    source = Repositories(repositories(state), url=config.urls["github"], token=settings["GITHUB_TOKEN"])
    stores = wire_stores(
        registry=f"https://127.0.0.1:{config.ports['registry']}",
        blobs=f"http://127.0.0.1:{config.ports['blob']}",
        authority=authority.pem,
    )
    with (
        closing(source),
        closing(HttpPosts(state / "ca.pem")) as posts,
        KubernetesPlane(
            authority,
            accepts_token=lambda token: identity.accepts(token, SERVER_APPLICATION),
            extension=FluxOfClusters(source, system_clock, posts, stores),
            log_dir=request_log(state, "kubernetes").parent,
            kubeconfig_dir=kubeconfigs(state),
        ) as plane,
    ):
        for name in config.options["existing"]:
            plane.start_outside(name)
        yield plane


def _vault(config: Config, authority: Authority, identity: IdentityServer) -> VaultServer:
    """Return the vault of the example fleets; where the apps have roles, only the worker may read it.

    It has the kubeconfigs of the clusters outside Azure, which are started before.
    """
    world = VaultWorld(EXAMPLE_VAULT, system_clock)
    for name in config.options["existing"]:
        world.set(f"{name}-kubeconfig", (kubeconfigs(config.state) / f"{name}.yaml").read_text())
    for name, value in example_secrets(config.settings["NOTIFY_TEAMS_WEBHOOK_URL"]).items():
        world.set(name, value)
    worker, with_roles = directory.APPS["worker"].id, bool(config.options["roles"])

    def granted(token: str) -> Collection[str] | None:
        if not with_roles:
            return None
        return SECRETS_USER if identity.holder(token) == worker else ()

    return VaultServer(
        world,
        authority,
        tenant=TENANT,
        accepts=identity.accepts,
        granted=granted,
        port=config.ports["vault"],
        log_file=request_log(config.state, "vault"),
    )


def workspace_actions(roles: Mapping[str, Collection[str]], holder: str) -> Collection[str] | None:
    """Return what an app may do in the workspaces of Azure Monitor: where apps have roles, control reads."""
    if not roles:
        return None
    return (READ_METRICS, READ_LOGS) if holder == directory.APPS["control"].id else ()


@contextmanager
def serve(config: Config, clusters: OpenPlane = small_clusters) -> Iterator[None]:
    """Serve Azure with one certificate authority, whose certificate is ``ca.pem``."""
    settings, state = config.settings, config.state
    authority = Authority()
    authority.write(state / "ca.pem")
    kubeconfigs(state).mkdir()
    with ExitStack() as stack:
        identity = stack.enter_context(
            IdentityServer(port=config.ports["identity"], header=settings["IDENTITY_HEADER"])
        )
        roles = {directory.APPS[app].id: actions for app, actions in config.options["roles"].items()}
        plane = stack.enter_context(clusters(config, authority, identity))
        world = AzureWorld(
            system_clock,
            plane=plane,
            timings=timings(config.options["create_seconds"]),
            subscriptions=config.options["subscriptions"],
        )
        _, _, subscription, _, group = settings["APP_RESOURCE_GROUP"].split("/")
        world.engine.app_group(subscription, group)
        for name in ALERTS:
            world.offers.put_alert_rule(subscription, group, alert_rule(settings["ROADSTEAD_FLEET"], name))
        world.roles.apps = roles
        events = stack.enter_context(EventDelivery(settings["ServiceBus"]))
        world.engine.grid.subscribe(events.take, without=APP_IDS)
        stack.enter_context(
            ArmServer(
                world,
                authority,
                accepts=lambda token: identity.accepts(token, config.urls["arm"]),
                granted=lambda token: roles.get(identity.holder(token)),
                caller=identity.caller,
                port=config.ports["arm"],
                log_file=request_log(state, "arm"),
            )
        )
        stack.enter_context(_vault(config, authority, identity))
        store, log_file = RegistryStore(), request_log(state, "registry")
        stack.enter_context(
            RegistryServer(store, authority, port=config.ports["registry"], log_file=log_file)
        )
        stack.enter_context(
            MonitorServer(
                authority,
                accepts=identity.accepts,
                granted=lambda token: workspace_actions(roles, identity.holder(token)),
                port=config.ports["monitor"],
                log_file=request_log(state, "monitor"),
            )
        )
        teams = settings["NOTIFY_TEAMS_WEBHOOK_URL"]
        shown, log_file = shown_notifications(state), request_log(state, "teams")
        stack.enter_context(TeamsServer(teams, authority, shown=shown, log_file=log_file))
        yield


if __name__ == "__main__":
    run("azure", serve)
