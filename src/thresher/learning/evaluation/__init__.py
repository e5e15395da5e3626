"""Figures of a model on labelled data."""
