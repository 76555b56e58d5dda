"""What is wrong with the apps of a fleet: what each found of itself, how they differ, what health shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from shared.app.api import schema
from shared.app.api.projection import exact, projected
from shared.app.examination import APPS, function_app, guide_of
from shared.app.health import HealthReading
from shared.cluster.failures.errors import Unreadable
from shared.ports import FleetRecord, Ports
from shared.ports.state.readiness import Examination, ExaminationFinding

OLD = timedelta(minutes=5)
"""How old an examination may be that answers a question of now: an app starts from zero."""
GAP = timedelta(days=1)
OWN = frozenset(
    {
        *("ROADSTEAD_APP", "WEBSITE_HOSTNAME", "PUBLIC_URL", "SIGN_IN", "WEBSITE_AUTH_ENABLED", "KEY_VAULTS"),
        "GITHUB_SETUP_VAULT",
        *("FLUX_GIT_HOST", "FLUX_GIT_USERNAME", "ROLLOUT_CHECK_HOSTS", "ROLLOUT_CHECK_NETWORKS"),
        "AZURE_MONITOR_WORKSPACES",
        *("PLAN_SCHEDULE", "RESEND_SCHEDULE", "RETENTION_SCHEDULE", "SWEEP_SCHEDULE", "CHECK_SCHEDULE"),
    }
)
"""The settings that one app has, and another one has otherwise; of all others, all have one value."""
_RECORD = "docs/troubleshooting.md#a-record-cannot-be-read"
_LIST = (
    "`az functionapp function list --name {}`: it starts, and each function is indexed; its log says why not"
)


def doctor_view(reading: HealthReading, ports: Ports, asked: datetime | None = None) -> schema.DoctorView:
    """Return the last examination of each app, and all findings, those of control's health among them."""
    known = {row.app: row for row in ports.state.examinations()}
    findings = [(row.app, finding) for row in known.values() for finding in row.findings]
    findings += absent(known, asked or reading.at - OLD, reading.at)
    findings += differences([known[app] for app in APPS if app in known])
    try:
        fleet = ports.state.fleet()
    except Unreadable as error:  # as after a way back, until the newer version is there again
        fleet = FleetRecord()
        findings.append(
            ("control", ExaminationFinding("record of the fleet", str(error), _RECORD, reading.at))
        )
    findings += of_control(reading, fleet, ports.state.count_dead_letters(), ports.git_host.name)
    return {
        "apps": [
            projected(schema.ExaminedApp, row, app=app, examinedAt=exact(row.at) if row else None)
            for app in APPS
            for row in [known.get(app)]
        ],
        "findings": [
            projected(schema.FindingView, finding, app=app) for app, finding in dict.fromkeys(findings)
        ],
    }


def absent(
    known: Mapping[str, Examination], asked: datetime, now: datetime
) -> Iterator[tuple[str, ExaminationFinding]]:
    """Yield the apps that have not answered since a time."""
    for app in APPS:
        row, remedy = known.get(app), _LIST.format(function_app(app))
        if row is None:
            said = f"the app {app} has never answered a question on its queue"
            yield app, ExaminationFinding("app", said, remedy, now)
        elif row.at < asked:
            said = f"the app {app} has not answered a question on its queue since its last examination"
            yield app, ExaminationFinding("app", said, remedy, row.at)


def differences(rows: Sequence[Examination]) -> Iterator[tuple[str, ExaminationFinding]]:
    """Yield in what two apps differ that are to be alike: their version, and the settings of all."""
    for first, second in pairwise(rows):
        since = max(first.at, second.at)
        if first.version != second.version:
            said = f"{second.app} runs {second.version}, and {first.app} {first.version}"
            remedy = f"publish one version to {function_app(first.app)} and {function_app(second.app)}"
            yield second.app, ExaminationFinding("version", said, remedy, since)
        for name in sorted((first.settings.keys() & second.settings.keys()) - OWN):
            mine, others = second.settings[name], first.settings[name]
            if mine != others:
                said = f"{name} is {mine} in {second.app}, and {others} in {first.app}"
                name_of = function_app(second.app)
                remedy = f"`az functionapp config appsettings set --name {name_of} --settings {name}=VALUE`"
                yield second.app, ExaminationFinding(f"setting {name}", said, remedy, since)


def of_control(
    reading: HealthReading, fleet: FleetRecord, letters: int, host: str = "GitHub"
) -> Iterator[tuple[str, ExaminationFinding]]:
    """Yield what control knows: timers, credentials, missed webhooks, dead letters, unreadable records."""
    app, now = "control", reading.at
    for timer in reading.timers:
        if timer.problem:
            remedy = f"{_LIST.format(function_app(app))}; a disabled timer is enabled in its settings"
            yield app, ExaminationFinding(f"timer {timer.name}", timer.problem, remedy, timer.last_run or now)
    for credential in reading.credentials:
        if credential.problem:
            yield (
                app,
                ExaminationFinding(credential.name, credential.problem, f"renew {credential.name}", now),
            )
    last = fleet.gaps.last
    if last is not None and now - last.found <= GAP:
        said = f"no webhook had {last.commit[:8]} planned"
        remedy = f"see the last deliveries of the webhook on the git host: {guide_of(host)}"
        yield app, ExaminationFinding("webhook", said, remedy, last.found)
    if letters:
        said = f"{letters} dead letter{'s' * (letters > 1)}"
        yield app, ExaminationFinding("dead letters", said, "`roadstead dead-letters`", now)
    for record in reading.unreadable or ():
        yield app, ExaminationFinding(f"record {record.key}", record.problem, _RECORD, now)
    if fleet.problem is not None:
        yield app, ExaminationFinding("plan", str(fleet.problem), fleet.problem.suggested_action, now)
