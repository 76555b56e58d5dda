"""People who change which bootstrap secrets clusters have, and rotate, lose and restore them in the vault.

At all times, a Secret has a value that the vault had under its name, and none is removed that no commit took
away. At the end, every cluster has the newest value of each, and no value is anywhere else.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta

from localcloud.memory.memory_cloud import QUEUES
from shared.app.outbox import request_whole_check
from shared.cluster.record import to_json
from shared.cluster.record_parts import Phase
from simulation.actors.kinds import SECRETS
from simulation.actors.upkeep import ActorUpkeep, Surroundings
from simulation.rule import RuleViolated
from simulation.vault_secrets import NAMES, value_in

ACTS = (5, 11)
CHECK = timedelta(hours=1)


class Secrets(ActorUpkeep):
    """They act where there is one fleet."""

    kind = SECRETS
    in_one_fleet = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._vault = self._operators.cloud.vault
        self._values: dict[str, list[str]] = {name: [] for name in NAMES}
        self._seen: set[tuple[int, str, str]] = set()
        """The Secrets that were seen, by their world, cluster and name."""

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds, and let the clusters be looked at all the time."""
        for name in NAMES:
            self._rotate(name)
        for _ in range(self._chance.randint(*ACTS)):
            act = self._chance.choice((self._push, self._push, self._change_vault))
            self._loop.schedule(self._chance.uniform(0, seconds), act)
            self._loop.schedule(self._chance.uniform(0, seconds), self._check_clusters)
        self._all_the_time(self._look, seconds)

    def _push(self) -> None:
        """Push a cluster that has more, fewer or other secrets."""
        clusters = self._operators.now.clusters
        if not clusters:
            return
        self.acts += 1
        changed = clusters[self._chance.choice(sorted(clusters))]
        names = tuple(name for name in NAMES if self._chance.random() < 0.6)
        self._operators.push(self._operators.now.with_cluster(replace(changed, secrets=names)))

    def _change_vault(self) -> None:
        self.acts += 1
        name, how = self._chance.choice(NAMES), self._chance.random()
        if not self._is_there(name):
            self._restore(name)
        elif how < 0.5:
            self._rotate(name)
        elif how < 0.75:
            self._vault.enable(name, enabled=False)
        else:
            self._vault.delete(name)

    def _is_there(self, name: str) -> bool:
        return name in self._vault.names() and self._vault.versions(name)[-1].enabled

    def _restore(self, name: str) -> None:
        if name not in self._vault.names():
            self._vault.recover(name)
        if not self._is_there(name):
            self._vault.enable(name, enabled=True)

    def _rotate(self, name: str) -> None:
        value = f"hidden-{name}-{self._chance.getrandbits(64):x}"
        self._values[name].append(value)
        self._vault.set(name, value)

    def _check_clusters(self) -> None:
        for cloud in self._loop.clouds:
            self._loop.run_function(cloud, request_whole_check)

    def calm(self) -> None:
        """Give the vault back what it lost."""
        for name in NAMES:
            self._restore(name)

    def check(self) -> None:
        """Rotate once more, check the clusters, and look for every value, and for what was seen of it.

        After restored tables a Secret may stay that a lost commit gave, and a newer one took away.
        """
        for name in NAMES:
            self._rotate(name)
        passed_by = self._check_to_its_end()
        if passed_by:
            passed_by = self._check_to_its_end()
        self._look()
        desired, state = self._operators.now, self._operators.cloud.state
        for name, world in self._operators.worlds():
            record, cluster = state.cluster(name), desired.clusters.get(name)
            if record is None or cluster is None or record.phase is not Phase.READY or record.job.active:
                continue
            if name in passed_by:
                continue
            invalid = desired.invalid or cluster.invalid
            if record.observed_generation != record.generation or invalid:
                continue
            newest = {secret: self._values[secret][-1] for secret in cluster.secrets}
            found = {secret: value_in(world, secret) for secret in cluster.secrets}
            if found != newest:
                raise RuleViolated("secrets", f"{name} has {found}, and the vault {newest}")
            former = [name for name in NAMES if name not in newest and value_in(world, name) is not None]
            if former and not self._operators.history.restored:
                raise RuleViolated("secrets", f"{name} still has {former}, which git does not have")
        self._find_values()

    def _check_to_its_end(self) -> frozenset[str]:
        """Check the clusters; return those that it passes by, because a job works on them.

        The job may have written the secrets before the vault had others, and the next check finds that.
        """
        busy = frozenset(
            cluster.name for cluster in self._operators.cloud.state.clusters() if cluster.job.active
        )
        self._check_clusters()
        self._loop.run_until(self._loop.clock() + CHECK, done=lambda: self._loop.idle)
        return busy

    def _find_values(self) -> None:
        """Check that no value is stored, sent or shown outside the vault and the clusters."""
        state = self._operators.cloud.state
        for record in state.clusters():
            self._require_hidden(to_json(record), *map(str, state.events(record.name, limit=500)))

    def _require_hidden(self, *texts: str) -> None:
        for value in (secret for values in self._values.values() for secret in values):
            encoded = base64.b64encode(value.encode()).decode()
            if any(value in text or encoded in text for text in texts):
                raise RuleViolated("secret shown", f"{value} is stored or sent")

    def _look(self) -> None:
        """Check both rules on every cluster that there is, and that no message has a value."""
        broker = self._operators.cloud.broker
        self._require_hidden(*(str(message.draft) for queue in QUEUES for message in broker.peek(queue)))
        for cluster, world in self._operators.worlds():
            for name in NAMES:
                key, value = (id(world), cluster, name), value_in(world, name)
                if value is not None and value not in self._values[name]:
                    raise RuleViolated("secrets", f"{cluster} has a value of {name} that the vault never had")
                if (
                    value is None
                    and key in self._seen
                    and not self._operators.history.took_back(cluster, lambda desired: desired.secrets, name)
                ):
                    raise RuleViolated("unasked removal", f"{cluster} lost the Secret {name}")
                if value is not None:
                    self._seen.add(key)
                else:
                    self._seen.discard(key)
