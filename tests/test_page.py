"""The page in a real browser: loads alone, filters, downloads, follows the theme, fits a phone, shows user text as
text.
"""

import copy
import json
import re
import shutil
import threading

import pytest
from rich.console import Console

import folders
from iclab.papers import PAPERS
from iclab.report.page import Section, command, render_page, strip
from iclab.runs.serving import Server
from iclab.runs.status import WatchedProgress, forget
from iclab.tallies import Answer

MEGABYTE = 1 << 20
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


def shown(page):
    return page.locator("article.statement:visible").count()


def test_it_loads_alone_and_without_a_complaint(run, open_page):
    file = run.directory / "index.html"
    assert file.stat().st_size < 12 * MEGABYTE
    page = open_page(file)
    assert page.seen == {"requests": [f"file://{file}"], "errors": []}
    assert shown(page) == len(run.statements)


def test_the_statements_filter_by_words_paper_and_answer(run, page):
    page.fill("#search", "thm2 feature")
    assert (
        shown(page) == 1 and page.locator("article.statement:visible").get_attribute("id") == "feature-selection/thm2"
    )
    assert page.locator("#shown").inner_text() == f"1 of {len(run.statements)} statements"
    assert page.locator("figure:visible").count() == 1 and page.locator("section.paper:visible").count() == 1
    page.click("button[type=reset]")
    page.get_by_text(f"{len(run.statements)} statements", exact=True).wait_for()
    assert shown(page) == len(run.statements)
    page.select_option("#which", "chain-of-thought")
    assert shown(page) == sum(entry["paper"] == "chain-of-thought" for entry in run.statements)
    page.fill("#search", "no such words")
    assert shown(page) == 0 and page.locator("#nothing").is_visible()


def test_a_count_of_the_summary_shows_its_statements(run, page):
    own = [entry for entry in run.statements if entry["paper"] == "vector-arithmetic"]
    page.click("button.count[data-paper=vector-arithmetic]")
    assert shown(page) == len(own)
    assert page.locator("input[type=checkbox]:checked").get_attribute("value") == "not asked"


def test_a_link_to_a_statement_opens_it_with_rules_and_command(run, open_page):
    entry = next(entry for entry in run.statements if len(entry["readings"][0]["parts"]) > 2 and entry["ours"])
    page = open_page(f"file://{run.directory / 'index.html'}#{entry['id']}")
    article = page.locator(f'[id="{entry["id"]}"]')
    assert article.locator("details").get_attribute("open") is not None
    text = article.inner_text()
    assert f"iclab reproduce {entry['id']} --profile smoke --seeds 2" in text
    assert all(part["kind"] in text for reading in entry["readings"] for part in reading["parts"])
    assert all(text_of(own) in text for own in entry["ours"])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_width_and_no_theme_overflows(run, open_page, width, dark):
    page = open_page(run.directory / "index.html", width=width, dark=dark)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    reach, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert reach <= inner
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")


def test_the_theme_changes_from_the_keyboard_and_figures_follow(page):
    page.focus("#theme")
    ink = "getComputedStyle(document.querySelector('.drawing svg')).fill"
    before = page.evaluate(ink)
    page.keyboard.press("Enter")
    assert page.locator("#theme").inner_text() == "theme: light"
    page.keyboard.press("Enter")
    assert page.locator("#theme").inner_text() == "theme: dark"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark" and page.evaluate(ink) != before


def test_every_figure_downloads_as_svg_with_its_numbers(run, page):
    figure = page.locator("#feature-selection-fig1a")
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
    labels = page.locator(".drawing").evaluate_all("nodes => nodes.map((node) => node.getAttribute('aria-label'))")
    assert len(labels) > 20 and all(len(label) > 80 for label in labels)
    assert any("falls from" in label for label in labels) and any("rises from" in label for label in labels)
    heights = page.locator(".equation math").evaluate_all(
        "nodes => nodes.map((node) => node.getBoundingClientRect().height)"
    )
    assert len(heights) == 5 and min(heights) > 20
    assert page.locator(".said math msub").count() > 20


def test_everything_can_be_reached_from_the_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("article.statement summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("article.statement details").first.get_attribute("open") is not None
    unnamed = "[...document.querySelectorAll('button, a, input, select, [tabindex]')].filter((node) => "
    unnamed += "!(node.textContent.trim()"
    unnamed += " || node.getAttribute('aria-label') || node.labels?.length)).length"
    assert page.evaluate(unnamed) == 0


def test_on_paper_everything_is_open_and_nothing_is_a_control(page):
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".filters").is_visible() and not page.locator("#theme").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 100


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
    manifest = json.loads((run.directory / "manifest.json").read_text())
    sections = {"nonlinear-icl": Section({}, {}, 1.0)}
    (tmp_path / "page.html").write_text(render_page(identity, manifest, [entry], sections, 1.0, PAPERS))
    page = open_page(tmp_path / "page.html")
    page.wait_for_timeout(200)
    assert page.seen["errors"] == [] and len(page.seen["requests"]) == 1
    said = page.locator("article.statement .said p").inner_text()
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
    explorer = page.locator(".explorer[data-paper=mamba-outliers]")
    explorer.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-ready]")
    drawn = ".chart >> nth=0 >> .mark-rect path"

    def bars():
        return explorer.locator(drawn).evaluate_all(
            "nodes => nodes.map((node) => node.getAttribute('d') + node.getAttribute('fill'))"
        )

    assert explorer.locator(".chart svg").count() == 4
    end, said = bars(), explorer.locator(".answer").inner_text()
    slider = explorer.locator("[data-what=step]")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"step\":0']")
    start = bars()
    assert start != end and len(start) == len(end) == 20
    assert (
        explorer.locator("output").inner_text().startswith("step 0 of ")
        and explorer.locator(".answer").inner_text() != said
    )
    assert "step 0 of" in slider.get_attribute("aria-valuetext")
    explorer.locator("[data-what=switch][value='1']").check(force=True)
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"at\":1']")
    assert (
        bars() != start and len({bar.rsplit("var", 1)[-1] for bar in bars()}) == 3
    )  # outliers have a colour of their own
    explorer.locator("[data-what=member]").select_option("2")
    page.wait_for_selector(".explorer[data-paper=mamba-outliers][data-shown*='\"member\":2']")
    reasoning = page.locator(".explorer[data-paper=chain-of-thought]")
    reasoning.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=chain-of-thought][data-ready]")
    first = reasoning.locator(".answer").inner_text()
    reasoning.locator("[data-what=stage][value='1']").check(force=True)
    page.wait_for_selector(".explorer[data-paper=chain-of-thought][data-shown*='\"stage\":1']")
    assert reasoning.locator(".answer").inner_text() != first
    assert page.seen["errors"] == [] and len(page.seen["requests"]) == 1


def test_the_explorer_plays(page):
    explorer = page.locator(".explorer[data-paper=feature-selection]")
    explorer.scroll_into_view_if_needed()
    page.wait_for_selector(".explorer[data-paper=feature-selection][data-ready]")
    explorer.locator(".play").click()
    page.wait_for_selector(".explorer[data-paper=feature-selection][data-shown*='\"step\":2']")
    assert explorer.locator(".play").inner_text() == "pause"
    explorer.locator(".play").click()
    assert explorer.locator(".play").inner_text() == "play"
