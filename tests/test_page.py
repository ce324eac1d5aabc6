"""The page in a real browser: loads alone, filters, downloads, follows the theme, fits a phone, shows user text as
text.
"""

import copy
import itertools
import json
import re
import shutil
import threading
from pathlib import Path

import pytest
from rich.console import Console

import folders
from iclab.papers import PAPERS
from iclab.report.figures import Drawn
from iclab.report.page import Section, command, render_page
from iclab.report.strips import strip
from iclab.runs.serving import Server
from iclab.runs.status import WatchedProgress, forget
from iclab.tallies import Answer

MEGABYTE = 1 << 20
AXE = Path(__file__).parents[1] / "build" / "node_modules" / "axe-core" / "axe.min.js"  # make test installs it
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright: pip install 'iclab[test]'"
    )
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("no browser on this machine: apt-get install chromium, and the tests of the page run too")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def open_page(browser):
    """A function that opens a file or an address; whatever the page asked for or complained about is in `page.seen`."""
    contexts = []

    def opened(where, *, width="desktop", dark=False):
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light", accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.seen = {"requests": [], "errors": []}
        page.on("request", lambda request: page.seen["requests"].append(request.url))
        page.on("pageerror", lambda error: page.seen["errors"].append(str(error)))
        page.on(
            "console", lambda message: page.seen["errors"].append(message.text) if message.type == "error" else None
        )
        page.on("dialog", lambda dialog: page.seen["errors"].append(f"dialog: {dialog.message}") or dialog.dismiss())
        page.goto(where if "://" in str(where) else f"file://{where}")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(run, open_page):
    return open_page(run.directory / "index.html")


def text_of(words):
    """How a sentence begins on the page, where letters with subscripts are mathematics."""
    return re.split(r"[^a-z ',:]", words)[0]


def found(page):
    """The statements that a search shows, best first."""
    return page.locator("#results tbody.statement").evaluate_all("nodes => nodes.map((node) => node.id)")


def opened(page, paper):
    """A paper of the page with its table in place."""
    page.click(f"section[data-paper={paper}] h2 button")
    return page.locator(f"section[data-paper={paper}]")


def test_it_loads_alone_and_without_a_complaint(run, open_page):
    file = run.directory / "index.html"
    assert file.stat().st_size < 12 * MEGABYTE
    page = open_page(file)
    assert page.seen == {"requests": [f"file://{file}"], "errors": []}
    assert page.locator("section.paper").count() == 5 and page.locator("tbody.statement").count() == 0


def test_collapsed_it_is_short_and_ready_at_once(run, open_page):
    waits = []
    for _ in range(3):  # other work on the machine may disturb one
        page = open_page(run.directory / "index.html")
        page.wait_for_selector("body[data-ready]")
        waits.append(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    assert page.evaluate("document.documentElement.scrollHeight") < 6000
    assert min(waits) < 1500


def test_theorem_2_is_found_first_opened_and_answered(run, open_page, tmp_path):
    entries, own = copy.deepcopy(run.statements), "mamba-outliers/thm2"
    entry = next(entry for entry in entries if entry["id"] == own)
    entry |= {"answer": "holds if", "words": "holds if seen,kappa=2 · 18tasks,kappa=2: fails: 0.417 [0.41, 0.425]"}
    for reading in entry["readings"]:
        reading["answer"] = "holds" if reading["name"].startswith("seen") else "fails"
    drawing = run.directory / "figures" / "mamba-outliers" / "phase.svg"
    figures = {"mamba-outliers": {"phase": Drawn(drawing.read_bytes(), "x\n", "words")}}
    page = open_page(written(run, tmp_path, entries, figures=figures))
    page.fill("#search", "Theorem 2")
    assert found(page)[0] == own and len(found(page)) < 10
    page.locator("#results button.opener").first.click()
    statement = page.locator(f'[id="{own}"]')
    assert statement.locator("td.verdict").inner_text().splitlines() == ["✓", "holds if", "outliers seen in training"]
    assert "18tasks,kappa=2: fails: 0.417 [0.41, 0.425]" in statement.locator(".beside").inner_text()
    assert statement.locator("figure svg").is_visible()
    assert statement.locator(".matrix tbody tr").count() == len(entry["readings"]) > 3
    assert page.seen["errors"] == []


@pytest.mark.parametrize(
    ("query", "first"),
    [("fig 1a", "mamba-outliers/fig1a"), ("Figure 1(A)", "mamba-outliers/fig1a"), ("thm3.3", "nonlinear-icl/thm3.3"),
     ("feature theorem 2", "feature-selection/thm2"), ("Lemma F.5", "chain-of-thought/lemF.5"),
     ("lemma g.4", "vector-arithmetic/lemG.4"), ("table 2", "mamba-outliers/table2")],
)  # fmt: skip
def test_numbers_are_found_however_they_are_written(page, query, first):
    page.fill("#search", query)
    assert found(page)[0] == first


def test_words_are_found_where_they_stand_most_prominently(run, page):
    page.fill("#search", "attention")
    said = {entry["id"]: entry["statement"].lower() for entry in run.statements if not entry["beyond"]}
    places = ["attention" in said[name] for name in found(page) if name in said]
    assert len(places) > 8 and places[0] and places.index(False) == sum(places)  # in their words, then in their parts
    page.fill("#search", "no such words")
    assert found(page) == [] and page.locator("#nothing").is_visible()


def test_a_search_lives_in_the_address(run, open_page, page):
    page.fill("#search", "theorem 2")
    page.select_option("#which", "chain-of-thought")
    assert page.url.endswith("#q=theorem+2&paper=chain-of-thought")
    again = open_page(page.url)
    assert (
        found(again) == found(page)
        and found(again)[0] == "chain-of-thought/thm2"
        and again.locator("#search").input_value() == "theorem 2"
    )
    page.click("button[type=reset]")
    page.get_by_text(f"{len(run.statements)} statements", exact=True).wait_for()
    assert "#" not in page.url and page.locator("#papers").is_visible() and not page.locator("#results").is_visible()


def test_rows_go_back_to_their_papers_after_a_search(run, page):
    own = [entry["id"] for entry in run.statements if entry["paper"] == "mamba-outliers"]
    section = opened(page, "mamba-outliers")
    page.fill("#search", "theorem 2")
    page.fill("#search", "")
    assert section.locator("tbody.statement").evaluate_all("nodes => nodes.map((node) => node.id)") == own


def test_a_count_of_the_tally_shows_its_statements(run, page):
    own = [entry for entry in run.statements if entry["paper"] == "vector-arithmetic"]
    page.click("button.count[data-paper=vector-arithmetic]")
    assert len(found(page)) == len(own)
    assert page.locator("input[type=checkbox]:checked").get_attribute("value") == "not asked"


def test_what_is_beyond_a_paper_has_a_table_of_its_own(run, page):
    section = opened(page, "mamba-outliers")
    beyond = [entry["id"] for entry in run.statements if entry["paper"] == "mamba-outliers" and entry["beyond"]]
    table = section.locator("table.statements").nth(1)
    assert table.locator("tbody.statement").evaluate_all("nodes => nodes.map((node) => node.id)") == beyond
    assert section.locator("h3").first.inner_text() == "Beyond the paper"


def test_a_link_to_a_statement_opens_it_with_rules_settings_and_command(run, open_page):
    entry = next(entry for entry in run.statements if len(entry["readings"][0]["parts"]) > 2 and entry["ours"])
    page = open_page(f"file://{run.directory / 'index.html'}#{entry['id']}")
    statement = page.locator(f'[id="{entry["id"]}"]')
    text = statement.inner_text()
    assert f"iclab reproduce {entry['id']} --profile smoke --seeds 2" in text
    assert all(f"{part['kind']}: " in text for part in entry["readings"][0]["parts"])
    assert all(text_of(own) in text for own in entry["ours"])
    statement.locator("details[data-load^=unstated] summary").click()
    settings = [one.setting for one in PAPERS[entry["paper"]].unstated if not isinstance(one, str)]
    assert statement.locator(".settings tbody code").all_inner_texts() == settings


def test_the_papers_own_words_and_numbers_stand_beside_ours(page):
    page.fill("#search", "mamba fig 1a")
    page.locator("#results button.opener").first.click()
    assert "the classification error of Mamba is smaller than 0.01" in page.locator("#results blockquote").inner_text()
    shown = page.locator("#results .parts-of:not([hidden])")
    assert shown.locator(".paper-number").first.inner_text() == "paper: 0.8"
    assert shown.locator(".strip .printed").first.is_visible()


def test_a_reading_is_chosen_in_the_matrix(page):
    page.fill("#search", "Theorem 2 mamba")
    page.locator("#results button.opener").first.click()
    shown = page.locator("#results .parts-of:not([hidden])")
    assert shown.count() == 1
    page.locator("#results button.reading").nth(3).click()
    assert shown.count() == 1 and shown.get_attribute("data-reading") == "3"
    assert page.locator("#results button.reading[aria-pressed=true]").count() == 1


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_width_and_no_theme_overflows(run, open_page, width, dark):
    page = open_page(run.directory / "index.html", width=width, dark=dark)
    reach = "[document.documentElement.scrollWidth, innerWidth]"
    assert page.evaluate(reach)[0] <= page.evaluate(reach)[1]
    opened(page, "mamba-outliers")
    page.evaluate("document.querySelectorAll('tbody.statement .opener').forEach((button) => button.click())")
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.wait_for_timeout(300)
    assert page.locator("figure svg").count() > 20
    assert page.evaluate(reach)[0] <= page.evaluate(reach)[1]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")


def test_axe_finds_no_serious_violation(run, open_page):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm install --no-save --prefix build axe-core")
    for width, dark in (("desktop", False), ("phone", True)):
        page = open_page(run.directory / "index.html", width=width, dark=dark)
        opened(page, "mamba-outliers")
        for name in ("thm2", "fig1a"):
            page.locator(f'[id="mamba-outliers/{name}"] .opener').click()
        page.locator(".explorer").scroll_into_view_if_needed()
        page.wait_for_selector(".explorer[data-ready]")
        page.evaluate(AXE.read_text())
        violations = page.evaluate("axe.run().then((found) => found.violations)")
        serious = [
            (one["id"], one["nodes"][0]["html"]) for one in violations if one["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_the_theme_changes_from_the_keyboard_and_figures_follow(run, open_page):
    page = open_page(f"file://{run.directory / 'index.html'}#feature-selection/fig1a")
    page.focus("#theme")
    ink = "getComputedStyle(document.querySelector('.drawing svg')).fill"
    before = page.evaluate(ink)
    page.keyboard.press("Enter")
    assert page.locator("#theme").inner_text() == "theme: light"
    page.keyboard.press("Enter")
    assert page.locator("#theme").inner_text() == "theme: dark"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark" and page.evaluate(ink) != before


def test_every_figure_downloads_as_svg_with_its_numbers(run, open_page):
    page = open_page(f"file://{run.directory / 'index.html'}#feature-selection/fig1a")
    figure = page.locator("figure[data-name=feature-selection-fig1a]")
    got = {}
    for kind in ("svg", "csv"):
        with page.expect_download() as waiting:
            figure.locator(f"[data-save={kind}]").click()
        got[kind] = waiting.value.path().read_bytes()
        assert waiting.value.suggested_filename == f"feature-selection-fig1a.{kind}"
    folder = run.directory / "figures" / "feature-selection"
    assert got["csv"] == (folder / "fig1a.csv").read_bytes()
    assert got["svg"].startswith(b"<?xml") and b"var(" not in got["svg"] and b"#0072b2" in got["svg"]


def test_figures_say_what_they_show_and_equations_are_set(page):
    labels = page.evaluate(
        "[...document.querySelectorAll('template')].flatMap((part) => [...part.content.querySelectorAll('.drawing')])"
        ".map((node) => node.getAttribute('aria-label'))"
    )
    assert len(labels) > 20 and all(len(label) > 80 for label in labels)
    assert any("falls from" in label for label in labels) and any("rises from" in label for label in labels)
    page.evaluate("document.querySelectorAll('section.paper h2 button').forEach((button) => button.click())")
    heights = page.locator(".equation math").evaluate_all(
        "nodes => nodes.map((node) => node.getBoundingClientRect().height)"
    )
    assert len(heights) == 5 and min(heights) > 20
    assert page.locator(".said math msub").count() > 20


def test_everything_can_be_reached_from_the_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("section.paper .opener").first.focus()
    page.keyboard.press("Enter")
    row = page.locator("tbody.statement").first
    row.locator(".opener").focus()
    page.keyboard.press("Enter")
    assert row.locator(".opener").get_attribute("aria-expanded") == "true" and row.locator(".part").first.is_visible()
    unnamed = "[...document.querySelectorAll('button, a, input, select, [tabindex]')].filter((node) => "
    unnamed += "!(node.textContent.trim()"
    unnamed += " || node.getAttribute('aria-label') || node.labels?.length)).length"
    assert page.evaluate(unnamed) == 0


def test_on_paper_every_table_is_there_and_nothing_is_a_control(run, page):
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tbody.statement:visible").count() == len(run.statements)
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".filters").is_visible() and not page.locator("#theme").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("tbody.statement:visible").count() == 0


def test_robustness_stands_in_the_table_and_its_curve_in_the_statement(run, open_page, tmp_path):
    entry = copy.deepcopy(run.statements[0])
    curve = '<svg xmlns="http://www.w3.org/2000/svg" width="60pt"><path id="curve" fill="#0072b2" d="M0 0"/></svg>'
    entry["robustness"] = {"share": 0.83, "low": 0.71, "high": 0.91, "points": 64, "words": "in 83 %", "svg": curve}
    page = open_page(written(run, tmp_path, [entry]))
    opened(page, "nonlinear-icl")
    assert "in 83 %" in page.locator("td.robust").inner_text()
    page.click("tbody.statement .opener")
    assert page.locator("tr.opened .drawing svg path").get_attribute("fill") == "var(--figure-series-1, #0072b2)"
    entry["robustness"]["svg"] = curve.replace("<path", "<script>alert(1)</script><path")
    page = open_page(written(run, tmp_path, [entry]))
    opened(page, "nonlinear-icl")
    page.click("tbody.statement .opener")
    assert page.locator("tr.opened .drawing svg").count() == 0 and page.seen["errors"] == []


def written(run, folder, entries, identity=None, figures=None):
    """A page of these statements, with these figures by paper."""
    manifest = json.loads((run.directory / "manifest.json").read_text())
    sections = {name: Section((figures or {}).get(name, {}), {}, 1.0) for name in PAPERS}
    text = render_page(identity or manifest["identity"], manifest, entries, sections, 1.0, PAPERS)
    (folder / "page.html").write_text(text)
    return folder / "page.html"


def test_user_text_is_shown_as_text(run, open_page, tmp_path):
    attack = "</script><script>alert('x_1')</script><img src=x onerror=alert(2)>\"'"
    entry = copy.deepcopy(run.statements[0])
    entry |= {
        "id": f"nonlinear-icl/{attack}",
        "statement": attack,
        "source": attack,
        "words": attack,
        "architecture": attack,
        "ours": [attack],
        "afterwards": attack,
    }
    part = entry["readings"][0]["parts"][0]
    part["name"] = part["rule"] = part["words"] = part["found"] = attack
    entry["readings"][0]["name"] = entry["readings"][0]["why"] = attack
    identity = {"ids": [attack], "profile": "quick", "seeds": 2, "changes": {attack: attack}, "version": attack}
    page = open_page(written(run, tmp_path, [entry], identity))
    opened(page, "nonlinear-icl")
    page.click("tbody.statement .opener")
    page.fill("#search", attack[:30])
    page.fill("#search", "")
    page.wait_for_timeout(200)
    assert page.seen["errors"] == [] and len(page.seen["requests"]) == 1
    assert page.locator(".part h5").first.inner_text().endswith(attack[-10:])
    said = page.locator("tbody.statement .said").inner_text()
    assert said.startswith("</script><script>alert(") and "<img src=x onerror=alert(2)>" in said
    assert page.locator("img").count() == 0


def test_the_command_is_quoted_for_a_shell():
    identity = {"profile": "quick", "seeds": 8, "changes": {"kind": "a b; rm -rf /"}}
    assert command(identity, "p/fig1") == "iclab reproduce p/fig1 --profile quick --seeds 8 --set 'kind=a b; rm -rf /'"


def test_a_strip_places_rule_interval_and_seeds_on_one_scale():
    check = {"rule_low": None, "rule_high": 1.0, "low": 1.5, "high": 2.5, "measured": 2.0, "values": [1.0, 3.0, None]}
    found = strip(check)
    assert found["seeds"][0] == pytest.approx(found["rule"][1])  # a seed on the rule's edge
    assert (
        found["rule"][0] == 0 and 0 < found["rule"][1] < found["interval"][0] < found["mean"] < found["seeds"][1] < 100
    )
    assert sum(found["interval"]) == pytest.approx((found["mean"] + found["seeds"][1]) / 2, abs=0.02)
    assert [at for at, text in found["axis"] if text == "1"] == [found["rule"][1]]  # the edge has a number
    assert all(later - earlier > 20 for (earlier, _), (later, _) in itertools.pairwise(found["axis"]))
    assert strip(check | {"measured": None}) is None


def test_a_run_that_is_going_is_followed_until_its_page_is_there(run, open_page, tmp_path):
    store = folders.folder(tmp_path / "run", run)
    server = Server(store.directory, port=0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    with WatchedProgress(Console(quiet=True), 10, store, folders.STATEMENTS, folders.JUDGE) as progress:
        progress.begin("feature-selection/training", 8)
        page = open_page(server.url)
        chip = page.locator("[data-id='feature-selection/fig1a'] .chip")
        assert chip.inner_text() == "running"
        progress.end("feature-selection/training", "", folders.both(run, "training"))
        page.get_by_text("80 %").wait_for()
        assert chip.inner_text() in list(Answer)
        progress.begin("feature-selection/generalisation", 2)
        progress.end("feature-selection/generalisation", "", folders.both(run, "generalisation"))
    store.write("index.html", (run.directory / "index.html").read_bytes())
    forget(store)
    store.close()
    page.wait_for_selector("#search")
    assert page.seen["errors"] == [] and all(url.startswith(server.url) for url in page.seen["requests"])
    server.shutdown()
    server.server_close()


def test_the_explorer_follows_its_slider_switch_and_stage(page):
    opened(page, "mamba-outliers")
    explorer = page.locator(".explorer[data-paper=mamba-outliers]")
    explorer.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-ready]")
    drawn = ".chart >> nth=0 >> .mark-rect path"

    def bars():
        return explorer.locator(drawn).evaluate_all(
            "nodes => nodes.map((node) => node.getAttribute('d') + node.getAttribute('fill'))"
        )

    assert explorer.locator(".chart svg").count() == 4
    end, said = bars(), explorer.locator(".answer").first.inner_text()
    slider = explorer.locator("[data-what=step]")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"step\":0']")
    start = bars()
    assert start != end and len(start) == len(end) == 20
    assert (
        explorer.locator("output").inner_text().startswith("step 0 of ")
        and explorer.locator(".answer").first.inner_text() != said
    )
    assert "step 0 of" in slider.get_attribute("aria-valuetext")
    explorer.locator("[data-what=switch][value='1']").check(force=True)
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"at\":1']")
    colours = {bar.rsplit("var", 1)[-1] for bar in bars()}
    assert bars() != start and len(colours) == 3  # outliers have a colour of their own
    explorer.locator("[data-what=member]").select_option("2")
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"member\":2']")
    opened(page, "chain-of-thought")
    reasoning = page.locator(".explorer[data-paper=chain-of-thought]")
    reasoning.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=chain-of-thought][data-ready]")
    first = reasoning.locator(".answer").first.inner_text()
    reasoning.locator("[data-what=stage][value='1']").check(force=True)
    page.wait_for_selector(".explorer[data-paper=chain-of-thought][data-shown*='\"stage\":1']")
    assert reasoning.locator(".answer").first.inner_text() != first
    assert page.seen["errors"] == [] and len(page.seen["requests"]) == 1


def test_a_head_is_ablated_and_the_answer_changes(page):
    opened(page, "nonlinear-icl")
    explorer = page.locator(".explorer[data-paper=nonlinear-icl]")
    explorer.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=nonlinear-icl][data-ready]")
    bars = ".chart >> nth=0 >> .mark-rect path"
    before = explorer.locator(".answer").first.inner_text()
    heights = explorer.locator(bars).evaluate_all("nodes => nodes.map((node) => node.getAttribute('d'))")
    explorer.get_by_label("the head's attention").check(force=True)
    page.wait_for_selector(".explorer[data-paper=nonlinear-icl][data-shown*='\"ablation\":1']")
    assert explorer.locator(".answer").first.inner_text() != before
    assert explorer.locator(".whole").first.inner_text() == f"with nothing removed: {before}"
    even = explorer.locator(bars).evaluate_all("nodes => nodes.map((node) => node.getBoundingClientRect().height)")
    assert max(even) - min(even) < 0.5 and len(set(heights)) > 2
    explorer.get_by_label("nothing", exact=True).first.check(force=True)
    page.wait_for_selector(".explorer[data-paper=nonlinear-icl][data-shown*='\"ablation\":0']")
    assert explorer.locator(".answer").first.inner_text() == before and page.seen["errors"] == []


def test_two_models_stand_side_by_side_on_one_prompt(page):
    opened(page, "mamba-outliers")
    explorer = page.locator(".explorer[data-paper=mamba-outliers]")
    explorer.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-ready]")
    explorer.locator("[data-what=beside]").select_option("4")
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"beside\":4']")
    assert explorer.locator(".model-name").all_inner_texts() == ["Mamba, seed 0", "softmax Transformer, seed 0"]
    assert explorer.locator(".chart svg").count() == 8
    right = [words.split("right is")[1].split(":")[0] for words in explorer.locator(".answer").all_inner_texts()]
    assert right[0] == right[1]
    explorer.locator("[data-what=beside]").select_option("-1")
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"beside\":-1']")
    assert explorer.locator(".model:visible").count() == 1 and page.seen["errors"] == []


def test_the_explorer_plays(page):
    opened(page, "feature-selection")
    explorer = page.locator(".explorer[data-paper=feature-selection]")
    explorer.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=feature-selection][data-ready]")
    explorer.locator(".play").click()
    page.wait_for_selector(".explorer[data-paper=feature-selection][data-shown*='\"step\":2']")
    assert explorer.locator(".play").inner_text() == "pause"
    explorer.locator(".play").click()
    assert explorer.locator(".play").inner_text() == "play"
