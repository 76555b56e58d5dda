"""Settings that changed since they were seen last become an act; who changed them, nobody can see."""

from __future__ import annotations

from shared.jobs.acts import Act, changed_settings
from shared.pipeline.runs import expected_names
from shared.ports import Ports


def record_changed_settings(ports: Ports) -> bool:
    """Save an act for the settings that differ from those seen last; return whether there was one.

    Takes one read. The first settings of a fleet are no change. From the first time on every timer is
    expected to run, also one that never has.
    """
    now, before = dict(ports.config.settings), dict(ports.state.settings_seen())
    changes = changed_settings(before, now)
    if not changes:
        return False
    if before:
        act = Act(
            id=ports.unique(),
            at=ports.clock(),
            action="settings changed",
            target="; ".join(changes),
            by="somebody with rights on the function app",
            result="seen",
        )
        ports.state.save_act(act)
    ports.state.expect_timers(expected_names(ports.config.timers), ports.clock())
    ports.state.save_settings_seen(now)
    return True
