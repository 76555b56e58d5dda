"""What is lost, late, older or dead, and how the fleet recovers."""
