"""Azure Resource Manager with resource groups and AKS clusters, and the managed identity endpoint."""
