"""Figures for print: as wide as asked, text of 7 points or more that touches nothing, primes that are primes everywhere."""

import io
import re
import shutil
import zlib

import numpy as np
import pytest
import xarray as xr
from matplotlib.text import Text

import folders
import iclab
from iclab.authoring import Part, Reading, Statement, below, measured
from iclab.authoring.pictures import statement_figure
from iclab.drawing import curve, finish, panels
from iclab.printing import SMALLEST, printed, touching
from iclab.report.figures import picture
from marks import mostly_slow

# Many panels, long names, scales of colours, ticks that are words, legends that differ.
HARD = (
    "mamba-outliers/fig1a", "mamba-outliers/thm2", "mamba-outliers/table2", "nonlinear-icl/prop4.1",
    "nonlinear-icl/fig4a", "feature-selection/lem3", "chain-of-thought/thm1", "vector-arithmetic/lemG.4",
)  # fmt: skip


@pytest.fixture(scope="module")
def opened(run):
    return iclab.open_run(run.directory)


@pytest.mark.parametrize("name", mostly_slow(HARD, kept=("mamba-outliers/fig1a", "nonlinear-icl/prop4.1")))
def test_a_figure_fits_a_column_and_nothing_touches(opened, name):
    judge, statement = opened._statement(name)
    (make,) = judge.figures([statement], *judge.split(statement.paper, opened.results)).values()
    for width in (5.5, 3.25):
        figure = printed(make(), width)
        assert figure.get_size_inches()[0] == width and touching(figure) == []
        assert min(text.get_fontsize() for text in figure.findobj(Text)) >= SMALLEST


def test_every_line_of_a_figure_is_on_its_print(opened):
    judge, statement = opened._statement("mamba-outliers/fig1a")
    (make,) = judge.figures([statement], *judge.split(statement.paper, opened.results)).values()
    before, after = make(), printed(make(), 5.5)
    names = [[line.get_label() for axis in figure.axes for line in axis.lines] for figure in (before, after)]
    assert names[0] == names[1] and len(names[0]) > 20


def test_what_touches_is_found():
    figure, (axis,) = panels(1, ("a",))
    axis.text(0.5, 0.5, "one")
    axis.text(0.5, 0.5, "other")
    axis.text(2.5, 0.5, "far out").set_in_layout(False)
    found = touching(finish(figure))
    assert ("one", "other") in found and ("far out", "the edge") in found and len(found) == 2


def test_the_default_figure_shows_every_part_in_every_reading():
    values = xr.DataArray(np.arange(3.0), dims="seed")
    results = {"x": xr.Dataset({f"v{number}": values + number for number in range(8)})}
    parts = tuple(Part(f"part {number}", measured("x", f"v{number}"), below(5.0)) for number in range(8))
    other = Reading("other", variables={"v0": "v7"})
    figure = statement_figure(Statement("p/s", "S", "says", parts, (Reading(""), other)), results, results)
    assert [axis.get_title(loc="left") for axis in figure.axes if axis.get_visible()] == [part.name for part in parts]
    first = figure.axes[0]
    assert [label.get_text() for label in first.get_xticklabels()] == [
        "trained\nas stated", "untrained\nas stated", "trained\nother", "untrained\nother",
    ]  # fmt: skip
    drawn = [tuple(line.get_ydata()) for line in first.lines if len(line.get_ydata()) == 3]
    assert drawn == [(0.0, 1.0, 2.0)] * 2 + [(7.0, 8.0, 9.0)] * 2


@pytest.fixture
def primed():
    figure, (axis,) = panels(1, ("κ_a' = 2 and $\\kappa'$",), width=3.0, height=2.0)
    data = xr.DataArray(np.ones((3, 2)), dims=("seed", "x"), coords={"x": [0, 1]})
    curve(axis, data, "x", label="κ_a' = 10")
    axis.set_xlabel("κ_a'")
    axis.legend()
    return finish(figure)


def test_a_prime_is_a_prime_in_svg_and_pdf_and_no_glyph_of_a_font_that_is_not_there(primed):
    text = picture(primed, "svg").decode()
    assert text.count("′</tspan>") == 3 and "cmsy" not in text.lower()  # title, name and label, beside a letter each
    content = picture(primed, "pdf")
    streams = [
        zlib.decompress(found) for found in re.findall(rb"stream\r?\n(x\x9c.*?)\r?\nendstream", content, re.DOTALL)
    ]
    assert b"Cmsy" not in content and any(b"<2032>" in stream.lower() for stream in streams)


def test_a_browser_draws_the_svg_as_the_pdf_is_drawn(primed):
    """The SVG in Chromium beside the PDF, or, where nothing here draws a PDF, beside what draws it: matplotlib."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    pillow = pytest.importorskip("PIL.Image", reason="pictures are compared with pillow")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no browser on this machine: apt-get install chromium")
    wide, high = (round(96 * inches) for inches in primed.get_size_inches())
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": wide, "height": high})
        text = picture(primed, "svg").decode()
        page.set_content(f"<style>*{{margin: 0}} svg{{display: block}}</style>{text[text.index('<svg') :]}")
        shot = page.screenshot()
        width = page.evaluate("""() => {
            const size = text => {
                const measure = document.createElement("canvas").getContext("2d");
                measure.font = "20px 'DejaVu Sans'";
                return measure.measureText(text).width;
            };
            return [size("′"), size("0")];
        }""")
        browser.close()
    one = np.asarray(pillow.open(io.BytesIO(shot)).convert("L"), float)[:high, :wide]
    primed.set_dpi(96)
    other = np.asarray(pillow.open(io.BytesIO(picture(primed, "png"))).convert("L").resize((wide, high)), float)
    assert width[0] < 0.6 * width[1]  # the sign is there, and narrower than the zero that it was
    blurred = [sum(np.roll(a, (y, x), (0, 1)) for y in range(-2, 3) for x in range(-2, 3)) / 25 for a in (one, other)]
    assert np.abs(blurred[0] - blurred[1]).mean() < 4.0  # of 255


def test_the_command_draws_for_print_where_it_is_told(run, tmp_path, command):
    folders.folder(tmp_path / "run", run, ("training", "generalisation")).close()
    place = tmp_path / "print" / "feature-selection" / "fig1a.svg"
    options = ("--width", "3.25", "--format", "svg", "--out", tmp_path / "print")
    status, out, _ = command("figures", tmp_path / "run", *options)
    assert status == 0 and str(place) in out.split() and not (tmp_path / "run" / "figures").exists()
    assert 'width="234pt"' in place.read_text()  # 3.25 inches of 72 points


def test_no_figure_of_a_run_has_a_glyph_of_a_font_that_browsers_lack(run):
    files = sorted((run.directory / "figures").rglob("*.svg"))
    assert len(files) > 50 and not [path for path in files if "cmsy" in path.read_text()]


@pytest.mark.parametrize("width", ["0", "-3", "100", "nan"])
def test_a_width_that_no_column_has_is_refused(run, width, command):
    status, _, err = command("figures", run.directory, "--width", width)
    assert status == 2 and "inches; it must lie between 1.5 and 30." in err
