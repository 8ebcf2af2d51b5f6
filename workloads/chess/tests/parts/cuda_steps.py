"""Of tools/campaigns/cuda_steps.py."""

_RECORDS = ["chess.records=60", "chess.truth=search:1", "data.validation_fraction=0.1"]

STEPS = [
    {"name": "chess", "config": "chess-warmup-xs",
     "small": [*_RECORDS, "model.layers=1", "model.width=16", "model.heads=2", "train.batch_size=1"]},
    {"name": "chess-124m", "config": "chess-grpo-124m", "asked_milliseconds": 300,
     "full": ["chess.records=300", "chess.truth=search:1", "data.validation_fraction=0.1"]},
]
