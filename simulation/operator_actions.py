"""What people do: what they commit, and what they do behind everybody's back.

``DEEDS`` is the list, each with how often; a new feature needs a function and a line there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from simulation.desired_state import Pool, Wish
from simulation.operators import NAMES, People, cluster_id

SIZES = ("Standard_D4s_v5", "Standard_D8s_v5")
VERSIONS = ("1.32", "1.33", "1.34")


def act(people: People) -> None:
    """Let people do something."""
    weights = [weight for weight, _ in DEEDS]
    people.chance.choices([deed for _, deed in DEEDS], weights)[0](people)


def _scale(people: People) -> None:
    def change(wish: Wish) -> Wish:
        pool = people.chance.choice(wish.pools)
        return wish.with_pool(replace(pool, count=people.chance.randint(1, 4)))

    people.change(change)


def _label(people: People) -> None:
    def change(wish: Wish) -> Wish:
        return wish.with_pool(
            replace(people.chance.choice(wish.pools), label=people.chance.choice(("x", "y", "")))
        )

    people.change(change)


def _tag(people: People) -> None:
    people.change(lambda wish: replace(wish, tag=people.chance.choice("pqr")))


def _upgrade(people: People) -> None:
    people.change(lambda wish: replace(wish, version=people.chance.choice(VERSIONS)))


def _add_pool(people: People) -> None:
    pool = Pool(people.chance.choice(("batch", "web")), people.chance.randint(1, 3))
    people.change(lambda wish: wish.with_pool(pool))


def _remove_pool(people: People) -> None:
    people.change(lambda wish: replace(wish, pools=wish.pools[:1]))


def _resize(people: People) -> None:
    def change(wish: Wish) -> Wish:
        pool = people.chance.choice(wish.pools)
        return wish.with_pool(replace(pool, size=people.chance.choice(SIZES)))

    people.change(change)


def _protect(people: People) -> None:
    people.change(lambda wish: replace(wish, protected=not wish.protected))


def _mistake(people: People) -> None:
    people.change(lambda wish: replace(wish, wrong=not wish.wrong))


def _break_fleet(people: People) -> None:
    people.push(replace(people.now, wrong=not people.now.wrong))


def _add(people: People) -> None:
    missing = [name for name in people.life.names(people.cloud) if name not in people.now.clusters]
    if missing:
        people.push(people.now.with_cluster(Wish(people.chance.choice(missing))))


def _remove(people: People) -> None:
    if people.now.clusters:
        people.push(people.now.without(people.chance.choice(list(people.now.clusters))))


def _remove_several(people: People) -> None:
    names = list(people.now.clusters)
    people.push(people.now.without(*people.chance.sample(names, k=min(len(names), 2))))


def _budget(people: People) -> None:
    people.push(replace(people.now, budget=people.chance.choice((0, 1, 2, 4))))


def _words(people: People) -> None:
    people.push(replace(people.now, note=people.now.note + 1))


def _revert(people: People) -> None:
    if len(people.head_line) > 1:
        people.push(replace(people.wish(people.head_line[-2]), note=people.now.note + 1))


def _force_back(people: People) -> None:
    commit = people.chance.choice(people.head_line)
    if commit != people.head_line[-1]:
        people.push(people.wish(commit), back_to=commit)


def _suspend(people: People) -> None:
    seconds = people.chance.choice((30, 120, 600))
    until = (people.life.clock() + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    people.change(lambda wish: replace(wish, suspended=until))


def _resume(people: People) -> None:
    people.change(lambda wish: replace(wish, suspended=""), among=lambda wish: bool(wish.suspended))


def _adopt(people: People) -> None:
    """Take over a cluster that somebody made by hand."""
    keys = {name: cluster_id(name) for name in people.life.names(people.cloud)}
    ours = [
        name for name, key in keys.items() if people.life.live(key) is None or people.life.is_nobodys(key)
    ]
    if not ours:
        return
    name = people.chance.choice(ours)
    people.squat(keys[name])
    wish = people.now.clusters.get(name, Wish(name))
    how = people.chance.choice(("when-equal", "with-differences"))
    people.push(people.now.with_cluster(replace(wish, adopt=how)))


def _stop(people: People) -> None:
    live = [cluster_id(name) for name in NAMES if people.life.live(cluster_id(name)) is not None]
    if live:
        people.life.stop(people.chance.choice(live))


def _portal_delete(people: People) -> None:
    live = [cluster_id(name) for name in NAMES if people.life.live(cluster_id(name)) is not None]
    if live:
        cluster = people.chance.choice(live)
        people.life.tell("%s: somebody deletes %s by hand", people.fleet, cluster.name)
        people.remove(cluster)


def _squat(people: People) -> None:
    people.squat(cluster_id(people.chance.choice(people.life.names(people.cloud))))


def _help_on(people: People) -> None:
    people.life.help_on()


def _any_replay(people: People) -> None:
    people.replay()


def _any_approval(people: People) -> None:
    people.approve()


def _poison(people: People) -> None:
    """Send what nobody understands to a queue."""
    body = people.chance.choice(("{", "[]", '{"schema_version": 9}', '{"cluster": "a"}', "\u0000"))
    queue = people.chance.choice(("plans", "jobs"))
    session = people.chance.choice((*NAMES, people.fleet))
    people.life.tell("%s: a message on %s that nobody understands", people.fleet, queue)
    people.life.send_raw(people.cloud, queue, session, body)


def _old_message(people: People) -> None:
    """Somebody replays a message of long ago by hand."""
    people.life.send_old(people.cloud)


DEEDS: tuple[tuple[int, Callable[[People], None]], ...] = (
    (4, _scale),
    (2, _label),
    (3, _tag),
    (1, _upgrade),
    (3, _add_pool),
    (2, _remove_pool),
    (1, _resize),
    (2, _protect),
    (2, _mistake),
    (1, _break_fleet),
    (4, _add),
    (4, _remove),
    (2, _remove_several),
    (1, _budget),
    (2, _words),
    (3, _revert),
    (2, _force_back),
    (2, _suspend),
    (1, _resume),
    (2, _adopt),
    (1, _stop),
    (1, _portal_delete),
    (2, _squat),
    (1, _help_on),
    (1, _any_replay),
    (2, _any_approval),
    (1, _poison),
    (3, _old_message),
)
"""What people do, and how often each in comparison."""
