"""Azure DevOps: git over HTTPS, and its REST API 7.1 for what git does not have; signed in as the app."""

from shared.adapters.azure_devops.host import AzureDevOpsHost

__all__ = ["AzureDevOpsHost"]
