"""Tests of the stand-in for the Functions host."""
