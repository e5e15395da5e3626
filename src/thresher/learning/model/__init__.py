"""What a model is: parts, state, weights; learning and predicting."""
