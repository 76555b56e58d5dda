"""A real cluster on loopback: etcd, kube-apiserver and kube-controller-manager as processes.

The API server admits client certificates and service account tokens, with RBAC, and has its usual admission
plugins. Nodes, and what a kubelet would do on them, come from ``node_agent``.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.common.certificates import Authority
from localcloud.runtime.child_processes import Child, ProcessPart
from localcloud.runtime.port_reservations import PortReservations
from tests.authority.programs import API_SERVER, CONTROLLERS, ETCD, Program
from tests.authority.real_world import RealWorld

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_ADMINISTRATORS = "system:masters"
_CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "endpointslice-controller",
    "resourcequota-controller",
    "persistentvolumeclaim-protection-controller",
)
"""The controllers that Roadstead's work meets. A StatefulSet, with no controller here, has a scale only."""


_AUDIT = "audit.jsonl"
_AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


class RealCluster:
    """One cluster in a folder; ``start`` and ``close``, or a context manager."""

    def __init__(self, folder: Path, authority: Authority | None = None) -> None:
        self._folder, self._authority = folder, authority or Authority()
        self._children: dict[str, Child] = {}
        self._stack = ExitStack()
        self._ports = PortReservations()
        self._stack.callback(self._ports.close)
        self._etcd, self._peer, self._port = (self._ports.reserve(None) for _ in range(3))
        folder.mkdir(parents=True, exist_ok=True)
        self._write_certificates()
        self.world = RealWorld(
            self.url, self._path("ca.crt"), self._path("admin.crt"), self._path("admin.key")
        )

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def version(self) -> str:
        """The version of Kubernetes, as "1.36.3"."""
        return API_SERVER.version.removeprefix("v")

    @property
    def kubeconfig(self) -> str:
        """The kubeconfig of an administrator, with a client certificate, as AKS gives one."""
        certificate, key = (self._path(name).read_bytes() for name in ("admin.crt", "admin.key"))
        return self._kubeconfig(
            {"client-certificate-data": _coded(certificate), "client-key-data": _coded(key)}
        )

    def kubeconfig_with_token(self, token: str) -> str:
        """Return a kubeconfig with a bearer token."""
        return self._kubeconfig({"token": token})

    def start(self) -> None:
        """Start the processes and return when the API server and the controllers are ready."""
        try:
            self._run(ETCD, self._etcd_options(), _answers(f"http://127.0.0.1:{self._etcd}/health"))
            self._start_kubernetes()
        except BaseException:
            self.close()
            raise

    def run(
        self, name: str, command: list[str], ready: Callable[[], bool], environment: Mapping[str, str]
    ) -> Child:
        """Start another program that belongs to the cluster; its caller stops it."""
        guarded = [sys.executable, str(Path(__file__).with_name("guard.py")), *command]
        return Child(
            ProcessPart(name, guarded, ready), self._path(f"{name}.log"), {**os.environ, **environment}
        )

    def set_power(self, *, on: bool) -> None:
        """Stop the API server, or start it again; etcd keeps its objects."""
        if on and API_SERVER.name not in self._children:
            self._start_kubernetes()
        if not on:
            for program in (CONTROLLERS, API_SERVER):
                if program.name in self._children:
                    self._children.pop(program.name).stop(_STOP_SECONDS)

    def forget_history(self) -> None:
        """Compact etcd to the newest version, and start the API server again, whose caches are then empty."""
        api = f"http://127.0.0.1:{self._etcd}/v3/kv"
        key = base64.b64encode(b"/").decode()
        newest = httpx.post(f"{api}/range", json={"key": key}, trust_env=False).raise_for_status().json()
        revision = {"revision": newest["header"]["revision"], "physical": True}
        self.set_power(on=False)
        httpx.post(f"{api}/compaction", json=revision, trust_env=False).raise_for_status()
        self.set_power(on=True)

    def check(self) -> None:
        """Raise PartFailed when a process has ended by itself."""
        for child in self._children.values():
            child.check()

    def close(self) -> None:
        """Stop the processes."""
        for child in reversed(self._children.values()):
            child.ask_to_stop()
        for child in reversed(self._children.values()):
            child.stop(_STOP_SECONDS)
        self._children.clear()
        self.world.close()
        self._stack.close()

    def __enter__(self) -> RealCluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_kubernetes(self) -> None:
        """Start one after the other: the controllers wait ten seconds for an API server, and then end."""
        self._run(API_SERVER, self._api_server_options(), self._serves)
        self._run(CONTROLLERS, self._controller_options(), self._has_controllers)

    def _run(self, program: Program, options: Mapping[str, object], ready: Callable[[], bool]) -> None:
        command = [str(program.path), *(f"--{name}={value}" for name, value in options.items())]
        child = self._children[program.name] = self.run(program.name, command, ready, {})
        child.wait_ready(_START_SECONDS)

    def _etcd_options(self) -> Mapping[str, object]:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd, self._peer))
        return {
            "data-dir": self._path("etcd"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "unsafe-no-fsync": "true",
            "log-level": "error",
        }

    def _api_server_options(self) -> Mapping[str, object]:
        return {
            "etcd-servers": f"http://127.0.0.1:{self._etcd}",
            "bind-address": "127.0.0.1",
            "secure-port": self._port,
            "endpoint-reconciler-type": "none",
            "tls-cert-file": self._path("server.crt"),
            "tls-private-key-file": self._path("server.key"),
            "client-ca-file": self._path("ca.crt"),
            "authorization-mode": "RBAC",
            "allow-privileged": "true",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": self._path("accounts.pub"),
            "service-account-signing-key-file": self._path("accounts.key"),
            "service-cluster-ip-range": "10.0.0.0/16",
            "profiling": "false",
            "audit-policy-file": self._path("audit.yaml"),
            "audit-log-path": self._path(_AUDIT),
        }

    def _controller_options(self) -> Mapping[str, object]:
        return {
            "kubeconfig": self._path("admin.yaml"),
            "controllers": ",".join(_CONTROLLERS),
            "leader-elect": "false",
            "bind-address": "127.0.0.1",
            "secure-port": "0",
            "kube-api-qps": "200",
            "kube-api-burst": "400",
        }

    def _serves(self) -> bool:
        return self.world.ready()

    def _has_controllers(self) -> bool:
        return self.world.ready() and self.world.has_default_account()

    def _write_certificates(self) -> None:
        self._authority.write(self._path("ca.crt"))
        server, administrator = self._authority.server_pair(), self._administrator()
        for name, (certificate, key) in {"server": server, "admin": administrator}.items():
            self._write(f"{name}.crt", certificate)
            self._write(f"{name}.key", key)
        accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        plain = serialization.NoEncryption()
        kinds = (
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.PublicFormat.SubjectPublicKeyInfo,
        )
        pem = serialization.Encoding.PEM
        self._write("accounts.key", accounts.private_bytes(pem, kinds[0], plain))
        self._write("accounts.pub", accounts.public_key().public_bytes(pem, kinds[1]))
        self._write("audit.yaml", _AUDIT_POLICY.encode())
        self._write("admin.yaml", self.kubeconfig.encode())

    def _administrator(self) -> tuple[bytes, bytes]:
        return self._authority.client_pair("cluster-admin", group=_ADMINISTRATORS)

    def _kubeconfig(self, user: Mapping[str, str]) -> str:
        server = {"server": self.url, "certificate-authority-data": _coded(self._authority.pem)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
            "clusters": [{"name": "real", "cluster": server}],
            "users": [{"name": "real", "user": dict(user)}],
        }
        return yaml.safe_dump(content, sort_keys=False)

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _write(self, name: str, content: bytes) -> None:
        self._path(name).touch(mode=0o600)
        self._path(name).write_bytes(content)


def _coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _answers(url: str) -> Callable[[], bool]:
    def ready() -> bool:
        try:
            return httpx.get(url, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    return ready
