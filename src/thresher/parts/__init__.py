"""Losses, rates and rules. Importing this package registers them all.

`make("rule", "ftrl:alpha=0.5")` makes a part; `REGISTRY` lists the classes by kind and name.
"""

import pkgutil
from importlib import import_module

from thresher.parts import groups as groups
from thresher.parts import losses as losses
from thresher.parts import rates as rates
from thresher.parts import rules as rules
from thresher.parts.clamped import LISTED as LISTED
from thresher.parts.clamped import NONNEGATIVE as NONNEGATIVE
from thresher.parts.clamped import NONPOSITIVE as NONPOSITIVE
from thresher.parts.description import Description as Description
from thresher.parts.description import describe as describe
from thresher.parts.origins import REGISTRY as REGISTRY
from thresher.parts.origins import Need as Need
from thresher.parts.origins import SpecError as SpecError
from thresher.parts.origins import check_there as check_there
from thresher.parts.origins import expect as expect
from thresher.parts.origins import homes as homes
from thresher.parts.origins import load_files as load_files
from thresher.parts.origins import needs_of as needs_of
from thresher.parts.origins import part_name as part_name
from thresher.parts.registry import able as able
from thresher.parts.registry import changed as changed
from thresher.parts.registry import clamped as clamped
from thresher.parts.registry import fields_said as fields_said
from thresher.parts.registry import find as find
from thresher.parts.registry import lacking as lacking
from thresher.parts.registry import lookup as lookup
from thresher.parts.registry import make as make
from thresher.parts.registry import names as names
from thresher.parts.registry import no_probabilities as no_probabilities
from thresher.parts.registry import parameters as parameters
from thresher.parts.registry import rule_of as rule_of
from thresher.parts.registry import spec_of as spec_of

for _module in pkgutil.iter_modules(rules.__path__):
    import_module(f"{rules.__name__}.{_module.name}")
