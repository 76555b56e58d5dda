"""Rules over several fields of a cluster, and between clusters; all are checked offline."""
