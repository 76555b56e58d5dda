"""Tests of the stand-in for GitHub."""
