"""What the local Kubernetes remembers instead of doing it again."""
