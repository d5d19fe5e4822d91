"""Evaluation: comparison of estimators, inspection, displays, splitting, progressive validation, checks."""
