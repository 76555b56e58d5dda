"""The suite of the Kubernetes port on a real API server: dry runs, replacements and deletes."""

from tests.contract.test_kubernetes_writes import *  # noqa: F403
