"""What the text of a setting may be, where it is more than a word or a number, and what it stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from shared.cluster.failures.retry import with_limits
from shared.reachable_addresses import networks_of
from shared.schedules import next_time

UNRESOLVED = "a reference to Key Vault that Azure has not resolved"
"""What is shown of a secret that is none."""
_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_VAULT = re.compile(rf"((?P<name>[A-Za-z][A-Za-z0-9-]{{1,22}}[A-Za-z0-9])=)?(?P<url>https://{_HOST})/?")
_MONITOR = re.compile(
    rf"(?P<name>[A-Za-z0-9]([A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?)=(?P<url>https://{_HOST}(/v1/workspaces/[0-9a-fA-F-]{{36}})?)/?"
)
_REGISTRY = re.compile(rf"(?P<host>{_HOST})(=(?P<url>https://{_HOST})/?)?")
_TEAM = r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_][A-Za-z0-9_-]*"


def _parts(text: str, form: re.Pattern[str], such_as: str) -> Iterator[re.Match[str]]:
    """Yield the parts of a text, separated by commas; raise ValueError."""
    for part in filter(None, map(str.strip, text.split(","))):
        match = form.fullmatch(part)
        if match is None:
            raise ValueError(f"must be {such_as}, separated by commas")
        yield match


def vault_addresses(text: str) -> Mapping[str, str]:
    """Return the address of each vault by its name, in lower case, from ``KEY_VAULTS``.

    A vault is called as the first part of its host, unless NAME= says another name. Raise ValueError.
    """
    found: dict[str, str] = {}
    for match in _parts(text, _VAULT, "addresses such as https://NAME.vault.azure.net"):
        url = match["url"]
        name = (match["name"] or url.removeprefix("https://").partition(".")[0]).lower()
        if found.setdefault(name, url) != url:
            raise ValueError("must name each vault once; write NAME= before one of the same name")
    return found


def workspace_addresses(text: str) -> Mapping[str, str]:
    """Return the address of each workspace by its name, in lower case, from ``AZURE_MONITOR_WORKSPACES``.

    It is the query endpoint of a managed Prometheus, or that of a Log Analytics workspace with its id. Raise
    ValueError.
    """
    found: dict[str, str] = {}
    such_as = (
        "addresses with names before them, such as shop=https://shop-abcd.westeurope.prometheus.monitor."
        "azure.com or logs=https://api.loganalytics.azure.com/v1/workspaces/ID"
    )
    for match in _parts(text, _MONITOR, such_as):
        if found.setdefault(match["name"].lower(), match["url"]) != match["url"]:
            raise ValueError("must name each workspace once")
    return found


def registry_addresses(text: str) -> Mapping[str, str]:
    """Return the address of each registry by its host, in lower case, from ``REGISTRIES``. Raise ValueError.

    It is the host's, unless HOST= is followed by another one.
    """
    found = _parts(text, _REGISTRY, "hosts such as example.azurecr.io")
    return {match["host"].lower(): match["url"] or f"https://{match['host'].lower()}" for match in found}


SSH_KEY, KNOWN_HOSTS = "GIT_SSH_KEY", "GIT_KNOWN_HOSTS"
READING = "right to read over SSH"
"""What can be wrong with a git server over SSH: two settings, and what the server lets the key do."""
SSH_PORT = 22
_SHORT = re.compile(r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9.-]+):(?!/)(?P<path>[^\s:@?#]+)")
"""git's short form of an address over SSH; its path is below the user's home: git-clone(1), GIT URLS."""
_KNOWN_HOST = re.compile(r"[^\s@#][^\s]*[ \t]+(ssh|ecdsa)-[a-z0-9-]+[ \t]+[A-Za-z0-9+/]{60,}={0,2}([ \t].*)?")


def git_place(url: str) -> tuple[str, str]:
    """Return the server of ``GIT_URL``, with its port unless that is 443, and the name of the repository.

    Over SSH, the server has no port: the same one serves HTTPS at another.
    """
    parts = urlsplit(url)
    server = parts.hostname or ""
    if parts.port not in (None, 443) and parts.scheme != "ssh":
        server += f":{parts.port}"
    return server, parts.path.removeprefix("/~/").strip("/").removesuffix(".git")


def _git_url(url: str) -> str:
    """Return an address of a repository; git's short form for SSH becomes ssh://USER@HOST/~/PATH.

    Raise ValueError, without the address: a secret may be in it.
    """
    if short := _SHORT.fullmatch(url):
        url = f"ssh://{short['user']}@{short['host']}/~/{short['path']}"
    try:
        parts = urlsplit(url)
        server, name = git_place(url)
        user = parts.username if parts.scheme == "ssh" and parts.password is None else None
    except ValueError:
        parts, server, name, user = urlsplit(""), "", "", None
    if ("@" in parts.netloc and user is None) or parts.query or parts.fragment:
        raise ValueError(
            "must have no user, password or token in it: GIT_USERNAME and GIT_PASSWORD have them"
        )
    on_this_machine = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")
    reached = parts.scheme == "https" or on_this_machine or bool(user)
    if not reached or not re.fullmatch(_HOST, server) or not name:
        raise ValueError(
            "must be an address such as https://git.example.com/team/fleet.git or "
            "ssh://git@git.example.com/team/fleet.git"
        )
    return url


def _known_hosts(text: str) -> str:
    """Return the lines of known_hosts; in an environment, their ends may be written as ``\\n``."""
    lines = [line.strip() for line in text.replace("\\n", "\n").splitlines()]
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#") and not _KNOWN_HOST.fullmatch(line):
            raise ValueError(
                f"must have HOST TYPE KEY in each line, as ssh-keyscan writes it, and no marker such as "
                f"@cert-authority: line {number} is none"
            )
    return "\n".join(lines)


def _ssh_key(secret: SecretStr) -> SecretStr:
    """Return a private key in PEM or as OpenSSH writes it; its line ends may be written as ``\\n``."""
    text = secret.get_secret_value()
    if text.startswith("@Microsoft.KeyVault("):  # which is said elsewhere
        return secret
    text = text.replace("\\n", "\n").strip() + "\n"
    if not re.match(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n", text):
        raise ValueError("must be a private key, which begins with -----BEGIN OPENSSH PRIVATE KEY-----")
    return SecretStr(text)


def check_hosts(text: str) -> frozenset[str]:
    """Return the hosts of ``ROLLOUT_CHECK_HOSTS``, in lower case and with their ports. Raise ValueError."""
    such_as = "hosts such as prometheus.example.com or HOST:PORT"
    hosts = [match[0].lower() for match in _parts(text, re.compile(_HOST), such_as)]
    return frozenset(host if ":" in host else f"{host}:443" for host in hosts)


def _networks(text: str) -> None:
    try:
        networks_of(text)
    except ValueError:
        raise ValueError("must be networks such as 10.20.0.0/16, separated by commas") from None


def _read_by(read: Callable[[str], object]) -> AfterValidator:
    """Return what keeps a text as it is, if it can be read."""

    def kept(text: str) -> str:
        read(text)
        return text

    return AfterValidator(kept)


GitUrl = Annotated[str, AfterValidator(_git_url)]
SshKey = Annotated[SecretStr, AfterValidator(_ssh_key)]
KnownHosts = Annotated[str, AfterValidator(_known_hosts)]
Vaults = Annotated[str, _read_by(vault_addresses)]
Workspaces = Annotated[str, _read_by(workspace_addresses)]
RegistryHosts = Annotated[str, _read_by(registry_addresses)]
CheckHosts = Annotated[str, _read_by(check_hosts)]
Networks = Annotated[str, _read_by(_networks)]
RetryLimits = Annotated[str, _read_by(with_limits)]
Host = Annotated[str, Field(pattern=rf"^{_HOST}$")]
Teams = Annotated[str, Field(pattern=rf"^({_TEAM}(\s*,\s*{_TEAM}){{0,9}})?$")]
Schedule = Annotated[str, _read_by(partial(next_time, after=datetime(2020, 1, 1, tzinfo=UTC)))]
"""NCRONTAB with seconds, in UTC. The worker reads it before the host does, and names what is wrong."""
Installation = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9-]{6,62}[a-z0-9])?$")]
ApiVersion = Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2}(-preview)?)?$")]
ApiKey = Annotated[SecretStr, Field(min_length=20)]
