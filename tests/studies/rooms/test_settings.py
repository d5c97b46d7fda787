"""What the studies compare."""

from align_rudder.studies.rooms.methods import COMPARED, VARIANTS
from align_rudder.studies.rooms.settings import settings_of


def test_studies_have_the_settings_of_the_paper():
    main_study = settings_of("four-rooms")
    assert {s.method for s in main_study} == set(COMPARED)
    assert {s.demos for s in main_study} == {2, 5, 10, 50, 100}
    stochastic = {(s.rooms, s.slip) for s in settings_of("stochastic")}
    assert stochastic == {(4, x) for x in (0.05, 0.1, 0.15, 0.25, 0.4)} | {(8, 0.05), (8, 0.1)}
    assert {s.max_events for s in settings_of("clusters")} == {2, 5, 8, 10, 12, 15}
    scaling = {s.rooms: s.max_events for s in settings_of("scaling")}
    assert scaling == {2: 15, 4: 15, 8: 16, 16: 32, 32: 64}
    assert {s.method for s in settings_of("variants")} == {"align-rudder", *VARIANTS}
