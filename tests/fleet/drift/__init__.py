"""What differs between git and Azure."""
