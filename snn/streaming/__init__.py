"""Networks one bin at a time, with explicit state."""

from snn.streaming.layer import LayerState, StreamingLayer
from snn.streaming.network import StreamingSNN, StreamState

__all__ = ["LayerState", "StreamState", "StreamingLayer", "StreamingSNN"]
