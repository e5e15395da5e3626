"""The rules, one per module. Every module in this package is imported and registers one rule."""
