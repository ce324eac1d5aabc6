"""Runs looked at from outside: served on loopback and nothing else, redrawn from their results, compared with each
other.
"""

import copy
import http.client
import json
import socket
import sys
import threading

import pytest
from rich.console import Console

import folders
from iclab import cli
from iclab.errors import InputError
from iclab.report.comparison import Side, compare, render_comparison, summary
from iclab.runs.contents import as_json
from iclab.runs.redraw import redraw
from iclab.runs.serving import Server, resolve
from iclab.runs.status import STATUS, WatchedProgress, forget, in_use, read_status
from iclab.runs.store import Store


@pytest.fixture
def served(run):
    server = Server(run.directory, port=0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def get(server, path, host=None, method="GET"):
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)
    connection.putrequest(method, path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_the_page_and_its_files_are_served_on_loopback(run, served):
    assert served.server_address[0] == "127.0.0.1" and served.loopback
    answer, content = get(served, "/")
    assert answer.status == 200 and b'<body data-live="yes">' in content
    assert get(served, "/claims.json")[1] == (run.directory / "claims.json").read_bytes()
    answer, content = get(served, "/figures/feature-selection/fig1a.svg")
    assert answer.getheader("Content-Type") == "image/svg+xml" and content.startswith(b"<?xml")
    answer, content = get(served, "/", method="HEAD")
    assert answer.status == 200 and content == b"" and int(answer.getheader("Content-Length")) > 1e6


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/%2e%2e/secret", "/figures/../../secret", "/figures/..%2f..%2fsecret", "/figures/%2e%2e/%2e%2e/secret",
     "//secret", "/.lock", "/figures/.hidden", "/trainings/x", "/status.json/x", "/figures/link", "/figures/out/secret",
     "/figures\\..\\..\\secret", "/figures/%00", "/figures", "/C:/secret", "/figures//../../secret", "/nothing"],
)  # fmt: skip
def test_nothing_outside_the_run_is_given(path, tmp_path, run):
    (tmp_path / "secret").write_text("secret")
    with folders.folder(tmp_path / "run", run, ()) as store:
        store.write("figures/.hidden", b"secret")
        store.write("trainings/x", b"secret")
        (store.directory / "figures" / "link").symlink_to(tmp_path / "secret")
        (store.directory / "figures" / "out").symlink_to(tmp_path)
        assert resolve(store.directory, path) is None
        server = Server(store.directory, port=0)
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        answer, content = get(server, path)
        thread.join()
        server.server_close()
    assert answer.status == 404 and b"secret" not in content


def test_another_name_for_this_address_is_refused(served):
    """A page of evil.example that resolves to 127.0.0.1 must not read the run."""
    assert get(served, "/", host="evil.example")[0].status == 403
    assert get(served, "/", host=f"localhost:{served.server_address[1]}")[0].status == 200
    assert get(served, "/claims.json", host="")[0].status == 403
    assert get(served, "/claims.json", host="[")[0].status == 403
    assert get(served, "//[", host="localhost")[0].status == 404


def test_what_cannot_be_served_is_said_in_a_sentence(run, tmp_path):
    with pytest.raises(InputError, match=r"it has no manifest\.json"):
        Server(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="it is in use; choose another --port"):
            Server(run.directory, port=taken.getsockname()[1])
    for host, sentence in (("", "--host is empty"), ("\udcff", "cannot listen on")):
        with pytest.raises(InputError, match=sentence):
            Server(run.directory, host)
    with pytest.raises(InputError, match="--port is 70000"):
        Server(run.directory, port=70000)
    Store(tmp_path / "sweep", {"grid": {}, "ids": []}).close()
    with pytest.raises(InputError, match="is a sweep"):
        Server(tmp_path / "sweep")


def watched(store):
    return WatchedProgress(Console(quiet=True), 10, store, folders.STATEMENTS, folders.JUDGE)


def test_a_status_follows_the_run_and_statements_are_judged_as_soon_as_they_can_be(run, tmp_path):
    with folders.folder(tmp_path / "run", run, ("training",)) as store, watched(store) as progress:
        progress.begin("feature-selection/training", 8)
        states = {entry["id"]: entry["state"] for entry in read_status(store.directory)["statements"]}
        assert states["feature-selection/fig1a"] == "running" and states["feature-selection/thm1"] == "waiting"
        progress.end("feature-selection/training", "", folders.both(run, "training"))
        status = read_status(store.directory)
        entries = {entry["id"]: entry for entry in status["statements"]}
        assert (
            entries["feature-selection/fig1a"]["state"] == "judged" and "answer" in entries["feature-selection/fig1a"]
        )
        assert (
            entries["feature-selection/thm1"]["state"] == "waiting"
            and "answer" not in entries["feature-selection/thm1"]
        )
        assert status["fraction"] == pytest.approx(0.8) and status["going"]
    assert not read_status(tmp_path / "run")["going"]
    forget(store)
    assert read_status(tmp_path / "run") is None and not (tmp_path / "run" / STATUS).exists()


def test_a_finished_run_has_no_status_and_nobody_in_it(run):
    assert read_status(run.directory) is None and not in_use(run.directory)


def test_figures_are_drawn_again_from_results_alone(run, tmp_path):
    folders.folder(tmp_path / "run", run).close()
    written, missing = redraw(tmp_path / "run", "svg")
    drawn = (run.directory / "figures" / "feature-selection").glob("*.svg")
    assert not missing and {path.name for path in written} == {path.name for path in drawn}
    for path in written:
        assert path.read_bytes() == (run.directory / "figures" / "feature-selection" / path.name).read_bytes()


def test_a_figure_without_its_results_is_named(run, tmp_path, monkeypatch, capsys):
    folders.folder(tmp_path / "run", run, ("generalisation",)).close()
    monkeypatch.setattr(sys, "argv", ["iclab", "figures", str(tmp_path / "run"), "--format", "pdf"])
    cli.main()
    printed = capsys.readouterr()
    assert (tmp_path / "run/figures/feature-selection/generalisation.pdf").read_bytes().startswith(b"%PDF")
    assert "not drawn: feature-selection/fig1a: there are no results of training" in printed.err


def side(name, run, **identity):
    return Side(name, {"identity": folders.identity(**identity), "revision": "r"}, copy.deepcopy(run.statements))


def test_a_run_differs_from_itself_in_nothing(run):
    found = compare(side("one", run), side("two", run))
    assert (found.settings, found.statements, found.shifts, found.rules, found.only_first, found.only_second) == (
        (),
    ) * 6
    assert found.shared == found.equal == len(run.statements)


def test_a_comparison_finds_settings_answers_rules_and_intervals(run):
    first, second = side("one", run), side("two", run, seeds=8)
    second.manifest["identity"]["settings"]["feature-selection"] |= {"noise_norm": 0.7}
    gone, changed, near = (
        entry
        for entry in second.statements
        if entry["id"] in ("feature-selection/" + n for n in ("thm1", "fig1a", "fig1b"))
    )
    second.statements.remove(gone)
    changed["answer"] = "fails"
    moved = {"low": 100.0, "high": 102.0, "measured": 101.0, "rule": "above 7", "values": [100.0, 102.0]}
    changed["readings"][0]["parts"][0] |= moved
    near["readings"][0]["parts"][0]["low"] -= 1e-6  # still overlaps
    found = compare(first, second)
    assert {(d.where, d.name, d.second) for d in found.settings} == {
        ("run", "seeds", 8),
        ("feature-selection", "noise_norm", 0.7),
    }
    assert [(one.id, one.first, one.second) for one in found.statements] == [
        ("feature-selection/fig1a", "not asked", "fails")
    ]
    assert [(s.statement, s.second["measured"]) for s in found.shifts] == [("feature-selection/fig1a", 101.0)]
    assert [d.second for d in found.rules] == ["above 7"] and found.only_first == ("feature-selection/thm1",)
    page = render_comparison(found)
    assert "feature-selection/fig1a" in page and "noise_norm" in page and "above 7" in page


def test_a_comparison_says_which_readings_and_parts_are_decided_otherwise(run):
    first, second = side("one", run), side("two", run)
    (one,), (two,) = ([e for e in s.statements if e["id"] == "feature-selection/fig1b"] for s in (first, second))
    for entry, outcomes in ((one, ("holds", "open", "holds")), (two, ("fails", "holds", "holds"))):
        parts = [part for reading in entry["readings"] for part in reading["parts"]]
        for part, outcome in zip(parts, outcomes, strict=False):
            part["outcome"] = outcome
    two["readings"][0]["hypotheses"] = {"theorem": "thm1", "met": 3, "of": 4, "unmet": ["x"]}
    found = compare(first, second)
    assert [one.id for one in found.statements] == ["feature-selection/fig1b"]
    inside = {(d.first, d.second): d.how for d in found.statements[0].inside}
    assert inside[("holds", "fails")] == "decided differently" and inside[("open", "holds")] == "decided only in 2"
    assert any(second == "3 of 4" for _, second in inside) and len(inside) == 3
    assert "0 answers changed, 1 part decided differently, 1 part decided only in 2," in summary(found)
    assert "decided differently" in render_comparison(found)


def test_a_run_is_compared_with_the_answers_on_record(run, tmp_path, command):
    """Papers that were not run are left out; what the smoke profile does not ask, the record decides."""
    status, out, _ = command("diff", run.directory, "recorded", "--html", tmp_path / "diff.html")
    assert status == 0 and "recorded: the paper profile, on a GPU" in out
    assert "feature-selection/fig1a: not asked → holds Figure 1(a)" in " ".join(out.split())
    assert "decided only in 2" in out and "run profile: smoke → paper" in out and "run version" not in out
    assert "mamba-outliers/thm2" in (tmp_path / "diff.html").read_text()
    status, _, err = command("diff", "recorded", run.directory)
    assert status == 2 and "iclab diff DIR recorded" in err


def test_a_page_of_differences_shows_user_text_as_text(run):
    first, second = side("<script>alert(1)</script>", run), side("two", run)
    second.statements[0]["answer"] = "fails"
    second.statements[0]["words"] = first.statements[1]["id"] = "<img src=x onerror=alert(1)>"
    page = render_comparison(compare(first, second))
    assert "<script>alert" not in page and "<img" not in page and "&lt;img src=x" in page


def test_diff_prints_and_writes_a_page(run, tmp_path, monkeypatch, capsys):
    for name in ("one", "two"):
        store = folders.folder(tmp_path / name, run, ())
        entries = copy.deepcopy(run.statements)
        entries[0]["answer"] = "fails" if name == "two" else "holds"
        store.keep("claims.json", as_json({"schema": 2, "statements": entries}))
        store.close()
    page = tmp_path / "diff.html"
    monkeypatch.setattr(
        sys, "argv", ["iclab", "diff", str(tmp_path / "one"), str(tmp_path / "two"), "--html", str(page)]
    )
    cli.main()
    out = capsys.readouterr().out
    assert "nonlinear-icl/thm3.3: holds → fails" in out and "1 answer changed" in out
    assert "nonlinear-icl/thm3.3" in page.read_text() and json.dumps(str(page))[1:-1] in out.replace("\n", "")
