"""What a commit says about its strategy: the trailers of its message, and the labels of its pull request."""

from __future__ import annotations

from shared.fleet.manifests.rollout import Rollout as Written
from shared.pipeline.planner.approval.review_rules import pull_of
from shared.ports import FleetRecord, Ports
from shared.rollouts.selected.choice import NOTHING, TRAILER, Asked, asks, asks_labels
from shared.rollouts.selected.trailers import trailer_values


def read_selection(commit: str, written: Written, fleet: FleetRecord, ports: Ports) -> Asked:
    """Return what a commit says; no call where it may select nothing, and one for each of the two ways.

    Labels are those that the pull request has now. Raise an error of GitHub: what cannot be read selects
    nothing, so the plan waits.
    """
    if not asks(written.strategies):
        return NOTHING
    message, labels = "", frozenset[str]()
    if any(each.selectable for each in written.strategies):
        newest = ports.repository.changes(commit, "", 1)
        message = next((each.message for each in newest if each.commit == commit), "")
    if asks_labels(written.strategies):
        repository = fleet.source.repository if fleet.source else 0
        pull = pull_of(commit, ports.config.branch, repository, ports.pulls.merged_as(commit))
        labels = pull.labels if pull else labels
    return Asked(tuple(trailer_values(message, TRAILER)), labels)
