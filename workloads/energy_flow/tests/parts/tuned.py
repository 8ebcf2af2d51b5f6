"""Of tools/campaigns/tuned.py: a lattice on sentences that are made up."""

JOBS = {"energy-debug": ["configs/energy-debug.yaml", "train.eval_batches=4"]}
