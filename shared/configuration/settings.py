"""The settings of the function app: read from the environment, and checked once at the start."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr

from shared.app.api.access import Role
from shared.cluster.failures.retry import with_limits
from shared.configuration.setting_texts import (
    UNRESOLVED,
    ApiKey,
    ApiVersion,
    CheckHosts,
    GitUrl,
    Host,
    Installation,
    KnownHosts,
    Networks,
    RegistryHosts,
    RetryLimits,
    Schedule,
    SshKey,
    Teams,
    Vaults,
    Workspaces,
    git_place,
    vault_addresses,
)
from shared.resource_ids import GroupId
from shared.schedules import CLOCK_SKEW

if TYPE_CHECKING:
    from shared.ports import FleetConfig


class App(StrEnum):
    """The apps of a fleet: each runs a part of the functions, with an identity of its own."""

    CONTROL = "control"
    """The webhook, the API, the planner and the timers: no right to change anything in Azure."""
    WORKER = "worker"
    """The jobs that create and change clusters: no right to delete one."""
    DELETER = "deleter"
    """The jobs that delete clusters: no right to change one."""


Principal = Annotated[str, Field(pattern=r"^([0-9a-fA-F-]{36})?$")]
AppGroup = Annotated[
    str, Field(pattern=r"^(/subscriptions/[0-9a-fA-F-]{36}/resource[gG]roups/[^/\s]{1,90})?$")
]
GitHostName = Literal["github", "gitlab", "azure-devops", "git"]
"""The values of GIT_HOST: what is built for each of them follows from this list, or a check names it."""
SWEEP_SCHEDULE = "0 10 */4 * * *"
CHECK_SCHEDULE = "0 40 */4 * * *"
"""When sweeps and checks are requested in an app that was deployed without the settings."""


class Settings(BaseModel):
    """Every setting, named as its environment variable; ``docs/settings.md`` explains each."""

    model_config = ConfigDict(frozen=True)

    roadstead_fleet: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    roadstead_installation: Installation = ""
    """The id of this app on the tags of its clusters, which outlives the tables; infra/ derives it."""
    app_resource_group: AppGroup = ""
    """The resource id of the group of the app, whose tag has the epoch of the tables; infra/ names it."""
    app_principals: str = ""
    """The object or client ids of the apps' identities, separated by commas; infra/ names them."""
    control_principal: Principal = ""
    worker_principal: Principal = ""
    deleter_principal: Principal = ""
    """The object ids of the identities of the apps; infra/ names them."""
    roadstead_app: App | None = None
    """Which functions this app runs; None for all, as on a developer's machine."""

    repository_previous: Annotated[str, Field(pattern=r"^([^/\s]+(/[^/\s]+)*)?$")] = ""
    """What the fleet repository was called before a rename, on any host."""
    git_host: GitHostName = "github"
    """What has the fleet repository: GitHub, GitLab, Azure DevOps, or any git server, which has less."""
    git_url: GitUrl | None = None
    git_branch: str = "main"
    git_username: str = ""
    git_password: SecretStr | None = None
    git_ssh_key: SshKey | None = None
    git_known_hosts: KnownHosts = ""
    """What reads a git server over SSH, and the keys by which that is known."""
    git_webhook_secret: SecretStr | None = None
    git_webhook_secret_previous: SecretStr | None = None
    """What webhooks of GitLab and Azure DevOps have; those of GitHub have ``github_webhook_secret``."""

    github_repository: Annotated[str, Field(pattern=r"^([^/\s]+/[^/\s]+)?$")] = ""
    github_branch: str = "main"
    github_api_url: str = "https://api.github.com"
    github_token: SecretStr | None = None
    github_app_id: str = ""
    github_app_private_key: SecretStr | None = None
    github_app_installation_id: int = 0
    github_webhook_secret: SecretStr | None = None
    github_webhook_secret_previous: SecretStr | None = None

    flux_git_username: str = "git"
    flux_git_password: SecretStr | None = None
    flux_git_host: Host = "github.com"
    kustomize: str = ""
    """The path of kustomize or kubectl, which builds what Flux applies; "" for that of the package."""

    always_ready_instances: Annotated[int, Field(ge=0, le=1000)] | None = None
    """How many instances of all apps are always ready, for what the app itself costs; infra/ says it."""

    key_vaults: Vaults = ""
    """The vaults that manifests may name, by their addresses: no manifest says where a vault is."""

    github_setup_vault: Vaults = ""
    """The vault of the app's own secrets, where it may write those of its GitHub App; "" for none."""

    registries: RegistryHosts = ""
    """The registries of artifacts that clusters may follow by rollout: no manifest says whom the app asks."""

    kubeconfig_networks: Networks = ""
    """The only networks to which kubeconfigs of attached clusters may lead; "" for any but special ones."""

    rollout_check_hosts: CheckHosts = ""
    """The hosts that checks of gates may ask: no manifest allows itself one."""
    rollout_check_networks: Networks = ""
    """The only networks in which these hosts may be; "" for any but special ones."""
    azure_monitor_workspaces: Workspaces = ""
    """The workspaces that checks of gates may query as the app: no manifest allows itself one."""

    aks_vulnerability_url: str = "https://cve-api.prod-aks.azure.com"
    """Where AKS publishes the vulnerabilities of its images and versions; "" where nobody is asked."""

    reaches_private_clusters: bool = False
    """Whether the app is in a network that reaches private API servers."""

    sign_in: Literal["entra", "keys"] = "keys"
    api_key_reader: ApiKey | None = None
    api_key_operator: ApiKey | None = None
    api_key_approver: ApiKey | None = None
    api_key_admin: ApiKey | None = None
    website_auth_enabled: bool = False
    """Set by Azure: whether App Service Authentication is on."""

    servicebus: SecretStr | None = None
    """A connection string. Without it, ``ServiceBus__fullyQualifiedNamespace`` and the app's identity."""
    servicebus__fullyqualifiednamespace: str | None = None
    tables_connection_string: SecretStr | None = None
    tables_endpoint: str | None = None
    exports_connection_string: SecretStr | None = None
    exports_url: str | None = None
    """The container to which acts, events and plans are exported once a day; without one, they are not."""

    azure_resource_manager_url: str = "https://management.azure.com"
    aks_api_version: ApiVersion = ""
    resources_api_version: ApiVersion = ""

    website_hostname: str | None = None
    """Set by Azure Functions."""
    public_url: str | None = None

    applicationinsights_connection_string: SecretStr | None = None
    """Set by infra/: where metrics and traces go."""
    otel_exporter_otlp_endpoint: Annotated[str, Field(pattern=r"^(https?://\S+)?$")] = ""
    """A collector that takes OTLP over HTTP."""
    otel_exporter_otlp_headers: SecretStr | None = None
    """Read by the exporter itself; here it is masked."""

    lease_seconds: Annotated[float, Field(ge=5, le=280)] = 90
    poll_seconds: Annotated[float, Field(ge=0.5, le=300)] = 20
    lag_seconds: Annotated[float, Field(ge=1, le=120)] = 20
    clock_skew_seconds: Annotated[float, Field(ge=0, le=CLOCK_SKEW.total_seconds())] = (
        CLOCK_SKEW.total_seconds()
    )
    """Tokens of Azure's limits are reserved for clocks that differ by twice this (``rate_limits.SLACK``)."""
    approval_by_others: bool = False
    approval_teams: Teams = ""
    """Teams on GitHub, as "owner/slug", separated by commas."""
    acts_days: Annotated[int, Field(ge=7, le=3650)] = 365
    plan_schedule: Schedule = ""
    resend_schedule: Schedule = ""
    retention_schedule: Schedule = ""
    sweep_schedule: Schedule = SWEEP_SCHEDULE
    check_schedule: Schedule = CHECK_SCHEDULE
    unhealthy_minutes: Annotated[float, Field(ge=0, le=1440)] = 30
    retry_limits: RetryLimits = ""
    _notify: Mapping[str, SecretStr] = PrivateAttr(default_factory=dict)
    _approval_keys: Mapping[str, SecretStr] = PrivateAttr(default_factory=dict)

    @property
    def notify(self) -> Mapping[str, SecretStr]:
        """The addresses of notifications and their secrets: every setting NOTIFY_<name>, by that name."""
        return self._notify

    @property
    def approval_keys(self) -> Mapping[str, SecretStr]:
        """The keys of systems that approve stages: every setting APPROVAL_KEY_<name>, by that name."""
        return self._approval_keys

    @property
    def named_approval_keys(self) -> dict[str, SecretStr]:
        """The same keys by the names of their settings."""
        return {f"APPROVAL_KEY_{name}": value for name, value in self.approval_keys.items()}

    @property
    def apps(self) -> Sequence[App]:
        """The apps whose functions this one runs."""
        return tuple(App) if self.roadstead_app is None else (self.roadstead_app,)

    @property
    def reads_by_ssh(self) -> bool:
        """Whether the fleet repository is read over SSH."""
        return self.git_host != "github" and (self.git_url or "").startswith("ssh://")

    @property
    def webhook_secrets(self) -> tuple[str, ...]:
        """The secrets that a webhook of the host may have, the current one first."""
        both = (self.git_webhook_secret, self.git_webhook_secret_previous)
        if self.git_host in ("github", "git"):
            both = (self.github_webhook_secret, self.github_webhook_secret_previous)
        return tuple(secret.get_secret_value() for secret in both if secret)

    @property
    def form_secrets(self) -> tuple[str, ...]:
        """What signs the forms and the sessions of the console, none where no setting may.

        Whoever knows it can act as any role where people sign in with keys. So it is no key but an Admin's. A
        webhook's secret comes after it: others know that, and Azure DevOps sends it with each delivery.
        """
        admins = (key for key, role in self.api_keys.items() if role is Role.ADMIN)
        return tuple(admins) or self.webhook_secrets

    @property
    def api_keys(self) -> Mapping[str, Role]:
        """The role of each key of the API."""
        given = {role: getattr(self, f"api_key_{role.lower()}") for role in Role}
        return {key.get_secret_value(): role for role, key in given.items() if key}

    @property
    def api_versions(self) -> Mapping[str, str]:
        """The API version for each service of Azure Resource Manager, "" for the library's own."""
        return {"containerservice": self.aks_api_version, "resource": self.resources_api_version}

    @property
    def fleet_config(self) -> FleetConfig:
        """The settings that the pipeline needs."""
        from shared.kubernetes.flux_objects import GitCredentials
        from shared.ports import ApprovalRules, FleetConfig, History, Timing

        password = self.flux_git_password
        user, of_git = self.flux_git_username, self.git_host != "github"
        git_server, repository = git_place(self.git_url or "") if of_git else ("", self.github_repository)
        if not of_git or "flux_git_host" in self.model_fields_set:
            git_server = self.flux_git_host
        credentials = GitCredentials(user, password.get_secret_value(), git_server) if password else None
        host = f"https://{self.website_hostname}" if self.website_hostname else ""
        return FleetConfig(
            fleet=self.roadstead_fleet,
            repository=repository,
            branch=self.git_branch if of_git else self.github_branch,
            installation=self.roadstead_installation,
            app_group=_group(self.app_resource_group),
            warm_instances=self.always_ready_instances,
            principals=frozenset(filter(None, map(str.strip, self.app_principals.lower().split(",")))),
            identities={app: getattr(self, f"{app}_principal").lower() for app in App},
            public_url=(self.public_url or host).rstrip("/"),
            timing=Timing(
                lease_seconds=self.lease_seconds,
                poll_seconds=self.poll_seconds,
                lag_seconds=self.lag_seconds,
                clock_skew=timedelta(seconds=self.clock_skew_seconds),
                unhealthy_seconds=60 * self.unhealthy_minutes,
                retries=with_limits(self.retry_limits),
            ),
            vaults=frozenset(vault_addresses(self.key_vaults)),
            reaches_private=self.reaches_private_clusters,
            git_server=git_server,
            git_credentials=credentials,
            approvals=ApprovalRules(
                self.approval_by_others,
                tuple(filter(None, map(str.strip, self.approval_teams.split(",")))),
            ),
            history=History(act_days=self.acts_days),
            settings=self.shown,
            previous_repository=self.repository_previous,
            timers=self.timers,
        )

    @property
    def timers(self) -> Mapping[str, str]:
        """The schedules of the timers, by the names of their functions; none in an app without timers."""
        known = {
            "plan_missed_head": self.plan_schedule,
            "resend_overdue": self.resend_schedule,
            "purge_expired": self.retention_schedule,
            "sweep": self.sweep_schedule,
            "check": self.check_schedule,
        }
        return known if App.CONTROL in self.apps else {}

    @property
    def shown(self) -> Mapping[str, str]:
        """The settings that are set, by name; of a secret, 24 bits of a hash, which show that it changed."""
        values = {name.upper(): getattr(self, name) for name in type(self).model_fields}
        values |= {f"NOTIFY_{name}": value for name, value in self.notify.items()}
        values |= self.named_approval_keys
        return {
            name: _trace(self.roadstead_fleet, name, value) if isinstance(value, SecretStr) else str(value)
            for name, value in values.items()
            if value not in (None, "")
        }

    @property
    def has_exports(self) -> bool:
        """Whether acts, events and plans are exported."""
        return bool(self.exports_connection_string or self.exports_url)

    @property
    def has_telemetry(self) -> bool:
        """Whether metrics and traces go anywhere."""
        return bool(self.applicationinsights_connection_string or self.otel_exporter_otlp_endpoint)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret value, so that texts can be masked."""
        values = (getattr(self, name) for name in type(self).model_fields)
        own = [value for value in values if isinstance(value, SecretStr)]
        named = (*self.approval_keys.values(), *self.notify.values())
        return tuple(value.get_secret_value() for value in (*own, *named))


def _group(resource: str) -> GroupId | None:
    """Return the group that a resource id names, None for ""."""
    parts = resource.split("/")
    return GroupId(parts[2], parts[4]) if resource else None


def _trace(fleet: str, name: str, secret: SecretStr) -> str:
    """Return too few bits of a secret's hash to find it by guessing, or that it is none.

    App Service leaves a reference to Key Vault as it is where the app may not read the secret, or there is
    none: learn.microsoft.com/azure/app-service/app-service-key-vault-references.
    """
    if secret.get_secret_value().startswith("@Microsoft.KeyVault("):
        return UNRESOLVED
    digest = hashlib.sha256(f"{fleet}:{name}:{secret.get_secret_value()}".encode()).hexdigest()
    return f"secret {digest[:6]}"


def secret_text(secret: SecretStr | None) -> str:
    """Return a secret's value, "" when it is not set."""
    return secret.get_secret_value() if secret else ""
