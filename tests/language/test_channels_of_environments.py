"""An environment with a channel has its version from a file of its own."""

from __future__ import annotations

import pytest

from shared.promotions import ChannelRule, Promotable, channels_of, rules_of
from tests.support.channels import CHANNEL, IMAGES, fleet, image, versions
from tests.support.promotions import TEST, files
from tests.support.resolved_fleets import resolved


def problems(tree: dict[str, bytes]) -> list[str]:
    return [str(problem) for problem in resolved(tree).problems]


def test_the_clusters_have_the_version_of_the_file_and_know_its_place() -> None:
    desired = resolved(fleet("development"))
    assert problems(fleet("development")) == []
    for name in TEST:
        assert desired.clusters[name].spec.kubernetes_version == "1.36.3"
        assert desired.source(name, "spec.kubernetesVersion") == "environments/development.versions.yaml:5"
    assert desired.clusters["b1"].spec.kubernetes_version == "1.35"


def test_another_version_of_the_file_changes_the_clusters_of_its_environment_and_no_other() -> None:
    before, tree = resolved(fleet("development")), fleet("development")
    after = resolved(tree | {"environments/development.versions.yaml": versions("development", "1.37.1")})
    changed = {name for name, own in after.clusters.items() if own != before.clusters[name]}
    assert changed == {*TEST}


def test_a_channel_and_a_version_exclude_each_other() -> None:
    (problem,) = problems(fleet("development", version="1.36"))
    assert problem == (
        "environments/development.yaml:8:5 spec.defaults.kubernetesVersion: the channel stable gives the "
        "environment its version, in environments/development.versions.yaml; remove this, or "
        "spec.kubernetes"
    )


def test_a_channel_without_the_file_says_what_to_run() -> None:
    tree = fleet("development")
    del tree["environments/development.versions.yaml"]
    (problem,) = problems(tree)
    assert problem == (
        "environments/development.yaml:6:16 spec.kubernetes.channel: there is no "
        "environments/development.versions.yaml with the version that the channel has now; "
        "`roadstead versions development VERSION` writes it"
    )
    assert {*resolved(tree).invalid} == {*TEST}


def test_a_file_that_nothing_follows_says_so() -> None:
    tree = files() | {"environments/development.versions.yaml": versions("development")}
    (problem,) = problems(tree)
    assert "environments/development.yaml has no spec.kubernetes, spec.nodeImages or spec.flux" in problem
    (problem,) = problems(files() | {"environments/staging.versions.yaml": versions("staging")})
    assert "there is no environments/staging.yaml" in problem


@pytest.mark.parametrize(
    ("channel", "more", "said"),
    [
        (CHANNEL.replace(b"stable", b"beta"), "", "must be 'rapid', 'stable', 'patch' or 'lts', got beta"),
        (CHANNEL, "  nodeImage: x\n", "spec.nodeImage: there is no such field"),
    ],
)
def test_what_is_no_channel_or_no_version_is_refused(channel: bytes, more: str, said: str) -> None:
    found = problems(fleet("development", channel=channel, more=more))
    assert any(said in problem for problem in found), found


LONG_TERM = CHANNEL.replace(b"stable", b"lts")
PREMIUM = b"    supportPlan: AKSLongTermSupport\n    sku: {tier: Premium}\n"


@pytest.mark.parametrize(
    ("channel", "said"),
    [
        (LONG_TERM, "environments/development.yaml:6:16 spec.supportPlan: the environment follows the"),
        (
            LONG_TERM + b"    supportPlan: KubernetesOfficial\n",
            "needs supportPlan: AKSLongTermSupport with sku",
        ),
        (LONG_TERM + PREMIUM.splitlines()[0] + b"\n", "AKSLongTermSupport needs sku.tier: Premium"),
        (CHANNEL + b"    autoUpgradeProfile: {upgradeChannel: patch}\n", "AKS upgrades without a commit"),
    ],
)
def test_a_cluster_that_cannot_follow_the_channel_of_its_environment_says_what_is_missing(
    channel: bytes, said: str
) -> None:
    tree = fleet("development", channel=channel)
    assert any(said in problem for problem in problems(tree)), problems(tree)
    assert {*resolved(tree).invalid} == {*TEST}


@pytest.mark.parametrize(
    "channel", [LONG_TERM + PREMIUM, CHANNEL + b"    autoUpgradeProfile: {upgradeChannel: none}\n"]
)
def test_a_cluster_that_only_git_moves_follows_the_channel(channel: bytes) -> None:
    assert problems(fleet("development", channel=channel)) == []


def test_the_first_environment_of_a_line_follows_the_channel_and_the_others_get_it_by_promotion() -> None:
    desired = resolved(fleet("development", "production"))
    rules = rules_of(desired.promotions)
    (first,) = channels_of(desired.environments, rules)
    assert (first.environment, first.channel, first.pace.total_seconds()) == ("development", "stable", 3600)
    assert [rule.environment for rule in channels_of(desired.environments, ())] == [
        "development",
        "production",
    ]
    alone = resolved(fleet("development"))
    assert channels_of(alone.environments, rules) == (ChannelRule("development", "stable"),)


# Node images


def following_images(channel: bytes = IMAGES, *names: str) -> dict[str, bytes]:
    found = fleet(*(names or ("development",)), channel=channel)
    return found | {f"environments/{name}.versions.yaml": image(name) for name in names or ("development",)}


def test_the_clusters_have_the_node_image_of_the_file() -> None:
    desired = resolved(following_images())
    assert problems(following_images()) == []
    assert {desired.clusters[name].spec.min_node_image_version for name in TEST} == {"202510.19.1"}
    assert desired.source(TEST[0], "spec.minNodeImageVersion") == "environments/development.versions.yaml:5"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", "nodeOSUpgradeChannel: the environment follows node images, and unset, AKS replaces them"),
        (
            b"    autoUpgradeProfile: {nodeOSUpgradeChannel: SecurityPatch}\n",
            "and with this, AKS replaces them",
        ),
        (
            b"    autoUpgradeProfile: {nodeOSUpgradeChannel: None}\n    minNodeImageVersion: '202511.01'\n",
            "remove",
        ),
    ],
)
def test_node_images_that_aks_would_replace_itself_or_git_gives_twice_are_refused(
    written: bytes, said: str
) -> None:
    found = problems(following_images(IMAGES.replace(IMAGES.splitlines(keepends=True)[-1], written)))
    assert any(said in problem for problem in found), found


def test_the_file_has_what_the_environment_follows_and_nothing_else() -> None:
    tree = following_images()
    other = tree | {"environments/development.versions.yaml": versions("development")}
    missing, needless = problems(other)
    assert "spec.minNodeImageVersion: is not there; write the oldest node image" in missing
    assert "environments/development.yaml has no spec.kubernetes, so that nothing follows this" in needless
    del tree["environments/development.versions.yaml"]
    (problem,) = problems(tree)
    assert "`roadstead versions development --image IMAGE` writes it" in problem


def test_images_are_counted_in_the_regions_of_every_environment_that_promotions_carry_them_to() -> None:
    desired = resolved(following_images(IMAGES, "development", "production"))
    (first,) = channels_of(desired.environments, rules_of(desired.promotions))
    assert (first.what, first.environment, first.onward) == (
        Promotable.IMAGES,
        "development",
        ("production",),
    )
