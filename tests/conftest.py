"""How the tests search: the same examples every time, or new ones with HYPOTHESIS_PROFILE=search.

And where they run: those of one rule on one worker, which so compiles each of its kernels once. Signals do
to the processes that tests start what they do to those of a terminal, even where ``nohup`` or a background
job of a shell has them ignored.
"""

import os
import re
import signal

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from thresher import parts

os.environ["SCIPY_ARRAY_API"] = "1"  # read when scipy is imported: without it scikit-learn leaves a check out

for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:  # which processes inherit
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

LONGEST_FIRST = sorted(parts.REGISTRY["rule"], key=len, reverse=True)
RULE = re.compile(rf"[\[-]({'|'.join(LONGEST_FIRST)})[] :-]")


class ByRule(LoadScopeScheduling):
    """Tests with a rule among their parameters go together, others anywhere."""

    def _split_scope(self, nodeid: str) -> str:
        found = RULE.search(nodeid)
        return found[1] if found else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByRule:
    """In place of the one that ``--dist`` names."""
    return ByRule(config, log)
