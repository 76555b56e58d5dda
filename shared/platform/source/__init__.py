"""What Flux gets of a commit, and what a path of it reaches."""
