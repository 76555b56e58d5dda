"""Addresses of git repositories: what is none, and what of it somebody meant who copied it elsewhere.

Browsers show the address of a page, and hosts show one for git on the command line. The forms are those of
docs.github.com (about remote repositories), docs.gitlab.com, support.atlassian.com,
learn.microsoft.com/azure/devops/repos/git, and git-scm.com/docs/git-clone ("GIT URLS").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, StrictStr

from shared.language.model.base import NO_REPOSITORY, shown, stated_rule

_GIT_URL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~%+-]+)+/?")
_SCP = re.compile(r"(?:ssh://)?(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9.-]+):/?(?P<path>[^0-9/].*)")
"""What git on the command line takes for ssh, and Flux does not (fluxcd.io/flux/components/source)."""
_GITHUB, _RAW, _API = ("github.com", "www.github.com"), "raw.githubusercontent.com", "api.github.com"
_BITBUCKET = "bitbucket.org"
_WITH_OWNERS = (*_GITHUB, _BITBUCKET, "gitlab.com")
_DEVOPS = re.compile(r"dev\.azure\.com|[a-z0-9-]+\.visualstudio\.com")
_WITH_REFS = (["/_full"], ["/_optimized"])
"""What Azure DevOps takes before the name, for all or some refs: azure/devops/repos/git, "Limited Refs"."""
_PAGES = re.compile(r"(?P<repository>/[^/]+/[^/]+(?:/[^/]+)*?)/(?:-|tree|blob|raw|commits?|pull|issues)/")
"""A path of any host with what GitHub and GitLab, and hosts like them, append to it for a page."""
_OF_BITBUCKET = re.compile(r"/(src|branch|branches|commits|pull-requests|pipelines)(/|$)")
_OF_FILES = re.compile(r"/(tree|blob|raw|src)/|[?&](path|version)=|^https://raw\.")


@lru_cache(maxsize=256)
def git_url(value: str) -> str:
    """Return an address of a git repository; raise ValueError for any other text."""
    only_a_repository(value)
    if value == NO_REPOSITORY:
        raise ValueError(f"is still what roadstead init wrote, {value}; write the address of your repository")
    if _GIT_URL.fullmatch(value):
        return value
    raise ValueError(f"must be an address such as https://github.com/OWNER/NAME, got {shown(value)}")


def only_a_repository(url: str) -> None:
    """Raise ValueError for what leads to a repository and is not its address, with the address if known."""
    for_git = _SCP.fullmatch(url)
    if for_git:
        right = shown(f"git@{for_git['host']}/{for_git['path']}", 150)
        raise ValueError(
            f"is an address for git on the command line, got {shown(url)}; write ssh:// and then {right}"
        )
    parts = _parts(url)
    host = (parts.hostname or "").lower()
    if parts.username and not parts.password and _DEVOPS.fullmatch(host):
        raise ValueError(f"must have no user in it; write {shown(_address(parts, parts.path), 150)}")
    if not host or "@" in parts.netloc:
        return
    form = _form(host, parts.path)
    if form:
        raise ValueError(f"must be an address such as {form}, got {shown(url)}")
    repository = _repository(parts, host)
    if repository not in (None, parts.path.rstrip("/")) or parts.query or parts.fragment:
        right = shown(_address(parts, repository or parts.path), 150)
        rest = ", and what follows as branch and path" if _OF_FILES.search(url) else ""
        got = shown(re.split(r"[?#]", url)[0])
        raise ValueError(
            f"is the address of a page in a browser, got {got}; write the repository's, {right}{rest}"
        )


def _parts(url: str) -> SplitResult:
    """Return the parts of an https address, empty ones for any other text."""
    try:
        parts = urlsplit(url if url.startswith("https://") else "")
        return parts if parts.hostname else urlsplit("")
    except ValueError:
        return urlsplit("")


def _form(host: str, path: str) -> str:
    """Return the form of an address that a known host has and this one lacks, "" where it lacks nothing."""
    if host in _WITH_OWNERS and (re.fullmatch("/[^/]+/?", path) or path.startswith("/orgs/")):
        return f"https://{host}/OWNER/NAME"
    devops = host == "dev.azure.com" and "/_git/" not in path
    return "https://dev.azure.com/ORGANIZATION/PROJECT/_git/NAME" if devops else ""


def _repository(parts: SplitResult, host: str) -> str | None:
    """Return the path of the repository that a page is of, None where the host does not say it."""
    segments = [f"/{segment}" for segment in parts.path.split("/") if segment]
    if host in (*_GITHUB, _RAW) or (host == _BITBUCKET and _OF_BITBUCKET.search(parts.path)):
        return "".join(segments[:2])
    if host == _API and segments[:1] == ["/repos"]:
        return "".join(segments[1:3])
    if _DEVOPS.fullmatch(host) and "/_git" in segments:
        name = segments.index("/_git") + 1
        return "".join(segments[: name + (2 if segments[name : name + 1] in _WITH_REFS else 1)])
    page = None if parts.path.rstrip("/").endswith(".git") else _PAGES.match(parts.path)
    return page["repository"] if page else None


def _address(parts: SplitResult, path: str) -> str:
    """Return the address of a path on the host, where git serves the repositories of the host."""
    host = parts.netloc.rpartition("@")[2]
    return f"https://{'github.com' if host.lower() in (_RAW, _API) else host}{path.rstrip('/')}"


GitUrl = Annotated[
    StrictStr,
    AfterValidator(git_url),
    stated_rule("an https:// address such as https://github.com/OWNER/NAME"),
]
