"""The exemptions of drift policies that have ended, or will soon. Pure: the day is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from shared.fleet.days import days_until
from shared.fleet.manifests.cluster.drift import DriftAction
from shared.fleet.resolve.desired_fleet import DesiredFleet
from shared.fleet.resolve.problems import Problem, field_of, problem_at
from shared.fleet.resolve.repository_layout import cluster_path
from shared.fleet.yaml_tree.nodes import Mark

AHEAD = timedelta(days=30)
"""So long before its last day an exemption is warned of."""
RULES = ("spec", "drift", "rules")


def exemption_warnings(desired: DesiredFleet, names: Iterable[str], today: date) -> list[Problem]:
    """Return a warning for each exemption of these clusters that has ended, or will within ``AHEAD``.

    One of a shared file is one warning, however many clusters have it.
    """
    found: set[Problem] = set()
    for name in names:
        near = list(_near(desired.clusters[name].document()["spec"], today))
        resolved = desired.explained(name) if near else None
        for rule in near:
            path = (*RULES, str(rule["name"]), "expires")
            mark = resolved.node.find(path).mark if resolved else Mark(cluster_path(name), 1, 1)
            field = field_of(path, resolved.node) if resolved else ".".join(RULES)
            found.add(problem_at(mark, field, _sentence(rule, today)))
    return sorted(found)


def _near(spec: Mapping[str, Any], today: date) -> Iterator[Mapping[str, Any]]:
    for rule in (spec.get("drift") or {}).get("rules") or ():
        if rule["action"] == DriftAction.IGNORE and date.fromisoformat(rule["expires"]) - today <= AHEAD:
            yield rule


def _sentence(rule: Mapping[str, Any], today: date) -> str:
    """Return what ends when, who answers for it, and what to do."""
    last = date.fromisoformat(rule["expires"])
    what = f"the exemption {rule['name']} of {rule['owner']} ({rule['reason']})"
    if today > last:
        return f"{what} ended on {last}, and its fields are reported again: remove it, or set a later day"
    when = days_until(last, today)
    return f"{what} ends {when}, on {last}; from then on its fields are reported: decide what follows"
