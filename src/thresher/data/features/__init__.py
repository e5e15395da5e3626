"""Turning names, texts and products into features."""
