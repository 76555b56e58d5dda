"""A fleet on a local cloud whose clusters are real, and what its API servers wrote down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.errors import NotFound
from localcloud.common.clock import system_clock
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from localcloud.runtime.port_reservations import PortReservations
from shared.adapters.kubernetes import KubernetesConnections
from shared.ports import KubernetesApi
from shared.resource_ids import ClusterId
from tests.authority.azure_part import PRIVATE
from tests.authority.flux_components import components
from tests.support import fleet_files
from tests.support.fleet_operator import Operator

NAME = "one"
COMPONENTS = "flux/gotk-components.yaml"
READY_SECONDS = 300.0
_READS = frozenset({"get", "list", "watch"})
_QUESTIONS = "/apis/authorization.k8s.io/"


@dataclass(frozen=True)
class RealFleet:
    """A fleet of one real cluster, with its operator."""

    operator: Operator

    @property
    def state(self) -> Path:
        """The state folder of the cloud."""
        return self.operator.cloud.state

    @property
    def repository(self) -> str:
        """The address of the fleet repository for Flux."""
        settings = self.operator.cloud.settings
        if "GIT_SSH_KEY" in settings:
            return settings["GIT_URL"]
        return f"https://{settings['FLUX_GIT_HOST']}/{settings['GITHUB_REPOSITORY']}.git"

    def without_credentials(self, *, allowed: bool) -> None:
        """Let everybody read the repository, or those with credentials alone."""
        private = self.state / PRIVATE
        private.unlink(missing_ok=True) if allowed else private.touch()

    def files(
        self, *, flux: str = "", extra: str = "", flux_components: bytes | None = None
    ) -> dict[str, bytes]:
        """Return the fleet: ``flux`` and ``extra`` are YAML below the cluster's spec.flux and spec."""
        own = f"  flux:\n    repository: {self.repository}\n{flux}"
        files = fleet_files.fleet(budget=5)
        files[f"clusters/{NAME}/cluster.yaml"] = fleet_files.cluster(NAME, extra=f"{extra}{own}")
        files[COMPONENTS] = flux_components or components()
        return files

    def ready(self, files: Mapping[str, bytes]) -> str:
        """Push and wait until the cluster is Ready with it; return the commit."""
        commit = self.operator.push(files)
        self.operator.wait_for_status(commit, "success", seconds=READY_SECONDS)
        return commit

    def planned(self) -> str:
        """Return what the newest plan says of the cluster."""
        return str(self.operator.api.get(f"clusters/{NAME}")["plan"]["reason"])

    def revision(self) -> str:
        """Return what Flux has applied."""
        return str(self.operator.api.get(f"clusters/{NAME}")["fluxRevision"])

    def reason(self) -> str:
        """Return what the cluster waits for, "" before it is planned."""
        try:
            return str(self.operator.api.get(f"clusters/{NAME}")["reason"])
        except NotFound:
            return ""

    def wait_for_reason(self, *parts: str) -> None:
        """Wait until the reason of the cluster contains all parts."""
        self.operator.wait(
            lambda: all(part in self.reason() for part in parts),
            f"the reason has {parts}",
            seconds=READY_SECONDS,
        )

    @contextmanager
    def api(self) -> Iterator[KubernetesApi]:
        """Yield the cluster's Kubernetes API."""
        text = (self.state / "kubeconfigs" / f"{NAME}.yaml").read_text()
        with closing(KubernetesConnections(lambda _: text, aad_token=None, clock=system_clock)) as opened:
            yield opened.connect(ClusterId("00000000-0000-0000-0000-000000000001", f"rg-{NAME}", NAME))

    def writes(self) -> list[str]:
        """Return the writes that Roadstead sent to the API server so far, as its audit log has them.

        A dry run is no write, and neither is a question about access.
        """
        return [
            f"{entry['verb']} {entry['requestURI'].partition('?')[0]}"
            for entry in self._audit()
            if entry["verb"] not in _READS
            and "dryRun=" not in entry["requestURI"]
            and not entry["requestURI"].startswith(_QUESTIONS)
            and entry.get("userAgent") == "roadstead"
        ]

    def reads(self) -> list[tuple[str, str]]:
        """Return what Roadstead read so far: resources, and the name of an object or "" for a list."""
        refs = [
            entry.get("objectRef") or {}
            for entry in self._audit()
            if entry["verb"] in _READS and entry.get("userAgent") == "roadstead"
        ]
        return [(ref["resource"], ref.get("name", "")) for ref in refs if "resource" in ref]

    def paths_read(self) -> list[str]:
        """Return the paths that Roadstead read so far."""
        return [
            entry["requestURI"].partition("?")[0]
            for entry in self._audit()
            if entry["verb"] in _READS and entry.get("userAgent") == "roadstead"
        ]

    def _audit(self) -> list[dict[str, Any]]:
        log = self.state / "real" / "cluster-0" / "audit.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _options(git_port: int, extra: Mapping[str, str]) -> Options:
    return Options(
        create_seconds=1,
        lock_seconds=5,
        plan_schedule="*/10 * * * * *",
        resend_schedule="*/2 * * * * *",
        extra={
            "POLL_SECONDS": "1",
            "RETRY_LIMITS": "Unavailable=60/1 Throttled=forever/1 Conflict=forever/1",
            "FLUX_GIT_HOST": f"127.0.0.1:{git_port}",
            **extra,
        },
        modules={"azure": "tests.authority.azure_part"},
    )


@contextmanager
def real_fleet(folder: Path, extra: Mapping[str, str] = {}) -> Iterator[RealFleet]:
    """Start a cloud with a real cluster in waiting; the fleet's repository is empty.

    Its git server, which Flux reads, is the one that the credentials are for, or that of ``extra`` settings.
    """
    with (
        closing(PortReservations()) as reserved,
        LocalCloud(folder / "cloud", _options(reserved.reserve(None), extra)) as cloud,
        closing(Operator(cloud, folder / "clone")) as operator,
    ):
        yield RealFleet(operator)
