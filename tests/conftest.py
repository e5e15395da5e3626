"""How the tests search: the same examples every time, or new ones with HYPOTHESIS_PROFILE=search."""

import os

from hypothesis import settings

os.environ["SCIPY_ARRAY_API"] = "1"  # read when scipy is imported: without it scikit-learn leaves a check out

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
