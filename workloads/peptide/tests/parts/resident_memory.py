"""Of tools/campaigns/resident_memory.py."""

CONFIG = "configs/peptide-cpu.yaml"
READS_TEXT = False
JOBS = [
    ("peptide", ["train.batch_size=8"]),
    ("peptide bf16", ["train.batch_size=8", "engine.precision=bf16"]),
    ("peptide accumulates, saves in the foreground", ["train.batch_size=8", "engine.accumulate=2", "train.background_saves=false"]),
]
