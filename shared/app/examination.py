"""An app examines itself: its clock, its identity, its way to every service, as its own queue asks.

Only control has HTTP, and each app has an identity of its own. So what an app may do is found by that app. It
saves one record, whatever it finds, also where the door is shut.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial

from shared.app.access.context import ClusterAccess
from shared.app.door import NotReady, enter, newer_epoch, time_now
from shared.azure.availability.permissions import assigned, grants_of, lacking_in_subscription, roles_of
from shared.cluster.failures.errors import Dependency, ReconcileError, Unauthorized, Unreadable
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.configuration.setting_texts import KNOWN_HOSTS, READING, SSH_KEY, UNRESOLVED
from shared.frozen import dataclass, field, replace
from shared.github_app import PERMISSIONS, Feature
from shared.ports import Ports
from shared.ports.azure import ListAlertRules, ListGrants, ListRoleDefinitions
from shared.ports.services import newest_day
from shared.ports.state.readiness import Examination, ExaminationFinding
from shared.resource_ids import GroupId, SubscriptionId
from shared.sentences import some_of
from shared.version import VERSION

log = logging.getLogger(__name__)

APPS: Mapping[str, str] = {"control": "plans", "worker": "jobs", "deleter": "deletes"}
"""A queue that each app alone receives from."""
SENDS: Mapping[str, tuple[str, ...]] = {
    "control": ("plans", "previews", "jobs", "changes", "deletes"),
    "worker": ("plans", "previews", "jobs", "changes", "deletes"),
    "deleter": ("plans", "jobs", "changes", "deletes"),
}
"""The queues to which the identity of each app may send, as ``infra/servicebus.bicep`` has it."""
ALERTS = (
    *("clusters-failed", "no-measurement", "unhealthy", "drift", "gaps-repaired", "queue-age", "jobs-failed"),
    *("retries", "plans-failed", "queue-delay", "time-to-ready", "dead-letters", "waiting-messages"),
    *("webhooks-unsigned", "azure-events-dropped"),
)
"""The alerts of a fleet, as ``infra/alerts.bicep`` has them."""
NAME = "FUNCTION_APP_NAME"
_DEPLOY = "run the deployment again: it assigns the roles and writes the settings"


_ASSIGN = (
    "`az deployment sub create --subscription {} --location REGION --template-file infra/access.bicep "
    "--parameters identities=IDENTITIES`"
)
_NAMED = 2
_DAY = timedelta(days=1)

_OVER_SSH: Mapping[str, str] = {
    SSH_KEY: "write a private key without a passphrase into the secret git-ssh-key, and restart {}",
    KNOWN_HOSTS: "compare what `ssh-keyscan` shows with what the owner of the server publishes, write it "
    "into the parameter gitKnownHosts, and deploy: docs/how-to/connect-git.md#over-ssh",
    READING: "give the public half of the key the right to read the repository, on the git server; "
    "`ssh-keygen -y -f FILE` shows it. Of a new key, restart {}",
}
"""What mends a git server that is read over SSH, by the code of the error."""


@dataclass(frozen=True)
class ExaminationPart:
    """A part of an examination: what is asked, how, and what mends it.

    Where an error has a code of ``by_code``, that is what is wrong, and has a remedy of its own.
    """

    what: str
    ask: Callable[[], object]
    remedy: str
    by_code: Mapping[str, str] = field(default_factory=dict)


def command_of(host: str) -> str:
    """Return how the command calls a git host: azure-devops for Azure DevOps."""
    return host.lower().replace(" ", "-")


def guide_of(host: str) -> str:
    """Return the page on a git host."""
    return f"docs/how-to/connect-{command_of(host)}.md"


def function_app(app: str) -> str:
    """Return how documents call the function app."""
    return NAME if app == "control" else f"{NAME}-{app}"


def alert_rule(fleet: str, alert: str) -> str:
    """Return the name of the rule of an alert in Azure."""
    return f"roadstead-{fleet}-{alert}"


def examine(app: str, ports: Ports) -> None:
    """Save what an app finds of itself; a problem that lasts keeps the time of its first examination."""
    now = time_now(ports)
    former = {known.app: known for known in ports.state.examinations()}.get(app)
    since = {(finding.what, finding.problem): finding.since for finding in former.findings} if former else {}
    problems = map(_problem_of, parts_of(app, ports))
    findings = tuple(
        ExaminationFinding(part.what, problem, part.remedy, since.get((part.what, problem), now))
        for part, problem in problems
        if problem
    )
    for finding in findings:
        log.warning("%s: %s: %s; %s", app, finding.what, finding.problem, finding.remedy)
    settings, functions = dict(ports.config.settings), tuple(sorted(ports.process.functions()))
    ports.state.save_examination(Examination(app, now, VERSION, settings, findings, functions))


def parts_of(app: str, ports: Ports) -> Iterator[ExaminationPart]:
    """Yield what an app asks of itself."""
    name, host = function_app(app), ports.git_host
    restart = f"`az functionapp restart --name {name}`"
    yield ExaminationPart("clock", lambda: enter(ports), restart)
    if ports.config.app_group is not None:
        yield ExaminationPart(
            "epoch of the tables",
            lambda: _is_current(ports),
            f"{_DEPLOY}; where tables were lost or restored, docs/how-to/recover-from-a-disaster.md",
        )
    yield ExaminationPart(
        host.name,
        lambda: host.read_head(ports.config.branch),
        f"renew {host.credential}, or give it access to the repository, and restart {name}",
        {code: remedy.format(name) for code, remedy in _OVER_SSH.items()},
    )
    for queue in SENDS[app]:
        sender = getattr(ports, queue)
        yield ExaminationPart(
            f"queue {queue}", sender.probe, f"{_DEPLOY}; {name} needs Azure Service Bus Data Sender"
        )
    for service, probe in ports.services.probes.items():
        yield ExaminationPart(
            service, probe.probe, f"`az functionapp identity show --name {name}`; {_DEPLOY}"
        )
    for setting, value in ports.config.settings.items():
        if value == UNRESOLVED:
            remedy = (
                f"`az keyvault secret show --vault-name VAULT --name SECRET`, {name} needs Key Vault Secrets "
                f"User there; then {restart}"
            )
            yield ExaminationPart(f"setting {setting}", partial(_is_unresolved, setting), remedy)
    principal = ports.config.identities.get(app, "")
    for subscription in _subscriptions(ports) if principal else ():
        rights = partial(_has_rights, app, principal, subscription, ports)
        yield ExaminationPart(f"roles in {subscription}", rights, _ASSIGN.format(subscription))
    if app == "control":
        yield from _of_control(ports)
    entered = _to_enter(ports) if app == "worker" else None
    if entered is not None:
        remedy = f"`roadstead why {entered.name}`; docs/troubleshooting.md"
        yield ExaminationPart(f"API server of {entered.name}", partial(_enter, entered, ports), remedy)


def _of_control(ports: Ports) -> Iterator[ExaminationPart]:
    """Yield what control asks for all apps: they have one credential, one webhook and one export."""
    host = ports.git_host
    set_up = f"roadstead setup {command_of(host.name)} {ports.config.fleet}"
    yield ExaminationPart(
        f"permissions on {host.name}",
        partial(_has_permissions, ports),
        f"give them on the page of the App on {host.name} (Permissions), and have an owner accept them; of a "
        "token, give its account the role Write: docs/how-to/connect-github.md",
    )
    yield ExaminationPart(
        "webhook",
        partial(_webhooks_arrive, ports),
        f"after 401, `{set_up} --rotate-webhook-secret`; after 0 or 5xx, redeliver on {host.name}, and "
        f"`roadstead sync`; one that is disabled, `{set_up}`: {guide_of(host.name)}",
    )
    yield ExaminationPart(
        "export",
        partial(_is_exported, ports),
        f"{_DEPLOY}; the log of purge_expired has the error: docs/how-to/back-up.md",
    )
    if (group := ports.config.app_group) is not None:
        yield ExaminationPart(
            "alerts",
            partial(_alerts_are_on, group, ports),
            f"`az monitor scheduled-query update -g {group.name} --name RULE --disabled false`; "
            f"where one is missing, {_DEPLOY}",
        )


def _has_permissions(ports: Ports) -> None:
    """Raise Unauthorized where the credential lacks a permission that this fleet uses."""
    granted = ports.git_host.permissions()
    if granted is None:
        return
    missing = [
        f"{permission.shown}: {permission.level}"
        for permission in PERMISSIONS
        if (permission.feature is None or permission.feature in _features(ports))
        and granted.get(permission.name) not in (permission.level, "write")
    ]
    if missing:
        raise Unauthorized(f"the App on {ports.git_host.name} lacks {', '.join(missing)}")


def _features(ports: Ports) -> Iterator[Feature]:
    """Yield what the fleet uses beyond what each one needs, as of its last plan."""
    if ports.reviewers:
        yield Feature.TEAMS
    with suppress(Unreadable):
        rules = ports.state.fleet().rules
        if rules.proposes:
            yield Feature.PROPOSALS
        if any(route.type == "issues" for route in rules.routes):
            yield Feature.ISSUES


def _webhooks_arrive(ports: Ports) -> None:
    """Raise Dependency where an event of the last day arrived in no attempt to deliver it."""
    found = ports.git_host.deliveries() or ()
    since = time_now(ports) - _DAY
    recent = [delivery for delivery in found if delivery.at >= since]
    arrived = {delivery.event_id for delivery in recent if delivery.arrived}
    lost = {delivery.event_id: delivery for delivery in recent if delivery.event_id not in arrived}
    if lost:
        newest = max(lost.values(), key=lambda delivery: delivery.at)
        success = max((delivery.at for delivery in recent if delivery.arrived), default=None)
        last = f"the last that did at {success:%H:%M:%S} UTC" if success else "none did"
        raise Dependency(
            f"{len(lost)} of {len(lost) + len(arrived)} webhooks of the last day did not arrive, {last}; the "
            f"newest, {newest.kind}, got the answer {newest.status or 'none'} at {newest.at:%H:%M:%S} UTC"
        )


def _is_exported(ports: Ports) -> None:
    """Raise Dependency where the last export is older than two days; a new fleet has none yet."""
    last = newest_day(ports.services.exports, ports.config.fleet)
    if last is not None and last < (time_now(ports) - 2 * _DAY).date():
        raise Dependency(f"the last export of what only tables have is of {last}")


def _alerts_are_on(group: GroupId, ports: Ports) -> None:
    """Raise Dependency where a rule of an alert is missing or disabled."""
    enabled = {
        str(rule["name"]).lower(): rule["properties"]["enabled"]
        for rule in ports.azure.call(ListAlertRules(group))
    }
    rules = [alert_rule(ports.config.fleet, alert) for alert in ALERTS]
    missing = [rule for rule in rules if rule.lower() not in enabled]
    off = [rule for rule in rules if enabled.get(rule.lower()) is False]
    found = [
        f"{state} {some_of(names, _NAMED)}"
        for names, state in ((missing, "missing:"), (off, "disabled:"))
        if names
    ]
    if found:
        raise Dependency(f"alert rules: {'; '.join(found)}")


def _is_unresolved(setting: str) -> None:
    raise Dependency(f"{setting} is {UNRESOLVED}: the secret is not there, or this app may not read it")


def _subscriptions(ports: Ports) -> list[str]:
    """Return the subscriptions with clusters, and those that shared files name."""
    found = {summary.place.subscription.lower() for summary in ports.state.summaries()}
    with suppress(Unreadable):
        found |= {*ports.state.fleet().rules.subscriptions}
    return sorted(filter(None, found))


def _has_rights(app: str, principal: str, subscription: str, ports: Ports) -> None:
    """Raise Unauthorized where no assignment of a role allows what the app does in a subscription.

    A right to write is proven by its assignment: nothing is written to try it. The two reads take no token of
    Azure's limits: a clock that is wrong would reserve tokens of another time.
    """
    target = SubscriptionId(subscription)
    try:
        assignments = ports.azure.call(ListGrants(target, principal))
        roles = ports.azure.call(ListRoleDefinitions(target))
    except Unauthorized as error:
        raise Unauthorized(f"it may read no role in {subscription}, so it has none there") from error
    grants = grants_of(assigned(assignments), roles_of(roles))
    missing = lacking_in_subscription(app, subscription, grants)
    if missing:
        raise Unauthorized(
            f"the identity {principal} has no role with {some_of(missing, _NAMED)} in {subscription}"
        )


def _to_enter(ports: Ports) -> ClusterRecord | None:
    """Return a Ready cluster whose API server a worker has entered with a token of the app."""
    for summary in ports.state.summaries():
        if summary.phase is Phase.READY and summary.place.subscription:
            with suppress(Unreadable):
                record = ports.state.cluster(summary.name)
                if record is not None and record.observation.api_server is not None:
                    return record
    return None


def _enter(record: ClusterRecord, ports: Ports) -> None:
    ClusterAccess(record, ports).connect(record.desired.id).check()


def _is_current(ports: Ports) -> None:
    newer = newer_epoch(ports.state.fleet(), ports)
    if newer:
        raise NotReady(f"the tables are older than the epoch {newer}, so no job goes on", ports.clock())


def _problem_of(part: ExaminationPart) -> tuple[ExaminationPart, str]:
    """Return a part with what is wrong with it, "" for nothing; never raises."""
    try:
        part.ask()
    except NotReady as error:
        return part, str(error)
    except ReconcileError as error:
        if error.code in part.by_code:
            part = replace(part, what=error.code, remedy=part.by_code[error.code])
        return part, f"{error.kind}: {error}"
    except Exception as error:
        log.exception("%s: the examination has failed", part.what)
        return part, f"the examination has failed: {type(error).__name__}"
    return part, ""
