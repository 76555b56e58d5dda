"""Pods that Pod Security Admission refuses, by the level that the platform itself gives to their namespace.

A workload is taken all the same, and none of its pods ever starts. Source: k8s.io/pod-security-admission
``policy/check_*.go``, which kubernetes.io, "Pod Security Standards", explains: the checks that every version
since 1.25 has. Pods of Windows, and those with user namespaces, are left to the cluster: later versions allow
them more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from shared.platform.changes.objects import is_open, items, mapping, mapping_at, objects_in, value_at
from shared.platform.rules.finding import ClusterPlatform, Finding, is_unknown, named

ENFORCE = "pod-security.kubernetes.io/enforce"
_RESTRICTED = "restricted"
_SINCE = re.compile(r"latest|v1\.(2[5-9]|[3-9]\d)")
_ADDED = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SYSCTLS = frozenset(
    (
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start"),
        *("net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"),
        *("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
    )
)
_SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_VOLUMES = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected"),
        "secret",
    )
)
_SAFE = ("RuntimeDefault", "Localhost")
_Object = Mapping[str, Any]
_Checks = Mapping[str, Callable[[_Object, _Object], bool]]
"""What is said of a container, by what its security context and itself are asked."""


def refused_pods(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield the workloads whose pods are refused; notes where a webhook may change these pods before."""
    levels = _levels(platform)
    is_note = not platform.is_sure or any("Mutating" in known.kind for known in platform.known)
    for owned, pod in platform.pods:
        name, spec, level = owned.id, pod.spec, levels.get(owned.id.namespace)
        if not (level and spec) or spec.get("hostUsers") is False or value_at(spec, "os.name") == "windows":
            continue
        parts = (spec, *(container for _, container in pod.containers()))
        if any(is_open(part.get("securityContext")) for part in parts):
            continue
        faults = [*_baseline(spec), *(_restricted(spec) if level == _RESTRICTED else ())]
        if faults:
            message = (
                f"the namespace {name.namespace} enforces {level}, so no pod of {name.kind} {name.name} is "
                f"created: {'; '.join(faults)}; correct that, or the label {ENFORCE} of the namespace"
            )
            yield owned.finding(pod.path, message, is_note=is_note)


def root_refused(platform: ClusterPlatform) -> Iterator[Finding]:
    """Yield a note for each container that is root and must not be: the kubelet does not start it.

    A namespace that is restricted refuses it before. Source:
    ``pkg/kubelet/kuberuntime/security_context_others.go``, verifyRunAsNonRoot.
    """
    levels = _levels(platform)
    for owned, pod in platform.pods:
        if levels.get(owned.id.namespace) == _RESTRICTED:
            continue
        of_pod = mapping(pod.spec.get("securityContext"))
        for path, container in pod.containers():
            security = {**of_pod, **mapping(container.get("securityContext"))}
            if security.get("runAsNonRoot") is True and _is_root(security, {}):
                message = "runAsUser is 0 and runAsNonRoot true, so the kubelet never starts it; correct one"
                yield owned.finding((*path, "securityContext"), message, is_note=True)


def _levels(platform: ClusterPlatform) -> Mapping[str, str]:
    """Return the level of each namespace of the platform that refuses pods."""
    found: dict[str, str] = {}
    for owned in platform.of_kind("", "Namespace"):
        labels = mapping_at(owned.manifest, "metadata.labels")
        version = str(labels.get(f"{ENFORCE}-version") or "latest")
        if labels.get(ENFORCE) in ("baseline", _RESTRICTED) and _SINCE.fullmatch(version):
            found[owned.id.name] = str(labels[ENFORCE])
    return found


def _baseline(spec: _Object) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field) is True:
            yield f"{field} must not be true"
    volumes = [
        str(volume.get("name")) for _, volume in objects_in(spec.get("volumes")) if volume.get("hostPath")
    ]
    if volumes:
        yield f"hostPath is not allowed (volume {named(volumes)})"
    for _, sysctl in objects_in(value_at(spec, "securityContext.sysctls")):
        if str(sysctl.get("name")) not in _SYSCTLS and not is_open(sysctl.get("name")):
            yield f"the sysctl {sysctl.get('name')} is not allowed"
    for text, is_refused in _EVERYWHERE.items():
        yield from _said(text, spec, is_refused, with_pod=True)
    for text, is_refused in _BASELINE.items():
        yield from _said(text, spec, is_refused)


def _restricted(spec: _Object) -> Iterator[str]:
    volumes = [
        str(volume.get("name"))
        for _, volume in objects_in(spec.get("volumes"))
        if volume.keys() - {"name"} and not volume.keys() & {*_VOLUMES, "hostPath"}
    ]
    if volumes:
        yield f"only volumes of {', '.join(sorted(_VOLUMES))} are allowed (not {named(volumes)})"
    yield from _said("runAsUser must not be 0", spec, _is_root, with_pod=True)
    for text, is_refused in _RESTRICTING.items():
        yield from _said(text, spec, is_refused)
    for text, (path, allowed) in _INHERITED.items():
        yield from _said(text, spec, partial(_lacks, path, allowed, mapping(spec.get("securityContext"))))


def _lacks(
    path: tuple[str, ...], allowed: tuple[Any, ...], of_pod: _Object, security: _Object, _: _Object
) -> bool:
    """Return whether a container has another value, of its own or of its pod, than the allowed ones."""
    is_own = value_at(security, path) is not None or is_unknown(security, path)
    given = security if is_own else of_pod
    return value_at(given, path) not in allowed and not is_unknown(given, path)


def _is_root(security: _Object, _: _Object) -> bool:
    user = security.get("runAsUser")
    return user == 0 and not isinstance(user, bool)


def _said(
    text: str, spec: _Object, is_refused: Callable[[_Object, _Object], bool], *, with_pod: bool = False
) -> Iterator[str]:
    """Yield what is wrong with containers, and which, once."""
    containers = [
        (str(container.get("name")), mapping(container.get("securityContext")), container)
        for field in ("initContainers", "containers")
        for _, container in objects_in(spec.get(field))
    ]
    if with_pod:
        containers.insert(0, ("the pod", mapping(spec.get("securityContext")), {}))
    bad = [name for name, security, container in containers if is_refused(security, container)]
    if bad:
        yield f"{text} ({named(bad)})"


def _adds_beyond(security: _Object, allowed: frozenset[str]) -> bool:
    added = items(value_at(security, "capabilities.add"))
    return any(str(capability) not in allowed and not is_open(capability) for capability in added)


def _is_odd_selinux(security: _Object, _: _Object) -> bool:
    options = mapping(security.get("seLinuxOptions"))
    odd = (options.get("type") or "") not in _SELINUX and not is_open(options.get("type"))
    return odd or bool(options.get("user") or options.get("role"))


_EVERYWHERE: _Checks = {
    "seccompProfile.type must not be Unconfined": lambda security, _: (
        value_at(security, "seccompProfile.type") == "Unconfined"
    ),
    "appArmorProfile.type must not be Unconfined": lambda security, _: (
        value_at(security, "appArmorProfile.type") == "Unconfined"
    ),
    "seLinuxOptions must not set user or role, or such a type": _is_odd_selinux,
    "windowsOptions.hostProcess must not be true": lambda security, _: (
        value_at(security, "windowsOptions.hostProcess") is True
    ),
}
"""Checks of ``baseline`` of the pod and of its containers."""
_BASELINE: _Checks = {
    "privileged must not be true": lambda security, _: security.get("privileged") is True,
    "capabilities.add has one that is not allowed": lambda security, _: _adds_beyond(security, _ADDED),
    "procMount must be Default": lambda security, _: security.get("procMount", "Default") == "Unmasked",
    "ports must not have a hostPort": lambda _, container: any(
        port.get("hostPort") for _, port in objects_in(container.get("ports"))
    ),
}
_RESTRICTING: _Checks = {
    "allowPrivilegeEscalation must be false": lambda security, _: (
        security.get("allowPrivilegeEscalation") is not False
        and not is_open(security.get("allowPrivilegeEscalation"))
    ),
    "capabilities.drop must have ALL": lambda security, _: (
        not any(name == "ALL" or is_open(name) for name in items(value_at(security, "capabilities.drop")))
        and not is_unknown(security, "capabilities.drop")
    ),
    "capabilities.add may have NET_BIND_SERVICE only": lambda security, _: (
        _adds_beyond(security, frozenset({"NET_BIND_SERVICE"})) and not _adds_beyond(security, _ADDED)
    ),
}
_INHERITED: Mapping[str, tuple[tuple[str, ...], tuple[Any, ...]]] = {
    "runAsNonRoot must be true": (("runAsNonRoot",), (True,)),
    "seccompProfile.type must be RuntimeDefault or Localhost": (("seccompProfile", "type"), _SAFE),
}
"""Fields that containers have from their pod, where they set none, and their allowed values."""
