"""Messages of readers are tested as shown on the command line."""

import pytest


@pytest.fixture(autouse=True)
def shown_by_commands(as_commands_say: None) -> None:
    """Applies to every test in this folder."""
