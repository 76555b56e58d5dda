"""Runs one real cluster until Ctrl-C: ``python -m tests.authority FOLDER``.

The kubeconfig of its administrator is ``admin.yaml`` in the folder, its certificates, objects and logs are
there too. Pods run as ``node_agent`` says, the Flux controllers as their built programs.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from localcloud.common.control_plane import KubernetesNode
from tests.authority.node_agent import NodeAgent
from tests.authority.pod_programs import PodPrograms
from tests.authority.real_cluster import RealCluster


def main() -> int:
    """Serve the folder that the command line names."""
    if len(sys.argv) != 2:
        print("usage: python -m tests.authority FOLDER", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1]).resolve()
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    with RealCluster(folder) as cluster:
        pods = PodPrograms(cluster, folder / "pods", ca=folder / "ca.crt")
        agent = NodeAgent(cluster.world, program=pods)
        agent.set_nodes([KubernetesNode("node-1", "system", cluster.version)])
        print(f"kubectl --kubeconfig={folder / 'admin.yaml'} get nodes", flush=True)
        stop.wait()
        agent.close()
        pods.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
