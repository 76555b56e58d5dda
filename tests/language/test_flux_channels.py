"""An environment with a channel of Flux has its version from a file of its own."""

from __future__ import annotations

import pytest

from shared.promotions import Promotable, channels_of, rules_of
from tests.support.flux_channels import (
    EXTENSION,
    INSTALLED,
    distribution,
    environment,
    extension,
    with_extension,
    with_operator,
)
from tests.support.promotions import PROD, TEST
from tests.support.resolved_fleets import resolved

VERSIONS, ENVIRONMENT = "environments/development.versions.yaml", "environments/development.yaml"


def problems(tree: dict[str, bytes]) -> list[str]:
    return [str(problem) for problem in resolved(tree).problems]


def test_clusters_with_the_extension_have_the_version_of_the_file_and_know_its_place() -> None:
    desired = resolved(with_extension())
    assert problems(with_extension()) == []
    for name in (*TEST, *PROD):
        flux = desired.clusters[name].spec.flux
        assert flux.extension is not None
        assert flux.extension.version == "1.22.1"
    assert desired.source("a1", "spec.flux.extension.version") == f"{VERSIONS}:7"


def test_the_operator_installs_the_version_of_the_file() -> None:
    desired = resolved(with_operator())
    assert problems(with_operator()) == []
    instance = desired.clusters["a1"].spec.flux.instance
    assert instance is not None
    assert instance.distribution.version == "2.8.7"
    assert desired.source("a1", "spec.flux.instance.distribution.version") == f"{VERSIONS}:8"


def test_the_first_environment_of_a_line_follows_the_channel() -> None:
    desired = resolved(with_extension())
    (first,) = channels_of(desired.environments, rules_of(desired.promotions))
    assert (first.what, first.environment, first.channel) == (Promotable.COMPONENTS, "development", "rapid")
    assert first.onward == ("production",)


def test_a_cluster_that_sets_its_own_version_keeps_it() -> None:
    tree = with_extension()
    path = "clusters/a1/cluster.yaml"
    tree[path] = tree[path].replace(b"spec:\n", b"spec:\n  flux: {extension: {version: '1.20.4'}}\n")
    own = resolved(tree).clusters["a1"].spec.flux.extension
    assert own is not None
    assert (own.version, problems(tree)) == ("1.20.4", [])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {ENVIRONMENT: environment("development", "    kubernetesVersion: '1.36'\n")},
            f"{ENVIRONMENT}:5:10 spec.flux.install: the environment follows a channel of Flux, and this "
            "cluster has a file of flux install, which the app cannot write again",
        ),
        (
            {ENVIRONMENT: environment("development", EXTENSION, "lts")},
            f"{ENVIRONMENT}:5:10 spec.flux.channel: must be 'rapid', 'stable' or 'patch', got lts",
        ),
        (
            {VERSIONS: extension("development", "1.22")},
            f"{VERSIONS}:7:7 spec.flux.extension.version: must be a version in quotes",
        ),
        (
            {VERSIONS: extension("development") + b"    instance: {distribution: {version: '2.8.8'}}\n"},
            f"{VERSIONS}:5:3 spec.flux: needs extension.version or instance.distribution.version, and only",
        ),
        (
            {VERSIONS: distribution("development")},
            "spec.flux.install: the channel gives the environment a version for install: operator; a cluster "
            "with install: extension needs another environment",
        ),
        (
            {
                ENVIRONMENT: environment(
                    "development",
                    EXTENSION.replace("extension}", "extension, extension: {version: '1.22.2'}}"),
                )
            },
            "spec.defaults.flux.extension.version: the channel rapid gives the environment its version of "
            f"Flux, in {VERSIONS}; remove this, or spec.flux",
        ),
        (
            {VERSIONS: b"", ENVIRONMENT: environment("development", EXTENSION)},
            f"spec.flux.channel: there is no {VERSIONS} with the version of Flux that the channel has now; "
            "`roadstead versions development --extension VERSION`, or `--flux VERSION` for the operator, ",
        ),
    ],
)
def test_what_does_not_go_with_a_channel_of_the_extension_says_where_and_why(
    changed: dict[str, bytes], said: str
) -> None:
    tree = {path: content for path, content in {**with_extension(), **changed}.items() if content}
    found = problems(tree)
    assert (len(found), any(said in problem for problem in found)) == (1, True), found
    assert {*resolved(tree).invalid} == {*TEST}


@pytest.mark.parametrize(
    ("defaults", "channel", "said"),
    [
        (
            INSTALLED,
            "rapid",
            f"{ENVIRONMENT}:5:10 spec.flux: the channel rapid has newer minors of Flux, which may need a "
            "newer operator; write patch",
        ),
        (
            INSTALLED.replace(INSTALLED[INSTALLED.index(", artifact") : INSTALLED.index("'}") + 1], ""),
            "patch",
            "spec.flux.instance.distribution.artifact: the app reads the versions of a channel from the",
        ),
    ],
)
def test_what_does_not_go_with_a_channel_of_the_operator_says_where_and_why(
    defaults: str, channel: str, said: str
) -> None:
    tree = with_operator() | {ENVIRONMENT: environment("development", defaults, channel)}
    assert any(said in problem for problem in problems(tree)), problems(tree)
    assert {*resolved(tree).invalid} == {*TEST}
