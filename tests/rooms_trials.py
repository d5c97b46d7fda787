"""Finished trials of the rooms, made up for the tests of tables and figures."""

from align_rudder.studies.rooms.settings import Setting
from align_rudder.studies.rooms.trials import TrialRecord


def trial_record(seed=0, episodes=50, solved=True, method="align-rudder", demos=2, curve=()):
    """Return a finished trial of a method in FourRooms."""
    setting = Setting(4, 0.01, 15, demos, method)
    return TrialRecord(setting, seed, episodes, solved, 7 * episodes, curve)
