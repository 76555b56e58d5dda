"""The ports of the smaller services: queues, vaults, routes, endpoints, telemetry, and what probes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from shared.cluster.failures.errors import Dependency, InvalidManifest
from shared.cluster.reporting.measurements import Measurement, Span
from shared.frozen import dataclass, field
from shared.notifications.digest import OutgoingMessage
from shared.notifications.routes import Route
from shared.platform.builds.build import Builds
from shared.rollouts.monitored import Series


@dataclass(frozen=True)
class Message:
    """A message to a session-enabled queue.

    ``id`` is at most 128 characters and is what duplicate detection compares; ``at`` (UTC) schedules it.
    """

    session: str
    id: str
    body: str
    at: datetime | None = None


class Queue(Protocol):
    """A Service Bus queue with sessions and duplicate detection."""

    def send(self, *messages: Message) -> None:
        """Send in this order, and schedule those that have ``at``; raise Throttled, Unavailable or TooLarge.

        Several go together, as many as the service takes as one batch. After an error some may have been
        sent.
        """

    def probe(self) -> None:
        """Show that we may send, and send nothing; raise as ``send``."""


@dataclass(frozen=True)
class VaultSecret:
    """The newest version of a secret; the value lives in memory only, and no text shows it."""

    version: str
    """The id of the version, as the vault gives it."""
    value: str = field(repr=False, compare=False)
    tags: Mapping[str, str] = field(default_factory=dict, compare=False)


class Vaults(Protocol):
    """The vaults that the app's operator lets manifests name."""

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret.

        Raise SecretMissing for one that does not exist, is deleted or is disabled, VaultForbidden when the
        vault does not let us in, Throttled with the vault's own wait, Unavailable without an answer,
        Unauthenticated without a credential, and InvalidManifest for a vault that is not among the app's.
        """


class OwnVault(Vaults, Protocol):
    """The vault of the app's own secrets, where the app may write those of its GitHub App."""

    def write(self, vault: str, name: str, value: str, tags: Mapping[str, str]) -> None:
        """Write a new version of a secret; raise as ``secret``."""


class Routes(Protocol):
    """Slack, Teams, webhooks, e-mail, and what Apprise reaches."""

    def send(self, route: Route, message: OutgoingMessage) -> None:
        """Deliver a message; raise ReconcileError, without the address and without a secret.

        Dependency: the app has no setting with the address.
        """


class Endpoints(Protocol):
    """Asks addresses that a commit names, on the hosts that whoever runs the app allows.

    Both raise ReconcileError. Dependency: the host is not allowed, or leads to an address to which the app
    does not connect. No error has more of an answer than a Prometheus says is wrong with a query, and that
    cut short.
    """

    def status(self, url: str) -> int:
        """Return the status with which an address answers a GET; no redirect is followed."""

    def query(self, url: str, query: str) -> Sequence[float]:
        """Return the value of a scalar, or those of a vector, with which a Prometheus answers a query."""


class Monitor(Protocol):
    """The workspaces of Azure Monitor that whoever runs the app lets checks of gates ask."""

    def series(self, workspace: str, query: str, since: datetime, until: datetime) -> Sequence[Series]:
        """Return what a query of a workspace answers for a time; one call.

        A managed Prometheus answers with series of samples, a step apart. Each record that a Log Analytics
        workspace answers with is a series of one sample. Raise ReconcileError: Dependency for a workspace
        that is not among the app's, Unauthorized where its identity may not read, Unexpected for an answer
        that is incomplete. No error has more of an answer than what is wrong with a query, cut short.
        """


class Vulnerabilities(Protocol):
    """What AKS publishes of the vulnerabilities of its node images and of its versions of Kubernetes."""

    def active(self, release: str) -> frozenset[str] | None:
        """Return the ids of those that a release still has; None where AKS has no report of it.

        ``release`` is such as aks-k8s-releases/1.33.2, or vhd-releases/AKSUbuntu-gen2-2204containerd/VERSION.
        Raise ReconcileError.
        """


class NoVulnerabilities:
    """What an app knows that asks nobody."""

    def active(self, release: str) -> None:
        """Return nothing."""


def not_a_workspace(name: str) -> Dependency:
    """Return the error of a workspace that the app may not ask."""
    return Dependency(
        f"the workspace {name} is not in the app setting AZURE_MONITOR_WORKSPACES; whoever runs the app adds "
        "it there, and gives the app's identity a role on it"
    )


class Registries(Protocol):
    """The registries of artifacts that whoever runs the app allows."""

    def digest(self, host: str, name: str, tag: str) -> str:
        """Return the digest that a tag of a repository has now, such as "sha256:..."; one to four calls.

        Raise ReconcileError: InvalidManifest for a host that is not allowed, Dependency where there is no
        such tag, Unauthorized where the app may not pull.
        """

    def layer(self, host: str, name: str, digest: str) -> bytes:
        """Return the first layer of the artifact with a digest, as it is stored; two to six calls.

        Raise as ``digest``, and UnreadableArtifact where there is none, or one larger than ``MAX_LAYER``.
        """


def not_among(host: str) -> InvalidManifest:
    """Return the error of a registry that the app may not ask."""
    return InvalidManifest(f"the registry {host} is not in REGISTRIES, a setting of the app")


class Telemetry(Protocol):
    """Takes what was measured; never raises, and never waits for a network.

    What was measured decides nothing, and a failure to record it stops nothing.
    """

    def record(self, observed: Iterable[Measurement | Span]) -> None:
        """Take measurements and spans."""


class NoTelemetry:
    """Takes nothing: an app without a place for telemetry."""

    def record(self, observed: Iterable[Measurement | Span]) -> None:
        """Drop what was measured."""


class Probe(Protocol):
    """A service that can be asked whether it answers."""

    def probe(self) -> None:
        """Call the service with our credential, and change nothing there; raise a ReconcileError."""


# The port of exports: files of lines outside the tables, each written once, and never changed by the app.


class Exports(Protocol):
    """The exports of all fleets of a container, by names such as FLEET/2026-01-31.jsonl."""

    def names(self, prefix: str) -> Collection[str]:
        """Return the names that begin with a text."""

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Write a file, in parts as the lines come; one that is there already stays as it is."""

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a file, read in parts."""


def newest_day(exports: Exports, fleet: str) -> date | None:
    """Return the last day that was exported of a fleet, None for none."""
    return max(map(day_of, exports.names(f"{fleet}/")), default=None)


def day_of(name: str) -> date:
    """Return the last day of an export."""
    return date.fromisoformat(name.rpartition("/")[2].removesuffix(".jsonl"))


class NoExports:
    """What an app without a container has: nothing is written, and nothing is there."""

    def names(self, prefix: str) -> Collection[str]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def write(self, name: str, lines: Iterable[str]) -> None:
        """Write nothing."""

    def lines(self, name: str) -> Iterator[str]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())


@dataclass(frozen=True)
class Services:
    """The smaller services that the app may use.

    ``probes`` are those without a read of our own that shows whether they answer, by name. ``telemetry``
    takes what was measured. ``builds`` builds what Flux applies, None where no kustomize is there.
    """

    routes: Routes
    endpoints: Endpoints
    monitor: Monitor
    registries: Registries
    vulnerabilities: Vulnerabilities = field(default_factory=NoVulnerabilities)
    exports: Exports = field(default_factory=NoExports)
    telemetry: Telemetry = field(default_factory=NoTelemetry)
    probes: Mapping[str, Probe] = field(default_factory=dict)
    builds: Builds | None = None
