"""Settings: each wrong one is named, no secret in a message, and a complete example file."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from shared.cluster.queues.messages import CLOCKS_DIFFER
from shared.configuration.load_settings import SettingsError, load_settings
from shared.configuration.setting_texts import vault_addresses
from shared.configuration.settings import Settings
from shared.masking import Masker

EXAMPLE = Path(__file__).parent.parent / "local.settings.example.json"
VALUES: dict[str, str] = json.loads(EXAMPLE.read_text())["Values"]
HOST_OWN = {
    "FUNCTIONS_WORKER_RUNTIME",
    "PYTHON_THREADPOOL_THREAD_COUNT",
    "AzureWebJobsStorage",
    "PLAN_SCHEDULE",
    "RESEND_SCHEDULE",
    "RETENTION_SCHEDULE",
}
LIBRARIES_OWN = {"REQUESTS_CA_BUNDLE", "IDENTITY_ENDPOINT", "IDENTITY_HEADER"}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VALUES, *(field.upper() for field in Settings.model_fields)):
        monkeypatch.delenv(name, raising=False)


EXAMPLE_ROUTES = {"TEAMS_WEBHOOK_URL"}
"""The addresses of the example fleet's routes."""


def put(monkeypatch: pytest.MonkeyPatch, **changes: str) -> None:
    for name, value in (VALUES | changes).items():
        monkeypatch.setenv(name, value)


def test_a_copy_of_the_example_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch)
    settings = load_settings()
    assert settings.roadstead_fleet == "example"
    assert settings.webhook_secrets == ("local-webhook-secret",)
    assert settings.fleet_config.public_url == "http://127.0.0.1:7071"
    assert settings.fleet_config.git_credentials is not None


def test_the_example_names_only_settings_that_are_read() -> None:
    all_names = {field.lower() for field in Settings.model_fields}
    extra = {name for name in VALUES if name.lower() not in all_names} - HOST_OWN - LIBRARIES_OWN
    assert extra == {f"NOTIFY_{name}" for name in EXAMPLE_ROUTES}
    assert set(load_settings(VALUES).notify) == EXAMPLE_ROUTES


def test_clocks_differ_by_five_seconds_unless_a_setting_says_otherwise() -> None:
    own = {name: value for name, value in VALUES.items() if name != "CLOCK_SKEW_SECONDS"}
    assert load_settings(own).fleet_config.clocks_differ == CLOCKS_DIFFER
    assert load_settings(VALUES).fleet_config.clocks_differ == timedelta(), "a machine has one clock"


@pytest.mark.parametrize("app", ["", "control", "worker", "deleter"])
def test_an_app_with_timers_needs_their_schedules(monkeypatch: pytest.MonkeyPatch, app: str) -> None:
    put(monkeypatch, ROADSTEAD_APP=app, PLAN_SCHEDULE="", RESEND_SCHEDULE="", RETENTION_SCHEDULE="")
    if app in ("worker", "deleter"):
        assert load_settings().timers == {}
        return
    with pytest.raises(SettingsError, match="PLAN_SCHEDULE; RESEND_SCHEDULE; RETENTION_SCHEDULE"):
        load_settings()


def test_both_webhook_secrets_are_accepted_the_current_one_first(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, GITHUB_WEBHOOK_SECRET_PREVIOUS="older-secret")
    assert load_settings().webhook_secrets == ("local-webhook-secret", "older-secret")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_end_of_a_line_that_a_file_or_an_echo_adds_is_no_part_of_a_secret(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    key = f"-----BEGIN KEY-----{end}AAAA{end}-----END KEY-----{end}"
    app = {"GITHUB_APP_ID": f"1{end}", "GITHUB_APP_INSTALLATION_ID": "2", "GITHUB_APP_PRIVATE_KEY": key}
    notify = f"https://example.com/hook{end}"
    secrets = {"GITHUB_WEBHOOK_SECRET": f"new{end}", "FLUX_GIT_PASSWORD": f"of Flux {end}"}
    put(monkeypatch, **app, **secrets, GITHUB_TOKEN="", NOTIFY_TEAM=notify)
    settings = load_settings()
    assert settings.webhook_secrets == ("new",)
    assert settings.notify["TEAM"].get_secret_value() == "https://example.com/hook"
    assert "of Flux " in settings.secrets
    assert key in settings.secrets, "OpenSSH wants the last line of a key to end"
    assert load_settings({**VALUES, "FLUX_GIT_PASSWORD": end}).flux_git_password is None


def test_every_missing_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADSTEAD_FLEET", "example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "example/fleet")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    for name in ("GITHUB_TOKEN, or GITHUB_APP_ID", "ServiceBus__fullyQualifiedNamespace", "TABLES_ENDPOINT"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROADSTEAD_FLEET", "Not A Name"),
        ("ROADSTEAD_APP", "everything"),
        ("KEY_VAULTS", "http://platform.vault.azure.net"),
        ("KEY_VAULTS", "https://platform.vault.azure.net/secrets/a"),
        ("KEY_VAULTS", "https://a-vault.vault.azure.net,https://a-vault.vault.azure.cn"),
        ("GITHUB_SETUP_VAULT", "own"),
        ("KUBECONFIG_NETWORKS", "10.1.0.1/16"),
        ("REGISTRIES", "https://example.azurecr.io"),
        ("REGISTRIES", "example.azurecr.io=http://127.0.0.1:5000"),
        ("ROLLOUT_CHECK_NETWORKS", "10.1.0.1/16"),
        ("ROLLOUT_CHECK_HOSTS", "https://prometheus.example.com"),
        ("ROLLOUT_CHECK_HOSTS", "*.example.com"),
        ("FLUX_GIT_HOST", "https://github.com"),
        ("FLUX_GIT_HOST", "github.com/example"),
        ("GITHUB_REPOSITORY", "no-owner"),
        ("GIT_HOST", "bitbucket"),
        ("GIT_URL", "ssh://git.example.com/team/fleet.git"),
        ("GIT_URL", "ssh://git:canary@git.example.com/team/fleet.git"),
        ("GIT_URL", "git@git.example.com:/team/canary"),
        ("GIT_SSH_KEY", "canary"),
        ("GIT_KNOWN_HOSTS", "git.example.com canary"),
        ("GIT_KNOWN_HOSTS", "@cert-authority *.example.com ssh-ed25519 " + "A" * 68),
        ("GIT_URL", "http://git.example.com/team/fleet.git"),
        ("GIT_URL", "https://user:canary@git.example.com/team/fleet.git"),
        ("GIT_URL", "https://git.example.com/team/fleet.git?token=canary"),
        ("GIT_URL", "https://server.example.com"),
        ("GIT_URL", "https://[::1/team"),
        ("LEASE_SECONDS", "soon"),
        ("POLL_SECONDS", "-7734"),
        ("SWEEP_SCHEDULE", "0 7734 * *"),
        ("CHECK_SCHEDULE", "0 7734 * *"),
        ("UNHEALTHY_MINUTES", "-7734"),
        ("GITHUB_APP_INSTALLATION_ID", "seven"),
    ],
)
def test_a_wrong_setting_is_named_but_its_value_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    put(monkeypatch, **{name: value})
    with pytest.raises(SettingsError, match=name) as caught:
        load_settings()
    assert f"{name}: must " in str(caught.value)
    assert value not in str(caught.value)


OVER_SSH = {
    "GIT_SSH_KEY": "-----BEGIN OPENSSH PRIVATE KEY-----\\nx\\n-----END OPENSSH PRIVATE KEY-----",
    "GIT_KNOWN_HOSTS": "git.example.com ssh-ed25519 " + "A" * 68,
}


@pytest.mark.parametrize(
    ("url", "server", "name"),
    [
        ("https://git.example.com/team/fleet.git", "git.example.com", "team/fleet"),
        ("https://git.example.com:443/team/fleet/", "git.example.com", "team/fleet"),
        ("https://git.example.com:8443/fleet", "git.example.com:8443", "fleet"),
        ("https://dev.azure.com/contoso/p/_git/fleet", "dev.azure.com", "contoso/p/_git/fleet"),
        ("ssh://git@git.example.com:2222/team/fleet.git", "git.example.com", "team/fleet"),
        ("git@git.example.com:team/fleet.git", "git.example.com", "team/fleet"),
    ],
)
def test_a_git_server_needs_no_setting_of_github_and_its_path_names_the_repository(
    monkeypatch: pytest.MonkeyPatch, url: str, server: str, name: str
) -> None:
    put(monkeypatch, GIT_HOST="git", GIT_URL=url, GIT_BRANCH="production", **OVER_SSH)
    for setting in ("GITHUB_REPOSITORY", "GITHUB_TOKEN", "GITHUB_BRANCH", "FLUX_GIT_HOST"):
        monkeypatch.delenv(setting)
    config = load_settings().fleet_config
    assert (config.repository, config.branch, config.git_server) == (name, "production", server)
    monkeypatch.setenv("FLUX_GIT_HOST", "mirror.example.com")
    assert load_settings().fleet_config.git_server == "mirror.example.com"


def test_an_admins_key_signs_the_forms_of_the_console_before_the_secret_of_a_webhook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(monkeypatch)
    assert load_settings().form_secrets == ("local-key-of-an-admin",), "who sends webhooks is no Admin"
    monkeypatch.delenv("API_KEY_ADMIN")
    assert load_settings().form_secrets == ("local-webhook-secret",)
    monkeypatch.delenv("GITHUB_WEBHOOK_SECRET")
    assert load_settings().form_secrets == (), "who may do less signs nothing for others"


def test_azure_devops_is_read_at_its_address_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, GIT_HOST="azure-devops", GIT_URL="https://dev.azure.com/contoso/My%20Fleet/_git/fleet")
    for setting in ("GITHUB_REPOSITORY", "GITHUB_TOKEN", "FLUX_GIT_HOST", "GIT_PASSWORD"):
        monkeypatch.delenv(setting, raising=False)
    config = load_settings().fleet_config
    assert (config.repository, config.git_server) == ("contoso/My%20Fleet/_git/fleet", "dev.azure.com")
    for url in ("https://dev.azure.com/contoso/fleet", "https://dev.azure.com/_git/fleet", ""):
        monkeypatch.setenv("GIT_URL", url)
        with pytest.raises(SettingsError, match="GIT_URL"):
            load_settings()


def test_a_server_over_ssh_needs_a_key_and_the_keys_by_which_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = {"GIT_HOST": "git", "GIT_URL": "git@git.example.com:team/fleet.git"}
    put(monkeypatch, **over)
    with pytest.raises(SettingsError, match=r"GIT_SSH_KEY, the private key.*GIT_KNOWN_HOSTS, the lines"):
        load_settings()
    kind, line = "OPENSSH PRIVATE KEY", "canary-of-the-key-in-a-line"
    key = f"-----BEGIN {kind}-----\\n{line}\\n-----END {kind}-----"
    known = "git.example.com ssh-ed25519 " + "A" * 68
    over |= {"GIT_SSH_KEY": key, "GIT_KNOWN_HOSTS": f"# of the owner\\n{known}"}
    put(monkeypatch, **over)
    settings = load_settings()
    assert settings.git_url == "ssh://git@git.example.com/~/team/fleet.git"
    assert settings.git_known_hosts.splitlines() == ["# of the owner", known]
    assert Masker(settings.secrets)("canary-of-the-key-in-a-line") == "***"
    assert "canary" not in str(settings.shown)
    put(monkeypatch, **{**over, "GIT_HOST": "gitlab"})
    with pytest.raises(SettingsError, match="GIT_URL with https://, since GIT_HOST is gitlab"):
        load_settings()


@pytest.mark.parametrize(
    ("previous", "host"),
    [
        ("example/ships", {}),
        ("group/sub/ships", {"GIT_HOST": "gitlab", "GIT_URL": "https://gitlab.com/group/sub/fleet"}),
        (
            "contoso/shop/_git/ships",
            {"GIT_HOST": "azure-devops", "GIT_URL": "https://dev.azure.com/contoso/shop/_git/fleet"},
        ),
        ("ships", {"GIT_HOST": "git", "GIT_URL": "https://git.example.com/fleet.git"}),
    ],
)
def test_a_renamed_repository_has_its_former_name_on_any_host(
    monkeypatch: pytest.MonkeyPatch, previous: str, host: dict[str, str]
) -> None:
    put(monkeypatch, REPOSITORY_PREVIOUS=previous, **host)
    assert load_settings().fleet_config.previous_repository == previous


def test_each_host_misses_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, GITHUB_REPOSITORY="", GIT_URL="")
    with pytest.raises(SettingsError, match="missing settings: GITHUB_REPOSITORY"):
        load_settings()
    put(monkeypatch, GIT_HOST="git", GIT_URL="")
    with pytest.raises(SettingsError, match="missing settings: GIT_URL"):
        load_settings()


TIMERS = ("PLAN", "RESEND", "RETENTION", "SWEEP", "CHECK")


@pytest.mark.parametrize("name", [f"{timer}_SCHEDULE" for timer in TIMERS])
def test_a_schedule_that_the_host_refuses_is_named_at_the_start(name: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(VALUES | {name: "0 70 * * * *"})
    assert str(refused.value) == (
        f'wrong settings: {name}: must be NCRONTAB such as "0 */5 * * * *", and in "0 70 * * * *" '
        '"70" is no minute: use 0 to 59 with * , - and /'
    )


def test_a_secret_is_not_shown_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, GITHUB_TOKEN="canary-token", FLUX_GIT_PASSWORD="canary-password")
    settings = load_settings()
    assert "canary" not in repr(settings) + str(settings) + repr(settings.fleet_config)
    assert {"canary-token", "canary-password"} <= set(settings.secrets)


def test_azure_needs_no_connection_string(monkeypatch: pytest.MonkeyPatch) -> None:
    put(
        monkeypatch,
        ServiceBus="",
        ServiceBus__fullyQualifiedNamespace="bus.servicebus.windows.net",
        TABLES_CONNECTION_STRING="",
        TABLES_ENDPOINT="https://account.table.core.windows.net",
    )
    settings = load_settings()
    assert settings.servicebus__fullyqualifiednamespace == "bus.servicebus.windows.net"
    assert settings.servicebus is None


@pytest.mark.parametrize("name", ["GITHUB_WEBHOOK_SECRET", "APPROVAL_KEY_CHANGES"])
def test_an_unresolved_key_vault_reference_is_not_taken_for_a_secret(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    put(monkeypatch, **{name: "@Microsoft.KeyVault(SecretUri=https://vault.example/secrets/x)"})
    with pytest.raises(SettingsError, match=f"{name}: the Key Vault reference is not resolved"):
        load_settings()


@pytest.mark.parametrize(
    "key", ["canary", "whsec_canary", "whsec_" + "QUFB" * 7 + "!", "whsec_" + "QUFB" * 22]
)
def test_the_key_of_a_system_that_can_sign_nothing_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    put(monkeypatch, APPROVAL_KEY_CHANGES=key)
    with pytest.raises(SettingsError) as error:
        load_settings()
    assert str(error.value) == "APPROVAL_KEY_CHANGES: must be whsec_ and the base64 of 24 to 64 bytes"


@pytest.mark.parametrize("version", ["2026-8-1", "latest", "2026-08-01-beta"])
def test_an_api_version_that_azure_cannot_have_is_named(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    put(monkeypatch, AKS_API_VERSION=version)
    with pytest.raises(SettingsError, match="AKS_API_VERSION: must match"):
        load_settings()


def test_the_addresses_of_notifications_are_secrets_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://hooks.example.com/services/T0canary/B0canary?sig=canary-sig"
    put(monkeypatch, NOTIFY_OPS=address, Notify_Mail="mailtos://user:canary-pass@smtp.example.com/?to=a@b.c")
    settings = load_settings()
    assert set(settings.notify) == {"OPS", "MAIL", *EXAMPLE_ROUTES}
    assert settings.notify["OPS"].get_secret_value() == address
    assert "canary" not in repr(settings) + repr(settings.fleet_config) + str(settings.shown)
    assert settings.shown["NOTIFY_OPS"].startswith("secret ")
    mask = Masker(settings.secrets)
    whole = (address, "/services/T0canary/B0canary?sig=canary-sig", "user:canary-pass")
    for known in (*whole, "T0canary", "B0canary", "canary-sig", "canary-pass"):
        assert "canary" not in mask(f"it says {known} and more")


def test_the_keys_of_systems_that_approve_are_secrets_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "whsec_" + "canary00" * 4
    put(monkeypatch, APPROVAL_KEY_CHANGES=key)
    settings = load_settings()
    assert {name: value.get_secret_value() for name, value in settings.approval_keys.items()} == {
        "CHANGES": key
    }
    assert "canary" not in repr(settings) + repr(settings.fleet_config) + str(settings.shown)
    assert settings.shown["APPROVAL_KEY_CHANGES"].startswith("secret ")
    assert "canary" not in Masker(settings.secrets)(f"it says {key} and more")


def test_an_address_that_key_vault_did_not_resolve_does_not_stop_the_app(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(monkeypatch, NOTIFY_OPS="@Microsoft.KeyVault(VaultName=kv;SecretName=notify-ops)")
    assert set(load_settings().notify) == {"OPS", *EXAMPLE_ROUTES}


def test_a_vault_is_called_as_the_first_part_of_its_host_or_as_the_setting_says() -> None:
    text = "https://Platform.vault.azure.net/, local=https://127.0.0.1:8447"
    assert vault_addresses(text) == {
        "platform": "https://Platform.vault.azure.net",
        "local": "https://127.0.0.1:8447",
    }
    assert vault_addresses("") == {}
