"""What is wrong with one instance of the functions while it handles one event: its clock, or its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from shared.cluster.failures.retry import with_limits
from shared.ports import History, Ports
from simulation.faults.calls import Scene

JUMPS = (-86_400.0, -3600.0, -600.0, -5.0, 5.0, 600.0, 3600.0, 30 * 86_400.0)
"""Seconds by which a clock is wrong."""
READINGS = (0, 0, 1, 2, 4, 8)
"""How often an instance has read its clock before somebody, or the time service, sets it."""
LEASES = (15.0, 45.0, 240.0)
POLLS = (2.0, 60.0)


def _clock_jumps(ports: Ports, scene: Scene) -> Ports:
    """Set the clock forwards or backwards, at once or between two readings."""
    chance, seconds = scene.loop.chance, scene.loop.chance.choice(JUMPS)
    after, clock = chance.choice(READINGS), ports.clock
    scene.loop.log("    its clock jumps by %d s after %d readings", seconds, after)
    readings = 0

    def jumping() -> datetime:
        nonlocal readings
        readings += 1
        if readings <= after:
            return clock()
        scene.loop.actor.faulty = True  # the door shuts, also where a refusal would be saved
        return clock() + timedelta(seconds=seconds)

    return replace(ports, clock=jumping)


def _other_settings(ports: Ports, scene: Scene) -> Ports:
    """Give an instance the settings of the next deployment, while the others have the former ones."""
    chance = scene.loop.chance
    scene.loop.log("    it has other settings")
    config = replace(
        ports.config,
        timing=replace(
            ports.config.timing,
            lease_seconds=chance.choice(LEASES),
            poll_seconds=chance.choice(POLLS),
            retries=with_limits(chance.choice(("", "Unavailable=2/5", "Throttled=3/10 Unexpected=1"))),
        ),
        history=History(chance.choice((5, 50))),
        public_url=chance.choice(("", "https://roadstead.example.com")),
    )
    return replace(ports, config=config)


FAULTS: Mapping[str, Callable[[Ports, Scene], Ports]] = {
    "clock-jump": _clock_jumps,
    "other-settings": _other_settings,
}
"""By name."""
