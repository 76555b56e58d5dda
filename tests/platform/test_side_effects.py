"""What a change does besides its fields is in its line, and needs no approval."""

from __future__ import annotations

from typing import Any

import pytest

from shared.frozen import replace
from shared.platform.changes.guards import PlatformChange, judge
from shared.platform.changes.report import sections_of, text_of
from tests.platform.inventories import claim, definition, deployment, inventory, manifest, owner, release


def text(before: list[dict[str, Any]], after: list[dict[str, Any]], **spec: Any) -> str:
    """Return what a plan says of a change of one Kustomization; ``spec`` is that of after."""
    change = judge(inventory(owner("p", *before)), inventory(owner("p", *after, **spec)), 20)
    return shown(change)


def shown(change: PlatformChange) -> str:
    (section,) = sections_of({"one": change}, {"one": ""})
    return "\n".join(text_of(section, 400))


def service(kind: str = "LoadBalancer", **marks: str) -> dict[str, Any]:
    found = manifest("Service", "platform/gateway", spec={"type": kind})
    if marks:
        names = {f"service.beta.kubernetes.io/azure-{key.replace('_', '-')}": v for key, v in marks.items()}
        found["metadata"]["annotations"] = names
    return found


SOURCES = "source.toolkit.fluxcd.io/v1"
KEPT = claim("platform/data")


@pytest.mark.parametrize(
    ("before", "after", "goes"),
    [
        (service(), None, True),
        (service(), service("ClusterIP"), True),
        (service(), service(load_balancer_internal="true"), True),
        (service(), service(pip_name="ours"), True),
        (service(pip_name="ours"), service("ClusterIP"), False),
        (service("ClusterIP"), None, False),
        (service(), service(load_balancer_internal="false"), False),
    ],
)
def test_an_address_that_azure_chose_goes_with_its_service(
    before: dict[str, Any], after: dict[str, Any] | None, goes: bool
) -> None:
    found = text([KEPT, before], [KEPT, *([after] if after else [])])
    assert ("Azure takes its address back" in found) == goes
    assert "approval" not in found


def backups(schema: dict[str, Any]) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    return definition("Backup", spec={"versions": versions})


def with_fields(*required: str, keep: Any = None, **more: Any) -> dict[str, Any]:
    fields = {"keep": keep or {"type": "integer"}, **more}
    spec = {"type": "object", "properties": fields, "required": list(required)}
    return backups({"type": "object", "properties": {"spec": spec}})


PLAIN = with_fields()


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (backups({"type": "object", "properties": {}}), "objects of the kind lose spec"),
        (with_fields("keep"), "objects of the kind that do not fit are refused: spec.keep"),
        (with_fields(keep={"type": "string"}), "objects of the kind that do not fit are refused: spec.keep"),
        (with_fields(keep={"type": "integer", "enum": [1]}), "do not fit are refused: spec.keep"),
        (with_fields("mode", mode={"type": "string", "default": "full"}), ""),
        (with_fields(mode={"type": "string"}), ""),
        (backups({"type": "object", "x-kubernetes-preserve-unknown-fields": True}), ""),
    ],
)
def test_a_definition_that_gets_narrower_says_what_objects_lose(after: dict[str, Any], said: str) -> None:
    found = text([PLAIN], [after])
    assert said in found
    assert bool(said) == ("objects of the kind" in found)


def using(**fields: Any) -> dict[str, Any]:
    found = deployment("platform/web")
    found["spec"]["template"]["spec"] |= fields
    return found


VOLUME = [{"name": "a", "configMap": {"name": "web"}}]
ACCOUNT = manifest("ServiceAccount", "platform/web")
CLASS = manifest("StorageClass", "fast", "storage.k8s.io/v1", provisioner="disk.csi.azure.com")
WEB = manifest("ConfigMap", "platform/web", data={"a": "b"})
ROLE = manifest("ClusterRole", "web", "rbac.authorization.k8s.io/v1")
BINDING = manifest(
    "RoleBinding",
    "platform/web",
    "rbac.authorization.k8s.io/v1",
    roleRef={"kind": "ClusterRole", "name": "web"},
)
OF_FAST = manifest("PersistentVolumeClaim", "platform/a", spec={"storageClassName": "fast"})


@pytest.mark.parametrize(
    ("removed", "user", "told"),
    [
        (ACCOUNT, using(serviceAccountName="web"), True),
        (WEB, using(volumes=VOLUME), True),
        (WEB, release("platform/a", valuesFrom=[{"kind": "ConfigMap", "name": "web"}]), True),
        (CLASS, OF_FAST, True),
        (ROLE, BINDING, True),
        (
            WEB,
            release("platform/a", valuesFrom=[{"kind": "ConfigMap", "name": "web", "optional": True}]),
            False,
        ),
        (WEB, using(volumes=[{"name": "a", "secret": {"secretName": "web"}}]), False),
        (ACCOUNT, using(serviceAccountName="other"), False),
    ],
)
def test_what_goes_and_is_still_referred_to_says_by_whom(
    removed: dict[str, Any], user: dict[str, Any], told: bool
) -> None:
    name = "/".join(filter(None, (user["metadata"].get("namespace"), user["metadata"]["name"])))
    found = text([user, removed], [user])
    assert (f"{user['kind']} {name} still refers to it" in found) == told


def test_what_moves_to_another_kustomization_is_still_there_for_its_users() -> None:
    user = using(serviceAccountName="web")
    change = judge(
        inventory(owner("p", user, ACCOUNT), owner("q", KEPT)),
        inventory(owner("p", user), owner("q", KEPT, ACCOUNT)),
        20,
    )
    assert "still refers" not in shown(change)


@pytest.mark.parametrize("kind", ["HelmRelease", "GitRepository"])
def test_a_change_of_what_is_suspended_reaches_no_cluster(kind: str) -> None:
    group = "helm" if kind == "HelmRelease" else "source"
    old, new = (
        manifest(
            kind, "platform/a", f"{group}.toolkit.fluxcd.io/v1", spec={"suspend": True, "interval": interval}
        )
        for interval in ("1h", "2h")
    )
    assert "reaches no cluster: it is suspended in platform/p.yaml" in text([old], [new])
    resumed = {**new, "spec": {"interval": "2h"}}
    assert "reaches no cluster" not in text([old], [resumed])


def test_a_suspension_says_that_no_later_commit_reaches_what_it_holds() -> None:
    assert "suspended from now on: no later commit" in text([KEPT], [KEPT], suspend=True)


@pytest.mark.parametrize(
    "carrying",
    [
        manifest("ServiceAccount", "flux-system/kustomize-controller"),
        manifest(
            "ClusterRoleBinding",
            "admins",
            "rbac.authorization.k8s.io/v1",
            roleRef={"kind": "ClusterRole", "name": "cluster-admin"},
            subjects=[{"kind": "ServiceAccount", "name": "kustomize-controller", "namespace": "flux-system"}],
        ),
    ],
)
def test_what_flux_needs_on_the_cluster_goes_with_an_approval_alone(carrying: dict[str, Any]) -> None:
    found = text([KEPT, carrying], [KEPT])
    assert "needs approval" in found
    assert "Flux brings no commit to these clusters any more" in found


@pytest.mark.parametrize(
    ("replicas", "said"), [((10, None), True), ((1, None), False), ((10, 3), False), ((None, None), False)]
)
def test_a_number_of_pods_that_goes_for_an_autoscaler_is_one_until_it_has_looked(
    replicas: tuple[int | None, int | None], said: bool
) -> None:
    before, after = (deployment("platform/web", image=f"web:{number}") for number in (1, 2))
    for found, number in zip((before, after), replicas, strict=True):
        found["spec"] |= {} if number is None else {"replicas": number}
    assert ("Kubernetes keeps 1 pod" in text([before], [after])) == said


def test_a_release_that_a_failed_upgrade_uninstalls_from_now_on_says_so() -> None:
    retried = release("platform/a", upgrade={"remediation": {"retries": 3}})
    uninstalled = release("platform/a", upgrade={"remediation": {"retries": 3, "strategy": "uninstall"}})
    assert "an upgrade that fails uninstalls the release" in text([retried], [uninstalled])
    assert "uninstalls" not in text([uninstalled], [retried])


ASLEEP, AWAKE = "suspended from now on: Flux does nothing with it", "no longer suspended"


@pytest.mark.parametrize("of", [release("platform/web"), manifest("GitRepository", "platform/apps", SOURCES)])
def test_a_suspension_says_that_this_change_waits_too(of: dict[str, Any]) -> None:
    """Report: fluxcd/flux2#2379."""
    spec = of.get("spec") or {}
    awake, asleep, changed = (
        {**of, "spec": {**spec, **more}} for more in ({}, {"suspend": True}, {"a": "b"})
    )
    assert ASLEEP in text([KEPT, awake], [KEPT, asleep])
    assert AWAKE in text([KEPT, asleep], [KEPT, changed])
    assert "suspended" not in text([KEPT, awake], [KEPT, changed])


@pytest.mark.parametrize(
    ("of", "old", "new", "said"),
    [
        ("HelmRelease", {"chartRef": {"name": "a"}}, {"chartRef": {"name": "b"}}, True),
        ("HelmRelease", {"chart": {"spec": {"chart": "a"}}}, {"chartRef": {"name": "a"}}, True),
        ("HelmRelease", {"chartRef": {"name": "a"}}, {"chartRef": {"name": "a"}, "interval": "1h"}, False),
        ("GitRepository", {"url": "https://a.example.com/x"}, {"url": "https://b.example.com/x"}, True),
        ("OCIRepository", {"url": "oci://a.example.com/x"}, {"url": "oci://b.example.com/x"}, True),
        ("HelmRepository", {"url": "https://a.example.com"}, {"url": "https://b.example.com"}, True),
        ("Bucket", {"bucketName": "a"}, {"bucketName": "b"}, True),
        ("GitRepository", {"url": "https://a", "interval": "1m"}, {"url": "https://a"}, False),
    ],
)
def test_what_is_fetched_from_elsewhere_is_said_to_be_no_part_of_the_plan(
    of: str, old: dict[str, Any], new: dict[str, Any], said: bool
) -> None:
    group = "helm.toolkit.fluxcd.io/v2" if of == "HelmRelease" else SOURCES
    sides = [manifest(of, "platform/web", group, spec=spec) for spec in (old, new)]
    assert ("does not show what differs there" in text([KEPT, sides[0]], [KEPT, sides[1]])) == said


def test_a_kustomization_that_is_forced_from_now_on_says_what_that_does() -> None:
    """Report: fluxcd/flux2#4392."""
    said = "from now on, what Kubernetes does not change is deleted and created again"
    assert said in text([KEPT], [KEPT], force=True)
    again = judge(inventory(owner("p", KEPT, force=True)), inventory(owner("p", KEPT, force=True, a=1)), 20)
    assert said not in shown(again)


def test_a_headless_service_stays_one() -> None:
    """A real API server takes the change, and keeps the address."""
    headless, plain = (
        manifest("Service", "platform/a", spec=spec)
        for spec in ({"clusterIP": "None"}, {"type": "ClusterIP"})
    )
    assert "stays headless" in text([KEPT, headless], [KEPT, plain])
    assert "stays headless" not in text([KEPT, plain], [KEPT, service()])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, {"egress": [{}]}, "its egress rules do nothing"),
        ({"egress": [{}]}, {}, "nothing leaves its pods"),
        ({}, {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}, ""),
        ({"egress": [{}], "policyTypes": ["Egress"]}, {}, ""),
        ({"egress": [{}]}, {"egress": [{"to": []}]}, ""),
    ],
)
def test_the_types_of_a_network_policy_that_kubernetes_filled_in_stay(
    old: dict[str, Any], new: dict[str, Any], said: str
) -> None:
    """A real API server keeps them, whatever rules come or go."""
    sides = [
        manifest(
            "NetworkPolicy",
            "platform/a",
            "networking.k8s.io/v1",
            spec={"podSelector": {}, "ingress": [], **spec},
        )
        for spec in (old, new)
    ]
    found = text([KEPT, sides[0]], [KEPT, sides[1]])
    assert ("policyTypes, which Kubernetes filled in" in found) == bool(said)
    assert said in found


def test_a_network_policy_of_calico_has_no_types_that_kubernetes_fills_in() -> None:
    sides = [
        manifest("NetworkPolicy", "platform/a", "projectcalico.org/v3", spec=spec)
        for spec in ({}, {"egress": [{"action": "Allow"}]})
    ]
    assert "policyTypes" not in text([KEPT, sides[0]], [KEPT, sides[1]])


def test_what_goes_though_its_file_is_unchanged_says_so() -> None:
    """Report: kubernetes/k8s.io#7067: a new kustomization file listed one of the manifests next to it."""
    kept, gone = deployment("platform/a"), deployment("platform/b")
    before, after = inventory(owner("p", kept, gone)), inventory(owner("p", kept))
    (file,) = {built.file for built in before.owners[owner("p").id].objects.values()}
    for blobs, said in (({file: "1"}, True), ({file: "2"}, False), ({}, False)):
        change = judge(replace(before, blobs={file: "1"}), replace(after, blobs=blobs), 20)
        expected = f"its file {file} is unchanged: a list, a patch or a prefix makes it go"
        assert (expected in shown(change)) == said


def certificate(name: str = "platform/tls") -> dict[str, Any]:
    return manifest("Certificate", name, "cert-manager.io/v1", spec={})


NEEDED = "ends with it and may be needed to delete it"


def test_a_custom_resource_and_the_release_next_to_it_that_go_together_are_named() -> None:
    """Report: fluxcd/kustomize-controller#301; its finalizer needs the operator."""
    before = [KEPT, certificate(), deployment("platform/app"), release("platform/cert-manager")]
    found = text(before, [KEPT])
    assert found.count(f"HelmRelease platform/cert-manager {NEEDED}") == 1
    assert NEEDED not in text(before, [KEPT, release("platform/cert-manager")])
    assert NEEDED not in text(before, [KEPT, certificate()])


def test_a_custom_resource_needs_what_its_kustomization_waits_for() -> None:
    operator = owner("operator", KEPT, release("platform/cert-manager"))
    waits: dict[str, Any] = {"dependsOn": [{"name": "operator"}]}
    before = inventory(operator, owner("usage", deployment("platform/app"), certificate(), **waits))
    after = inventory(owner("operator", KEPT), owner("usage", deployment("platform/app"), **waits))
    assert f"HelmRelease platform/cert-manager {NEEDED}" in shown(judge(before, after, 20))


def test_a_kustomization_that_goes_with_what_it_waits_for_says_so() -> None:
    operator = owner("operator", release("platform/cert-manager"))
    usage = owner("usage", certificate(), dependsOn=[{"name": "operator"}])
    kept = owner("kept", KEPT)
    both = shown(judge(inventory(operator, usage, kept), inventory(kept), 20))
    assert f"Kustomization flux-system/operator {NEEDED}" in both
    assert NEEDED not in shown(judge(inventory(operator, usage, kept), inventory(operator, kept), 20))


def test_a_release_that_goes_with_what_it_waits_for_says_so() -> None:
    issuers = release("platform/issuers", dependsOn=[{"name": "cert-manager"}])
    assert f"HelmRelease platform/cert-manager {NEEDED}" in text(
        [KEPT, issuers, release("platform/cert-manager")], [KEPT]
    )
