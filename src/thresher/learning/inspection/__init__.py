"""The contents of a model: weights by name and column, differences, pictures, frames."""
