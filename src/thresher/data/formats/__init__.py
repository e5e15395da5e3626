"""The formats that data may be in."""
