"""The page of a log in a real browser: what it shows is the data, and it can be used."""

import base64
import io
import json
import re

import pypdf
import pytest
from hypothesis import HealthCheck, given, settings
from logs.small import logs
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from show.chromium import NEEDED, at, fresh, hidden_sideways
from show.logs.pages import HOSTILE, LONG, MADE, RTL, data_of

from align_rudder.logs import LogModel, report_data
from align_rudder.show.logs import write_page

pytestmark = NEEDED


@pytest.fixture(scope="session")
def log_pages(tmp_path_factory):
    """Return a function that writes a page once and returns its address."""
    folder = tmp_path_factory.mktemp("log-pages")

    def address(name):
        path = folder / f"{name}.html"
        if not path.exists():
            write_page(path, data_of(name))
        return path.as_uri()

    return address


@pytest.fixture
def opened(browser, log_pages):
    """Return a function that opens a page in a fresh state; afterwards no error was logged."""

    def go(name, width=1280, scheme="light", hash_=""):
        fresh(browser, width, scheme)
        browser.get(log_pages(name) + hash_)
        return browser

    yield go
    assert browser.get_log("browser") == []


def texts(element, selector):
    return [
        found.get_property("textContent")
        for found in element.find_elements(By.CSS_SELECTOR, selector)
    ]


def shares(row):
    """Return (count, of) of each bar in a row, successes before failures, in pairs."""
    found = [re.search(r"([\d,]+) of ([\d,]+)$", text) for text in texts(row, ".meter")]
    return [tuple(int(x.replace(",", "")) for x in one.groups()) for one in found if one]


def words(browser, name):
    """Return the text of an element; half a surrogate pair as the browser shows it."""
    script = "return document.getElementById(arguments[0]).textContent.toWellFormed()"
    return browser.execute_script(script, name)


def counts(*shares_):
    return [(share["count"], share["of"]) for share in shares_]


def shown(browser):
    """Return how many runs the line above the list says are shown."""
    found = re.match(r"(?:All )?([\d,]+)", at(browser, "shown").text)
    return int(found[1].replace(",", ""))


def listed(browser):
    """Return the runs in the list by their numbers, scrolling through all of it."""
    return browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1], list = document.getElementById("list");
        const seen = new Set();
        list.scrollTop = 0;
        const step = () => {
          for (const row of list.querySelectorAll(".row")) seen.add(+row.dataset.run);
          if (list.scrollTop + list.clientHeight >= list.scrollHeight - 1) return done([...seen]);
          list.scrollTop += list.clientHeight;
          requestAnimationFrame(() => requestAnimationFrame(step));
        };
        requestAnimationFrame(() => requestAnimationFrame(step));
        """
    )


def name_of(run):
    return run["each"][0]["names"][0]


def count_of(runs):
    return sum(run["count"] for run in runs)


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (400, "dark")])
def test_opens_from_disk_without_error_request_or_overflow(opened, name, width, scheme):
    browser = opened(name, width, scheme)
    assert at(browser, "headline").text
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    boxes = ("html", "#funnel", "#table", "#messages", "#road-list", ".meter")
    assert set(hidden_sideways(browser, *boxes)) == {0}
    logged = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [
        m["params"]["request"]["url"] for m in logged if m["method"] == "Network.requestWillBeSent"
    ]
    assert requests
    assert all(url.startswith(("file:", "data:")) for url in requests)
    color = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    light = sum(int(x) for x in re.findall(r"\d+", color)[:3]) > 600
    assert light == (scheme == "light")
    everything = browser.execute_script("return document.body.innerText.toWellFormed()")
    assert "NaN" not in everything
    assert "undefined" not in everything


@pytest.mark.parametrize("name", ["planted", "grouped", "no successes"])
def test_the_head_counts_runs(opened, name):
    browser, n = opened(name), data_of(name)["counts"]
    tiles = dict(
        zip(texts(at(browser, "numbers"), "dt"), texts(at(browser, "numbers"), "dd"), strict=True)
    )
    for title, key in [
        ("Runs", "runs"),
        ("Succeeded", "successes"),
        ("Failed", "failures"),
        ("Without outcome", "unknown"),
    ]:
        assert tiles[title].startswith(str(n[key]))
    assert tiles["Left out"].startswith(str(len(data_of(name)["faults"])))
    warned = at(browser, "warnings").text + at(browser, "left-out").get_property("textContent")
    for fault in data_of(name)["faults"]:
        assert fault in warned


@pytest.mark.parametrize("name", ["planted", "grouped"])
def test_the_funnel_shows_the_shares_of_the_road_that_is_chosen(opened, name):
    browser, roads = opened(name), data_of(name)["roads"]
    for k, road in enumerate(roads):
        if len(roads) > 1:
            at(browser, "road-list").find_elements(By.CSS_SELECTOR, "button.link")[k].click()
        rows = at(browser, "funnel").find_elements(By.CSS_SELECTOR, "tbody tr")
        steps = {step["column"]: step for step in road["funnel"]}
        shown_columns = [int(row.get_attribute("data-column")) for row in rows]
        assert shown_columns == [
            j for j, c in enumerate(road["columns"]) if j in steps or c["telling"]
        ]
        for j, row in zip(shown_columns, rows, strict=True):
            column = road["columns"][j]
            expected = counts(column["successes"], column["failures"])
            if j in steps:
                expected = counts(steps[j]["successes"], steps[j]["failures"]) + expected
            assert shares(row) == expected
            assert data_of(name)["symbols"][column["symbol"]] in row.text
            assert ("tells" in row.text) == column["telling"]
            bars = row.find_elements(By.CSS_SELECTOR, ".meter i")
            widths = [
                float(re.search(r"width: ([\d.]+)%", b.get_attribute("style"))[1]) for b in bars
            ]
            assert widths == pytest.approx([100 * n / of for n, of in expected], abs=0.01)


@pytest.mark.parametrize("name", ["planted", "grouped"])
def test_a_row_of_the_table_is_the_data_and_filters_the_runs(opened, name):
    browser, data = opened(name), data_of(name)
    rows = at(browser, "table").find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(rows) == len(data["divergences"])
    for i, row in enumerate(data["divergences"]):
        shown_row = at(browser, "table").find_elements(By.CSS_SELECTOR, "tbody tr")[i]
        assert row["says"].split(") ", 1)[1] in shown_row.text
        assert shares(shown_row) == counts(row["successes"], row["failures"])
        shown_row.find_element(By.TAG_NAME, "button").click()
        left = [
            run
            for run in data["runs"]
            if run["divergence"] and run["divergence"]["row"] == i and run["outcome"] == "failure"
        ]
        assert count_of(left) == row["failures"]["count"] == shown(browser)
        assert sorted(listed(browser)) == [run["id"] for run in left]
        button = at(browser, "table").find_elements(By.CSS_SELECTOR, "tbody button")[i]
        assert button.get_attribute("aria-pressed") == "true"
        assert browser.switch_to.active_element == button
        button.click()
    at(browser, "clear").click()
    assert shown(browser) == data["counts"]["runs"]


def test_what_failures_are_explained_filters_too(opened):
    browser, data = opened("grouped"), data_of("grouped")
    for kind, n in data["explained"].items():
        if kind == "alone" and not n:
            continue
        button = at(browser, "explained").find_element(By.CSS_SELECTOR, f"[data-kind={kind}]")
        assert button.text.startswith(f"{n} ")
        assert button.is_enabled() == (n > 0)
        if n:
            button.click()
            assert shown(browser) == n


def test_filters_by_outcome_road_task_and_text(opened):
    browser, data = opened("grouped"), data_of("grouped")
    runs = data["runs"]
    assert shown(browser) == 62
    assert sorted(listed(browser)) == [run["id"] for run in runs]
    for outcome in ("success", "failure", "unknown"):
        Select(at(browser, "outcome")).select_by_value(outcome)
        some = [run for run in runs if run["outcome"] == outcome]
        assert shown(browser) == count_of(some)
        assert sorted(listed(browser)) == [run["id"] for run in some]
    at(browser, "clear").click()
    Select(at(browser, "road")).select_by_value("1")
    assert shown(browser) == count_of(run for run in runs if run["road"] == 1)
    at(browser, "clear").click()
    Select(at(browser, "task")).select_by_value("2")
    assert shown(browser) == data["groups"][2]["runs"]
    table = at(browser, "table").find_elements(By.CSS_SELECTOR, "tbody tr")
    for row, group_row in zip(table, data["groups"][2]["divergences"], strict=True):
        assert shares(row) == counts(group_row["successes"], group_row["failures"])
    at(browser, "clear").click()
    at(browser, "text").send_keys("PLAN")
    WebDriverWait(browser, 5).until(lambda b: shown(b) < 62)
    planned = [run for run in runs if data["symbols"].index("plan") in run["events"]]
    assert shown(browser) == count_of(planned)
    at(browser, "text").send_keys("zzz")
    WebDriverWait(browser, 5).until(lambda b: shown(b) == 0)
    assert "No run is like that" in at(browser, "list").text


def test_successes_stand_above_failures_and_equal_runs_once(opened):
    browser, data = opened("grouped"), data_of("grouped")
    heads = texts(at(browser, "list"), ".head .title")
    assert heads[0].startswith("Successes on road 1")
    rows = at(browser, "list").find_elements(By.CSS_SELECTOR, ".row")
    for row in rows:
        run = data["runs"][int(row.get_attribute("data-run"))]
        assert len(row.find_elements(By.CSS_SELECTOR, ".cell")) == sum(
            c is not None for c in run["columns"]
        )
        assert len(row.find_elements(By.CSS_SELECTOR, ".small")) == run["columns"].count(None)
        times = row.find_element(By.CSS_SELECTOR, ".times").text
        assert times == (f"×{run['count']}" if run["count"] > 1 else "")
        assert len(row.find_elements(By.CSS_SELECTOR, ".gone")) == bool(run["divergence"])
    # Held columns stand under the head of their road.
    head = at(browser, "list").find_element(By.CSS_SELECTOR, ".head")
    tops = [cell.rect["x"] for cell in head.find_elements(By.CSS_SELECTOR, ".cell")]
    run = data["runs"][int(rows[0].get_attribute("data-run"))]
    own = [cell.rect["x"] for cell in rows[0].find_elements(By.CSS_SELECTOR, ".cell")]
    assert own == [tops[c] for c in run["columns"] if c is not None]


def test_on_a_phone_the_list_scrolls_to_the_end_of_its_rows(opened):
    browser = opened("large", 400)
    room = browser.execute_async_script(
        """
        const list = document.getElementById("list"), done = arguments[arguments.length - 1];
        list.scrollLeft = 1e6;
        setTimeout(() => {
          const ends = [...document.querySelectorAll(".cell, .small, .hole")];
          const end = Math.max(...ends.map((one) => one.getBoundingClientRect().right));
          done([list.scrollLeft, list.getBoundingClientRect().right - end]);
        }, 200);
        """
    )
    assert room[0] > 50
    assert 0 <= room[1] < 40


def test_of_many_rows_only_those_in_view_are_in_the_document(opened):
    browser, data = opened("large"), data_of("large")
    assert len(data["runs"]) > 600
    assert len(browser.find_elements(By.CSS_SELECTOR, ".row")) < 60
    assert sorted(listed(browser)) == [run["id"] for run in data["runs"]]
    assert len(browser.find_elements(By.CSS_SELECTOR, ".row")) < 60


def test_a_run_in_detail_is_the_data(opened):
    browser, data = opened("planted"), data_of("planted")
    run = next(r for r in data["runs"] if r["outcome"] == "failure" and r["divergence"])
    at(browser, "list").send_keys(Keys.END, Keys.HOME)
    browser.get(browser.current_url.split("#")[0] + f"#run={name_of(run).replace(' ', '%20')}")
    browser.refresh()
    assert at(browser, "run-name").text == name_of(run)
    facts = at(browser, "facts").text
    assert "failure" in facts
    assert "return 0" in facts
    rewards = at(browser, "messages").find_elements(By.CSS_SELECTOR, "li[data-message]")
    one = run["each"][0]
    turns = dict(one["turns"])
    top = max(map(abs, turns.values()))
    assert len(rewards) == len(one["texts"])
    for row in rewards:
        m = int(row.get_attribute("data-message"))
        assert row.get_attribute("data-role") == one["texts"][m][0]
        assert one["texts"][m][1] in row.get_property("textContent")
        (number,) = texts(row, ".reward > span") or ["reward "]
        assert number.removeprefix("reward ") == (
            f"{turns[m]:.4f}".rstrip("0").replace("-", "−") if m in turns else ""
        )
        for bar in row.find_elements(By.CSS_SELECTOR, ".reward i"):
            style = bar.get_attribute("style")
            wide, left = (float(re.search(rf"{k}: ([\d.]+)%", style)[1]) for k in ("width", "left"))
            assert wide == pytest.approx(50 * abs(turns[m]) / top, abs=0.01)
            assert left == pytest.approx(50 if turns[m] > 0 else 50 - wide, abs=0.01)
    assert f"sum {abs(round(sum(turns.values()), 4)):g}" in at(browser, "sum").text
    due = data["symbols"][data["roads"][0]["columns"][run["divergence"]["column"]]["symbol"]]
    assert due in at(browser, "departure").text
    assert texts(at(browser, "way"), "li.due bdi") == [due]
    done = [data["symbols"][e] for e in run["events"]]
    assert texts(at(browser, "way"), "li.on bdi, li.beside bdi") == done


def test_a_link_opens_its_run_and_keys_go_from_run_to_run(opened):
    browser, data = opened("grouped", hash_="#run=file.json%3A%206"), data_of("grouped")
    assert at(browser, "run-name").text == "file.json: 6"
    box = at(browser, "list")
    box.send_keys(Keys.HOME)
    assert box.get_attribute("aria-activedescendant") == "row-0"
    box.send_keys(Keys.ARROW_DOWN)
    assert box.get_attribute("aria-activedescendant") == "row-1"
    active = browser.find_element(By.ID, "row-1")
    assert "success" in active.get_attribute("aria-label")
    assert active.get_attribute("aria-posinset") == "2"
    box.send_keys(Keys.ENTER)
    assert at(browser, "run-name").text == name_of(data["runs"][1])
    assert browser.switch_to.active_element == at(browser, "run-name")
    assert browser.current_url.endswith(
        "#run=" + name_of(data["runs"][1]).replace(" ", "%20").replace(":", "%3A")
    )
    at(browser, "next").click()
    assert at(browser, "run-name").text == name_of(data["runs"][2])
    box.send_keys(Keys.END)
    assert box.get_attribute("aria-activedescendant") == f"row-{len(data['runs']) - 1}"
    browser.execute_script(f"location.hash = 'run={data['runs'][0]['id']}'")
    WebDriverWait(browser, 5).until(lambda b: at(b, "run-name").text == name_of(data["runs"][0]))
    browser.execute_script("location.hash = 'run=%zz'")


def test_every_run_of_a_row_is_found_by_its_name_and_by_its_words(opened):
    data = data_of("copies")
    names = [name for run in data["runs"] for one in run["each"] for name in one["names"]]
    assert len(names) == 40 > len(data["runs"])
    for i in (3, 17, 39):  # the first run of a row, and later ones
        browser = opened("copies", hash_=f"#run=run%20{i}")
        assert at(browser, "run-name").text == f"run {i}"
        assert f"I am number {i}." in words(browser, "messages")
        assert not at(browser, "unknown-run").is_displayed()
    choices = Select(at(browser, "copies"))
    row = next(r for r in data["runs"] if any("run 39" in one["names"] for one in r["each"]))
    assert len(choices.options) == row["count"]
    choices.select_by_index(0)
    assert at(browser, "run-name").text == name_of(row)
    assert browser.current_url.endswith(name_of(row).replace(" ", "%20"))
    at(browser, "text").send_keys("I am number 17.")
    WebDriverWait(browser, 5).until(lambda b: shown(b) == 1)
    at(browser, "list").send_keys(Keys.HOME, Keys.ENTER)
    assert at(browser, "run-name").text == "run 17"
    at(browser, "clear").click()
    at(browser, "text").send_keys("one moment")  # every third run says so
    WebDriverWait(browser, 5).until(lambda b: shown(b) == 14)


def test_a_name_that_no_run_has_is_said(opened):
    browser = opened("copies", hash_="#run=nobody")
    assert at(browser, "unknown-run").text.startswith("No run of this page is called nobody")
    browser.execute_script("location.hash = 'run=run 1'")
    WebDriverWait(browser, 5).until(lambda b: at(b, "run-name").text == "run 1")
    assert not at(browser, "unknown-run").is_displayed()


def test_letters_are_initials_and_each_is_there_once(opened):
    browser, data = opened("tasks", 400), data_of("tasks")
    at(browser, "key").find_element(By.TAG_NAME, "summary").click()
    legend = texts(at(browser, "legend"), ".chip")
    assert len(set(legend)) == len(legend) == len(data["symbols"]) - 1
    for letter, name in zip(legend, texts(at(browser, "legend"), "bdi"), strict=True):
        assert name[0].upper() == letter[0]


def test_what_goes_with_tasks_is_told_apart_from_what_fails_within_them(opened):
    browser, data = opened("tasks"), data_of("tasks")
    assert data["between"]
    rows = at(browser, "between").find_elements(By.CSS_SELECTOR, "tbody tr")
    for row, one in zip(rows, data["between"], strict=True):
        assert data["symbols"][one["symbol"]] in row.text
        within = one["within"]
        expected = counts(one["successes"], one["failures"])
        assert shares(row) == expected + counts(within["successes"], within["failures"])
    assert at(browser, "headline").text.startswith("Within tasks, 30 of 30 failures (0 of 30")
    button = at(browser, "explained").find_element(By.CSS_SELECTOR, "[data-kind=alone]")
    button.click()
    assert shown(browser) == data["explained"]["alone"] == 6
    assert "no run of this task succeeded" in detail_of(browser)


def detail_of(browser):
    at(browser, "list").send_keys(Keys.HOME, Keys.ENTER)
    return at(browser, "departure").text


def test_everything_is_reached_by_tab_and_has_a_name(opened):
    browser = opened("grouped")
    reached = []
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.switch_to.active_element.get_attribute("id"))
    order = ["theme", "road-list", "task", "outcome", "left", "text", "list", "next", "messages"]
    places = [reached.index(name) for name in order]
    assert places == sorted(places)
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, select, input, [tabindex=\"0\"]')].filter("
        "(e) => !e.textContent.trim() && !e.getAttribute('aria-label') && !e.labels?.length)"
        ".map((e) => e.outerHTML)"
    )
    assert nameless == []


def test_hostile_texts_stay_text(opened):
    browser = opened("hostile")
    assert browser.title == "Why runs fail"
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert HOSTILE in words(browser, "messages")
    assert RTL.replace("\u202e", r"\u202e") in words(browser, "legend")  # names are escaped
    assert HOSTILE in words(browser, "warnings")
    more = at(browser, "messages").find_element(By.TAG_NAME, "button")
    assert more.text == "All 1,000,000 characters"
    assert len(words(browser, "messages")) < 10_000
    browser.execute_script("arguments[0].click()", more)
    assert LONG in words(browser, "messages")
    assert hidden_sideways(browser, "html", "#messages") == [0, 0]
    at(browser, "list").send_keys(Keys.HOME, Keys.ENTER)
    assert at(browser, "run-name").get_property("textContent").startswith(HOSTILE)
    Select(at(browser, "task")).select_by_index(1)
    assert shown(browser) == 8


@pytest.mark.parametrize("name", ["planted", "no failures", "no runs", "large"])
def test_paper_has_the_table_and_the_runs(opened, name):
    browser = opened(name, scheme="dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pdf = pypdf.PdfReader(io.BytesIO(base64.b64decode(printed["data"])))
    assert 1 <= len(pdf.pages) < 25
    text = " ".join(" ".join(page.extract_text() for page in pdf.pages).split())
    for row in data_of(name)["divergences"][:12]:
        assert row["says"].split(") ", 1)[1].split(":")[0] in text
    assert ("Printed are about the" in text) == (name == "large")
    assert browser.find_element(By.TAG_NAME, "html").get_attribute("data-theme") == "dark"


CLICK_ALL = """
for (const details of document.querySelectorAll("details")) details.open = true;
for (const box of ["road-list", "table", "explained", "task-list"]) {
  const buttons = () => document.getElementById(box).querySelectorAll("button");
  for (let i = 0; i < buttons().length; i++) buttons()[i].click();
}
document.getElementById("clear").click();
const rows = [...document.querySelectorAll(".row")].map((row) => row.id);
for (const id of rows) document.getElementById(id)?.click();
for (const id of ["previous", "next", "theme"]) document.getElementById(id).click();
const broken = /NaN|undefined|Infinity|null/.exec(document.body.innerText);
const selected = document.querySelectorAll("[aria-selected=true]").length;
return [selected, broken];
"""


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(logs())
@pytest.mark.filterwarnings("ignore::align_rudder.AlignRudderWarning")
def test_any_log_can_be_clicked_through(browser, tmp_path, log):
    write_page(tmp_path / "p.html", report_data(LogModel("tool+message").fit(log), log))
    fresh(browser, 400)
    browser.get((tmp_path / "p.html").as_uri())
    assert browser.execute_script(CLICK_ALL) == [1, None]
    assert hidden_sideways(browser, "html") == [0]
    assert browser.get_log("browser") == []
