"""What users hold in memory or name: arrays, frames, matrices, pairs, files; as sources."""
