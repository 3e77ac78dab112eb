"""Functions that run a sampler: one for each kind of model."""
