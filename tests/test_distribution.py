"""What an installed iclab has: every file of the package, found from the metadata. `make dist` builds and installs
it.
"""

import fnmatch
import importlib.metadata
import tomllib
from pathlib import Path

import yaml

import iclab

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "iclab"


def test_every_file_of_the_package_is_installed():
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["iclab"]
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert any(path.suffix == ".html" for path in files)
    for path in files:
        name = path.relative_to(PACKAGE).as_posix()
        if path.suffix == ".py":
            assert (path.parent / "__init__.py").exists(), f"{name} lies in a folder that is no package"
        else:
            assert any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns), f"{name} would not be installed"


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert iclab.__version__ == importlib.metadata.version("iclab") == version
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {version} - " in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_is_of_the_form_that_its_version_asks_for():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(found)  # what the schema requires
    assert found["type"] == "software" and found["license"] == "Apache-2.0"
    assert all("name" in author or {"family-names", "given-names"} <= set(author) for author in found["authors"])
    for reference in found["references"]:
        assert {"type", "title", "authors"} <= set(reference)
