"""The local Azure DevOps: git over HTTP, the REST API 7.1 and service hooks, on real bare repositories."""
