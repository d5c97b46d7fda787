"""What must agree across the repository: versions, the wheel, pages, links, workflows."""

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import gymnasium as gym
import pytest
import yaml
from project.test_readme import tool

import align_rudder as ar

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MARKDOWN = [*sorted(ROOT.glob("*.md")), *PAGES, *sorted((ROOT / ".github").rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
check_wheel = tool("check_wheel")


def slug(heading):
    """Return the anchor of a heading, as code hosts and MyST make it."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def links(page):
    """Return the local targets of the links and images of a page."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def listed(page):
    """Return the pages in the toctrees of a page."""
    text = page.read_text(encoding="utf-8")
    entries = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL)
    names = [line for entry in entries for line in entry.splitlines() if line[:1] not in ("", ":")]
    return [(page.parent / f"{name}.md").resolve() for name in names]


def test_versions_agree():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d[^\]]*)\]", changes, flags=re.MULTILINE)
    assert PROJECT["version"] == ar.__version__ == CITATION["version"] == newest[1]


def test_citation_has_what_the_format_asks_for():
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= CITATION.keys()
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["title"] == PROJECT["name"]
    (paper,) = CITATION["references"]
    assert {"type", "title", "authors"} <= paper.keys()
    assert [author["family-names"] for author in paper["authors"]][::7] == ["Patil", "Hochreiter"]


def test_wheel_holds_every_file_of_the_package(tmp_path):
    wheel = check_wheel.build(tmp_path, "--no-isolation")  # by way of the source distribution
    needed = check_wheel.package_files()
    assert check_wheel.wheel_files(wheel) == needed
    for name in (
        "show/page/frame.html",
        "show/page/style.css",
        "show/page/scripts/basics.js",
        "show/report/body.html",
        "show/report/style.css",
        "show/report/scripts/main.js",
        "show/logs/body.html",
        "show/logs/style.css",
        "show/logs/scripts/main.js",
        "tasks/diamond/demonstrations.npz",
        "studies/networks/hyperparameters.json",
        "studies/recipes/hyperparameters.json",
        "studies/rooms/hyperparameters.json",
        "py.typed",
    ):
        assert f"align_rudder/{name}" in needed


def test_every_page_is_in_a_toctree_once():
    found = [entry for page in PAGES for entry in listed(page)]
    assert sorted(found) == [page for page in PAGES if page != DOCS / "index.md"]


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    missing = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            missing.append(target)
        elif anchor and there.suffix == ".md":
            text = there.read_text(encoding="utf-8")
            if anchor not in map(slug, re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)):
                missing.append(target)
    assert missing == []


def test_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](b.md#c) `[no](x)` ![i](j.png)\n```\n[no](y)\n```\n[web](https://z)")
    assert links(page) == ["b.md#c", "j.png"]
    assert slug("Too many `events`, no [way](x.md)") == "too-many-events-no-way"


def test_reference_has_the_whole_public_interface():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    for name in ar.__all__:
        thing = getattr(ar, name)
        where = thing.__name__ if isinstance(thing, ModuleType) else f"align_rudder.{name}"
        assert re.search(rf":: {re.escape(where)}\b", text), name


def test_workflows_call_what_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    flows = {p.stem: yaml.safe_load(p.read_text()) for p in (ROOT / ".github").rglob("*.yml")}
    ci, release = flows["ci"]["jobs"], flows["release"]["jobs"]
    steps = [step["run"] for job in ci.values() for step in job["steps"] if "run" in step]
    called = {found for step in steps for found in re.findall(r"make ([\w-]+)", step)}
    assert called == {"lint", "docs", "test-all"}
    assert called <= targets
    assert called == set(
        re.findall(r"^make ([\w-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    )
    versions = ci["test"]["strategy"]["matrix"]["python"]
    assert f">={versions[0]}" == PROJECT["requires-python"]
    assert any("tools/check_wheel.py" in step.get("run", "") for step in release["build"]["steps"])
    assert release["publish"]["needs"] == "build"
    assert release["publish"]["environment"]


def test_forms_ask_for_the_report_of_demonstrations_that_do_not_align():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/not-aligned.yml").read_text())
    needed = {b["id"] for b in form["body"] if b.get("validations", {}).get("required")}
    assert {"summary", "report"} <= needed


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_ci_can_be_run():
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_what_is_said_to_be_installed_can_be():
    """No index has this package: extras are installed from a clone, `pip install ".[sb3]"`."""
    extras = set(PROJECT["optional-dependencies"])
    folders = ("src", "docs", "examples", "tools", "tests", "benchmarks", ".github")
    files = [*ROOT.glob("*.md"), ROOT / "Makefile"]
    for folder in folders:
        files += [p for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".md", ".yml")]
    wrong, named = [], set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        if re.search(r"""install\s+["'\s]*align-rudder""", text):
            wrong.append(path.relative_to(ROOT).as_posix())
        for found in re.findall(r"""pip install ["']\.\[([\w,-]+)\]""", text):
            named |= set(found.split(","))
    assert wrong == []
    assert {"sb3", "jax", "minari"} <= named <= extras


def test_the_guide_trains_with_what_it_wrapped():
    """Step 4 of the guide takes the environment as step 3 has made it, not another one."""
    text = (DOCS / "own-environment.md").read_text(encoding="utf-8")
    steps = re.split(r"^## (?=\d\. )", text, flags=re.MULTILINE)
    wrap, train = (re.findall(r"```python\n(.*?)```", step, re.DOTALL) for step in steps[3:5])
    made = re.findall(r"def (\w+)\(env\)", "".join(wrap))
    assert len(made) == 1
    assert f"wrapper_class={made[0]})" in "".join(train)
    assert "RedistributeReward" not in "".join(train)


def test_the_extra_of_minari_has_what_its_example_needs():
    """Recording with Minari's DataCollector needs `minari[create]`."""
    assert "DataCollector" in (ROOT / "examples/minari_dataset.py").read_text(encoding="utf-8")
    (needed,) = PROJECT["optional-dependencies"]["minari"]
    assert {"create", "hdf5"} <= set(re.search(r"\[(.*)\]", needed)[1].split(","))


def test_every_environment_is_on_the_page_of_tasks():
    text = (DOCS / "api" / "tasks.md").read_text(encoding="utf-8")
    names = [name for name in gym.registry if name.startswith("AlignRudder/")]
    assert len(names) > 5
    for name in names:
        assert f"`{name}`" in text or f"`{name.removeprefix('AlignRudder/')}`" in text
