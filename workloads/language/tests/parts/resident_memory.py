"""Of tools/campaigns/resident_memory.py."""

SAMPLE = "train.sample_characters=40"
CONFIG = "configs/default.yaml"
JOBS = [
    ("gpt", [SAMPLE]),
    ("gpt with one thread", ["engine.threads=1"]),
    ("gpt saves in the foreground", ["train.background_saves=false", "train.checkpoint_interval=1"]),
    ("gpt accumulates, saves often", ["engine.accumulate=4", "train.checkpoint_interval=1"]),
    ("gpt recomputes", ["engine.recompute=full"]),
    ("gpt recomputes to fit", ["engine.recompute=auto", "train.batch_size=48"]),
    ("gpt in one microbatch", ["engine.parallel_microbatches=1"]),
    ("gpt in four, by three threads", ["engine.parallel_microbatches=4", "engine.threads=3"]),
    ("gpt bf16", ["engine.precision=bf16", SAMPLE]),
    ("gpt small", ["train.batch_size=1", "model.width=32", "model.layers=1", "model.context=16", SAMPLE]),
    ("gpt deep", ["model.layers=12", "train.batch_size=2"]),
    ("gpt with loaders", ["data.workers=4", "data.prefetch=16"]),
    ("gpt in buckets", ["data.batching=buckets"]),
    ("gpt-2 124m", ["model.layers=12", "model.width=768", "model.heads=12", "model.context=256", "model.vocabulary=50257",
      "train.batch_size=2", "train.background_saves=false", "engine.precision=bf16"]),
]
