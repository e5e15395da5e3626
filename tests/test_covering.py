from itertools import combinations, product

from tests.covering import covering, covering_for
from tests.streams import RULES

AXES = ("abcdefg", (0, 1), ("x", "y", "z"), (True, False), ("only",))


def test_each_value_of_each_axis_occurs_in_as_many_cases_as_the_longest_has_values() -> None:
    for seed in range(9):
        found = covering(*AXES, seed=seed)
        assert len(found) == len(AXES[0])
        for place, axis in enumerate(AXES):
            assert {case[place] for case in found} == {*axis}


def test_over_all_rules_each_pair_of_values_meets() -> None:
    every = [case for name in RULES for case in covering_for(name, *AXES)]
    for one, other in combinations(range(len(AXES)), 2):
        assert {(case[one], case[other]) for case in every} == {*product(AXES[one], AXES[other])}
