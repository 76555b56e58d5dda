"""The rules of the queues."""

from __future__ import annotations

from collections import Counter

from localcloud.memory.memory_cloud import JOB_QUEUES, MemoryCloud
from shared.cluster.queues.messages import JobMessage, QueueMessage, message_of
from shared.ports import Message
from simulation.invariants.context import Context, moment, moment_of_message
from simulation.newer_forms import known_body
from simulation.rule import RuleViolated

CALM_SECONDS = 100.0
MOST_MESSAGES = 2
"""Once faults have ended, each sequence number of a cluster gets one message, and at most one copy, not
counting those that waited already.

Earlier messages may still wait for their time and then have no effect; no new message names a sequence
number that is over.
"""


_AS_IT_IS = ("@away", "waiting:")
"""In the id of a message that goes back to its queue because the state, or its record, cannot be read."""


class Messages:
    """Checks what is sent to workers, and what waits for them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sent_in_peace: set[str] = set()
        self._from_before: dict[int, Counter[str]] = {}
        """How many messages of an id waited in a cloud when faults ended."""

    def delivered(self, cloud: MemoryCloud, queue: str, session: str) -> None:
        """Check the messages that wait for a cluster: in peace, no sequence number has many."""
        if self._context.loop.calm_seconds < CALM_SECONDS or self._repeats(cloud):
            return
        waiting = cloud.broker.peek(queue, session=session)
        sent = {m.draft.id: m.draft.body for m in waiting if m.draft.id in self._sent_in_peace}
        new = Counter(message.draft.id for message in waiting) - self._from_before.get(id(cloud), Counter())
        moments: Counter[tuple[str, int, int]] = Counter()
        for name, body in sent.items():
            moments[moment_of_message(message_of(known_body(body), JobMessage))] += new[name]
        if any(count > MOST_MESSAGES for count in moments.values()):
            ids = ", ".join(message.draft.id for message in waiting)
            raise RuleViolated("duplicate message", f"{len(waiting)} messages wait for {session}: {ids}")

    def sent(self, cloud: MemoryCloud, queue: str, message: Message) -> None:
        """Check a message for a worker: its queue, and in peace that its sequence number is not over."""
        named = message_of(message.body, QueueMessage)
        if not isinstance(named, JobMessage):
            return
        record = cloud.state.cluster(named.cluster)
        if record is not None and moment_of_message(named) != (record.uid, *moment(record)):
            record = None
        as_it_is = any(mark in message.id for mark in _AS_IT_IS)
        small = record is not None and record.job.small_change and not as_it_is
        if small and queue == "jobs":
            raise RuleViolated("small change", f"{message.id} waits with the large changes")
        if self._context.loop.peaceful:
            if id(cloud) not in self._from_before:
                waiting = (m.draft.id for queue in JOB_QUEUES for m in cloud.broker.peek(queue))
                self._from_before[id(cloud)] = Counter(waiting)
            self._sent_in_peace.add(message.id)
        if self._context.loop.calm_seconds < CALM_SECONDS or self._repeats(cloud):
            return
        if record is None:
            raise RuleViolated("duplicate message", f"{message.id} is sent, and its sequence number is over")

    def _repeats(self, cloud: MemoryCloud) -> bool:
        """Return whether restored tables send again what is in the queues."""
        return cloud.ports.config.fleet in self._context.replaced
