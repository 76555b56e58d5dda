"""Real clusters behind the local Azure: the ``ControlPlane`` of ``localcloud.common.control_plane``.

Azure must not wait for a control plane, so one cluster is always running before Azure asks for it; what
takes longer than a moment happens in a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from localcloud.common.certificates import Authority
from localcloud.common.control_plane import InsideCluster, KubernetesNode
from shared.resource_ids import ClusterId
from tests.authority.node_agent import NodeAgent
from tests.authority.pod_programs import PodPrograms
from tests.authority.real_cluster import RealCluster


class _Member:
    def __init__(self, folder: Path, authority: Authority, ca: Path) -> None:
        self.cluster = RealCluster(folder, authority)
        self.cluster.start()
        self.pods = PodPrograms(self.cluster, folder / "pods", ca=ca)
        self.agent = NodeAgent(self.cluster.world, program=self.pods)

    def close(self) -> None:
        self.agent.close()
        self.pods.close()
        self.cluster.close()


class RealPlane:
    """Hands real clusters out, at most ``most``; ``close`` after use.

    Kubeconfigs are also written to ``kubeconfigs``. The pods trust git servers by ``ca``.
    """

    def __init__(self, folder: Path, authority: Authority, *, ca: Path, kubeconfigs: Path, most: int) -> None:
        self._folder, self._kubeconfigs = folder, kubeconfigs
        self._spare = [_Member(folder / f"cluster-{n}", authority, ca) for n in range(most)]
        self._members: dict[ClusterId, _Member] = {}
        self._lock = threading.Lock()
        self._later = ThreadPoolExecutor(max_workers=1)

    def start(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> str:
        """Give a created cluster a real API server; return its kubeconfig."""
        with self._lock:
            if cluster not in self._members:
                self._members[cluster] = self._spare.pop()
            member = self._members[cluster]
        member.agent.set_nodes(nodes)
        path = self._kubeconfigs / f"{cluster.name}.yaml"
        path.touch(mode=0o600)
        path.write_text(member.cluster.kubeconfig)
        return member.cluster.kubeconfig

    def set_nodes(self, cluster: ClusterId, nodes: Sequence[KubernetesNode]) -> None:
        """Set the nodes of a started cluster; they are there a moment later."""
        member = self._members.get(cluster)
        if member is not None:
            member.agent.set_nodes(nodes)

    def set_power(self, cluster: ClusterId, *, on: bool) -> None:
        """Stop the API server, or start it again; etcd keeps its objects."""
        member = self._members.get(cluster)
        if member is not None:
            self._do(lambda: member.cluster.set_power(on=on))

    def set_entra(self, cluster: ClusterId, *, on: bool) -> None:
        """Do nothing: these API servers trust certificates only, so no cluster here uses Entra ID."""

    def inside(self, cluster: ClusterId) -> InsideCluster | None:  # noqa: ARG002 - a protocol's name
        """Return None: no extension runs in these clusters."""
        return None

    def stop(self, cluster: ClusterId) -> None:
        """Stop a cluster for good; its API server is not used again."""
        with self._lock:
            member = self._members.pop(cluster, None)
        (self._kubeconfigs / f"{cluster.name}.yaml").unlink(missing_ok=True)
        if member is not None:
            self._do(member.close)

    def close(self) -> None:
        """Stop every cluster."""
        self._later.shutdown()
        for member in [*self._members.values(), *self._spare]:
            member.close()

    def _do(self, work: Callable[[], None]) -> None:
        self._later.submit(work)
