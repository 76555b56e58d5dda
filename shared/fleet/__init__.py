"""What a fleet is and what a commit asks for: pure code, without I/O."""
