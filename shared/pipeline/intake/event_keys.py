"""The keys with which the clusters sign their events, in the memory of this process.

Whoever knows no key costs no call: a name that the fleet does not have is refused from a list that is read
at most every ``NAMES_SECONDS``, and the key of a cluster is read again at most every ``KEY_SECONDS``, however
often somebody sends something wrong. Each cluster has tokens of its own, which only its signed events take.
So nothing that is sent for one cluster keeps another one from reporting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from threading import Lock

from shared.fleet.manifests.cluster.flux.source import MAIN
from shared.fleet.manifests.cluster.flux.spec_flux import EVENT_KEY
from shared.jobs.failures.errors import InvalidManifest, SecretMissing
from shared.jobs.record import ClusterRecord
from shared.pipeline.intake.flux_event import is_signed
from shared.ports import Ports

NAMES_SECONDS, KEY_SECONDS, KEPT_SECONDS = 15.0, 15.0, 300.0
"""How soon a name is looked up again, a key that did not fit, and one that did."""
BURST, PER_SECOND = 60.0, 1.0
"""How many events of a cluster are taken at once, and how many a second after that."""


@dataclass
class _Known:
    key: str = field(default="", repr=False)
    read_at: float = float("-inf")
    tokens: float = BURST
    counted_at: float = float("-inf")


class EventKeys:
    """The keys and the tokens of the clusters. Safe to share between threads."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._lock = Lock()
        self._clusters: dict[str, _Known] = {}
        self._named_at = float("-inf")

    def verifies(self, cluster: str, body: bytes, signature: str) -> bool:
        """Return whether a body has the signature of a cluster's key; raise ReconcileError where it is
        unknown.
        """
        known = self._known(cluster)
        if known is None:
            return False
        age = self._ports.elapsed() - known.read_at
        if age < KEPT_SECONDS and is_signed(body, signature, known.key):
            return True
        if age < KEY_SECONDS:
            return False
        known.read_at = self._ports.elapsed()
        known.key = self._read(cluster)
        return is_signed(body, signature, known.key)

    def take(self, cluster: str) -> bool:
        """Take one of the tokens of a cluster; return whether there was one."""
        now = self._ports.elapsed()
        with self._lock:
            known = self._clusters.get(cluster)
            if known is None:
                return False
            passed = max(0.0, now - known.counted_at)
            known.tokens, known.counted_at = min(BURST, known.tokens + passed * PER_SECOND), now
            if known.tokens < 1:
                return False
            known.tokens -= 1
            return True

    def _known(self, cluster: str) -> _Known | None:
        """Return what is known of a cluster, None where the fleet has none of the name."""
        with self._lock:
            found = self._clusters.get(cluster)
            now = self._ports.elapsed()
            if found is not None or now - self._named_at < NAMES_SECONDS:
                return found
            self._named_at = now
        names = self._ports.state.summaries().keyed(attrgetter("name"))
        with self._lock:
            self._clusters = {name: self._clusters.get(name) or _Known() for name in names}
            return self._clusters.get(cluster)

    def _read(self, cluster: str) -> str:
        """Return the key of a cluster as its vault has it, "" where there is none."""
        record = self._ports.state.cluster(cluster)
        place = key_place(record) if record is not None else None
        if place is None:
            return ""
        try:
            return self._ports.vaults.secret(*place).value
        except (SecretMissing, InvalidManifest):
            return ""


def key_place(record: ClusterRecord) -> tuple[str, str] | None:
    """Return the vault and the secret with the key of a cluster, None where it does not report."""
    spec = record.document["spec"]
    events = (spec.get("flux") or {}).get("events") or {}
    name = (events.get("secretRef") or {}).get("name")
    for one in spec.get("bootstrapSecrets") or ():
        called, namespace = one.get("secretName") or one["name"], one.get("namespace") or MAIN
        if name and (called, namespace) == (name, MAIN) and EVENT_KEY in one["keys"]:
            return one["vault"], one["keys"][EVENT_KEY]
    return None
