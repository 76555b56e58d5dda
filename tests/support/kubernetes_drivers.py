"""Two clients of a cluster with a kubeconfig: the official Python client, and kubectl."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Protocol

import yaml
from kubernetes import config as kubernetes_config
from kubernetes import dynamic as kubernetes_dynamic
from kubernetes.client import ApiException, CoreV1Api, V1Eviction
from kubernetes.dynamic.exceptions import ConflictError, DynamicApiError, NotFoundError

from tests.support.waiting import until

config: Any = kubernetes_config  # the client is not typed
dynamic: Any = kubernetes_dynamic


class Refused(Exception):
    """The cluster refused; the message is that of the client."""


class Driver(Protocol):
    """The operations of a client; ``kind`` is "apiVersion Kind"."""

    def names(self, kind: str, namespace: str = "") -> list[str]: ...
    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]: ...
    def apply(self, manifests: str) -> None: ...
    def server_side(self, manifests: str, *, manager: str) -> None: ...
    def table(self, kind: str, namespace: str = "") -> list[list[str]]: ...
    def delete(self, kind: str, name: str, namespace: str = "") -> None: ...
    def wait(self, kind: str, name: str, condition: str, namespace: str = "") -> None: ...
    def drain(self, node: str) -> None: ...


class PythonDriver:
    """The official Python client."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.client = config.new_client_from_config(str(kubeconfig))
        self._dynamic = dynamic.DynamicClient(self.client, cache_file=str(folder / "discovery.json"))

    def close(self) -> None:
        self.client.close()

    def _resource(self, kind: str) -> Any:
        api_version, name = kind.split()
        return self._dynamic.resources.get(api_version=api_version, kind=name)

    def names(self, kind: str, namespace: str = "") -> list[str]:
        found = self._resource(kind).get(namespace=namespace or None)
        return [item.metadata.name for item in found.items]

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        try:
            return dict(self._resource(kind).get(name=name, namespace=namespace or None).to_dict())
        except NotFoundError as error:
            raise Refused(str(error.body)) from error

    def apply(self, manifests: str) -> None:
        for body in yaml.safe_load_all(manifests):
            metadata = body["metadata"]
            resource = self._resource(f"{body['apiVersion']} {body['kind']}")
            where = {"name": metadata["name"], "namespace": metadata.get("namespace")}
            try:
                resource.create(body=body, namespace=where["namespace"])
            except ConflictError:
                resource.patch(body=body, content_type="application/merge-patch+json", **where)

    def server_side(self, manifests: str, *, manager: str) -> None:
        for body in yaml.safe_load_all(manifests):
            resource = self._resource(f"{body['apiVersion']} {body['kind']}")
            where = {"name": body["metadata"]["name"], "namespace": body["metadata"].get("namespace")}
            try:
                resource.server_side_apply(body=body, field_manager=manager, force_conflicts=False, **where)
            except DynamicApiError as error:
                raise Refused(str(error.body)) from error

    def table(self, kind: str, namespace: str = "") -> list[list[str]]:
        path = self._resource(kind).path(namespace=namespace or None)
        url = f"{self.client.configuration.host}{path}"
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        found = json.loads(
            self.client.rest_client.request(
                "GET", url, headers={**self.client.default_headers, "Accept": accept}
            ).data
        )
        shown = [n for n, column in enumerate(found["columnDefinitions"]) if not column["priority"]]
        header = [column["name"].upper() for column in found["columnDefinitions"]]
        rows = [[str(cell) for cell in row["cells"]] for row in found["rows"]]
        return [[line[n] for n in shown] for line in (header, *rows)]

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        self._resource(kind).delete(name=name, namespace=namespace or None)

    def wait(self, kind: str, name: str, condition: str, namespace: str = "") -> None:
        def holds() -> bool:
            conditions = (self.get(kind, name, namespace).get("status") or {}).get("conditions") or ()
            return any(item["type"] == condition and item["status"] == "True" for item in conditions)

        until(holds)

    def drain(self, node: str) -> None:
        core: Any = CoreV1Api(self.client)
        core.patch_node(node, {"spec": {"unschedulable": True}})
        for pod in core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={node}").items:
            where = pod.metadata.name, pod.metadata.namespace
            try:
                core.create_namespaced_pod_eviction(*where, V1Eviction(metadata=pod.metadata))
            except ApiException as error:
                raise Refused(str(error.body)) from error


class KubectlDriver:
    """The real kubectl."""

    def __init__(self, kubectl: str, kubeconfig: Path, folder: Path) -> None:
        self._command = [kubectl, f"--kubeconfig={kubeconfig}", f"--cache-dir={folder / 'cache'}"]
        self._environment = {**os.environ, "HOME": str(folder)}

    def run(self, *arguments: str, text: str = "") -> str:
        command, environment = [*self._command, *arguments], self._environment
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=60, env=environment, check=False
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def _on(self, kind: str, namespace: str) -> list[str]:
        api_version, name = kind.split()
        group, _, version = api_version.rpartition("/")
        typed = f"{name}.{version}.{group}" if group else name
        return [typed, *([f"--namespace={namespace}"] if namespace else [])]

    def names(self, kind: str, namespace: str = "") -> list[str]:
        found = self.run("get", *self._on(kind, namespace), "--output=name")
        return [line.partition("/")[2] for line in found.splitlines()]

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        found = self.run("get", *self._on(kind, namespace), name, "--output=json", "--show-managed-fields")
        return dict(json.loads(found))

    def apply(self, manifests: str) -> None:
        self.run("apply", "--filename=-", text=manifests)

    def server_side(self, manifests: str, *, manager: str) -> None:
        self.run("apply", "--server-side", f"--field-manager={manager}", "--filename=-", text=manifests)

    def table(self, kind: str, namespace: str = "") -> list[list[str]]:
        lines = self.run("get", *self._on(kind, namespace)).splitlines()
        return [re.split(r" {2,}", line.rstrip()) for line in lines]

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        self.run("delete", *self._on(kind, namespace), name, "--timeout=60s")

    def wait(self, kind: str, name: str, condition: str, namespace: str = "") -> None:
        self.run("wait", *self._on(kind, namespace), name, f"--for=condition={condition}", "--timeout=60s")

    def drain(self, node: str) -> None:
        self.run("drain", node, "--force", "--timeout=2s")
