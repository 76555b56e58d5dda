"""Addresses that people copied from a browser or a command line, as what Flux pulls."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from shared.language.model.base import RepositoryPath
from shared.language.model.cluster.flux_source import FluxRepository, Semver

ADDRESS, PATH, RANGE = TypeAdapter(FluxRepository), TypeAdapter(RepositoryPath), TypeAdapter(Semver)
GITHUB = "https://github.com/example/fleet"
DEVOPS = "https://dev.azure.com/org/proj/_git/repo"


def refusal(of: TypeAdapter[str], text: str) -> str:
    """Return why a text is refused, "" where it is taken."""
    try:
        of.validate_python(text)
    except ValidationError as error:
        return str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    return ""


@pytest.mark.parametrize(
    ("copied", "meant"),
    [
        (f"{GITHUB}?tab=readme-ov-file", GITHUB),
        (f"{GITHUB}#readme", GITHUB),
        *(
            (f"{GITHUB}/{page}", GITHUB)
            for page in (
                *("pulls", "actions", "settings/hooks", "releases/tag/v1", "compare/main...x", "wiki"),
                *("issues", "tree/main/platform", "blob/main/platform/kustomization.yaml", "pull/7/files"),
            )
        ),
        ("https://api.github.com/repos/example/fleet", GITHUB),
        ("https://raw.githubusercontent.com/example/fleet/main/x.yaml", GITHUB),
        (f"{DEVOPS}?path=/platform&version=GBmain", DEVOPS),
        (f"{DEVOPS}/pullrequests", DEVOPS),
        ("https://org@dev.azure.com/org/proj/_git/repo", DEVOPS),
        ("https://org@org.visualstudio.com/proj/_git/repo", "https://org.visualstudio.com/proj/_git/repo"),
        ("https://gitlab.com/g/s/repo/-/merge_requests", "https://gitlab.com/g/s/repo"),
        ("https://git.example/g/repo/-/pipelines/1", "https://git.example/g/repo"),
        ("https://git.example/o/repo/tree/main/x", "https://git.example/o/repo"),
        ("https://bitbucket.org/x/y/src/main/", "https://bitbucket.org/x/y"),
        ("git@github.com:example/fleet.git", "ssh:// and then git@github.com/example/fleet.git"),
        ("ssh://git@github.com:example/fleet.git", "ssh:// and then git@github.com/example/fleet.git"),
        ("git@ssh.dev.azure.com:v3/org/proj/repo", "ssh:// and then git@ssh.dev.azure.com/v3/org/proj/repo"),
        ("oci://reg.azurecr.io/fleet:latest", "oci://reg.azurecr.io/fleet, and tag: latest"),
        (f"oci://reg.azurecr.io/fleet@sha256:{'0' * 64}", "oci://reg.azurecr.io/fleet, and digest: sha256:0"),
    ],
)
def test_a_copied_address_is_refused_with_the_one_that_is_meant(copied: str, meant: str) -> None:
    """Sources: fluxcd/flux2#3936 and #1303, fluxcd/source-controller#197."""
    assert f"write {meant}" in refusal(ADDRESS, copied).replace("the repository's, ", "")


@pytest.mark.parametrize(
    ("copied", "form"),
    [
        ("https://github.com/example", "https://github.com/OWNER/NAME"),
        ("https://github.com/orgs/example/packages/container/package/fleet", "https://github.com/OWNER/NAME"),
        ("https://dev.azure.com/org/proj/repo", "https://dev.azure.com/ORGANIZATION/PROJECT/_git/NAME"),
    ],
)
def test_an_address_without_a_repository_is_refused_with_its_form(copied: str, form: str) -> None:
    assert f"must be an address such as {form}" in refusal(ADDRESS, copied)


@pytest.mark.parametrize(
    "address",
    [
        *("https://dev.azure.com/org/proj/_git/_full/repo", "https://git.example/a/b/raw/images.git"),
        *(GITHUB, f"{GITHUB}.git", f"{GITHUB}/", DEVOPS, "https://dev.azure.com/org/_git/repo"),
        *("https://org.visualstudio.com/DefaultCollection/proj/_git/repo", "https://gitlab.com/g/s/t/repo"),
        *("https://git.example/a/b/c.git", "https://git.example:8443/scm/proj/repo.git"),
        *("https://git.example/g/s/issues", "https://ghe.example/o/tree"),
        *("ssh://git@github.com/example/fleet", "ssh://git@git.example:2222/o/r.git"),
        *("ssh://git@ssh.dev.azure.com/v3/org/proj/repo", "oci://localhost:5000/fleet", "oci://reg/a/b-c_d"),
        "https://account.blob.core.windows.net",
    ],
)
def test_an_address_of_a_repository_is_taken(address: str) -> None:
    assert refusal(ADDRESS, address) == ""


def test_no_refusal_shows_a_token() -> None:
    for host in ("dev.azure.com/o/p/_git/r", "github.com/o/r"):
        for user in ("user:t0ken", "t0ken"):
            assert "t0ken" not in refusal(ADDRESS, f"https://{user}@{host}")
    assert "t0ken" not in refusal(ADDRESS, "https://account.blob.core.windows.net?sig=t0ken")


@pytest.mark.parametrize(
    "path", ["./plat%20form", "C:/fleet/platform", "c:\\fleet", "https://github.com/a/b"]
)
def test_a_path_of_a_browser_or_a_disk_is_refused(path: str) -> None:
    assert "must be a path inside the repository" in refusal(PATH, path)


@pytest.mark.parametrize("path", ["./platform", "platform/", ".", "./a%b", "c/d", "tree/main"])
def test_a_path_of_a_folder_is_taken(path: str) -> None:
    assert refusal(PATH, path) == ""


@pytest.mark.parametrize(
    "text", ["1.x", ">=1.2 <2", ">= 1.2.0, < 2.0.0", "~1.2 || ^2", "*", "1.2 - 2.3.4", "v1.x"]
)
def test_a_range_of_versions_is_taken(text: str) -> None:
    """Source: github.com/Masterminds/semver, "Checking Version Constraints"."""
    assert refusal(RANGE, text) == ""


@pytest.mark.parametrize("text", ["latest", "main", "release-1", "1.x and newer"])
def test_what_is_no_range_of_versions_is_refused(text: str) -> None:
    assert "must be a range of versions" in refusal(RANGE, text)
