"""What Flux would apply to clusters: built and compared for a plan, of the fleet and of systems."""
