"""Spiking layers: the maths, its fast versions, and the modules built from them."""
