"""What AKS is about to retire, of what a manifest can ask for: a dated table with its sources."""
