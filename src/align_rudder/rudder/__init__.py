"""RUDDER with an LSTM: the baseline that predicts returns instead of aligning demonstrations."""

from align_rudder.rudder.inputs import StepInputs
from align_rudder.rudder.model import LstmRudder
from align_rudder.rudder.streaming import LstmStream, LstmVectorStream

__all__ = ["LstmRudder", "LstmStream", "LstmVectorStream", "StepInputs"]
