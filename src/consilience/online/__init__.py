"""Estimators that see one sample after the other."""
