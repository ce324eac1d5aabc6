"""`make test-hard`: runs are killed, damaged, starved and lied to; one table says what came of it.

`python tests/hard damage kills` tries some categories only; `--sentences` prints every sentence that was given. The
status is 1 unless nothing was lost, wrong, a traceback or unclear.
"""

import importlib
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
os.environ.setdefault("MPLBACKEND", "agg")

import trial

CATEGORIES = ("kills", "damage", "disk", "lines", "own_files", "hostile", "requests_abuse", "workers")


def main():
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")] or CATEGORIES
    tried = []
    with tempfile.TemporaryDirectory(prefix="iclab-hard-") as folder:
        os.environ.setdefault("ICLAB_CACHE", f"{folder}/compiled")
        for name in wanted:
            module = importlib.import_module(name)
            category = trial.Category(module.NAME)
            tried.append(category)
            place = pathlib.Path(folder) / name
            place.mkdir()
            with trial.timed(category):
                module.try_all(category, place)
            print(trial.table([category]).splitlines()[1], flush=True)
    if "--sentences" in sys.argv:
        for category in tried:
            print(f"\n{category.name}", *sorted(category.sentences), sep="\n")
    print(f"\n{trial.table(tried)}")
    sys.exit(any(category.found for category in tried))


if __name__ == "__main__":
    main()
