"""What operators ask for."""
