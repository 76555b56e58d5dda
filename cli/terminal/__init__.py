"""What a person reads: plans, lists and clusters as text for a terminal, and the formats of ``--output``."""
