"""What `make dist` checks: wheel and sdist have what they should, and the wheel works in an empty environment.

    python tests/distribution.py dist

The wheel is installed without extras into a new virtual environment, with the versions of constraints.txt. From an
empty folder `iclab doctor`, `iclab list` and a small `iclab reproduce` run; then the tutorial is executed as printed.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
SDIST = ("README.md", "LICENSE",
         "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Makefile", "constraints.txt", "docs/conf.py",
         "docs/tutorial.md", "docs/extensions/generated.py", "tests/conftest.py", "tests/test_docs.py", "benchmarks/gpt2.py",
         "pyproject.toml")  # fmt: skip


def tracked(*folders: str) -> set[str]:
    """The files of these folders that are under version control."""
    listed = subprocess.run(["git", "ls-files", "--", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.split())


def check_wheel(path: Path) -> None:
    """Every file of the package is there, and nothing else."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
    wanted = {name.removeprefix("src/") for name in tracked("src")}
    assert wanted <= names, f"missing in the wheel: {sorted(wanted - names)}"
    other = {name for name in names - wanted if ".dist-info/" not in name}
    assert not other, f"not of the package: {sorted(other)}"


def check_sdist(path: Path) -> None:
    """Tests, documentation and examples are there, and everything under version control in those folders."""
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {*SDIST, *tracked("src", "tests", "docs", "benchmarks", "examples", "gallery")}
    assert wanted <= names, f"missing in the sdist: {sorted(wanted - names)}"
    assert not any("__pycache__" in name for name in names)


def check_install(wheel: Path) -> None:
    """Into an empty environment, without extras; then every step of a first user."""
    with tempfile.TemporaryDirectory() as folder:
        home, empty = Path(folder) / "environment", Path(folder) / "empty"
        empty.mkdir()
        venv.create(home, with_pip=True)
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        clean |= {"ICLAB_CACHE": str(Path(folder) / "compiled")}

        def run(*command: str, where: Path = empty) -> None:
            began = time.perf_counter()
            subprocess.run([str(home / "bin" / command[0]), *command[1:]], cwd=where, env=clean, check=True)
            print(f"-- {' '.join(command[:4])}: {time.perf_counter() - began:.0f} s", flush=True)

        run("pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), str(wheel.resolve()))
        run("pip", "check")
        run("iclab", "doctor")
        run("iclab", "list", "feature-selection")
        run("iclab", "reproduce", "feature-selection/thm2", "--profile", "smoke", "--out", "run")
        assert (empty / "run" / "index.html").stat().st_size > 10_000
        run("python", str(ROOT / "tests" / "blocks.py"), str(TUTORIAL))


def main() -> None:
    """Check what lies in the folder."""
    folder = Path(sys.argv[1])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    print(f"{wheel.name} and {sdist.name} have what they should")
    check_install(wheel)


if __name__ == "__main__":
    main()
