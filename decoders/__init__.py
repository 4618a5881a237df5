"""Neural activity to phonemes: cores, decoders, training and scores."""
