"""Links in the metadata of the packages: hatchling calls this for each build.

Where the project lives is not written anywhere, so that a copy of the repository names its own: the release
workflow says it, and so can ``make dist REPOSITORY=https://...``. Then the metadata have links, and those of
the README lead there, since an installed package has no docs and no examples. Without it, the README says so.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {
    "Source": "",
    "Documentation": "/tree/main/docs",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
    "Security": "/blob/main/SECURITY.md",
}
AWAY = """\
*This page is that of the source, where `docs`, `examples` and the Makefile are. A package in a file is
installed with what else is needed by `pip install 'thresher-VERSION-py3-none-any.whl[serve]'`: `serve`,
`sklearn`, `onnx`, `remote` or `ray`.*
"""


class Urls(MetadataHookInterface):
    """Adds links, and the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields."""
        repository = os.environ.get("REPOSITORY", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        title, _, rest = text.partition("\n")
        if repository:
            rest = re.sub(r"(!\[[^]]*\])\((?!\w+:|#)", rf"\1({repository}/raw/main/", rest)
            rest = re.sub(r"(?<!!)(\[[^]]*\])\((?!\w+:|#)", rf"\1({repository}/blob/main/", rest)
        metadata["readme"] = {"content-type": "text/markdown", "text": f"{title}\n\n{AWAY}{rest}"}
        metadata["urls"] = {name: repository + page for name, page in PAGES.items()} if repository else {}
