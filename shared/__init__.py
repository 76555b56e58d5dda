"""What runs in Azure: pure decisions (fleet, jobs), the story (pipeline), the seams (ports, adapters)."""
