"""Bad files of users: each is answered with one sentence that names the file and has the right words in it."""

import contextlib

from trial import command

import broken
import mistakes

NAME = "bad user files"


def try_all(category, folder):
    for number, (text, words) in enumerate(files()):
        place = folder / str(number)
        place.mkdir()
        (place / "wrong.py").write_bytes(text.encode("utf-8", "surrogatepass"))
        with contextlib.chdir(place):
            outcome = command("reproduce", "wrong.py", "--seeds", "2", "--out", "run")
        category.tried += 1
        what = f"iclab reproduce wrong.py, which {words!r} must answer"
        category.judge(what, outcome, statuses=(2,))
        if words not in outcome.err:
            category.bad("unclear", what, f"status {outcome.status}: {outcome.err or outcome.out}")
        if (place / "run" / "claims.json").exists():
            category.bad("wrong", what, "there are answers")


def files():
    """Whole texts of files, and the words that must answer them."""
    for old, new, words in (*mistakes.FILES, *mistakes.MORE_FILES):
        assert broken.SOUND.count(old) == 1, old
        yield broken.SOUND.replace(old, new), words
    for whose, field, value, words in mistakes.TYPES:
        yield f"{broken.SOUND}\nobject.__setattr__({whose}, {field!r}, {value})\n", words
