"""Where the project lives, as links in the metadata of the packages: hatchling calls this for each build.

The address is not written anywhere, so that a copy of the repository names its own: the release workflow says
it, and so can ``make dist REPOSITORY=https://...``. Without one there are no links.
"""

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {
    "Source": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
    "Security": "/blob/main/SECURITY.md",
}


class Urls(MetadataHookInterface):
    """Adds them."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field."""
        repository = os.environ.get("REPOSITORY", "").rstrip("/")
        metadata["urls"] = {name: repository + page for name, page in PAGES.items()} if repository else {}
