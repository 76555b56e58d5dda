"""One cluster as text for a terminal: facts, events, why it is in its phase, and what blocks its upgrade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.terminal.cluster_table import applied, indented, not_carried_out, phase
from cli.text import printable
from cli.times import age, times, until
from shared.app.api import schema
from shared.azure.companions.compliance import NON_COMPLIANT, NOT_EVALUATED
from shared.cluster.history import by_whom
from shared.sentences import many, some_of

ACTS_SHOWN = 3
RETIREMENTS_SHOWN = 3
STALLED = "Stalled"
"""The one condition that is good when it is false."""


def cluster(
    view: schema.ClusterView | schema.MissingCluster, now: datetime, *, wide: bool = False
) -> RenderableType:
    """Return everything about one cluster; ``wide`` adds its request ids and whole commit."""
    view = printable(view)
    facts = _facts_table()
    facts.add_row("cluster", Text(view["name"]))
    facts.add_row("phase", phase(view["phase"]))
    _add_fleet_problem(facts, view)
    parts: list[RenderableType] = [facts]
    if "generation" in view:
        _add_facts(facts, view, now, wide=wide)
        if view["conditions"]:
            parts += [Text("\nConditions", style="bold"), _conditions(view["conditions"], now)]
    else:
        _add_plan(facts, view["plan"], now)
    if view["events"]:
        parts += [Text("\nEvents, newest first", style="bold"), events(view["events"], now, wide=wide)]
    return Group(*parts)


def _facts_table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _add_facts(table: Table, view: schema.ClusterView, now: datetime, *, wide: bool) -> None:
    table.add_row("generation", Text(f"{view['generation']}, observed {view['observedGeneration']}"))
    table.add_row("commit", Text(view["commit"] if wide else view["commit"][:8]))
    place = f"{view['location']}, {view['resourceGroup']}, {view['subscriptionId']}"
    table.add_row("location", Text(place if view["subscriptionId"] else "outside Azure"))
    running = f"runs {view['runningVersion']}" if view["runningVersion"] else ""
    nodes = many(view["nodes"], "node") if view["nodes"] else ""
    table.add_row("kubernetes", Text(", ".join(filter(None, (view["kubernetesVersion"], running, nodes)))))
    if view["environment"] or view["clusterClass"]:
        of_class = f", class {view['clusterClass']}" if view["clusterClass"] else ""
        table.add_row("environment", Text(f"{view['environment'] or 'none'}{of_class}"))
    if view["labels"]:
        table.add_row("labels", Text(", ".join(f"{key}={text}" for key, text in view["labels"].items())))
    if view["fluxReadAt"]:
        table.add_row("flux", Text(applied(view, now, wide=wide)))
    _add_retirements(table, view["retirements"])
    _add_certificates(table, view["certificates"])
    _add_lifetime(table, view["lifetime"], now)
    _add_policies(table, view.get("policies") or (), now)
    _add_plan(table, view["plan"], now)
    _add_distance(table, view["behind"])
    _add_wait(table, view["rollout"], now)
    if view["step"]:
        place = f"{view['step']}, {view['stepNumber']} of {view['stepCount']}, for {age(view['since'], now)}"
        total = f"; the job for {age(view['jobStartedAt'], now)}" if view["nextCheckAt"] else ""
        table.add_row("step", Text(f"{place}{total}"))
    if view["reason"]:
        table.add_row("reason", Text(view["reason"]))
    if view["nextCheckAt"]:
        table.add_row("next check", Text(until(view["nextCheckAt"], now)))
    if view["actionRequired"]:
        table.add_row("action required", Text(view["actionRequired"]))
    failure = view["failure"]
    if failure:
        tried = f", tried {times(view['attempts'])}" if view["attempts"] else ""
        since = f"{failure['class']}, {age(failure['since'], now)} ago"
        table.add_row("failure", Text(f"{since}{tried}", style="red"))
        if failure["requestId"]:
            table.add_row("request id", failure["requestId"])


def _add_fleet_problem(table: Table, view: schema.FleetProblemView) -> None:
    """Add what prevents a newer commit from being carried out."""
    if view["paused"]:
        table.add_row("fleet", Text(view["paused"], style="bold yellow"))
    if view["problem"]:
        table.add_row("fleet", Text(view["problem"], style="red"))
    if view["waiting"]:
        table.add_row("fleet", Text(view["waiting"], style="yellow"))


def _add_retirements(table: Table, retirements: Sequence[schema.RetirementView]) -> None:
    """Add what AKS retires, soonest first."""
    for retirement in retirements[:RETIREMENTS_SHOWN]:
        table.add_row("retirement", Text(f"{retirement['field']}: {retirement['message']}", style="yellow"))
    if len(retirements) > RETIREMENTS_SHOWN:
        table.add_row("", Text(f"and {len(retirements) - RETIREMENTS_SHOWN} more", style="dim"))


def _add_certificates(table: Table, certificates: Sequence[schema.EndingCertificate]) -> None:
    """Add the certificates of the API server that end soon."""
    for certificate in certificates:
        table.add_row("certificate", Text(certificate["message"], style="red"))


def _add_lifetime(table: Table, lifetime: schema.LifetimeView | None, now: datetime) -> None:
    """Add when the cluster ends, and what keeps it."""
    if lifetime is None or lifetime["endsAt"] is None:
        return
    stays, asked = lifetime["heldUntil"], by_whom(lifetime["by"], lifetime["reason"])
    extended = f"extended by {asked}" if lifetime["extended"] else ""
    parts = (
        f"ends {until(lifetime['endsAt'], now)}",
        f"on hold, which ends {until(stays, now)}, by {asked}" if stays else extended,
        lifetime["waits"],
        lifetime["pullRequest"],
    )
    style = "yellow" if lifetime["waits"] else ""
    table.add_row("lifetime", Text("; ".join(filter(None, parts)), style=style))


def _add_policies(table: Table, policies: Sequence[schema.Policy], now: datetime) -> None:
    """Add what Azure Policy found, each with the time of which it is."""
    for policy in policies:
        style = "red" if policy["state"] == NON_COMPLIANT else ""
        table.add_row("policy", Text(f"{policy['name']}: {_found(policy, now)}", style=style))


def _found(policy: schema.Policy, now: datetime) -> str:
    if not policy["state"]:
        return "not read yet"
    if policy["state"] == NOT_EVALUATED:
        return f"Azure shows no evaluation, read {age(policy['readAt'], now)} ago"
    count = policy["nonCompliant"]
    definitions = f" in {many(count, 'definition')}" if count > 1 else ""
    at = policy["evaluatedAt"]
    evaluated = f"evaluated {age(at, now)} ago" if at else "evaluated at an unknown time"
    return f"{policy['state']}{definitions}, {evaluated}, read {age(policy['readAt'], now)} ago"


def _conditions(conditions: Sequence[schema.ConditionView], now: datetime) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("TYPE", "STATUS", "SINCE", "VERIFIED"):
        table.add_column(name, no_wrap=True)
    table.add_column("MESSAGE", overflow="fold")
    for condition in conditions:
        good = condition["status"] == "True"
        message = condition["message"] or ("" if condition["reason"] == "Done" else condition["reason"])
        table.add_row(
            condition["type"],
            Text(condition["status"], style="green" if good != (condition["type"] == STALLED) else "yellow"),
            age(condition["lastTransitionTime"], now),
            age(condition["lastVerifiedTime"], now),
            Text(message),
        )
    return table


def events(found: Sequence[schema.EventView], now: datetime, *, wide: bool = False) -> RenderableType:
    """Return a line for each event, newest first; ``wide`` adds generations and the ids of requests."""
    if not found:
        return Text("there are no events")
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column("age", no_wrap=True, justify="right")
    table.add_column("time", no_wrap=True)
    if wide:
        table.add_column("generation", no_wrap=True, justify="right")
    table.add_column("reason", no_wrap=True)
    table.add_column("message", overflow="fold")
    for event in printable(found):
        where = f"{event['step']}: " if event["step"] else ""
        requests = f" (request {', '.join(event['requestIds'])})" if wide and event["requestIds"] else ""
        table.add_row(
            age(event["at"], now),
            Text(f"{datetime.fromisoformat(event['at'] or ''):%m-%d %H:%M:%SZ}", style="dim"),
            *([str(event["generation"])] if wide else []),
            Text(event["reason"], style="yellow" if event["type"] == "Warning" else ""),
            Text(f"{where}{event['message']}{requests}"),
        )
    return table


def _add_plan(table: Table, plan: schema.PlanPart | None, now: datetime) -> None:
    """Add what the newest plan does not carry out, and since when."""
    if plan is None or not not_carried_out(plan):
        return
    table.add_row("newest plan", Text(not_carried_out(plan), style="yellow"))
    if plan["since"]:
        table.add_row("", Text(f"for {age(plan['since'], now)}", style="yellow"))


def _add_distance(table: Table, behind: int | None) -> None:
    """Add how far what Flux pulls is behind."""
    if behind:
        table.add_row("platform", Text(f"{many(behind, 'commit')} behind", style="yellow"))


def _add_wait(table: Table, wait: schema.WaitingCluster | None, now: datetime) -> None:
    """Add why a rollout has not changed the cluster yet."""
    if wait is None:
        return
    table.add_row("rollout", Text(wait["waits"], style="yellow"))
    if wait["since"]:
        table.add_row("", Text(f"for {age(wait['since'], now)}", style="yellow"))


def _readiness(found: schema.ClusterReadiness, now: datetime) -> Text:
    """Return whether a cluster is ready for an upgrade, and the first reason why not."""
    to = f" for Kubernetes {found['to']}" if found["to"] else ""
    named = [f"{blocker['object']} {blocker['why']}" for blocker in found["blockers"]] or found["unknown"]
    why = f": {some_of(named, 1, between='; ')}" if named else ""
    style = "" if found["state"] == "ready" else "yellow"
    return Text(f"{found['state']}{to}, read {age(found['readAt'], now)} ago{why}", style=style)


def why(view: schema.Why, now: datetime) -> RenderableType:
    """Return what a cluster does, since when, what was tried, what comes next and what an operator can do."""
    view = printable(view)
    table = _facts_table()
    table.add_row("cluster", Text.assemble(view["name"], ", ", phase(view["phase"])))
    table.add_row("doing", Text(view["doing"]))
    table.add_row("since", Text(f"{view['since']} ({age(view['since'], now)} ago)"))
    if view["comparedAt"]:
        table.add_row("compared", Text(f"with Azure {age(view['comparedAt'], now)} ago"))
    _add_plan(table, view["plan"], now)
    _add_distance(table, view["behind"])
    _add_wait(table, view["rollout"], now)
    _add_fleet_problem(table, view)
    error = view["lastError"]
    if error:
        if view["attempts"]:  # what a sweep or a check found, nobody tried
            table.add_row("tried", Text(f"{times(view['attempts'])} since {error['since']}"))
        kinds = dict.fromkeys(filter(None, (error["class"], error["code"])))
        table.add_row("last error", Text(": ".join(kinds)))
        table.add_row("", Text(error["message"]))
        if error["entry"]:
            table.add_row("meaning", Text(f"{error['meaning']} {error['link']}".rstrip()))
        if error["requestId"]:
            table.add_row("request id", Text(error["requestId"]))
    when = f", {until(view['nextAt'], now)}" if view["nextAt"] else ""
    table.add_row("next", Text(view["next"] + when))
    table.add_row("suggested action", Text(view["suggestedAction"] or "No action needed."))
    _add_retirements(table, view["retirements"])
    if view["retirementsNote"]:
        table.add_row("", Text(view["retirementsNote"], style="dim"))
    _add_certificates(table, view["certificates"])
    _add_lifetime(table, view["lifetime"], now)
    if view["readiness"]:
        table.add_row("upgrade", _readiness(view["readiness"], now))
    for act in view["acts"][:ACTS_SHOWN]:
        who = by_whom(act["by"], act["reason"])
        table.add_row("act", Text(f"{act['action']} {age(act['at'], now)} ago by {who} ({act['result']})"))
    return table


READINESS = {"blocked": "red", "unknown": "yellow", "ready": "green"}
"""The states, in the order in which clusters are shown."""
BLOCKERS_SHOWN = 10
"""So many blockers of a cluster are shown; wide shows all."""


def readiness(view: schema.ReadinessView, now: datetime, *, wide: bool = False) -> RenderableType:
    """Return the clusters with what blocks each, those that are ready last."""
    view = printable(view)
    clusters = view["clusters"]
    if not clusters:
        return Text("no cluster is selected")
    states = Counter(found["state"] for found in clusters)
    counts = ", ".join(f"{states[state]} {state}" for state in READINESS if states[state])
    ordered = sorted(clusters, key=lambda found: [*READINESS].index(found["state"]))
    parts = [part for found in ordered for part in _blockers(found, now, wide=wide)]
    note = Text(f"Deprecated APIs: {view['note']}", style="dim")
    return Group(Text(f"{many(len(clusters), 'cluster')}: {counts}"), *parts, note)


def _blockers(found: schema.ClusterReadiness, now: datetime, *, wide: bool) -> Iterator[RenderableType]:
    to = f" for Kubernetes {found['to']}" if found["to"] else ""
    read = f", read {age(found['readAt'], now)} ago" if found["readAt"] else ""
    state = Text(found["state"], style=READINESS[found["state"]])
    yield Text.assemble(f"{found['name']}: ", state, f"{to}{read}")
    shown = found["blockers"] if wide else found["blockers"][:BLOCKERS_SHOWN]
    for blocker in shown:
        yield indented(Text(f"{blocker['object']} {blocker['why']}", style="red"), 2)
        yield indented(Text(f"{blocker['who']}: {blocker['act']}"), 4)
        if wide:
            yield indented(Text(blocker["source"], style="dim"), 4)
    more = len(found["blockers"]) - len(shown)
    if more:
        yield indented(Text(f"and {many(more, 'more blocker')}: -o wide shows all", style="dim"), 2)
    for unknown in found["unknown"]:
        yield indented(Text(f"unknown: {unknown}", style="yellow"), 2)
    for note in found["notes"]:
        yield indented(Text(f"note: {note}", style="dim"), 2)
    if not found["readAt"]:
        yield indented(Text(f"roadstead ready {found['name']} --wait reads it", style="dim"), 2)
