"""What a commit changes of what Flux applies, and what that does to clusters."""
