"""All worlds in one process on a virtual clock, behind the ports of production code."""
