"""Tests of the stand-in for Kubernetes and Flux."""
