"""RUDDER with an LSTM: the baseline that predicts returns instead of aligning demonstrations."""

from align_rudder.baselines.lstm.inputs import StepInputs
from align_rudder.baselines.lstm.model import LstmRudder
from align_rudder.baselines.lstm.streaming import LstmStream, LstmVectorStream

__all__ = ["LstmRudder", "LstmStream", "LstmVectorStream", "StepInputs"]
