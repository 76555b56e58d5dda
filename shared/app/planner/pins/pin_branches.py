"""The branch of a pin, which points to its commit, where the app may write branches.

See docs/decisions/0040-a-pin-is-a-branch-that-has-its-commits-name.md.
"""

from __future__ import annotations

import logging

from shared.cluster.failures.errors import Conflict
from shared.language.pin import Pin
from shared.ports import Capability, FleetRecord, GitHost, Ports

log = logging.getLogger(__name__)


def names_commits(fleet: FleetRecord, ports: Ports) -> bool:
    """Return whether pins name their commits, because the app may write no branches."""
    return fleet.app.pins_directly or Capability.PROPOSALS not in ports.git_host.capabilities


def ensure_branch(pin: Pin, host: GitHost) -> None:
    """Let the branch of a pin point to its commit, also where somebody has moved it."""
    tip = host.tip(pin.branch)
    if tip == pin.commit:
        return
    if tip is not None:
        log.warning("somebody moved %s to %s: it is put back", pin.branch, tip[:8])
        host.delete_branch(pin.branch)
    try:
        host.move_branch(pin.branch, None, pin.commit)
    except Conflict:  # another planner has written it, or somebody moves it again, which a job sees
        log.info("%s exists already", pin.branch)
