"""Of tools/campaigns/cuda_steps.py and bench/peers/card_beside_torch."""

STEPS = [
    {"name": "hybrid", "config": "hybrid-8m",
     "small": ["data.path={text}", "data.tokenizer=character", "data.context_curriculum=[]", "model.context=16", "train.batch_size=2",
               "model.layers=1", "model.width=16", "model.heads=2", "model.inner=32", "model.mamba_heads=2", "model.hidden=32",
               "train.sample_characters=0"]},
    {"name": "hybrid-p1", "config": "hybrid-p1",
     "small": ["data.path={text}", "model.context=16", "train.batch_size=2", "model.layers=1", "model.width=16", "model.heads=2",
               "train.sample_characters=0"]},
    {"name": "hybrid-p2", "config": "hybrid-p2", "asked_milliseconds": 4, "asked_ratio": 3, "compare": "compare_hybrid", "worth": 3,
     "full": ["data.path={text}", "train.batch_size=8", "model.context=256", "train.sample_characters=0"]},
]
