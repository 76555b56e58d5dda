"""All worlds on one virtual clock, and a driver that runs the pipeline on them in one thread.

Nothing sleeps: when no message waits, the clock jumps to the next event. Runs with the same seed are
identical.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

from handlers.queues import handle
from localcloud.azure.world.access.directory import FUNCTION_APP
from localcloud.azure.world.azure_ports import WorldAzure
from localcloud.azure.world.azure_world import AzureWorld
from localcloud.common.clock import ManualClock
from localcloud.flux.flux_controllers import FluxOfClusters, GitRef, SourceRevision
from localcloud.flux.notification_controller import Post
from localcloud.flux.sources.git_source import commit_of
from localcloud.git.world.memory_repository import MemoryRepository
from localcloud.github.world_host import WorldHost
from localcloud.keyvault.example_secrets import EXAMPLE_VAULT, example_secrets
from localcloud.keyvault.vault_world import VaultWorld
from localcloud.keyvault.vaults_port import WorldVaults
from localcloud.kubernetes.world.controllers import Delays
from localcloud.kubernetes.world.kubernetes_clusters import KubernetesClusters
from localcloud.memory.connections import Connections
from localcloud.memory.crashes import Counter, Crash, Tripwire
from localcloud.memory.memory_builds import BUILDS
from localcloud.memory.memory_endpoints import MemoryEndpoints
from localcloud.memory.memory_monitor import MemoryMonitor
from localcloud.memory.memory_routes import MemoryRoutes
from localcloud.memory.memory_stores import MemoryStores
from localcloud.monitor.vulnerability_data import MemoryVulnerabilities
from localcloud.servicebus.world.broker import DEAD_LETTER_SUFFIX, Broker, BrokerQueue
from localcloud.servicebus.world.broker_values import (
    Draft,
    MessageLockLost,
    QueueConfig,
    SessionLock,
    SessionLockLost,
)
from localcloud.tables.memory_state import MemoryState
from shared.app.door import NotReady, enter, receive
from shared.app.followed import plan_moved_sources
from shared.app.http_result import HttpResult
from shared.app.intake import flux_event
from shared.app.intake.flux_event import EventKeys
from shared.app.planner.recovery import end_recovery
from shared.app.recovery import dead_letters, missed_work
from shared.app.sweep import events
from shared.cluster.failures.errors import ReconcileError
from shared.cluster.job import JobQueue
from shared.kubernetes.sync_objects import PATH
from shared.ports import FleetConfig, Ports, Services, Timing
from shared.ports.azure import GetKubeconfig
from shared.ports.process import in_turn

LOCK_SECONDS = 30.0
TIMER_SECONDS = 300.0
"""As ``PLAN_SCHEDULE`` has it."""
QUEUES = ("plans", "jobs", "changes", "deletes", "previews")
EVENTS = "events"
"""The queue of Azure's events, which has no sessions."""
TIMERS = (
    end_recovery,
    missed_work.plan_missed_head,
    plan_moved_sources,
    missed_work.wake_notifier,
    missed_work.resend_overdue,
    missed_work.put_to_sleep,
)
JOB_QUEUES = tuple(queue.value for queue in JobQueue)


class MemoryCloud:
    """The cloud, the fleet repository and the function app, in memory.

    ``peer`` is the cloud of another fleet, or of another app of this one: both share time, Azure and the
    clusters, two apps of a fleet also its ``repository``, and nothing else.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        throttle: bool = True,
        config: FleetConfig | None = None,
        state: MemoryState | None = None,
        peer: MemoryCloud | None = None,
        repository: MemoryRepository | None = None,
        lock_seconds: float = LOCK_SECONDS,
        timer_seconds: float = TIMER_SECONDS,
        delays: Delays = Delays(),  # noqa: B008 - frozen
        clock: ManualClock | None = None,
    ) -> None:
        chance = random.Random(seed)  # noqa: S311
        self._fleets: list[MemoryCloud] = peer._fleets if peer else []
        self._fleets.append(self)
        self.clock: ManualClock = peer.clock if peer else clock or ManualClock()
        self.repository = repository or MemoryRepository(self.clock)
        self.others: dict[str, MemoryRepository] = {} if peer is None else peer.others
        self.git_host = WorldHost(self.repository, others=self.others)
        self.stores: MemoryStores = peer.stores if peer else MemoryStores()
        tokens = map(UUID, map("{:032x}".format, count(1)))
        self.broker = Broker(
            [
                *(QueueConfig(name, lock_seconds=lock_seconds) for name in QUEUES),
                QueueConfig(EVENTS, lock_seconds=lock_seconds, requires_session=False),
            ],
            self.clock,
            new_token=lambda: next(tokens),
        )
        self.kubernetes: KubernetesClusters = (
            peer.kubernetes
            if peer
            else KubernetesClusters(
                self.clock,
                FluxOfClusters(self._source, self.clock, self._post, self.stores.stores),
                delays=delays,
            )
        )
        self.azure: AzureWorld = (
            peer.azure if peer else AzureWorld(self.clock, plane=self.kubernetes, throttle=throttle)
        )
        self.state = state or MemoryState()
        group = config.app_group if config else None
        if group is not None:
            self.azure.engine.app_group(group.subscription, group.name)
        self.routes = MemoryRoutes()
        self.endpoints, self.monitor = MemoryEndpoints(), MemoryMonitor()
        self.vulnerabilities = MemoryVulnerabilities()
        versions = random.Random(f"vault{seed}")  # noqa: S311
        self.vault = VaultWorld(EXAMPLE_VAULT, self.clock, unique=lambda: f"{versions.getrandbits(128):032x}")
        for name, value in example_secrets("https://channel.example.org/shop").items():
            self.vault.set(name, value)
        self.vaults = WorldVaults({EXAMPLE_VAULT: self.vault})
        self.dead_letters: list[dead_letters.ReceivedDeadLetter] = []
        self.reads: Callable[[bytes, Ports], bytes] = lambda body, _: body
        """What an instance reads of a message: one of a newer version reads more forms."""
        self._timers = timedelta(seconds=timer_seconds)
        self._timer_due = self.clock() + self._timers
        self.ports = Ports(
            config=config
            or FleetConfig(
                "example",
                "example/fleet",
                timing=Timing(lease_seconds=20, poll_seconds=5),
                principals=frozenset((FUNCTION_APP.id,)),
            ),
            state=self.state,
            plans=BrokerQueue(self.broker, "plans"),
            jobs=BrokerQueue(self.broker, "jobs"),
            changes=BrokerQueue(self.broker, "changes"),
            deletes=BrokerQueue(self.broker, "deletes"),
            previews=BrokerQueue(self.broker, "previews"),
            git_host=self.git_host,
            azure=WorldAzure(self.azure),
            kubernetes=self.connections(),
            vaults=self.vaults,
            services=Services(
                routes=self.routes,
                endpoints=self.endpoints,
                monitor=self.monitor,
                registries=self.stores,
                vulnerabilities=self.vulnerabilities,
                builds=BUILDS,
            ),
            clock=self.clock,
            table_time=self.table_time,
            elapsed=lambda: self.clock().timestamp(),
            sleep=self.sleep,
            together=in_turn,
            random=chance.random,
            unique=lambda: f"{chance.getrandbits(32):08x}",
        )

        self.event_keys = EventKeys(self.ports)
        self.posts: Post = self._to_app

    def connections(self) -> Connections:
        """Return the Kubernetes port of a process that has no connection yet."""
        azure = WorldAzure(self.azure)
        return Connections(self.kubernetes, lambda cluster: azure.call(GetKubeconfig(cluster)), self.clock)

    def _source(self, url: str, ref: GitRef) -> SourceRevision | None:
        """Return what Flux reads at a URL; an unknown URL is the fleet's own repository."""
        named = (cloud for cloud in self._fleets if url.endswith(cloud.ports.config.repository))
        others = (known for name, known in self.others.items() if url.endswith(name))
        repository = next(others, None) or next(named, self).repository
        commit = commit_of(repository, ref)
        return SourceRevision(commit, lambda: repository.files(commit))

    def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        self.posts(url, headers, body)

    def _to_app(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """Hand what Flux reports to the app at an address; what the app does not take is lost."""
        for cloud in self._fleets:
            app = f"{cloud.ports.config.public_url}{PATH}"
            if cloud.ports.config.public_url and url.startswith(app):
                with suppress(Crash, ReconcileError):
                    cloud.reported(url.removeprefix(app), headers, body)

    def reported(self, cluster: str, headers: Mapping[str, str], body: bytes) -> HttpResult:
        """Have the app take what the Flux of a cluster reports."""
        return flux_event.receive(cluster, headers, body, self.event_keys, self.ports)

    def restore(self, backup: Mapping[str, Any] | None = None) -> None:
        """Stop the app, put a backup in place of its tables, or lose them, and start the app again."""
        self.state.restore(backup) if backup is not None else self.state.lose()
        self.ports.process.compared.tables_at = None

    def with_ports(self, change: Callable[[Ports], Ports]) -> None:
        """Replace ports, as by ones that fail."""
        self.ports = change(self.ports)

    def step(self) -> bool:
        """Deliver one message to its function; return whether there was one."""
        for queue in QUEUES:
            lock = None if self.broker.quiet(queue) else self.broker.accept_session(queue)
            if lock is not None:
                self.deliver(queue, lock, self.ports)
                return True
        if any(self.deliver_event(queue, self.ports) for queue in (EVENTS, EVENTS + DEAD_LETTER_SUFFIX)):
            return True
        return any(
            self.deliver_dead_letter(queue, self.ports)
            for queue in QUEUES
            if not self.broker.quiet(queue + DEAD_LETTER_SUFFIX)
        )

    def run(self, seconds: float = 7200, *, until: Callable[[], bool] | None = None) -> None:
        """Run until nothing is left to do, ``until`` holds, or so much virtual time has passed."""
        done = until or self.idle
        end = self.clock() + timedelta(seconds=seconds)
        while self.clock() < end:
            while self.step():
                pass
            if done():
                return
            self._jump(min(end, self._next_moment()))

    def idle(self) -> bool:
        """Return whether no message waits and the work of every record and plan is done."""
        counts = [self.broker.counts(queue) for queue in (*QUEUES, EVENTS)]
        if any(count.active or count.scheduled for count in counts):
            return False
        open_plans = any(not record.settled for record in self.state.open_plans())
        fleet = self.state.fleet()
        planned = not fleet.planning and fleet.commit == self.repository.head(self.ports.config.branch)
        return planned and not open_plans and not self.state.continuations()

    def _next_moment(self) -> datetime:
        timer = self._timer_due
        message = self.broker.next_time()
        return min(timer, message) if message else timer

    def table_time(self) -> datetime:
        """Return the time of Table Storage, which is the real one, in whole seconds."""
        return self.clock().replace(microsecond=0)

    def sleep(self, seconds: float) -> None:
        """Let time go by while a function waits: Azure and clusters go on, and no message is delivered."""
        self.clock.advance(seconds)
        self.azure.complete_due()
        self.kubernetes.reconcile()
        self.kubernetes.reconcile()

    def _jump(self, moment: datetime) -> None:
        self.sleep(max(0.0, (moment - self.clock()).total_seconds()) + 0.001)
        if self.clock() >= self._timer_due:
            self._timer_due = self.clock() + self._timers
            self.run_timers(self.ports)

    def run_timers(self, ports: Ports) -> None:
        """Run the timers once, on an instance that handles anything; one that fails runs again next time."""
        try:
            inside = enter(ports)
        except NotReady:
            return
        for timer in TIMERS:
            with suppress(Crash, ReconcileError):
                timer(inside)

    def deliver(self, queue: str, lock: SessionLock, ports: Ports) -> None:
        """Deliver the next message of an accepted session, and complete or abandon it as the Functions host
        does.
        """
        delivery = self.broker.receive(queue, lock)
        if delivery is None:
            self.broker.release_session(queue, lock)
            return
        try:
            receive(queue, lock.session, delivery.message.draft.body, partial(self._handle, queue), ports)
        except Crash:
            return  # the locks stay until they end, as after kill -9
        except (ReconcileError, ValueError):
            settle = self.broker.abandon
        else:
            settle = self.broker.complete
        try:
            settle(queue, delivery.lock_token)
            self.broker.release_session(queue, lock)
        except (MessageLockLost, SessionLockLost):
            return

    def _handle(self, queue: str, body: bytes, ports: Ports) -> None:
        handle(queue, self.reads(body, ports), ports)

    def hear_events(self) -> None:
        """Give the app an event subscription, as ``infra/events.bicep`` does."""

        def take(identifier: str, body: bytes, at: datetime) -> None:
            self.broker.send(EVENTS, Draft(body, id=identifier, at=at if at > self.clock() else None))

        self.azure.engine.grid.subscribe(take)

    def deliver_event(self, queue: str, ports: Ports) -> bool:
        """Deliver an event of Azure, or one of the dead letters, if there is one."""
        delivery = None if self.broker.quiet(queue) else self.broker.receive(queue)
        if delivery is None:
            return False
        settle = self.broker.complete
        try:
            events.handle(delivery.message.draft.body, enter(ports))
        except Crash:
            return True  # the lock stays until it ends, as after kill -9
        except (ReconcileError, NotReady):
            if queue != EVENTS:
                return True  # a dead letter that fails waits until its lock ends
            settle = self.broker.abandon
        with suppress(MessageLockLost):
            settle(queue, delivery.lock_token)
        return True

    def deliver_dead_letter(self, queue: str, ports: Ports) -> bool:
        """Deliver a dead letter, if there is one; one that fails waits until its lock ends."""
        source = queue + DEAD_LETTER_SUFFIX
        delivery = self.broker.receive(source)
        if delivery is None:
            return False
        draft = delivery.message.draft
        letter = dead_letters.ReceivedDeadLetter(
            queue,
            id=f"{delivery.message.sequence}:{draft.id}",
            at=delivery.message.enqueued_at,
            body=self.reads(draft.body, ports),
            shown=draft.body.decode(errors="backslashreplace"),
            reason=delivery.message.dead_letter_reason,
            description=delivery.message.dead_letter_description,
        )
        self.dead_letters.append(letter)
        try:
            dead_letters.handle_dead_letter(letter, enter(ports))
            self.broker.complete(source, delivery.lock_token)
        except (NotReady, Crash, ReconcileError, MessageLockLost):
            return True
        return True


def tripwired(ports: Ports, counter: Counter) -> Ports:
    """Return the ports with a tripwire around each outside system."""
    names = ("state", *QUEUES, "git_host", "azure", "kubernetes", "vaults")
    services: dict[str, Any] = _wired(ports.services, ("routes", "endpoints", "registries"), counter)
    return replace(ports, services=replace(ports.services, **services), **_wired(ports, names, counter))


def _wired(owner: object, names: Iterable[str], counter: Counter) -> dict[str, Any]:
    return {name: Tripwire(getattr(owner, name), counter) for name in names}
