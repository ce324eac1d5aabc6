"""Folders that somebody else made: what reads them executes nothing, leaves the terminal as it is and stays inside."""

import contextlib
import hashlib
import json
import re
import shutil

import measured
from measured import SHORTEST
from trial import called, command

import iclab
from iclab.runs.contents import checksum_of, digest_of, from_bytes, to_bytes
from iclab.runs.serving import Server
from test_trust import canary

NAME = "hostile folders"
SMALL = ("--seeds", "2", "--set", "steps=5")
TERMINAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MARKUP = re.compile(r"<script>alert|<img src=x|onerror=alert\(7\)>")


def texts(folder):
    """What may stand where a text stands."""
    mark = folder / "executed"
    code = f"__import__('pathlib').Path({str(mark)!r}).write_text('x')"
    return {
        "code": code, "template": "{{ 7 * 7 }}{% include '/etc/passwd' %}", "format": "{0.__class__.__init__.__globals__}",
        "script": "<script>alert(7)</script>", "attribute": '"><img src=x onerror=alert(7)>', "end": "</script><script>alert(7)</script>",
        "escape": "\x1b[2J\x1b]0;owned\x07\x9b31m", "turned": "\u202eabc\u2066", "traversal": "../../../executed",
        "absolute": str(mark), "hidden": ".executed", "null": "a\0b", "lines": "a\r\nb\nc", "markup": "[bold]x[/bold][/]",
        "long": "x" * 100_000, "surrogate": "\udcff", "empty": "", "shell": f"$(touch {mark}); `touch {mark}`", "latex": r"\input{/etc/passwd}\def\x{\x}\x",
    }  # fmt: skip


SHAPES = {
    "number": 7,
    "list": [],
    "none": None,
    "object": {},
    "true": True,
    "huge": 10**400,
    "deep": [[[[[[]]]]]],
    "negative": -1,
}


def try_all(category, folder):
    with contextlib.chdir(folder):
        whole = {name: folder / f"whole-{name}" for name in ("run", "sweep")}
        assert command("reproduce", SHORTEST, *SMALL, "--out", whole["run"]).status == 0
        assert command("sweep", SHORTEST, "--grid", "noise=0.4,0.8", *SMALL, "--out", whole["sweep"]).status == 0
        Trial(category, folder, whole).run()
        _sings(category, folder, whole["run"])


def _sings(category, folder, run):
    """The canary can sing: with --trust the text of the folder is executed."""
    category.tried += 1
    copy = folder / "trusted"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["plan"]["texts"]["shortest"] = canary(folder / "sung") + SHORTEST.read_text()
    sealed(copy, manifest)
    command("figures", copy, "--trust", "--format", "svg")
    if not (folder / "sung").exists():
        category.bad("unclear", "iclab figures --trust", "the canary does not sing: this trial would show nothing")


def sealed(folder, manifest):
    """A manifest whose digests are right, as anybody can write it."""
    manifest = {name: value for name, value in manifest.items() if name != "digest"}
    with contextlib.suppress(KeyError, TypeError):
        manifest["fingerprint"] = digest_of(manifest["identity"])
    (folder / "manifest.json").write_text(json.dumps(manifest | {"digest": digest_of(manifest)}))
    fingerprint = manifest.get("fingerprint")
    if (folder / "claims.json").exists():
        answered(folder, json.loads((folder / "claims.json").read_text()) | {"run": fingerprint})
    for path in (folder / "results").rglob("*.nc"):
        keep(path, to_bytes(from_bytes(path.read_bytes()).assign_attrs(fingerprint=str(fingerprint))))


def places(tree, path=()):
    """Where something stands in JSON: every leaf, and every object and list as a whole."""
    if path:
        yield path
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree[:1]) if isinstance(tree, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(tree, path, value):
    """A copy with another value at a place."""
    copy = json.loads(json.dumps(tree))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


class Trial:
    """Every place of a manifest and of the answers, with what does not belong there."""

    def __init__(self, category, folder, whole):
        self.category, self.folder, self.whole = category, folder, whole
        self.texts = texts(folder)
        self.chosen = 0

    def run(self):
        for kind, whole in self.whole.items():
            self.over(kind, whole, "manifest.json", sealed)
        self.over("run", self.whole["run"], "claims.json", answered)
        self.over(
            "run", self.whole["run"], "status.json", lambda folder, tree: _write(folder / "status.json", tree), STATUS
        )
        self.executing()

    def over(self, kind, whole, name, write, tree=None):
        tree = tree or json.loads((whole / name).read_text())
        values = [*self.texts.items(), *SHAPES.items()]
        for path in places(tree):
            for _ in range(3):  # three of the values at every place, all of them in turn
                label, value = values[self.chosen % len(values)]
                self.chosen += 1
                self.what = f"{kind}: {name}: {'/'.join(map(str, path))[:80]} is {label}"
                self.one(kind, whole, lambda folder, other: write(folder, changed(tree, *other)), (path, value))

    def executing(self):
        """Texts that are code, at all places that carry code."""
        for kind, change in (("run", "texts"), ("sweep", "text")):
            text = canary(self.folder / "executed") + SHORTEST.read_text()
            manifest = json.loads((self.whole[kind] / "manifest.json").read_text())
            manifest["plan"] |= {change: {"shortest": text} if change == "texts" else text}
            self.what = f"{kind}: the text of its file is a canary"
            self.one(kind, self.whole[kind], sealed, manifest)

    def one(self, kind, whole, change, to):
        folder = self.folder / "hostile"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        try:
            change(folder, to)
        except (ValueError, UnicodeEncodeError, RecursionError):  # nothing that JSON can say
            return
        self.category.tried += 1
        before = self.outside()
        for name, outcome in self.readings(kind, folder):
            self.category.judge(f"{self.what}: {name}", outcome)
            if name != "page" and (found := TERMINAL.search(outcome.out + outcome.err)):
                self.category.bad("wrong", f"{self.what}: {name}", f"{found[0]!r} reaches the terminal")
            if MARKUP.search(outcome.out if name == "page" else ""):
                self.category.bad("wrong", f"{self.what}: {name}", "its text is markup of the page")
        if (after := self.outside()) != before:
            self.category.bad("wrong", self.what, f"written outside of the folder: {after ^ before}")

    def outside(self):
        return {path for path in self.folder.iterdir() if path.name != "page.html"}

    def readings(self, kind, folder):
        if kind == "sweep":
            yield "open_sweep", called(lambda: measured.plain(iclab.open_sweep(folder).data))[0]
            yield "select", called(lambda: iclab.open_sweep(folder).select(seed=0, noise=0.4))[0]
        yield "claims", command("claims", folder)
        yield "figures", command("figures", folder, "--format", "svg")
        page = self.folder / "page.html"
        yield "diff", command("diff", folder, self.whole["run"], "--html", page)
        yield "page", called(lambda: None)[0] if not page.exists() else _shown(page)
        page.unlink(missing_ok=True)
        yield "open_run", called(iclab.open_run, folder)[0]
        yield "serve", called(self.served, folder)[0]

    def served(self, folder):
        """The pages that `iclab serve` would show."""
        with Server(folder, port=0) as server:
            from iclab.report.progress import render_progress
            from iclab.runs.manifest import read_manifest
            from iclab.runs.status import read_status

            text = render_progress(read_manifest(server.directory)["identity"], read_status(server.directory))
            assert not MARKUP.search(text), "its text is markup of the page"


def _shown(page):
    from trial import Outcome

    return Outcome(0, page.read_text(errors="replace").replace("\r", ""), "")


def _write(path, tree):
    path.write_text(json.dumps(tree))


def answered(folder, tree):
    """Answers with the right checksum."""
    keep(folder / "claims.json", json.dumps(tree).encode())


def keep(path, content):
    """A file with the right checksum."""
    path.write_bytes(content)
    checksum_of(path).write_text(hashlib.sha256(content).hexdigest())


STATUS = {
    "what": "shortest/experiment", "fraction": 0.5, "left": "about 3 s left",
    "statements": [
        {"id": "shortest/learns", "paper": "shortest", "source": "a note", "statement": "words", "rule": "below 1",
         "state": "running", "needs": 1, "done": 0, "answer": "holds", "words": "holds"}
    ],
}  # fmt: skip
