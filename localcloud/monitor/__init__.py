"""The local workspaces of Azure Monitor: a managed Prometheus, and a Log Analytics workspace."""
