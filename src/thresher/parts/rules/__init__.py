"""One file per algorithm. Each module here is found by being here and names one rule."""
