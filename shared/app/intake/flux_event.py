"""An event of Flux: verified with the key of its cluster, then parsed.

A Provider of the type ``generic-hmac`` sends the header ``X-Signature`` with the HMAC of the raw body
(fluxcd.io/flux/components/notification/providers). The body is an event of ``fluxcd/pkg/apis/event/v1``
(fluxcd.io/flux/components/notification/events). The signature has no time of its own, so the one in the body
decides whether an event is too old.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from threading import Lock

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from shared.app.http_result import MAX_NAME, HttpResult, rejected
from shared.app.outbox import send_all
from shared.app.records import Transition, change
from shared.cluster.failures.errors import InvalidManifest, ReconcileError, SecretMissing
from shared.cluster.findings.conditions import FLUX_REPORTS, is_at_rest
from shared.cluster.findings.health import HealthCondition
from shared.cluster.job import Delay
from shared.cluster.queues.envelopes import checks_of, copy_of
from shared.cluster.record import ClusterRecord
from shared.cluster.reporting.events import reported_event
from shared.frozen import dataclass, field, replace
from shared.language.model.base import shown
from shared.language.model.cluster.flux import EVENT_KEY
from shared.language.model.cluster.flux_source import MAIN
from shared.logs import about_record
from shared.ports import Ports

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 64 * 1024
OLDEST, NEWEST = timedelta(hours=1), timedelta(minutes=10)
"""How old an event may be, and how far in the future by the clock of its cluster."""
_TEXT, _NAME = 800, 253
MOST_NUMBERS = 90_000_000
"""Less than what the key of a stored event has room for."""
PAUSE = timedelta(seconds=2)
"""How long after the last run of a step an event has it run again: Flux reports several things at once."""
CHECK_SECONDS = 60
"""How often the events of one cluster have it checked at most."""
PRUNED = 0.02
"""The part of the events with which the oldest of a cluster are removed."""
UNSIGNED = "the signature is not that of the key of this cluster"


class _Object(BaseModel):
    model_config = ConfigDict(extra="ignore", defer_build=True)

    kind: str = Field(min_length=1)
    name: str = Field(min_length=1)
    namespace: str = ""


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True, defer_build=True)

    involved: _Object = Field(alias="involvedObject")
    severity: str
    timestamp: AwareDatetime
    message: str
    reason: str = ""


@dataclass(frozen=True)
class FluxEvent:
    """What Flux reports of one of its objects; ``number`` is the same for the same body alone."""

    subject: str
    error: bool
    reason: str
    message: str
    at: datetime
    number: int

    @property
    def line(self) -> str:
        """The event as a line of the cluster's history."""
        return ": ".join(filter(None, (self.subject, self.reason, self.message)))


def is_signed(body: bytes, signature: str, key: str) -> bool:
    """Return whether a body has the signature of a key, in constant time; no key signs nothing."""
    expected = "sha256=" + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    return bool(key) and hmac.compare_digest(expected.encode(), signature.encode(errors="replace"))


def read_event(body: bytes, now: datetime) -> FluxEvent | str:
    """Return the event in a body, or why it is none that counts."""
    try:
        read = _Body.model_validate_json(body)
    except (ValidationError, RecursionError):
        return "the body is no event of Flux"
    if not -NEWEST <= now - read.timestamp <= OLDEST:  # only of such a time UTC is sure to be a time, too
        return f"the event is of {read.timestamp:%Y-%m-%d %H:%M}, too long before or after now"
    digest = int.from_bytes(hashlib.sha256(body).digest()[:4], "big")
    place = "/".join(filter(None, (read.involved.namespace, read.involved.name)))
    return FluxEvent(
        subject=shown(f"{read.involved.kind} {place}", _NAME),
        error=read.severity == "error",
        reason=shown(read.reason, _NAME),
        message=shown(read.message, _TEXT),
        at=read.timestamp.astimezone(UTC),
        number=digest % MOST_NUMBERS,
    )


# The keys with which the clusters sign their events, in the memory of this process.
#
# Whoever knows no key costs no call: a name that the fleet does not have is refused from a list that is
# read at most every ``NAMES_SECONDS``, and the key of a cluster is read again at most every
# ``KEY_SECONDS``, however often somebody sends something wrong. Each cluster has tokens of its own, which
# only its signed events take. So nothing that is sent for one cluster keeps another one from reporting.

NAMES_SECONDS, KEY_SECONDS, KEPT_SECONDS = 15.0, 15.0, 300.0
"""How soon a name is looked up again, a key that did not fit, and one that did."""
BURST, PER_SECOND = 60.0, 1.0
"""How many events of a cluster are taken at once, and how many a second after that."""


@dataclass
class _EventKey:
    key: str = field(default="", repr=False)
    read_at: float = float("-inf")
    tokens: float = BURST
    counted_at: float = float("-inf")


class EventKeys:
    """The keys and the tokens of the clusters. Safe to share between threads."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._lock = Lock()
        self._clusters: dict[str, _EventKey] = {}
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

    def _known(self, cluster: str) -> _EventKey | None:
        """Return what is known of a cluster, None where the fleet has none of the name."""
        with self._lock:
            found = self._clusters.get(cluster)
            now = self._ports.elapsed()
            if found is not None or now - self._named_at < NAMES_SECONDS:
                return found
            self._named_at = now
        names = self._ports.state.summaries().keyed(attrgetter("name"))
        with self._lock:
            self._clusters = {name: self._clusters.get(name) or _EventKey() for name in names}
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
    for bootstrap_secret in spec.get("bootstrapSecrets") or ():
        called, namespace = (
            bootstrap_secret.get("secretName") or bootstrap_secret["name"],
            bootstrap_secret.get("namespace") or MAIN,
        )
        if name and (called, namespace) == (name, MAIN) and EVENT_KEY in bootstrap_secret["keys"]:
            return bootstrap_secret["vault"], bootstrap_secret["keys"][EVENT_KEY]
    return None


# What an event of Flux does: it is stored, it ends the wait of a step, and it has the cluster checked.
#
# It decides nothing else. What is so is read from the cluster, by the step or by the check: an event that
# is late, comes twice or is lost changes no more than when that happens.


def receive(
    cluster: str, headers: Mapping[str, str], body: bytes, keys: EventKeys, ports: Ports
) -> HttpResult:
    """Take an event of Flux; the case of ``headers`` does not matter.

    The size is checked first, then the signature: an unknown cluster and a wrong key have the same answer.
    """
    if len(body) > MAX_BODY_BYTES:
        return rejected(413, f"the body has {len(body)} bytes; at most {MAX_BODY_BYTES} are read")
    header = {name.lower(): value for name, value in headers.items()}
    try:
        verified = keys.verifies(cluster, body, header.get("x-signature", ""))
    except ReconcileError as error:  # nobody has proved anything: why is for the log alone
        log.warning("the key of %s cannot be read: %s: %s", shown(cluster, MAX_NAME), error.kind, error)
        return rejected(503, "the key of this cluster cannot be read now")
    if not verified:
        return rejected(401, UNSIGNED)
    if not keys.take(cluster):
        return rejected(429, "this cluster reports too much; its events of the next seconds are dropped")
    event = read_event(body, ports.clock())
    if isinstance(event, str):
        return rejected(400, event)
    record = ports.state.cluster(cluster)
    if record is None:
        return rejected(401, UNSIGNED)
    with about_record(record):
        _take(event, record, ports)
    return HttpResult(202, {"cluster": cluster})


def _take(event: FluxEvent, record: ClusterRecord, ports: Ports) -> None:
    stored = reported_event(record, event.line, event.at, event.number, warning=event.error)
    ports.state.append([stored])
    if ports.random() < PRUNED:
        ports.state.prune_events(record.name, ports.config.history.events)
    if is_at_rest(record):
        if event.error or not _is_known(record):
            now = ports.clock()
            moment = f"flux:{record.uid}:{int(now.timestamp()) // CHECK_SECONDS}"
            send_all(checks_of([record.name], moment, _until_next(now)), ports)
    elif record.job.active:
        _end_wait(record, ports)


def _until_next(now: datetime) -> float:
    """Return the seconds until the next moment at which events have a cluster checked, one for all."""
    return CHECK_SECONDS - now.timestamp() % CHECK_SECONDS


def _is_known(record: ClusterRecord) -> bool:
    """Return whether the record says already that Flux is healthy, and that its events arrive."""
    reports, flux = record.condition(FLUX_REPORTS), record.condition(HealthCondition.FLUX)
    return reports is not None and bool(reports.status) and (flux is None or bool(flux.status))


def _end_wait(record: ClusterRecord, ports: Ports) -> None:
    """Let a step run now that waits for what happens inside the cluster."""
    change(record.name, partial(_at_once, now=ports.clock()), ports, known=(record,))


def _at_once(record: ClusterRecord | None, *, now: datetime) -> Transition | None:
    if record is None:
        return None
    job, at = record.job, max(now, record.updated + PAUSE)
    waits = job.step.name.inside and job.next_run.delay is Delay.WAIT and job.lease is None
    if not (job.active and waits) or job.next_run.at <= at or at > now + PAUSE:
        return None
    sooner = replace(record, job=replace(job, next_run=replace(job.next_run, at=at)))
    return Transition(sooner, then=copy_of(sooner, now))
