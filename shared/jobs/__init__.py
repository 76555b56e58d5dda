"""How work moves: rows, recipes, outcomes, error classes. Pure."""
