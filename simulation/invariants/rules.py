"""All invariants.

They know what the operators pushed (``FleetHistory``), what really exists (``Oracle``), and who acts
(``EventLoop``), and share no decision with the code under test. A rule that does not hold raises
``RuleViolated``.
"""

from __future__ import annotations

from simulation.invariants.azure_writes import AzureWrites
from simulation.invariants.context import Context
from simulation.invariants.early_ends import LifetimeInvariant
from simulation.invariants.end import TheEnd
from simulation.invariants.hand_overs import HandOvers
from simulation.invariants.line import LineRules
from simulation.invariants.messages import Messages
from simulation.invariants.pool_rollbacks import RollbackInvariant
from simulation.invariants.proposed_promotions import PromotionInvariant
from simulation.invariants.pull_requests import PullRequestInvariant
from simulation.invariants.records import Records
from simulation.invariants.rollout_ends import RolloutEnds
from simulation.invariants.staged_starts import RolloutRules
from simulation.invariants.starts_in_a_pause import PauseRule
from simulation.invariants.timed_starts import TimedStarts
from simulation.workloads import Workloads


class Invariants:
    """The rules, by what they watch."""

    def __init__(self, context: Context, workloads: Workloads) -> None:
        self.azure_writes = AzureWrites(context, workloads)
        self.hand_overs = HandOvers(context)
        self.lifetimes = LifetimeInvariant(context)
        self.messages = Messages(context)
        self.pauses = PauseRule(context)
        self.promotions = PromotionInvariant(context)
        self.pull_requests = PullRequestInvariant(context.loop)
        self.records = Records(context)
        self.rollbacks = RollbackInvariant(context)
        self.rollouts = RolloutRules(context)
        self.line = LineRules(context, self.rollouts)
        self.rollout_ends = RolloutEnds(context, self.rollouts)
        self.timed_starts = TimedStarts(context)
        self.the_end = TheEnd(context)
