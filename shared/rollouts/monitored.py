"""What a workspace of Azure Monitor answered to the query of a gate, and whether that passes. Pure.

A gate opens on what was read. An answer that does not cover the whole time of the check is neither a success
nor a failure: the stage waits, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.rollouts.strategy import WORST, GateCheck

_POINTS, _FINEST = 20, timedelta(seconds=15)
_GAP = 2
"""One sample may be missing, as when a scrape is late; two consecutive ones may not."""


@dataclass(frozen=True)
class Sample:
    """A value, and the time that it is of; None where the answer has none."""

    value: float
    at: datetime | None = None


@dataclass(frozen=True)
class Series:
    """The samples of one series, in order of time; with a ``step`` there should be one in each."""

    samples: tuple[Sample, ...]
    step: timedelta | None = None


def step_of(over: timedelta) -> timedelta:
    """Return how far apart samples are asked for: a twentieth of the time, and whole seconds."""
    return max(timedelta(seconds=over.total_seconds() // _POINTS), _FINEST)


def judged(asked: GateCheck, answer: Sequence[Series], now: datetime) -> tuple[bool | None, str]:
    """Return whether an answer is a success, and what it was; None for neither."""
    found = [series for series in answer if series.samples]
    if not found:
        return None, "no data"
    if len(found) > 1:
        return None, f"{len(found)} series, where the query has to return one"
    (series,) = found
    gap = _gap(series, asked.over, now)
    if gap:
        return None, gap
    values = [sample.value for sample in series.samples]
    shown = sorted({f"{value:g}": value for value in values}.items(), key=lambda entry: entry[1])
    text = shown[0][0] if len(shown) == 1 else f"{shown[0][0]} to {shown[-1][0]}"
    return asked.meets(values), "NaN" if any(value != value for value in values) else text


def fired_alerts(alerts: Iterable[Json], severity: str) -> list[str]:
    """Return the alerts that fire, of a severity and of all worse ones, each with its rule and resource.

    One that a person has closed is over for them, as are those of rules without a state, which Azure never
    resolves: learn.microsoft.com/azure/azure-monitor/alerts/alerts-overview, "Alerts and state".
    """
    found = []
    for alert in alerts:
        about = alert["properties"]["essentials"]
        fires = about.get("monitorCondition") != "Resolved" and about.get("alertState") != "Closed"
        if fires and str(about.get("severity", WORST)) <= severity:
            rule = str(about.get("alertRule") or alert.get("name") or "an alert").rpartition("/")[2]
            target = str(about.get("targetResourceName") or about.get("targetResource") or "").rpartition(
                "/"
            )[2]
            found.append(f"{rule} fires{target and f' for {target}'}")
    return found


def _gap(series: Series, over: timedelta, now: datetime) -> str:
    """Return what is missing of the time of a check, "" for nothing."""
    times = [sample.at for sample in series.samples if sample.at is not None]
    since, slack = now - over, series.step or _FINEST
    if times and (max(times) < since - slack):
        return f"the newest sample is of {max(times):%Y-%m-%d %H:%M:%S} UTC, before the time of the check"
    if times and (min(times) < since - slack or max(times) > now + slack):
        return "samples are of another time than that of the check"
    if series.step is None:
        return ""
    missing = next(
        (start for start, end in pairwise([since, *times, now]) if end - start > _GAP * series.step), None
    )
    return f"no sample for a while after {missing:%H:%M:%S} UTC" if missing else ""
