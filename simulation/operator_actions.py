"""The actions of operators: what they push, and what they change in Azure and Service Bus by hand.

``ACTIONS`` lists them with their weights; a new feature needs a function and a line there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from localcloud.memory.memory_cloud import QUEUES
from localcloud.servicebus.world.broker_values import Draft
from simulation.desired_state import NEWEST_IMAGE, VERSIONS, DesiredCluster, Pool
from simulation.operators import NAMES, Operators, cluster_id
from simulation.purging import purge

SIZES = ("Standard_D4s_v5", "Standard_D8s_v5")
REGRETTED = (2.0, 5.0, 20.0, 90.0)
"""Seconds after which somebody restores a cluster that was removed by mistake, or removes it once more."""
ATTEMPTS, WAIT = 10, 60.0
OFTEN = 20
"""By how many times actions that a seed is to have often are likelier than usual."""


def act(operators: Operators) -> None:
    """Carry out one action, chosen at random by weight."""
    names = [_name(action) for _, action in ACTIONS]
    weights = [
        weight * (OFTEN if name in operators.often else 1)
        for name, (weight, _) in zip(names, ACTIONS, strict=True)
    ]
    (action,) = operators.chance.choices([action for _, action in ACTIONS], weights)
    operators.loop.acted[_name(action)] += 1
    action(operators)


def _name(action: Callable[[Operators], None]) -> str:
    return action.__name__.strip("_").replace("_", "-")


def _scale(operators: Operators) -> None:
    def change(cluster: DesiredCluster) -> DesiredCluster:
        pool = operators.chance.choice(cluster.pools)
        return cluster.with_pool(replace(pool, count=operators.chance.randint(1, 4)))

    operators.change(change)


def _label(operators: Operators) -> None:
    def change(cluster: DesiredCluster) -> DesiredCluster:
        return cluster.with_pool(
            replace(operators.chance.choice(cluster.pools), label=operators.chance.choice(("x", "y", "")))
        )

    operators.change(change)


def _tag(operators: Operators) -> None:
    operators.change(lambda cluster: replace(cluster, tag=operators.chance.choice("pqr")))


def _upgrade(operators: Operators) -> None:
    operators.change(lambda cluster: cluster.without_rollbacks(operators.chance.choice(VERSIONS)))


def _add_pool(operators: Operators) -> None:
    pool = Pool(operators.chance.choice(("batch", "web")), operators.chance.randint(1, 3))
    operators.change(lambda cluster: cluster.with_pool(pool))


def _remove_pool(operators: Operators) -> None:
    operators.change(lambda cluster: replace(cluster, pools=cluster.pools[:1]))


def _resize(operators: Operators) -> None:
    def change(cluster: DesiredCluster) -> DesiredCluster:
        pool = operators.chance.choice(cluster.pools)
        return cluster.with_pool(replace(pool, size=operators.chance.choice(SIZES)))

    operators.change(change)


def _protect(operators: Operators) -> None:
    operators.change(lambda cluster: replace(cluster, protected=not cluster.protected))


def _make_invalid(operators: Operators) -> None:
    operators.change(lambda cluster: replace(cluster, invalid=not cluster.invalid))


def _make_fleet_invalid(operators: Operators) -> None:
    operators.push(replace(operators.now, invalid=not operators.now.invalid))


def _add(operators: Operators) -> None:
    missing = [name for name in operators.names if name not in operators.now.clusters]
    if missing:
        operators.push(operators.now.with_cluster(DesiredCluster(operators.chance.choice(missing))))


def _remove(operators: Operators) -> None:
    if operators.now.clusters:
        operators.push(operators.now.without(operators.chance.choice(list(operators.now.clusters))))


def _remove_by_mistake(operators: Operators) -> None:
    """Remove a cluster, restore it seconds later, and sometimes remove it once more."""
    if not operators.now.clusters:
        return
    cluster = operators.chance.choice(list(operators.now.clusters.values()))

    def restore() -> None:
        if cluster.name not in operators.now.clusters and not operators.loop.peaceful:
            operators.push(operators.now.with_cluster(cluster))
            if operators.chance.random() < 0.5:
                operators.loop.schedule(operators.chance.choice(REGRETTED), remove)

    def remove() -> None:
        if cluster.name in operators.now.clusters and not operators.loop.peaceful:
            operators.push(operators.now.without(cluster.name))

    remove()
    operators.loop.schedule(operators.chance.choice(REGRETTED), restore)


def _remove_several(operators: Operators) -> None:
    names = list(operators.now.clusters)
    operators.push(operators.now.without(*operators.chance.sample(names, k=min(len(names), 2))))


def _budget(operators: Operators) -> None:
    operators.push(replace(operators.now, budget=operators.chance.choice((0, 1, 2, 4))))


def _add_note(operators: Operators) -> None:
    operators.push(replace(operators.now, note=operators.now.note + 1))


def _revert(operators: Operators) -> None:
    if len(operators.history.head_line) > 1:
        before = operators.history.desired(operators.history.head_before)
        operators.push(replace(before, note=operators.now.note + 1))


def _force_back(operators: Operators) -> None:
    commit = operators.chance.choice(operators.history.head_line)
    if commit != operators.history.head_line[-1]:
        operators.push(operators.history.desired(commit), back_to=commit)


def _suspend(operators: Operators) -> None:
    seconds = operators.chance.choice((30, 120, 600))
    until = (operators.loop.clock() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    operators.change(lambda cluster: replace(cluster, suspended=until))


def _resume(operators: Operators) -> None:
    operators.change(
        lambda cluster: replace(cluster, suspended=""), among=lambda cluster: bool(cluster.suspended)
    )


def _adopt(operators: Operators) -> None:
    """Adopt a cluster that an operator created by hand."""
    keys = {name: cluster_id(name) for name in operators.names}
    oracle = operators.oracle
    free = [name for name, key in keys.items() if oracle.live(key) is None or oracle.has_no_fleet(key)]
    if not free:
        return
    name = operators.chance.choice(free)
    operators.create_by_hand(keys[name])
    cluster = operators.now.clusters.get(name, DesiredCluster(name))
    how = operators.chance.choice(("when-equal", "with-differences"))
    operators.push(operators.now.with_cluster(replace(cluster, adopt=how)))


def _stop(operators: Operators) -> None:
    live = [cluster_id(name) for name in NAMES if operators.oracle.live(cluster_id(name)) is not None]
    if live:
        operators.stop(operators.chance.choice(live))


def _set_window(operators: Operators) -> None:
    """Set, move or drop a maintenance window; a dropped one stays in Azure."""
    operators.change(
        lambda cluster: replace(cluster, window=operators.chance.choice(("", "Sunday", "Monday")))
    )


def _require_images(operators: Operators) -> None:
    """Require the newest node image of a cluster, for which a newer one was released."""

    def change(cluster: DesiredCluster) -> DesiredCluster:
        operators.age_images(cluster.name)
        return replace(cluster, image=NEWEST_IMAGE)

    _once_ready(operators, change)


def _replace_protected(operators: Operators) -> None:
    """Replace a pool on which a disruption budget keeps a pod, for some time."""

    def change(cluster: DesiredCluster) -> DesiredCluster:
        pool = operators.chance.choice(cluster.pools)
        operators.protect_pod(cluster.name, pool.name)
        return cluster.with_pool(replace(pool, size=SIZES[pool.size == SIZES[0]]))

    _once_ready(operators, change)


def _once_ready(
    operators: Operators, change: Callable[[DesiredCluster], DesiredCluster], attempts: int = ATTEMPTS
) -> None:
    """Push a change of a cluster that is Ready, once there is one, or never."""
    if any(operators.is_ready(cluster.name) for cluster in operators.now.clusters.values()):
        operators.change(change, among=lambda cluster: operators.is_ready(cluster.name))
    elif attempts:
        operators.loop.schedule(WAIT, partial(_once_ready, operators, change, attempts - 1))


def _purge(operators: Operators) -> None:
    purge(operators.loop, operators.cloud)


def _delete_in_portal(operators: Operators) -> None:
    live = [cluster_id(name) for name in NAMES if operators.oracle.live(cluster_id(name)) is not None]
    if live:
        cluster = operators.chance.choice(live)
        operators.loop.log("%s: an operator deletes %s by hand", operators.fleet, cluster.name)
        operators.remove(cluster)


def _create_by_hand(operators: Operators) -> None:
    operators.create_by_hand(cluster_id(operators.chance.choice(operators.names)))


def _unblock(operators: Operators) -> None:
    operators.unblock()


def _replay(operators: Operators) -> None:
    operators.replay()


def _approve(operators: Operators) -> None:
    operators.approve()


def _send_unreadable(operators: Operators) -> None:
    """Send a message that the functions cannot read."""
    body = operators.chance.choice(("{", "[]", '{"schema_version": 0}', '{"cluster": "a"}', "\u0000"))
    queue = operators.chance.choice(QUEUES)
    session = operators.chance.choice((*NAMES, operators.fleet))
    operators.loop.log("%s: an unreadable message on %s", operators.fleet, queue)
    operators.cloud.broker.send(queue, Draft(body.encode(), session=session))


def _resend(operators: Operators) -> None:
    """Send an old message again by hand."""
    operators.loop.resend(operators.cloud)


ACTIONS: tuple[tuple[int, Callable[[Operators], None]], ...] = (
    (4, _scale),
    (2, _label),
    (3, _tag),
    (1, _upgrade),
    (3, _add_pool),
    (2, _remove_pool),
    (1, _resize),
    (2, _protect),
    (2, _make_invalid),
    (1, _make_fleet_invalid),
    (4, _add),
    (4, _remove),
    (4, _remove_by_mistake),
    (2, _remove_several),
    (1, _budget),
    (2, _add_note),
    (3, _revert),
    (2, _force_back),
    (2, _suspend),
    (1, _resume),
    (2, _adopt),
    (1, _stop),
    (2, _purge),
    (2, _set_window),
    (3, _require_images),
    (3, _replace_protected),
    (1, _delete_in_portal),
    (2, _create_by_hand),
    (1, _unblock),
    (1, _replay),
    (2, _approve),
    (1, _send_unreadable),
    (3, _resend),
)
"""Each action with its weight."""
