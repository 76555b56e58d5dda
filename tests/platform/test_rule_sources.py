"""Variables, sources, values and definitions of a platform: what nothing brings is refused, or a note."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.built_platforms import (
    CHARTS,
    NAMESPACE,
    Platform,
    deployment,
    release,
    waiting,
)

SCRIPT = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: rotate
  namespace: platform
data:
  rotate.sh: |
    #!/bin/sh
    echo "$${target}" > /tmp/log
    cp "$HOME" "${target}/${file##*/}"
"""


def test_variables_without_value_are_refused_at_their_lines() -> None:
    file = "platform/layers/jobs/all.yaml"
    missing = {"target": (file,), "file": (file,)}
    platform = Platform().kustomize("jobs", SCRIPT, missing=missing, variables={"cluster_name": "one"})
    problems = platform.problems
    assert [problem.split(": ")[0] for problem in problems] == [f"{file}:10:17", f"{file}:10:27"]
    assert "in a script, write $${target}" in problems[0]
    assert "kustomize.toolkit.fluxcd.io/substitute: disabled" in problems[0]


def test_a_script_that_loses_its_defaults_is_a_note() -> None:
    file, built = "platform/layers/jobs/all.yaml", SCRIPT.replace("${target}/${file##*/}", "/tmp")
    platform = Platform(NAMESPACE).kustomize("jobs", built, variables={"cluster_name": "one"})
    platform.files[file] = SCRIPT.replace("${target}/${file##*/}", "${target:-/tmp}")
    assert platform.problems == []
    assert "Flux replaces ${target:-...} by its default" in platform.notes[0]


@pytest.mark.parametrize(
    ("text", "said", "is_refused"),
    [
        ("metadata: {name: a, namespace: b}\ndata: {k: 'on ${cluster_name}'}", True, False),
        ("metadata: {name: a, namespace: b}\ndata: {k: 'on ${zone:-a}'}", True, False),
        (
            "metadata: {name: a, namespace: b}\ndata: {k: '${HOME} $cluster_name $${cluster_name}'}",
            False,
            False,
        ),
        ("metadata: {name: 'a-${CLUSTER}', namespace: b}", True, True),
        ("metadata: {name: a, namespace: b, labels: {on: '${CLUSTER}'}}", True, True),
        ("metadata: {name: a, namespace: b, annotations: {on: '${CLUSTER}'}}", False, False),
    ],
)
def test_a_variable_of_a_kustomization_without_any_stays_as_it_is(
    text: str, said: bool, is_refused: bool
) -> None:
    """Reports: fluxcd/flux2#2360, #3632; a real API server refuses ``$`` in names, labels and hosts."""
    other = {"postBuild": {"substitute": {"zone": "a"}}}
    platform = Platform(f"apiVersion: v1\nkind: ConfigMap\n{text}\n").kustomize("a", spec=other)
    found = [part for part in (*platform.problems, *platform.notes) if "stays as written" in part]
    assert ["has no spec.postBuild" in part for part in found] == [True] * said
    assert bool(platform.problems) == is_refused
    whole = Platform(f"apiVersion: v1\nkind: ConfigMap\n{text}\n", spec=other)
    assert not any("stays as written" in part for part in (*whole.problems, *whole.notes))


def test_variables_of_a_kustomization_reach_its_patches_and_not_its_other_fields() -> None:
    """Report: fluxcd/kustomize-controller#1126."""
    variables = {"postBuild": {"substitute": {"zone": "a"}}}
    patched = {**variables, "patches": [{"patch": "a: ${zone}", "target": {"kind": "ConfigMap"}}]}
    checked = {**variables, "wait": False, "healthChecks": [{"kind": "Secret", "name": "${zone}"}]}
    for spec, said in ((patched, False), (checked, True)):
        notes = Platform(NAMESPACE).kustomize("a", spec=spec).notes
        assert (
            any("${zone} stays as written, because Kustomization flux-system/fl" in n for n in notes) == said
        )


@pytest.mark.parametrize(
    ("script", "marks", "said"),
    [
        ("echo $$ > /run/pid", "{}", True),
        ("echo $${keep:-7} $HOME $(date)", "{}", False),
        ("echo $$", "{kustomize.toolkit.fluxcd.io/substitute: disabled}", False),
    ],
)
def test_two_dollars_of_which_flux_makes_one_are_a_note(script: str, marks: str, said: bool) -> None:
    head = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: platform, annotations: {marks}}}"
    )
    text, variables = f"{head}\ndata: {{run: '{script}'}}\n", {"postBuild": {"substitute": {"zone": "a"}}}
    for spec, expected in ((variables, said), ({}, False)):
        notes = Platform(NAMESPACE).kustomize("a", text, spec=spec).notes
        assert any("Flux makes one $ of two here" in note for note in notes) == expected


@pytest.mark.parametrize("field", ["data: {k: %s}", "metadata: {name: a, namespace: b, labels: {k: %s}}"])
def test_a_value_that_a_variable_makes_a_number_has_another_hint(field: str) -> None:
    """Reports: kubernetes-sigs/kustomize#4845, fluxcd/flux2#1839."""
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: b}}\n{field}\n"
    text = text.replace("metadata: {name: a, namespace: b}\nmeta", "meta")
    platform = Platform().kustomize("a", text % "12", variables={"number": "12"})
    (problem,) = platform.problems
    assert 'must be a string, got 12; write it in quotes, as "12"' in problem
    platform.files["platform/layers/a/all.yaml"] = text % "'${number}'"
    (problem,) = platform.problems
    assert "got 12; kustomize drops quotes around ${number}" in problem
    assert "write ${quote}${number}${quote}, and give the variable quote the value '\"'" in problem


def test_a_source_that_is_not_there_is_refused_once_with_who_needs_it() -> None:
    platform = Platform(release("a", "podinfo"), release("b", "podinfo"))
    assert [problem.split(": ", 1)[1] for problem in platform.problems] == [
        "there is no HelmRepository flux-system/charts, which HelmRelease flux-system/a and HelmRelease "
        "flux-system/b refer to, and so never become Ready; add it, or correct the name"
    ]
    assert platform.add(CHARTS).problems == []


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ({"kind": "GitRepository", "name": "flux-sytem"}, "did you mean flux-system?"),
        ({"kind": "OCIRepository", "name": "flux-system"}, "there is a GitRepository of this name"),
        (
            {"kind": "GitRepository", "name": "flux-system", "namespace": "apps"},
            "it is in the namespace flux-system",
        ),
    ],
)
def test_a_source_that_is_misspelt_is_refused_with_the_right_one(
    reference: dict[str, str], hint: str
) -> None:
    platform = Platform().kustomize("edge", spec={"sourceRef": reference})
    assert len(platform.problems) == 1
    assert hint in platform.problems[0]


def test_a_kustomization_of_another_source_brings_what_nobody_knows() -> None:
    other = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: other, namespace: "
    )
    other += "flux-system}\nspec: {interval: 1m, url: https://example.com/a}\n"
    platform = Platform(release("a", "podinfo"), other)
    assert len(platform.problems) == 1
    platform.kustomize("more", spec={"sourceRef": {"kind": "GitRepository", "name": "other"}})
    assert platform.problems == []


def test_a_missing_source_is_a_note_where_not_everything_was_built() -> None:
    platform = Platform(release("a", "podinfo")).kustomize("edge", unbuilt="a remote base")
    assert platform.problems == []
    assert any("there is no HelmRepository" in note for note in platform.notes)


VALUES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web-values-5hg7b2k9tf, namespace: flux-system}
"""


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"kind": "ConfigMap", "name": "web-values"}, "the generator calls it web-values-5hg7b2k9tf"),
        ({"kind": "ConfigMap", "name": "cluster-fact"}, "did you mean cluster-facts?"),
        ({"kind": "ConfigMap", "name": "cluster-facts"}, ""),
        ({"kind": "ConfigMap", "name": "settings"}, ""),
        ({"kind": "ConfigMap", "name": "cluster-fact", "optional": True}, ""),
        ({"kind": "Secret", "name": "web"}, ""),
    ],
)
def test_values_that_nothing_defines_are_refused_where_a_name_beside_is_meant(
    entry: dict[str, Any], problem: str
) -> None:
    found = Platform(CHARTS, VALUES, release("a", "podinfo", valuesFrom=[entry])).problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_a_key_of_sops_that_nothing_brings_is_a_note() -> None:
    keys = {"decryption": {"provider": "sops", "secretRef": {"name": "sops-age"}}}
    platform = Platform(NAMESPACE).kustomize("core", deployment("gateway"), spec=keys)
    assert platform.problems == []
    assert any("nothing here defines Secret flux-system/sops-age" in note for note in platform.notes)


def test_another_namespace_is_refused_where_flux_is_locked_down() -> None:
    elsewhere = release("a", "podinfo").replace("namespace: flux-system\nspec", "namespace: apps\nspec")
    assert Platform(CHARTS, elsewhere).problems == []
    refused = Platform(CHARTS, elsewhere, blocking=("helm-controller",)).problems
    assert len(refused) == 1
    assert "refers to the namespace flux-system, which helm-controller refuses" in refused[0]


BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: default-applies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {kind: ServiceAccount, name: default, namespace: flux-system}
"""


def test_a_kustomization_without_account_has_no_rights_where_flux_is_locked_down() -> None:
    confining = ("kustomize-controller",)
    assert (
        "without serviceAccountName: Kustomization flux-system/core"
        in Platform(confining=confining).kustomize("core").problems[0]
    )
    account = {"serviceAccountName": "kustomize-controller"}
    assert Platform(confining=confining).kustomize("core", spec=account).problems == []
    assert Platform(BINDING, confining=confining).kustomize("core").problems == []
    assert Platform().kustomize("core").problems == []


ISSUER = """
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: letsencrypt}
spec: {selfSigned: {}}
"""


def test_a_kind_that_only_the_chart_beside_it_brings_is_refused() -> None:
    platform = Platform(CHARTS).kustomize("certs", release("cert-manager", "cert-manager"), ISSUER)
    assert len(platform.problems) == 1
    assert "move the ClusterIssuer into a Kustomization that depends on this one" in platform.problems[0]


@pytest.mark.parametrize(
    "values", [{"values": {"crds": {"enabled": False}}}, {"install": {"crds": "Skip"}}, {"suspend": True}]
)
def test_a_release_that_leaves_its_definitions_out_brings_none(values: dict[str, Any]) -> None:
    text = release("cert-manager", "cert-manager", **values)
    refused = Platform(CHARTS).kustomize("certs", text, ISSUER).problems
    assert bool(refused) == ("suspend" in values)


def test_a_kind_that_a_chart_of_another_kustomization_brings_is_right() -> None:
    platform = Platform(CHARTS).kustomize("certs", release("cert-manager", "cert-manager"))
    platform.kustomize("issuers", ISSUER, release("web", "podinfo"), spec=waiting("certs"))
    assert platform.problems == []
    assert any("nothing here defines cert-manager.io/v1 ClusterIssuer" in note for note in platform.notes)


def test_a_kind_that_no_chart_is_known_to_bring_is_a_note() -> None:
    route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a, namespace: b}\n"
    assert Platform(CHARTS).kustomize("web", release("web", "podinfo"), route).problems == []


ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: team, namespace: flux-system}\n"
OF_TEAM = "{kind: ServiceAccount, name: team, namespace: flux-system}"
AS_USER = "{kind: User, name: 'system:serviceaccount:flux-system:team'}"
OF_ALL = "{kind: Group, name: 'system:serviceaccounts:flux-system'}"
ROLE = "rbac.authorization.k8s.io"


def bound(kind: str, subject: str) -> str:
    role = f"roleRef: {{apiGroup: {ROLE}, kind: ClusterRole, name: admin}}"
    metadata = "metadata: {name: team" + (", namespace: platform}" if kind == "RoleBinding" else "}")
    return f"apiVersion: {ROLE}/v1\nkind: {kind}\n{metadata}\n{role}\nsubjects: [{subject}]\n"


@pytest.mark.parametrize(
    ("text", "binding", "refused"),
    [
        (deployment(), bound("RoleBinding", OF_TEAM), ""),
        (deployment(), bound("RoleBinding", OF_ALL), ""),
        (deployment(), NAMESPACE.replace("platform", "b"), "has no rights in the namespace platform"),
        (
            deployment().replace("namespace: platform", "namespace: kube-system"),
            bound("RoleBinding", OF_TEAM),
            "has no rights in the namespace kube-system",
        ),
        (
            NAMESPACE.replace("platform", "b"),
            bound("RoleBinding", OF_TEAM),
            "has no rights in the namespace b",
        ),
        (NAMESPACE.replace("platform", "b"), bound("ClusterRoleBinding", OF_TEAM), ""),
        (deployment(), bound("RoleBinding", AS_USER), ""),
        ("apiVersion: a.example/v1\nkind: B\nmetadata: {name: a}\n", bound("RoleBinding", OF_TEAM), ""),
    ],
)
def test_what_an_account_has_no_rights_for_is_refused(text: str, binding: str, refused: str) -> None:
    """Reports: fluxcd/flux2-multi-tenancy#69, #131, projectcapsule/capsule#516."""
    spec = {"serviceAccountName": "team"}
    found = Platform(NAMESPACE, ACCOUNT, binding).kustomize("apps", text, spec=spec).problems
    assert [refused in problem for problem in found] == ([True] if refused else [])
    assert Platform(NAMESPACE, binding).kustomize("apps", text, spec=spec).problems == []


def test_a_role_binding_gives_rights_on_its_own_namespace() -> None:
    """Source: apiserver ``RequestInfoFactory``: a request for a Namespace is one in this namespace."""
    binding = bound("RoleBinding", OF_TEAM).replace("namespace: platform}", "namespace: b}")
    own, spec = NAMESPACE.replace("platform", "b"), {"serviceAccountName": "team"}
    found = Platform(NAMESPACE, ACCOUNT, binding).kustomize("apps", own, spec=spec).problems
    assert not [problem for problem in found if "no rights" in problem]
