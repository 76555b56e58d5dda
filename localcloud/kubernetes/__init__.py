"""The Kubernetes APIs of the AKS clusters."""
