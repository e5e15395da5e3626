"""How Chunks become a model: Model, its file, the training loop, what is measured and shown."""
