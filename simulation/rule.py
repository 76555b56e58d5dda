"""How the checks of the simulation report that a rule does not hold."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud


class RuleViolated(BaseException):
    """A rule did not hold; ``rule`` is its short name. Not an Exception, so that no handler swallows it."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule


def untrue(cloud: MemoryCloud, what: str) -> RuleViolated:
    """Return the report of a statement that is wrong."""
    return RuleViolated("untrue", f"{cloud.ports.config.fleet}: {what}")
