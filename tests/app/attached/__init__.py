"""Clusters that are not in Azure, from a commit to Ready and released."""
