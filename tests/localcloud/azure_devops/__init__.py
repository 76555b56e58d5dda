"""Tests of the stand-in for Azure DevOps."""
