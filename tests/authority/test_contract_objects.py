"""The suite of the Kubernetes port on a real API server: objects and lists."""

from tests.contract.test_kubernetes import *  # noqa: F403
