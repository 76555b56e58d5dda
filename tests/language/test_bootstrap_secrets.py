"""Bootstrap secrets of a fleet: merged over the layers, with references that fit, from known vaults."""

from __future__ import annotations

import pytest

from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import Files
from shared.language.resolve.resolver import finish, resolve_clusters, resolve_shared
from tests.support import fleet_files

GIT = """\
  bootstrapSecrets:
    - {name: git, vault: platform, keys: {KEYS}}
  flux:
    secretRef: {name: git}
"""
SOURCE = """\
  bootstrapSecrets:
    - {name: charts, vault: platform, TYPE keys: {KEYS}}
  flux:
    sources: [{name: s, SOURCE, secretRef: {name: charts}}]
"""


def resolved(extra: str, *, vaults: frozenset[str] | None = None, environment: bytes = b"") -> DesiredFleet:
    contents = fleet_files.fleet() | {"clusters/one/cluster.yaml": fleet_files.cluster("one", extra=extra)}
    if environment:
        contents["environments/production.yaml"] = environment
    files = Files({path: str(hash(content)) for path, content in contents.items()}, frozenset())
    shared = resolve_shared("example", files, contents, known={})
    return finish(resolve_clusters(shared, contents, vaults=vaults), contents)


def messages(fleet: DesiredFleet) -> list[str]:
    return [f"{problem.field}: {problem.message}" for problem in fleet.problems]


def test_entries_are_merged_by_name_and_their_keys_too() -> None:
    production = b"""\
apiVersion: roadstead.dev/v1alpha1
kind: Environment
metadata: {name: production}
spec:
  defaults:
    bootstrapSecrets:
      - {name: git, vault: platform, keys: {username: git-user, password: "git-{name}"}}
      - {name: age, vault: platform, keys: {age.agekey: "age-{environment}"}}
"""
    own = """\
  environment: production
  bootstrapSecrets:
    - {name: git, labels: {team: shop}, keys: {password: mine}}
    - {name: age, $patch: delete}
    - {name: more, vault: platform, keys: {a: b}}
"""
    fleet = resolved(own, environment=production)
    assert messages(fleet) == []
    found = {
        bootstrap_secret.name: bootstrap_secret
        for bootstrap_secret in fleet.clusters["one"].spec.bootstrap_secrets
    }
    assert set(found) == {"git", "more"}
    assert found["git"].keys == {"username": "git-user", "password": "mine"}
    assert found["git"].labels == {"team": "shop"}


@pytest.mark.parametrize(
    ("keys", "fits"),
    [
        ("username: a, password: b", True),
        ("bearerToken: a", True),
        ("username: a", False),
        ("identity: a, known_hosts: b", False),
    ],
)
def test_a_secret_of_the_repository_has_the_keys_that_flux_reads(keys: str, fits: bool) -> None:
    found = messages(resolved(GIT.replace("KEYS", keys)))
    assert found == (
        []
        if fits
        else [
            "spec.flux.secretRef.name: https://github.com/example/fleet needs the keys username and "
            "password, or bearerToken of git, an entry of bootstrapSecrets; add them"
        ]
    )


@pytest.mark.parametrize(
    ("source", "kind", "keys", "problem"),
    [
        ("url: 'ssh://git@example.com/a'", "", "identity: a, known_hosts: b", ""),
        ("url: 'ssh://git@example.com/a'", "", "identity: a", "identity and known_hosts"),
        ("url: 'https://github.com/a/b', provider: github", "", "githubAppID: a", "githubAppPrivateKey"),
        (
            "kind: OCIRepository, url: 'oci://example.io/a'",
            "type: kubernetes.io/dockerconfigjson,",
            ".dockerconfigjson: a",
            "",
        ),
        ("kind: OCIRepository, url: 'oci://example.io/a'", "", "a: b", "kubernetes.io/dockerconfigjson"),
    ],
)
def test_a_secret_of_a_source_has_the_keys_and_the_type_that_flux_reads(
    source: str, kind: str, keys: str, problem: str
) -> None:
    text = SOURCE.replace("SOURCE", source).replace("TYPE", kind).replace("KEYS", keys)
    found = messages(resolved(text))
    assert len(found) == bool(problem)
    assert all(name.startswith("spec.flux.sources[s].secretRef.name: ") and problem in name for name in found)


def test_a_secret_of_another_namespace_is_none_that_flux_reads() -> None:
    text = GIT.replace("KEYS", "username: a, password: b").replace("vault:", "namespace: shop, vault:")
    assert messages(resolved(text)) == [
        "spec.flux.secretRef.name: Flux reads Secrets of flux-system only, and bootstrapSecrets has shop/git;"
        " set its namespace"
    ]


def test_a_key_that_decrypts_nothing_is_refused() -> None:
    text = """\
  bootstrapSecrets:
    - {name: age, vault: platform, keys: {age.key: a}}
  flux:
    kustomizations: [{name: flux-system, decryption: {secretRef: {name: age}}}]
"""
    (found,) = messages(resolved(text))
    assert found.startswith(
        "spec.flux.kustomizations[flux-system].decryption.secretRef.name: Flux decrypts with"
    )
    assert messages(resolved(text.replace("age.key", "age.agekey"))) == []


def test_the_secret_of_the_apps_own_credentials_is_taken_only_with_its_reference() -> None:
    text = GIT.replace("KEYS", "username: a, password: b").replace("name: git", "name: flux-system")
    assert messages(resolved(text)) == []
    (found,) = messages(resolved(text.partition("  flux:")[0]))
    assert found.startswith(
        "spec.bootstrapSecrets[flux-system]: flux-system/flux-system is the Secret of the git"
    )


@pytest.mark.parametrize("twice", ["name: a", "name: b, secretName: a"])
def test_two_entries_are_two_secrets(twice: str) -> None:
    text = f"""\
  bootstrapSecrets:
    - {{name: a, vault: platform, keys: {{a: b}}}}
    - {{{twice}, vault: platform, keys: {{a: b}}}}
"""
    assert messages(resolved(text))


def test_a_vault_counts_if_the_app_may_read_it_whatever_its_case() -> None:
    text = GIT.replace("KEYS", "username: a, password: b").replace("vault: platform", "vault: Platform")
    assert messages(resolved(text, vaults=frozenset({"platform"}))) == []
    assert messages(resolved(text)) == []
    (found,) = messages(resolved(text, vaults=frozenset()))
    assert found.startswith(
        "spec.bootstrapSecrets[git].vault: the app may not read the vault Platform: KEY_VAULTS, a setting of "
        "the app, has none"
    )
