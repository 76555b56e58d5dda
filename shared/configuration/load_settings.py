"""Reads the settings from the environment, and refuses what is wrong with them: once, at the start."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr, ValidationError

from shared.app.api.access import Role
from shared.configuration.settings import App, Settings
from shared.standard_webhooks import standard_webhooks_key

TIMED = ("PLAN_SCHEDULE", "RESEND_SCHEDULE", "RETENTION_SCHEDULE")
"""What an app with timers needs: the host puts these settings into the triggers."""


class SettingsError(Exception):
    """The settings are invalid; the message names each invalid one and what is expected."""


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; raise SettingsError with every invalid one.

    The case of a name does not matter, and an empty value counts as not set.
    """
    lines = ((name.lower(), _one_line(value)) for name, value in environment.items())
    given = {name: value for name, value in lines if value}
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        # The values are left out of the message: one of them may be a secret. Six fields are none.
        wrong = [f"{'.'.join(map(str, e['loc'])).upper()}: {_expected({**e})}" for e in error.errors()]
        raise SettingsError("wrong settings: " + "; ".join(wrong)) from None
    settings._notify = _named_secrets("notify_", given)
    settings._approval_keys = _named_secrets("approval_key_", given)
    _refuse_unresolved(settings)
    _refuse_wrong_approval_keys(settings)
    _refuse_missing(settings)
    _refuse_shared_keys(settings)
    return settings


def _one_line(value: str) -> str:
    """Return a value of one line without the end of the line, which ``echo`` or a file adds to a secret.

    A key of several lines stays as it is: OpenSSH wants its last line to end.
    """
    line = value.strip("\r\n")
    return value if "\n" in line else line


def _named_secrets(prefix: str, given: Mapping[str, str]) -> Mapping[str, SecretStr]:
    """Return the settings whose names begin so, by the rest of their names."""
    names = (name for name in given if name.startswith(prefix))
    return {name[len(prefix) :].upper(): SecretStr(given[name]) for name in names}


def _expected(detail: Mapping[str, Any]) -> str:
    """Return what a setting must be, from an error of pydantic."""
    kind, limits = detail["type"], detail.get("ctx", {})
    expected = {
        "missing": "is required",
        "greater_than_equal": f"must be {limits.get('ge', 0):g} or more",
        "less_than_equal": f"must be {limits.get('le', 0):g} or less",
        "literal_error": f"must be {limits.get('expected')}",
        "too_short": f"must have {limits.get('min_length')} characters or more",
        "string_pattern_mismatch": f"must match {limits.get('pattern')}",
        "enum": f"must be {limits.get('expected')}",
        "int_parsing": "must be an integer",
        "float_parsing": "must be a number",
        "value_error": str(limits.get("error")),
    }
    return expected.get(kind, str(detail["msg"]))


def _refuse_unresolved(settings: Settings) -> None:
    """Refuse a Key Vault reference that Azure could not resolve: its text is no secret."""
    values = {name.upper(): getattr(settings, name) for name in type(settings).model_fields}
    for name, value in (values | settings.named_approval_keys).items():
        if isinstance(value, SecretStr) and value.get_secret_value().startswith("@Microsoft.KeyVault("):
            raise SettingsError(f"{name}: the Key Vault reference is not resolved; check the app's rights")


def _refuse_wrong_approval_keys(settings: Settings) -> None:
    """Refuse the key of a system that is none: every approval of the system would be unsigned."""
    for name, value in settings.named_approval_keys.items():
        try:
            standard_webhooks_key(value.get_secret_value())
        except ValueError as error:
            raise SettingsError(f"{name}: {error}") from None


def _refuse_shared_keys(settings: Settings) -> None:
    """Refuse one key for two roles."""
    given = [role for role in Role if getattr(settings, f"api_key_{role.lower()}")]
    if len(settings.api_keys) < len(given):
        raise SettingsError(
            "API_KEY_READER, _OPERATOR, _APPROVER and _ADMIN: each role needs a key of its own"
        )


def _refuse_missing(settings: Settings) -> None:
    app = (settings.github_app_id, settings.github_app_private_key, settings.github_app_installation_id)
    missing: list[str] = []
    on_github = settings.git_host == "github"
    if on_github and not settings.github_repository:
        missing.append("GITHUB_REPOSITORY")
    if not on_github and not settings.git_url:
        missing.append("GIT_URL")
    if settings.git_host == "azure-devops" and not re.search(
        r"[^/]/[^/]+/_git/[^/]+$", settings.git_url or ""
    ):
        missing.append("GIT_URL such as https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY")
    if settings.reads_by_ssh and settings.git_host != "git":
        missing.append(
            f"GIT_URL with https://, since GIT_HOST is {settings.git_host}; git alone takes ssh://"
        )
    if settings.reads_by_ssh and settings.git_ssh_key is None:
        missing.append("GIT_SSH_KEY, the private key with which GIT_URL is read")
    if settings.reads_by_ssh and not settings.git_known_hosts:
        missing.append("GIT_KNOWN_HOSTS, the lines of known_hosts with the keys of the server of GIT_URL")
    if settings.git_host == "gitlab" and settings.git_password is None:
        missing.append("GIT_PASSWORD, an access token of GitLab")
    if on_github and settings.github_token is None and not all(app):
        missing.append(
            "GITHUB_TOKEN, or GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY and GITHUB_APP_INSTALLATION_ID"
        )
    if settings.servicebus is None and settings.servicebus__fullyqualifiednamespace is None:
        missing.append("ServiceBus__fullyQualifiedNamespace (or ServiceBus, a connection string)")
    if settings.tables_connection_string is None and settings.tables_endpoint is None:
        missing.append("TABLES_ENDPOINT (or TABLES_CONNECTION_STRING)")
    if App.CONTROL in settings.apps:  # the host itself would start without the function of such a timer
        missing += [name for name in TIMED if not getattr(settings, name.lower())]
    if missing:
        raise SettingsError("missing settings: " + "; ".join(missing))
