"""The suite of the Kubernetes port on a real API server: nodes, pods and evictions; and its power."""

from tests.contract.test_kubernetes_access import (
    test_a_stopped_cluster_does_not_answer_and_retains_its_objects as test_a_stopped_cluster,  # noqa: F401
)
from tests.contract.test_kubernetes_nodes import *  # noqa: F403
