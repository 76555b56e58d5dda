"""People who upgrade a cluster, and roll a node pool back after that: soon, late, or when Azure refuses it.

Pull requests are merged, or left. Later commits let the pool follow its cluster again, raise its version, or
change something else. What Azure demands is that of docs/how-to/roll-back-a-node-pool.md. When the faults
have ended, one pool is rolled back, stays so after another commit, and is upgraded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import yaml

from shared.app.api.acts.pulls import roll_back
from shared.app.http_result import HttpResult
from shared.cluster.failures.errors import Conflict
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.ports import Ports
from simulation.actors.kinds import ROLLBACKS
from simulation.actors.upkeep import ActorUpkeep
from simulation.desired_files import files_of
from simulation.desired_state import OFF, PATCH, DesiredCluster, Rollback
from simulation.event_loop import MAX_SKEW
from simulation.operators import Operators, cluster_id
from simulation.oracle import serves
from simulation.rule import RuleViolated

RULE = "rollback"
ACTS, OPENED = (2, 5), 201
LIMITED = 503
"""Azure's limit is used up, for up to an hour by a clock that was ahead; the answer says until when."""
UNTIL_ASKED, UNTIL_MERGED, UNTIL_LATER = (60.0, 500.0), (1.0, 400.0), (200.0, 900.0)
AUTOMATIC, AGED, MERGED, BROKEN = 0.15, 0.4, 0.8, 0.2
"""How often the cluster upgrades itself, its upgrade seems older, a pull request is merged, and a week ends
between its opening and its merge."""
WITHIN, BELOW = timedelta(days=7), timedelta(minutes=5)
AGES = (WITHIN + BELOW, WITHIN - BELOW, timedelta(days=2))
TAG = "roadstead-rollback"
SKEW = timedelta(seconds=2 * MAX_SKEW + 1)
VERSION, UPGRADED = "1.36", "1.37"
QUIET = timedelta(hours=2)


class RollbackActor(ActorUpkeep):
    """They act on all fleets; ``replaced`` counts how often the tables of a fleet were lost."""

    kind = ROLLBACKS

    def schedule(self, seconds: float) -> None:
        """Let them act at some moments of so many seconds."""
        self._at_times(ACTS, max(seconds, 600.0), self._act)

    def _act(self) -> None:
        """Upgrade a cluster, and ask for a rollback later."""
        operators = self._chance.choice(self._everybody)
        ready = [cluster for cluster in operators.now.clusters.values() if _is_as_asked(operators, cluster)]
        if not ready or operators.now.invalid or self._loop.peaceful:
            return
        self.acts += 1
        cluster = self._chance.choice(ready)
        self._upgrade(operators, cluster, PATCH if self._chance.random() < AUTOMATIC else OFF)
        self._later(UNTIL_ASKED, partial(self._ask_later, operators, cluster.name))

    def _later(self, within: tuple[float, float], act: Callable[[], object]) -> None:
        self._loop.schedule(self._chance.uniform(*within), lambda: self._carry_out(act))

    def _carry_out(self, act: Callable[[], object]) -> None:
        if not self._loop.peaceful:
            act()

    def _upgrade(self, operators: Operators, cluster: DesiredCluster, channel: str) -> None:
        operators.age_images(cluster.name)
        wanted = replace(cluster.without_rollbacks(UPGRADED), channel=channel)
        operators.push(operators.now.with_cluster(wanted))

    def _ask_later(self, operators: Operators, name: str) -> None:
        """Ask, perhaps when the upgrade is longer ago than a week, or almost."""
        cluster = operators.now.clusters.get(name)
        if cluster is None:
            return
        pool = self._chance.choice(cluster.pools).name
        if self._chance.random() < AGED:
            self._age(operators, name, pool, self._chance.choice(AGES))
        if self._ask(operators, name, pool) is None or self._chance.random() > MERGED:
            return
        if self._chance.random() < BROKEN:
            self._later(UNTIL_MERGED, partial(self._age, operators, name, pool, WITHIN))
        self._later(UNTIL_MERGED, partial(self._merge, operators, name, pool))
        self._later(UNTIL_LATER, partial(self._change, operators, name, pool))

    def _age(self, operators: Operators, name: str, pool: str, by: timedelta) -> None:
        """Let the upgrade of a pool be longer ago; never so long that an earlier one was after it."""
        for profile in _serving(operators, name, pool):
            if TAG not in (profile.get("tags") or {}):
                self._loop.azure.interventions.age_upgrade(cluster_id(name), profile["name"], by)

    def _ask(self, operators: Operators, name: str, pool: str) -> Rollback | None:
        """Ask for a rollback; return it if a pull request was opened, whose conditions have to be met."""
        answers, found = list[HttpResult](), list[str]()

        def ask(ports: Ports) -> None:
            found.extend(self._unmet(operators, name, pool))
            answers.append(roll_back(name, pool, "somebody", ports, "it crashes"))
            if not self._loop.actor.faulty:
                found.append("")

        self._loop.run_function(operators.cloud, ask)
        if not answers:
            return None
        answer = answers[0]
        self._loop.log("%s: rollback of %s/%s: %s", operators.fleet, name, pool, answer.body)
        if answer.status != OPENED:
            if found == [""] and self._loop.peaceful and answer.status != LIMITED:
                raise RuleViolated(RULE, f"no rollback of {name}/{pool} is proposed: {answer.body}")
            return None
        if found[-1:] == [""] and found != [""]:
            raise RuleViolated(RULE, f"the rollback of {name}/{pool} is proposed, and {found[0]}")
        target: Any = answer.body["target"]
        return Rollback(target["nodeImageVersion"], str(answer.body["lastUsed"]))

    def _unmet(self, operators: Operators, name: str, pool: str) -> list[str]:
        """Return the conditions that are not met now, by what Azure has; near the end of the week, none."""
        live, found = operators.oracle.live(cluster_id(name)), list[str]()
        profiles = _serving(operators, name, pool)
        if live is None or len(profiles) != 1:
            return ["there is no such pool"]
        listed = _listed(operators, name, profiles[0]["name"])
        if not listed:
            return ["Azure lists nothing"]
        since = self._loop.clock() - datetime.fromisoformat(listed[-1]["timestamp"])
        if since > WITHIN + SKEW:
            found.append("its upgrade is longer ago than a week")
        upgrades = live["properties"].get("autoUpgradeProfile") or {}
        if upgrades.get("upgradeChannel") not in (None, "none"):
            found.append("its cluster is upgraded by itself")
        if upgrades.get("nodeOSUpgradeChannel") != "None":
            found.append("its nodes are upgraded by themselves")
        for holder in (live["properties"], profiles[0]):
            if holder["provisioningState"] not in ("Succeeded", "Failed", "Canceled"):
                found.append("an operation runs")
            if (holder.get("powerState") or {}).get("code") == "Stopped":
                found.append("it is stopped")
        asked = operators.now.clusters.get(name)
        if asked and asked.image and not listed[-1]["nodeImageVersion"].endswith(asked.image):
            found.append("an older image is not accepted")
        return found

    def _merge(self, operators: Operators, name: str, pool: str) -> str:
        """Merge the pull request if it has what git has now, with the rollback; return the pool's version."""
        start = f"roadstead/rollback/{operators.fleet}/{name}/{pool}-"
        pulls = [
            pull_request
            for pull_request in operators.cloud.repository.pulls.listed()
            if pull_request.head.startswith(start)
        ]
        cluster, path = operators.now.clusters.get(name), f"clusters/{name}/cluster.yaml"
        if not pulls or cluster is None:
            return ""
        manifest = yaml.safe_load(operators.cloud.repository.files(pulls[0].sha)[path])
        written: Json = next(
            (document for document in manifest["spec"]["nodePools"] if document["name"] == pool), {}
        )
        before = next((candidate for candidate in cluster.pools if candidate.name == pool), None)
        if before is None or "rollback" not in written:
            return ""
        back = Rollback(written["rollback"]["nodeImageVersion"], str(written["rollback"]["lastUsed"]))
        wanted = cluster.with_pool(replace(before, version=written["orchestratorVersion"], rollback=back))
        desired = operators.now.with_cluster(wanted)
        if yaml.safe_load(files_of(desired, operators.fleet)[path]) != manifest:
            return ""
        try:
            merged = operators.cloud.repository.pulls.merged_into_base(pulls[0].number, squash=True)
        except Conflict:
            return ""
        self._loop.log("%s: somebody merges pull request %d", operators.fleet, pulls[0].number)
        operators.merged(merged.merge_commit, desired)
        return str(written["orchestratorVersion"])

    def _change(self, operators: Operators, name: str, pool: str) -> None:
        """Change something else, let the pool follow its cluster, or raise its version and leave the rest."""
        cluster = operators.now.clusters.get(name)
        found = (
            next((candidate for candidate in cluster.pools if candidate.name == pool), None)
            if cluster
            else None
        )
        if cluster is None or found is None:
            return
        choices = [
            replace(cluster, tag=self._chance.choice("xyz")),
            cluster.without_rollbacks(cluster.version),
        ]
        live = operators.oracle.live(cluster_id(name))
        if live is not None and found.version and cluster.version == UPGRADED:
            version = live["properties"]["currentKubernetesVersion"]
            choices += [cluster.with_pool(replace(found, version=version))] * 2
        operators.push(operators.now.with_cluster(self._chance.choice(choices)))

    # When the faults have ended

    def check(self) -> None:
        """Roll one pool back, let it stay so, and upgrade it again; raise RuleViolated."""
        operators = self._chance.choice(self._everybody)
        able = [
            cluster for cluster in operators.now.clusters.values() if self._can_upgrade(operators, cluster)
        ]
        if not able or self._replaced[operators.fleet] or operators.now.staging is not None:
            return
        cluster = self._chance.choice(able)
        pool = cluster.pools[0].name
        before = self._runs(operators, cluster.name, pool)
        self._upgrade(operators, cluster, OFF)
        if not self._idle(operators, cluster.name) or self._runs(operators, cluster.name, pool) == before:
            return
        self.acts += 1
        if self._ask(operators, cluster.name, pool) is None:
            return
        if self._merge(operators, cluster.name, pool) != before:
            raise RuleViolated(RULE, f"the pull request does not roll {cluster.name}/{pool} back to {before}")
        self._must_run(operators, cluster.name, pool, before, "is rolled back")
        operators.push(operators.now.with_cluster(replace(operators.now.clusters[cluster.name], tag="r1")))
        self._must_run(operators, cluster.name, pool, before, "stays so")
        now = operators.now.clusters[cluster.name]
        live = operators.oracle.live(cluster_id(cluster.name)) or {"properties": {}}
        plane = str(live["properties"].get("currentKubernetesVersion"))
        found = next(candidate for candidate in now.pools if candidate.name == pool)
        raised = now.with_pool(replace(found, version=plane))
        after = self._chance.choice((raised, now.without_rollbacks(now.version)))
        operators.push(operators.now.with_cluster(after))
        self._must_run(operators, cluster.name, pool, plane, "is upgraded again")

    def _can_upgrade(self, operators: Operators, cluster: DesiredCluster) -> bool:
        live = operators.oracle.live(cluster_id(cluster.name))
        runs = live["properties"]["currentKubernetesVersion"] if live else ""
        return runs.startswith(VERSION) and _is_as_asked(operators, cluster)

    def _idle(self, operators: Operators, name: str) -> ClusterRecord | None:
        """Let everything come to its end; return the record of a cluster that is Ready then, or None."""
        self._loop.run_until(self._loop.clock() + QUIET, done=lambda: self._loop.idle)
        record = operators.cloud.state.cluster(name)
        return record if record and record.phase is Phase.READY and not record.job.active else None

    def _must_run(self, operators: Operators, name: str, pool: str, version: str, what: str) -> None:
        record = self._idle(operators, name)
        runs = self._runs(operators, name, pool)
        if record is None or runs != version:
            state = record or operators.cloud.state.cluster(name)
            shown = f"{state.phase}: {state.job.reason}" if state else "without a record"
            raise RuleViolated(RULE, f"{name}/{pool} {what} with {version}; it has {runs}, and is {shown}")

    def _runs(self, operators: Operators, name: str, pool: str) -> str:
        found = _serving(operators, name, pool)
        return str(found[0]["currentOrchestratorVersion"]) if len(found) == 1 else ""


def _is_as_asked(operators: Operators, cluster: DesiredCluster) -> bool:
    """Return whether a cluster is Ready as git asks, and may be changed."""
    if cluster.invalid or cluster.suspended or cluster.adopt or cluster.image:
        return False
    record = operators.cloud.state.cluster(cluster.name)
    ready = record is not None and record.phase is Phase.READY and not record.job.active
    return ready and not operators.oracle.differences(operators.fleet, cluster, cluster_id(cluster.name))


def _serving(operators: Operators, name: str, pool: str) -> list[Json]:
    live = operators.oracle.live(cluster_id(name))
    profiles = live["properties"]["agentPoolProfiles"] if live else ()
    return [profile for profile in profiles if serves(profile) == pool]


def _listed(operators: Operators, name: str, pool: str) -> list[Json]:
    """Return what Azure lists for rollbacks of a pool, the last one at the end."""
    found = operators.loop.azure.engine.clusters[cluster_id(name)].pools[pool]
    listed = [*(found.get("recentlyUsedVersions") or ())]
    return sorted(listed, key=lambda document: datetime.fromisoformat(document["timestamp"]))
