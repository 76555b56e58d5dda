"""The real programs: what they are built from, and where ``make authority`` puts them.

Versions are those of the go.mod files in ``modules``, which is the only place that states them.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from localcloud.common.programs import TOOLS

MODULES = Path(__file__).with_name("modules")
BUILT = TOOLS / "authority"


@dataclass(frozen=True)
class Program:
    """A program: the folder of its go.mod below ``modules``, its module, and its main package in there."""

    name: str
    folder: str
    module: str
    package: str = ""
    files: str = ""
    """The folder of the module with definitions, deployments and roles."""

    @property
    def path(self) -> Path:
        """The binary."""
        return BUILT / self.name

    @property
    def config(self) -> Path:
        """A copy of ``files``: what has to be in a cluster in which the program runs."""
        return BUILT / f"{self.name}.config"

    @property
    def stamp(self) -> Path:
        """The file that says what the binary was built from."""
        return BUILT / f"{self.name}.json"

    @property
    def version(self) -> str:
        """The version that was built."""
        return str(json.loads(self.stamp.read_text())["version"])

    def pinned(self) -> tuple[str, Path]:
        """Return the version that go.mod pins and the module's folder; Go downloads it when it is missing."""
        command = ["go", "list", "-m", "-json", self.module]
        subprocess.run(["go", "mod", "download", self.module], cwd=MODULES / self.folder, check=True)
        done = subprocess.run(command, cwd=MODULES / self.folder, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        return str(found["Version"]), Path(found["Dir"])


def _flux(name: str) -> Program:
    return Program(name, name, f"github.com/fluxcd/{name}", files="config")


_KUBERNETES = "k8s.io/kubernetes"
ETCD = Program("etcd", "kubernetes", "go.etcd.io/etcd/server/v3")
API_SERVER = Program("kube-apiserver", "kubernetes", _KUBERNETES, "/cmd/kube-apiserver")
CONTROLLERS = Program("kube-controller-manager", "kubernetes", _KUBERNETES, "/cmd/kube-controller-manager")
SOURCE = _flux("source-controller")
KUSTOMIZE = _flux("kustomize-controller")
NOTIFICATION = _flux("notification-controller")

SEALED_SECRETS = Program(
    "sealed-secrets-controller",
    "sealed-secrets",
    "github.com/bitnami/sealed-secrets",
    "/cmd/controller",
    files="helm/sealed-secrets/crds",
)

FLUX = (SOURCE, KUSTOMIZE, NOTIFICATION)
PODS = (*FLUX, SEALED_SECRETS)
"""What runs in pods, by the name of its image."""
ALL = (ETCD, API_SERVER, CONTROLLERS, *PODS)
