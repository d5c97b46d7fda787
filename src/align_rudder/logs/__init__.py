"""Why runs fail: the successes of a log aligned, and what tells its failures from them.

`LogModel` finds the roads of the successful runs, what tells on them, where each failed run left
its road, and what every turn of a run is worth; `report_data` returns all of it as plain data.
"""

from align_rudder.logs.advantages import turn_advantages
from align_rudder.logs.model import LogModel
from align_rudder.logs.report import report_data
from align_rudder.logs.rewards import TurnTable

__all__ = ["LogModel", "TurnTable", "report_data", "turn_advantages"]
