"""Tables of the rooms."""

from dataclasses import replace

from rooms_trials import trial_record

from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.tables import episode_table, growth_table
from align_rudder.studies.statistics import summarise


def test_tables_say_what_was_capped():
    records = [trial_record(s, 100 if s else 20_000, bool(s)) for s in range(4)]
    found = summarise(records, [records[0].setting])
    table = episode_table("Episodes", found, 20_000, "four-rooms")
    assert table.rows == [["Align-RUDDER", "5,075 (1†)"], ["Align-RUDDER, paper", "985"]]
    assert "20,000" in table.notes[0]
    assert table.title == "Episodes (4 trials)"
    one = summarise(records[1:2], [records[0].setting])
    assert episode_table("Episodes", one, 20_000).title == "Episodes (1 trial)"


def test_growth_is_the_exponent_of_a_power_law():
    settings = [Setting(rooms, 0.01, 15, 10, "bc-q") for rooms in (2, 4, 8)]
    records = [replace(trial_record(0, 3 * s.rooms**2), setting=s) for s in settings]
    assert growth_table(summarise(records, settings)).rows == [["BC+Q", "2.00"]]
    records[2] = replace(records[2], solved=False)
    assert growth_table(summarise(records, settings)).rows == [["BC+Q", "2.00 or more"]]
