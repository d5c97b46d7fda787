"""Models of logs in files: what is loaded does the same, what is damaged is refused."""

import copy
import json
from dataclasses import replace

import pytest
from logs.planted import planted
from logs.small import hard_and_easy

from align_rudder.data.logs import LogOptions
from align_rudder.logs import LogModel, report_data


@pytest.fixture(scope="module")
def fitted():
    one = planted(5, "swapped")
    return LogModel("tool+error").fit(one.log), one.log


def test_a_loaded_model_does_the_same(fitted, tmp_path):
    model, log = fitted
    model.save(tmp_path / "m.json")
    again = LogModel.load(tmp_path / "m.json")
    assert again.get_params() == model.get_params()
    for run in log.runs:
        assert again.turn_rewards(run) == model.turn_rewards(run)
        assert again.read(run).divergence == model.read(run).divergence


OPTIONS = LogOptions("verdict == 'yes'", "kind", {"case": "Vorgang", "time": ""})


def test_a_file_says_how_its_log_was_read(fitted, tmp_path):
    for options in (OPTIONS, LogOptions(), LogOptions(function=True)):
        LogModel().fit(replace(fitted[1], options=options)).save(tmp_path / "m.json")
        assert LogModel.load(tmp_path / "m.json").options_ == options


def test_a_file_of_before_still_loads(fitted, tmp_path):
    path = tmp_path / "m.json"
    fitted[0].save(path)
    data = json.loads(path.read_text())
    del data["log"]
    path.write_text(json.dumps(data))
    again = LogModel.load(path)
    assert again.options_ == LogOptions()
    run = fitted[1].runs[0]
    assert again.turn_rewards(run) == fitted[0].turn_rewards(run)


def test_tasks_and_causes_are_kept(tmp_path):
    log = hard_and_easy(cause=True)
    model = LogModel().fit(log)
    model.save(tmp_path / "m.json")
    again = LogModel.load(tmp_path / "m.json")
    assert again.contrast_.causes == model.contrast_.causes != ()
    assert (again.outcomes_, again.within_) == (model.outcomes_, True)
    assert report_data(again, log) == report_data(model, log)


def test_a_function_cannot_be_saved(tmp_path):
    log = planted(5, "swapped").log
    model = LogModel(lambda entry: entry.name).fit(log)
    with pytest.raises(ValueError, match="events come from a function cannot be saved"):
        model.save(tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(kind="other"),
        lambda d: d.update(version=99),
        lambda d: d.pop("roads"),
        lambda d: d["roads"][0]["events"].append(0),
        lambda d: d["roads"][0]["events"].__setitem__(0, 10_000),
        lambda d: d["marks"][0].__setitem__(3, -1),
        lambda d: d["marks"].append(d["marks"][0]),
        lambda d: d["yes"].__setitem__(0, None),
        lambda d: d["yes"].__setitem__(0, 1e300),
        lambda d: d["parameters"].update(more=1),
        lambda d: d["parameters"].update(events=3),
        lambda d: d.update(symbols=["a"] * len(d["symbols"])),
        lambda d: d.update(roads=[]),
        lambda d: d["log"].update(success="reward =>"),
        lambda d: d["log"].update(group=3),
        lambda d: d["log"].update(columns={"who": "x"}),
        lambda d: d["log"].update(columns=["case"]),
        lambda d: d["log"].pop("function"),
        lambda d: d["causes"].append([10_000, True, -1]),
        lambda d: d["causes"].append([0, True, 10_000]),
        lambda d: d["causes"].append([0, 1, -1]),
        lambda d: d["within"].pop(),
        lambda d: d["marks"].append(["more", -1, -3, 0]),
        lambda d: d["marks"].append(["after", -1, 10_000, 0]),
        lambda d: d["marks"].append(["last", 0, 0, 0]),
        lambda d: d["tasks"].append(["a", 1]),
        lambda d: d.update(compared=1),
    ],
)
def test_damaged_files_are_refused_by_name(fitted, tmp_path, change):
    path = tmp_path / "m.json"
    fitted[0].save(path)
    data = copy.deepcopy(json.loads(path.read_text()))
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"m\.json .*fit the log again"):
        LogModel.load(path)
