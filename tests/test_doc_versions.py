"""The site of the newest release is built beside that of the tree."""

import subprocess
from pathlib import Path

import pytest

from docs.versions import main, newest_release, source_of


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose file says which commit it is of."""
    root = tmp_path / "repository"
    root.mkdir()

    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)

    git("init", "-q")
    for tag in ("v0.9.0", "v0.10.0", "v0.10.1-rc1", "later"):
        (root / "version").write_text(tag)
        git("add", "version")
        git("commit", "-qm", tag)
        git("tag", tag)
    return root


def test_the_newest_release_is_found_and_unpacked(repository: Path, tmp_path: Path) -> None:
    assert newest_release(repository) == "v0.10.0"
    source_of("v0.10.0", tmp_path / "there", repository)
    assert (tmp_path / "there" / "version").read_text() == "v0.10.0"


def test_both_sites_are_built_with_links_to_each_other(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = {}

    def build(root: Path, name: str, names: list[str], out: Path) -> None:
        built[name] = (root / "version").read_text(), names
        (out / name).mkdir(parents=True)

    monkeypatch.setattr("docs.versions.build", build)
    monkeypatch.setattr("docs.versions.ROOT", repository)
    main(tmp_path / "sites")
    names = ["0.10.0", "dev"]
    assert built == {"dev": ("later", names), "0.10.0": ("v0.10.0", names)}
    assert "url=0.10.0/index.html" in (tmp_path / "sites" / "index.html").read_text()
