"""Node pools, and the nodes in them as Kubernetes shows them."""
