"""Models away from Python: a prediction from raw values as one file in another language.

`description` says once what that prediction is, from the weights and the layout; a module for each target
writes it down.
"""
