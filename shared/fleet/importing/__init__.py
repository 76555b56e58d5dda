"""From a cluster in Azure to the manifest that describes it."""
