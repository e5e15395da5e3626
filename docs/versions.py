"""Build the site of the newest release beside that of this tree: ``python -m docs.versions build/versions``.

Each is built from its own source, and links to the other. The first page leads to the release, or to this
tree while there is no release.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
DEVELOPMENT = "dev"
RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
FIRST_PAGE = """<!doctype html>
<meta http-equiv="refresh" content="0; url={0}/index.html">
<a href="{0}/index.html">{0}</a>
"""


def newest_release(root: Path) -> str | None:
    """The tag of the newest release, such as v1.12.0, if there is one."""
    said = subprocess.run(["git", "tag"], cwd=root, check=True, capture_output=True, text=True).stdout
    found = [match for line in said.split() if (match := RELEASE.fullmatch(line))]
    return max(found, key=lambda match: tuple(map(int, match.groups())))[0] if found else None


def source_of(tag: str, folder: Path, root: Path) -> None:
    """Write the tree of a tag to a folder."""
    packed = subprocess.run(["git", "archive", tag], cwd=root, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def build(root: Path, name: str, names: list[str], out: Path) -> None:
    """Build the site of a tree; docs/conf.py links to all versions in DOCS_VERSIONS."""
    known = {**os.environ, "PYTHONPATH": str(root / "src"), "DOCS_VERSIONS": " ".join(names)}
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto"]
    subprocess.run([*sphinx, str(root / "docs"), str(out / name)], check=True, cwd=root, env=known)


def main(out: Path) -> None:
    """Build both."""
    tag = newest_release(ROOT)
    names = [tag[1:], DEVELOPMENT] if tag else [DEVELOPMENT]
    build(ROOT, DEVELOPMENT, names, out)
    if tag:
        with TemporaryDirectory() as folder:
            source_of(tag, Path(folder), ROOT)
            build(Path(folder), tag[1:], names, out)
    (out / "index.html").write_text(FIRST_PAGE.format(names[0]), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
