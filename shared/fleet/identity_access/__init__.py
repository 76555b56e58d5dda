"""What a cluster's manifest grants to identities in Azure: names, bodies, comparison and counts. Pure."""
