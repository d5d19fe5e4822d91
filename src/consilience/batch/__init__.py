"""Learners that see all samples at once."""
