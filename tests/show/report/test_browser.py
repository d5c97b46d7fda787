"""The report in a real browser: headless Chromium opens pages and uses them as a reader does."""

import base64
import io
import json
import re

import gymnasium as gym
import matplotlib.image
import numpy as np
import pypdf
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from show.chromium import NEEDED, at, fresh, hidden_sideways

import align_rudder as ar
from align_rudder.data.crafting import crafting_episode
from align_rudder.show.report import write_report

pytestmark = NEEDED
HOSTILE = "</script><script>alert(1)</script>"


def _two_strategies():
    first = ["log", "plank", "table", "axe", "stone", "iron", "pick", "diamond"]
    second = ["boat", "island", "map", "dig", "chest", "sword", "shield"]
    runs = [[*first[:i], "dirt", *first[i:]] for i in range(1, 6)]
    return ar.AlignRudder().fit_events(runs + [[*second[:i], "dirt", *second[i:]] for i in (1, 3)])


def _large():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 12, 500)
    runs = []
    for _ in range(40):
        kept = base[rng.random(500) > 0.1]
        extra = rng.integers(0, 12, 500 - len(kept))
        runs.append(np.insert(kept, np.sort(rng.integers(0, len(kept), len(extra))), extra))
    return ar.AlignRudder(refine=0).fit_events([[f"event {e}" for e in run] for run in runs])


def _rooms():
    env = gym.make("AlignRudder/FourRooms-v0").unwrapped
    model = ar.AlignRudder(ar.StateEvents(max_events=15)).fit(env.demonstrations(6, 0))
    return model, env.demonstrations(3, 1), {"env": env}


@pytest.fixture(scope="session")
def pages(tmp_path_factory, crafting, episodes):
    """Return a function that writes a page once and returns its address."""
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "demo": lambda: (crafting, episodes, {}),
        "two": lambda: (_two_strategies(), [(["boat", "dig", "chest"], 0.0)], {}),
        "pair": lambda: (ar.AlignRudder().fit_events(["KDC", "KLDC"]), [], {}),
        "large": lambda: (_large(), [], {}),
        "rooms": _rooms,
        "hostile": lambda: (ar.AlignRudder().fit_events([[HOSTILE, "b"]] * 2), [], {}),
    }

    def address(name):
        path = folder / f"{name}.html"
        if not path.exists():
            model, episodes, more = made[name]()
            write_report(model, episodes, path, **more)
        return path.as_uri()

    return address


@pytest.fixture
def opened(browser, pages):
    """Return a function that opens a page in a fresh state; afterwards no error was logged."""

    def go(name, width=1280):
        address = pages(name)
        fresh(browser, width)
        browser.get(address)
        return browser

    yield go
    assert browser.get_log("browser") == []


def tip(browser):
    return at(browser, "tip").text.split("\n")


def page_color(browser):
    found = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    return [int(x) for x in found[5:-1].split(",")[:3]]


def visible_columns(browser):
    return int(at(browser, "grid").get_attribute("data-visible"))


def hover_cell(browser, row, column):
    grid = at(browser, "grid")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", grid)
    cell, high, gutter, head = (
        float(grid.get_attribute(f"data-{name}"))
        for name in ("cell", "row-height", "gutter", "head")
    )
    x, y = gutter + (column + 0.5) * cell, head + (row + 0.5) * high
    x, y = x - grid.size["width"] / 2, y - grid.size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(grid, round(x), round(y)).perform()


@pytest.mark.parametrize("name", ["demo", "two", "pair", "large", "rooms", "hostile"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_opens_from_disk_without_error_or_request(opened, pages, name, scheme):
    browser = opened(name)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(pages(name))
    assert at(browser, "headline").text
    assert at(browser, "cells").size["width"] > 500
    logged = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [
        m["params"]["request"]["url"] for m in logged if m["method"] == "Network.requestWillBeSent"
    ]
    assert requests
    assert all(url.startswith(("file:", "data:")) for url in requests)
    assert (sum(page_color(browser)) > 600) == (scheme == "light")


def test_hovering_tells_demonstration_step_event_and_share(opened, crafting):
    browser = opened("demo")
    rr = crafting.demonstration(4)
    steps = np.flatnonzero(rr.events >= 0)
    third = int(np.flatnonzero(rr.rewards[steps] > 0)[2])  # of the events that are paid
    row, column, step = 4, int(crafting.alignment_.column_of(4)[third]), int(steps[third])
    hover_cell(browser, row, column)
    lines = tip(browser)
    assert lines[0] == f"Demonstration 4, column {column}"
    assert lines[1] == f"step {step + 1}: {crafting.events_.symbols_[rr.events[step]]}"
    shown = re.match(r"reward ([\d.]+), ([\d.]+) % of the return", lines[2])
    assert float(shown[1]) == pytest.approx(rr.rewards[step], abs=1e-4)
    assert float(shown[2]) == pytest.approx(100 * rr.rewards[step], abs=0.1)
    empty = int(np.flatnonzero(crafting.alignment_.matrix[4] < 0)[0])
    hover_cell(browser, 4, empty)
    assert tip(browser)[1] == "gap"
    goal = crafting.subgoals_[3]
    hover_cell(browser, -1, int(crafting.profile_.columns[goal.column]))
    assert "sub-goal 4" in tip(browser)[0]


def test_zoom_by_button_key_and_wheel(opened):
    browser = opened("large")
    grid = at(browser, "grid")
    first = visible_columns(browser)
    at(browser, "zoom-in").click()
    closer = visible_columns(browser)
    assert closer < first
    at(browser, "zoom-out").click()
    assert visible_columns(browser) == pytest.approx(first, abs=2)
    grid.send_keys("+")
    assert visible_columns(browser) < first
    grid.send_keys("0")
    profile = int(at(browser, "view").text.split(" of ")[1].split()[0])
    assert visible_columns(browser) == profile
    at(browser, "only-profile").click()
    aligned = int(at(browser, "view").text.split(" of ")[1].split()[0])
    assert aligned > 2 * profile
    before = visible_columns(browser)
    grid.send_keys("")
    ActionChains(browser).scroll_from_origin(ScrollOrigin.from_element(grid), 0, -300).perform()
    assert visible_columns(browser) < before


def test_scrolling_shows_later_columns(opened):
    browser = opened("large")
    grid = at(browser, "grid")
    browser.execute_async_script(
        "arguments[0].scrollLeft = 3000; setTimeout(arguments[1], 200)",
        grid,
    )
    assert int(grid.get_attribute("data-first")) > 100


def test_keys_move_the_focus_and_say_where_it_is(opened, crafting):
    browser = opened("demo")
    grid = at(browser, "grid")
    columns = crafting.alignment_.n_columns

    def focus():
        return int(grid.get_attribute("data-row")), int(grid.get_attribute("data-column"))

    grid.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert focus() == (1, 2)
    assert tip(browser)[0] == "Demonstration 1, column 2"
    assert "Demonstration 1, column 2" in at(browser, "live").get_attribute("textContent")
    grid.send_keys(Keys.ARROW_LEFT, Keys.ARROW_UP)
    assert focus() == (0, 1)
    grid.send_keys(Keys.END)
    assert focus() == (0, columns - 1)
    grid.send_keys(Keys.HOME, Keys.ARROW_UP)
    assert focus() == (0, 0)
    goals = [int(crafting.profile_.columns[g.column]) for g in crafting.subgoals_]
    goals = [column for column in goals if column > 0]
    grid.send_keys("n", "n")
    assert focus()[1] == goals[1]
    grid.send_keys("p")
    assert focus()[1] == goals[0]


def test_everything_is_reached_by_tab(opened):
    browser = opened("demo")
    reached = []
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.get_attribute("id"))
    order = ["theme", "logo", "subgoals", "tree", "zoom-out", "zoom-in", "grid", "episode", "chart"]
    places = [reached.index(name) for name in order]
    assert places == sorted(places)


def test_choosing_an_episode_changes_the_time_line(opened, crafting):
    browser = opened("demo")
    chart = at(browser, "chart")
    failed = crafting.redistribute(crafting_episode(500, False))
    first = chart.get_attribute("innerHTML")
    assert "Episode 0" in at(browser, "facts").text
    Select(at(browser, "episode")).select_by_index(1)
    assert chart.get_attribute("innerHTML") != first
    facts = at(browser, "facts").text
    assert facts.startswith(f"Episode 1: {len(failed.rewards)} steps")
    correction = float(re.search(r"correction −([\d.]+)", facts)[1])
    assert correction == pytest.approx(-failed.correction, abs=1e-4)
    at(browser, "next").click()
    assert chart.get_attribute("data-episode") == "Demonstration 0"
    at(browser, "previous").click()
    assert chart.get_attribute("data-episode") == "Episode 1"
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    second = np.flatnonzero(failed.events >= 0)[1]
    name = crafting.events_.symbols_[failed.events[second]]
    assert tip(browser)[0] == f"Step {second + 1}: {name}"
    ActionChains(browser).move_to_element(chart).perform()
    assert tip(browser)[0].startswith("Step ")


def test_sums_of_both_rewards_end_at_the_same_height(opened):
    browser = opened("demo")
    ends = browser.execute_script(
        "return [...document.querySelectorAll('#chart path')].map((p) => {"
        "const box = p.getTotalLength() && p.getPointAtLength(p.getTotalLength());"
        "return [p.getAttribute('stroke-dasharray'), box && box.x, box && box.y]; })"
    )
    (dashed,) = [(x, y) for dashes, x, y in ends if dashes == "5 4"]
    met = [
        (x, y) for dashes, x, y in ends if dashes is None and np.allclose((x, y), dashed, atol=1)
    ]
    assert len(met) == 1


def test_strategies_are_switched(opened):
    browser = opened("two")
    buttons = at(browser, "strategies").find_elements(By.TAG_NAME, "button")
    assert [b.get_attribute("aria-pressed") for b in buttons] == ["true", "false"]
    assert "diamond" in at(browser, "subgoals").text
    buttons[1].click()
    assert "shield" in at(browser, "subgoals").text
    assert "diamond" not in at(browser, "subgoals").text
    hover_cell(browser, 0, 0)
    assert tip(browser)[0] == "Demonstration 5, column 0"


def test_theme_is_toggled_on_page_and_canvas(opened):
    browser = opened("demo")

    def corner():
        shot = matplotlib.image.imread(io.BytesIO(at(browser, "cells").screenshot_as_png))
        return shot[5, 5, :3].sum()

    light = corner()
    at(browser, "theme").click()
    assert light > 2.8
    assert corner() < 0.5
    assert at(browser, "theme").text == "Light"
    at(browser, "theme").click()
    assert corner() == light


def test_profile_is_a_table_as_well(opened, crafting):
    browser = opened("demo")
    shown = at(browser, "profile")
    browser.find_element(By.XPATH, "//summary[contains(., 'profile')]").click()
    rows = shown.find_elements(By.CSS_SELECTOR, "tbody tr")
    profile = crafting.profile_
    assert len(rows) == len(profile)
    cells = [c.text for c in rows[3].find_elements(By.TAG_NAME, "td")]
    assert cells[1].endswith(str(profile.symbols[profile.top_events[3]]))
    assert cells[2] == str(profile.columns[3])
    assert cells[3] == f"{profile.conservation[3]:.0%}".replace("%", " %")


def test_map_shows_clusters_and_reward(opened):
    browser = opened("rooms")
    shapes = at(browser, "map").find_elements(By.TAG_NAME, "rect")
    assert len(shapes) == 12 * 12
    assert at(browser, "map").find_elements(By.TAG_NAME, "circle")
    ActionChains(browser).move_to_element(shapes[2 * 12 + 9]).perform()
    assert tip(browser)[0] == "Row 2, column 9"


@pytest.mark.parametrize("name", ["demo", "two", "large"])
def test_print_has_pages_sub_goals_and_the_alignment(opened, crafting, name):
    browser = opened(name)
    at(browser, "theme").click()
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert page_color(browser) == [255, 255, 255]  # paper is white, whatever the screen is
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert max(page_color(browser)) < 50
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pdf = pypdf.PdfReader(io.BytesIO(base64.b64decode(printed["data"])))
    assert 2 <= len(pdf.pages) < 40
    if name == "demo":
        text = " ".join(" ".join(page.extract_text() for page in pdf.pages).split())
        for goal in crafting.subgoals_:
            assert str(goal.symbol) in text
        letters = crafting.alignment_.letters  # canvases are printed as vectors, letters as text
        row = crafting.alignment_.matrix[0]
        assert " ".join(letters[e] for e in row[row >= 0]) in text
    assert at(browser, "print-cells").find_elements(By.TAG_NAME, "canvas") == []  # taken away again


def test_symbols_stay_text(opened):
    browser = opened("hostile")
    assert HOSTILE in at(browser, "legend").text
    assert browser.execute_script("return document.scripts.length") == 3


@pytest.mark.parametrize("name", ["demo", "two", "rooms"])
def test_nothing_is_cut_on_a_phone(opened, name):
    browser = opened(name, 400)
    for summary in browser.find_elements(By.TAG_NAME, "summary"):
        summary.click()
    assert hidden_sideways(browser, "html", "#subgoals", "#tree", "#profile", "#steps") == [0] * 5
    cut = browser.execute_script(
        "const box = document.getElementById('tree').getBoundingClientRect();"
        "return [...document.querySelectorAll('#tree text')].filter((t) => {"
        "const r = t.getBoundingClientRect(); return r.right > box.right || r.left < box.left; })"
        ".map((t) => t.textContent)"
    )
    assert cut == []
    heads = at(browser, "subgoals").find_elements(By.TAG_NAME, "th")
    assert heads[-1].text == "Share"
    assert heads[-1].rect["x"] + heads[-1].rect["width"] <= 400
