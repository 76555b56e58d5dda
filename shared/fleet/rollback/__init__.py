"""The rollback of a node pool: what a manifest asks for, what Azure demands, and the one PUT. Pure."""
