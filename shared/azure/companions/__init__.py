"""What a cluster has around it in Azure: windows, namespaces, grants and policies."""
