"""Fields of custom objects: by the platform's definition, and those of Flux by the published one."""

from __future__ import annotations

import pytest

from tests.support.built_platforms import Platform

pytestmark = pytest.mark.lives

SOURCE_API = "source.toolkit.fluxcd.io/v1"

BACKUPS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.data.example.com}
spec:
  group: data.example.com
  names: {kind: Backup, plural: backups}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [schedule]
              properties:
                schedule: {type: string}
                keep: {type: integer, minimum: 1}
                mode: {type: string, enum: [full, delta]}
                options: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
BACKUP = """
apiVersion: data.example.com/v1
kind: Backup
metadata:
  name: nightly
  namespace: platform
spec:
  schedule: daily
"""


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("schedule", "schedule"), ""),
        (("schedule: daily", "schedule: daily\n  options: {any: thing}"), ""),
        (("schedule: daily", "schedul: daily"), "6:1 spec: schedule is missing; add it"),
        (
            ("schedule: daily", "schedule: 5"),
            "7:3 spec.schedule: must be a string, got 5; write it in quotes",
        ),
        (("schedule: daily", "schedule: a\n  keep: 0"), "8:3 spec.keep: must be 1 or more, got 0"),
        (
            ("schedule: daily", "schedule: a\n  mode: fulll"),
            "8:3 spec.mode: must be full or delta, got fulll",
        ),
        (
            ("schedule: daily", "schedule: a\n  kep: 1"),
            "8:3 spec.kep: there is no such field; did you mean keep?",
        ),
        (("com/v1", "com/v1beta1"), "1:1 apiVersion: data.example.com/v1beta1 Backup is not served"),
    ],
)
def test_a_custom_object_fits_its_definition(change: tuple[str, str], problem: str) -> None:
    platform = Platform().kustomize("data", BACKUPS).kustomize("apps", BACKUP.replace(*change))
    found = [text.removeprefix("platform/layers/apps/all.yaml:") for text in platform.problems]
    assert [text for text in found if text.startswith(problem)] if problem else found == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("interval: 10m, url: 'https://example.com/a'", ""),
        ("interval: '${interval}', url: 'https://example.com/a'", ""),
        ("interval: 10m, url: 'https://example.com/a', newField: 1", ""),
        ("interval: 1d, url: 'https://example.com/a'", 'must be a duration such as 30s, 10m or 1h, got "1d"'),
        ("interval: 10m, url: 'https://example.com/a', timeout: '60'", "must be a duration"),
        ("interval: 10m, url: 'https://example.com/a', suspend: 'no'", "must be true or false"),
        ("interval: 10m", "url is missing; add it"),
    ],
)
@pytest.mark.parametrize("is_defined", [False, True])
def test_fields_of_flux_are_checked_where_no_definition_here_has_them(
    spec: str, problem: str, *, is_defined: bool
) -> None:
    schema = {"properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    versions = [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"group": "source.toolkit.fluxcd.io", "names": {"kind": "GitRepository"}}
    definition = {"spec": {**names, "scope": "Namespaced", "versions": versions}}
    text = f"apiVersion: {SOURCE_API}\nkind: GitRepository\nmetadata: {{name: a, namespace: b}}\n"
    found = Platform(f"{text}spec: {{{spec}}}\n", definitions=(definition,) if is_defined else ()).problems
    assert [problem in told for told in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ("url: 'https://charts.example.com'", False),
        ("url: 'oci://registry.example.com/charts', type: oci", False),
        ("url: '${charts}'", False),
        ("url: 'oci://registry.example.com/charts'", True),
        ("url: 'https://charts.example.com', type: oci", True),
    ],
)
def test_a_repository_of_charts_has_the_type_of_its_address(spec: str, wrong: bool) -> None:
    head = f"apiVersion: {SOURCE_API}\nkind: HelmRepository\n"
    found = Platform(head + f"metadata: {{name: a, namespace: b}}\nspec: {{interval: 1h, {spec}}}\n").problems
    assert ["no chart is ever read from" in text for text in found] == ([True] if wrong else [])
