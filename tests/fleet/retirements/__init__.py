"""What AKS retires."""
