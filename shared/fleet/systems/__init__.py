"""The systems of teams on a cluster, in their stored form. Pure."""
