"""Messages of readers are tested as the command line shows them."""

import pytest


@pytest.fixture(autouse=True)
def shown_by_commands(as_commands_say: None) -> None:
    """For every test here."""
