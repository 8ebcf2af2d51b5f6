"""Of tools/campaigns/resident_memory.py."""

SAMPLE = "train.sample_characters=40"
CONFIG = "configs/hybrid-p2.yaml"
JOBS = [
    ("hybrid", ["train.batch_size=2", SAMPLE]),
    ("hybrid bf16", ["train.batch_size=2", "engine.precision=bf16"]),
    ("hybrid accumulates, recomputes", ["train.batch_size=4", "engine.accumulate=2", "engine.recompute=full"]),
]
