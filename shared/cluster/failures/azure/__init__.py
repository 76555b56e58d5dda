"""The documented errors of AKS, and of the services of Azure that it calls, by service."""
