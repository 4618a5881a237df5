"""The parts of ``ranvier evaluate``: finding and checking a checkpoint, the report, the figures."""
