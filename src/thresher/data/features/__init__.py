"""How names, texts and products become features."""
