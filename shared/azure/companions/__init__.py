"""What stands beside a cluster in Azure: windows, namespaces, grants and policies."""
