"""What Flux applies to clusters from the fleet repository: built, compared, judged. Pure."""
