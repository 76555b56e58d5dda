"""What can be wrong with an app of a fleet, and what its examination says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.doctor import doctor_view
from shared.app.door import epoch_tag
from shared.app.examination import ALERTS, APPS, SENDS, alert_rule, examine
from shared.app.health import Health
from shared.cluster.failures.errors import (
    Dependency,
    Throttled,
    Unauthenticated,
    Unauthorized,
    Unavailable,
)
from shared.configuration.setting_texts import UNRESOLVED
from shared.configuration.settings import App
from shared.github_app import Feature, asked
from shared.kubernetes.kubeconfig import ApiServer
from shared.ports import Ports, Services
from shared.ports.azure import AzureCall, GetTags, ListAlertRules, ListGrants, ListRoleDefinitions
from shared.ports.git_host import HookDelivery
from shared.ports.process import Comparisons
from tests.support.deployed_rights import actions
from tests.support.lost_tables import APP_GROUP
from tests.support.pipeline_runs import ready
from tests.support.replaced_ports import Around

Fault = Callable[[Ports], Ports]
Induced = Callable[[MemoryCloud, str, Ports], None]
"""Has an app examine itself, with a fault."""
IDENTITIES = {app: f"00000000-0000-0000-0000-0000000000c{number}" for number, app in enumerate(APPS)}
FLEET = MemoryCloud().ports.config.fleet
ROLE, OWNER = "00000000-0000-0000-0000-00000000000d", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
AKS = "Microsoft."
AWAY = Unavailable("the API server did not answer")


class Answers:
    """A service that answers, or raises an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def probe(self) -> None:
        """Answer."""
        if self._error is not None:
            raise self._error


def refusing(error: Exception) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise error

    return refuse


PROBES = {
    "credential": "Azure credential",
    "bus": "Service Bus",
    "vault": "Key Vault platform",
}


def with_probes(ports: Ports, **failing: Exception) -> Ports:
    probes: dict[str, Any] = {name: Answers(failing.get(key)) for key, name in PROBES.items()}
    return replace(ports, services=replace(ports.services, probes=probes))


def probe_fails(key: str, error: Exception) -> Fault:
    return lambda ports: with_probes(ports, **{key: error})


def queue_refuses(queue: str, error: Exception | None = None) -> Fault:
    def refuse(ports: Ports) -> Ports:
        refused = refusing(error or Unauthorized(f"the queue {queue} refuses this identity"))
        replaced: dict[str, Any] = {queue: Around(getattr(ports, queue), probe=refused)}
        return replace(ports, **replaced)

    return refuse


def azure_answers(kind: type[AzureCall[Any]], answer: Callable[..., Any]) -> Fault:
    """Return a fault in which Azure answers one operation otherwise, for one app."""

    def change(ports: Ports) -> Ports:
        def call(operation: AzureCall[Any]) -> Any:
            return answer(operation) if isinstance(operation, kind) else ports.azure.call(operation)

        return replace(_started(ports), azure=Around(ports.azure, call=call))

    return change


def only(*granted: str) -> Fault:
    """Return a fault in which the role of an app has these actions alone."""
    role = {"name": ROLE, "properties": {"permissions": [{"actions": [*granted]}]}}

    def assigned(operation: ListGrants) -> list[Any]:
        scope = f"/subscriptions/{operation.target.subscription}"
        return [{"properties": {"scope": scope, "roleDefinitionId": f"{scope}/roleDefinitions/{ROLE}"}}]

    def change(ports: Ports) -> Ports:
        known = azure_answers(ListRoleDefinitions, lambda _: [role])(ports)
        return azure_answers(ListGrants, assigned)(known)

    return change


def elsewhere(operation: ListGrants) -> list[Any]:
    """Return the assignment of a role that allows everything, in another resource group."""
    scope = f"/subscriptions/{operation.target.subscription}/resourceGroups/rg-other"
    return [{"properties": {"scope": scope, "roleDefinitionId": f"{scope}/roleDefinitions/{OWNER}"}}]


def host_fails(error: Exception) -> Fault:
    return lambda ports: replace(ports, git_host=Around(ports.git_host, read_head=refusing(error)))


def granted(**levels: str) -> Fault:
    """Return a fault in which the App has these permissions otherwise, and no other is missing."""
    found = {**asked(tuple(Feature)), **levels}
    return lambda ports: replace(ports, git_host=Around(ports.git_host, permissions=lambda: found))


def token_fails(said: str) -> Fault:
    failing = refusing(Unauthorized(said))
    return lambda ports: replace(ports, git_host=Around(ports.git_host, permissions=failing))


def delivered(*attempts: tuple[float, int]) -> Fault:
    """Return a fault with these attempts to deliver events: hours ago, and the status of the answer."""

    def change(ports: Ports) -> Ports:
        now = ports.clock()
        found = [
            HookDelivery(str(hours), "push", now - timedelta(hours=hours), status)
            for hours, status in attempts
        ]
        return replace(ports, git_host=Around(ports.git_host, deliveries=lambda: found))

    return change


def _exporting(ports: Ports, names: Callable[..., Any]) -> Services:
    return replace(ports.services, exports=Around(ports.services.exports, names=names))


def _started(ports: Ports) -> Ports:
    """Return the ports of a process that has compared nothing yet."""
    return replace(ports, process=replace(ports.process, compared=Comparisons()))


def exported(*days: str) -> Fault:
    names = [f"fleet/{day}.jsonl" for day in days]
    return lambda ports: replace(ports, services=_exporting(ports, lambda _: names))


def exports_fail(error: Exception) -> Fault:
    return lambda ports: replace(ports, services=_exporting(ports, refusing(error)))


def rules(*missing: str, off: str = "") -> Fault:
    """Return a fault in which some rules of alerts are missing, and one is disabled."""
    left = [name for name in ALERTS if name not in missing]
    found = [
        {"name": alert_rule(FLEET, name).upper(), "properties": {"enabled": name != off}} for name in left
    ]
    return azure_answers(ListAlertRules, lambda _: found)


def clock_is_off(seconds: float) -> Fault:
    def off(ports: Ports) -> Ports:
        clock = ports.clock
        wrong = replace(ports, clock=lambda: clock() + timedelta(seconds=seconds))
        return _started(wrong)

    return off


def without_table_time(ports: Ports) -> Ports:
    failing = refusing(Unavailable("Table Storage does not say its time"))
    return replace(_started(ports), table_time=failing)


def setting(name: str, value: str) -> Fault:
    def change(ports: Ports) -> Ports:
        settings = {**ports.config.settings, name: value}
        return replace(ports, config=replace(ports.config, settings=settings))

    return change


def an_api_server_is_away(ports: Ports) -> Ports:
    """Let the API server of a cluster be known that a worker has entered, and not answer."""

    def cluster(name: str) -> Any:
        record = ports.state.cluster(name)
        assert record is not None
        known = replace(record.observation, api_server=ApiServer("https://one.example", "ca"))
        return replace(record, observation=known)

    state: Any = Around(ports.state, cluster=cluster)
    return replace(ports, state=state, kubernetes=Around(ports.kubernetes, connect=refusing(AWAY)))


def examined_as(fault: Fault) -> Induced:
    return lambda _, app, ports: examine(app, fault(ports))


def silent(cloud: MemoryCloud, app: str, ports: Ports) -> None:
    """Let an app never answer."""


def answered_once(cloud: MemoryCloud, app: str, ports: Ports) -> None:
    """Let an app have answered ten minutes ago, and not since."""
    examine(app, ports)
    (row,) = [row for row in cloud.state.examinations() if row.app == app]
    cloud.state.save_examination(replace(row, at=row.at - timedelta(minutes=10)))


def another_version(cloud: MemoryCloud, app: str, ports: Ports) -> None:
    """Let an app run another version."""
    examine(app, ports)
    (row,) = [row for row in cloud.state.examinations() if row.app == app]
    cloud.state.save_examination(replace(row, version="0.0.9"))


IN_AN_APP: Mapping[str, tuple[Fault, str]] = {
    "its clock is ahead": (clock_is_off(60), "the clock of this instance is 5"),
    "its clock is behind": (clock_is_off(-60), "behind that of Table Storage"),
    "its time is unknown": (without_table_time, "the time is not known: Unavailable"),
    "the tables are too old": (
        azure_answers(GetTags, lambda _: {epoch_tag(MemoryCloud().ports.config): "3"}),
        "the tables are older than the epoch 3",
    ),
    "the epoch cannot be read": (
        azure_answers(GetTags, refusing(Unauthorized("the tags of the group are refused"))),
        "the tags of the group are refused",
    ),
    "no token": (probe_fails("credential", Unauthenticated("no identity is assigned")), "no identity"),
    "Entra is away": (probe_fails("credential", Unavailable("Microsoft Entra did not answer")), "Entra"),
    "the bus is away": (probe_fails("bus", Unavailable("the namespace did not answer")), "namespace did"),
    "the vault is away": (probe_fails("vault", Unavailable("the vault platform did not answer")), "vault"),
    "the vault has another tenant": (
        probe_fails("vault", Unauthenticated("the vault platform does not know this tenant")),
        "this tenant",
    ),
    "GitHub refuses it": (host_fails(Unauthenticated("Bad credentials")), "Unauthenticated: Bad"),
    "GitHub hides the repository": (host_fails(Dependency("no such branch")), "no such branch"),
    "GitHub is away": (host_fails(Unavailable("GitHub did not answer")), "GitHub did not answer"),
    "GitHub throttles it": (host_fails(Throttled("the rate limit is used up")), "rate limit is used up"),
    "an examination breaks": (host_fails(RuntimeError("odd")), "the examination has failed: RuntimeError"),
    "plans refuses it": (queue_refuses("plans"), "the queue plans refuses"),
    "jobs refuses it": (queue_refuses("jobs"), "the queue jobs refuses"),
    "changes refuses it": (queue_refuses("changes"), "the queue changes refuses"),
    "deletes refuses it": (queue_refuses("deletes"), "the queue deletes refuses"),
    "jobs is not there": (queue_refuses("jobs", Dependency("there is no queue jobs")), "no queue jobs"),
    "no role is assigned": (azure_answers(ListGrants, lambda _: []), f"has no role with {AKS}"),
    "its role is assigned elsewhere": (azure_answers(ListGrants, elsewhere), f"has no role with {AKS}"),
    "its role reads alone": (only("Microsoft.Resources/*/read"), f"has no role with {AKS}"),
    "it may not read its roles": (
        azure_answers(ListGrants, refusing(Unauthorized("forbidden"))),
        "it may read no role in",
    ),
    "the subscription is not there": (
        azure_answers(ListGrants, refusing(Dependency("The subscription could not be found."))),
        "The subscription could not be found.",
    ),
    "Azure does not answer": (
        azure_answers(ListGrants, refusing(Unavailable("Azure did not answer"))),
        "Azure did not answer",
    ),
    "a secret is not resolved": (
        setting("GITHUB_TOKEN", UNRESOLVED),
        "GITHUB_TOKEN is a reference to Key Vault that Azure has not resolved",
    ),
    "another lease": (setting("LEASE_SECONDS", "30.0"), "LEASE_SECONDS is "),
    "another branch": (setting("GITHUB_BRANCH", "next"), "GITHUB_BRANCH is "),
    "another bus": (setting("SERVICEBUS__FULLYQUALIFIEDNAMESPACE", "old"), "SERVICEBUS__"),
    "other tables": (setting("TABLES_ENDPOINT", "https://old.example"), "TABLES_ENDPOINT is "),
    "another credential": (setting("GITHUB_TOKEN", "secret 000000"), "GITHUB_TOKEN is "),
}
FAULTS: Mapping[str, tuple[Induced, str]] = {
    **{name: (examined_as(fault), said) for name, (fault, said) in IN_AN_APP.items()},
    "it never answers": (silent, "has never answered a question on its queue"),
    "it answers no more": (answered_once, "has not answered a question on its queue since"),
    "another version": (another_version, " 0.0.9"),
}
"""What goes wrong with an app, how, and what is said of it."""
OF_ONE_APP: Sequence[tuple[str, str, Fault, str]] = (
    *(
        (app, f"{queue} refuses it", queue_refuses(queue), f"the queue {queue} refuses")
        for app, queues in SENDS.items()
        for queue in queues
        if queue == "previews"
    ),
    ("control", "a permission is missing", granted(statuses=""), "GitHub lacks Commit statuses: write"),
    ("control", "a permission only reads", granted(checks="read"), "GitHub lacks Checks: write"),
    (
        "control",
        "the token only reads",
        token_fails("the account of GITHUB_TOKEN has no role that writes"),
        "has no role that writes",
    ),
    (
        "control",
        "a webhook is refused",
        delivered((1, 401)),
        "1 of 1 webhooks of the last day did not arrive",
    ),
    ("control", "a webhook has no answer", delivered((2, 202), (1, 0)), "push, got the answer none at"),
    (
        "control",
        "an alert is missing",
        rules("drift", "retries"),
        f"missing: {alert_rule(FLEET, 'drift')}, {alert_rule(FLEET, 'retries')}",
    ),
    (
        "control",
        "an alert is disabled",
        rules(off="unhealthy"),
        f"alert rules: disabled: {alert_rule(FLEET, 'unhealthy')}",
    ),
    (
        "control",
        "it may not read its alerts",
        azure_answers(ListAlertRules, refusing(Unauthorized("the rules of the group are refused"))),
        "the rules of the group are refused",
    ),
    ("control", "exports have ended", exported("2020-01-01"), "is of 2020-01-01"),
    (
        "control",
        "the container refuses it",
        exports_fail(Unauthorized("Blob Storage: AuthorizationPermissionMismatch")),
        "AuthorizationPermissionMismatch",
    ),
    (
        "worker",
        "an API server is away",
        an_api_server_is_away,
        "the API server did not answer",
    ),
)
SETTINGS = {
    "LEASE_SECONDS": "90.0",
    "GITHUB_BRANCH": "main",
    "SERVICEBUS__FULLYQUALIFIEDNAMESPACE": "bus",
    "TABLES_ENDPOINT": "https://tables.example",
    "GITHUB_TOKEN": "secret 1a2b3c",
}


def examined(faults: Mapping[str, Induced] = {}) -> MemoryCloud:
    """Return a fleet whose apps have examined themselves, some with a fault."""
    cloud = ready("one")
    cloud.azure.engine.app_group(APP_GROUP.subscription, APP_GROUP.name)
    for name in ALERTS:
        cloud.azure.offers.put_alert_rule(APP_GROUP.subscription, APP_GROUP.name, alert_rule(FLEET, name))
    cloud.azure.roles.apps = {name: sorted(actions(App(app))) for app, name in IDENTITIES.items()}
    config = replace(cloud.ports.config, settings=SETTINGS, app_group=APP_GROUP, identities=IDENTITIES)
    ports = with_probes(replace(cloud.ports, config=config))
    for app in APPS:
        induce = faults.get(app, examined_as(lambda same: same))
        induce(cloud, app, ports)
    return cloud


def found(cloud: MemoryCloud) -> list[tuple[str, str, str]]:
    view = doctor_view(Health(cloud.ports).read(), cloud.ports)
    assert all(finding["remedy"] and finding["since"] for finding in view["findings"])
    return [(finding["app"], finding["what"], finding["problem"]) for finding in view["findings"]]
