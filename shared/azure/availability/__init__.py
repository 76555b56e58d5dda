"""What Azure offers and permits here, and what it takes away: read for plans and readiness."""
