"""What a fleet is and what a commit requests: pure code, without I/O."""
