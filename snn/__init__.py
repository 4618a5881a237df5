"""Spiking layers: the maths, its fast versions, and the modules built from them."""

from snn import dispatch, functional
from snn.conv_snn import ConvSNN
from snn.delay import FixedDelayLinear
from snn.dispatch import BackendError, explain, use_backend
from snn.dormant import DormantLIF
from snn.dropout import Dropout
from snn.fold import fold_batch_norm
from snn.functional import DormantState
from snn.learned_delay import LearnedDelayLinear
from snn.ms_resnet import MSResNet, MSResNetState
from snn.neurons import LIF, SpikingNeuron
from snn.norm import MaskedBatchNorm
from snn.readout import LeakyReadout, LinearReadout
from snn.record import SpikeRecorder
from snn.residual import ResidualSNN, ResidualState
from snn.streaming import StreamingLayer, StreamingSNN, StreamState
from snn.surrogate import SURROGATES, ArcTan, FastSigmoid, Sigmoid, Surrogate, Triangle
from snn.wiring import Synapses

__all__ = [
    "LIF",
    "SURROGATES",
    "ArcTan",
    "BackendError",
    "ConvSNN",
    "DormantLIF",
    "DormantState",
    "Dropout",
    "FastSigmoid",
    "FixedDelayLinear",
    "LeakyReadout",
    "LearnedDelayLinear",
    "LinearReadout",
    "MSResNet",
    "MSResNetState",
    "MaskedBatchNorm",
    "ResidualSNN",
    "ResidualState",
    "Sigmoid",
    "SpikeRecorder",
    "SpikingNeuron",
    "StreamState",
    "StreamingLayer",
    "StreamingSNN",
    "Surrogate",
    "Synapses",
    "Triangle",
    "explain",
    "fold_batch_norm",
    "functional",
    "use_backend",
]

dispatch.load()
