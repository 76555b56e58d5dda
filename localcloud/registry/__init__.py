"""A registry of artifacts, which stands in for Azure Container Registry."""
