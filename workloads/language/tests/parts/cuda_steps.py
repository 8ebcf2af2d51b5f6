"""Of tools/campaigns/cuda_steps.py and bench/peers/card_beside_torch."""

_SMALL = ["data.path={text}", "model.layers=1", "model.width=16", "model.heads=2", "model.context=16", "train.batch_size=2",
          "train.sample_characters=0"]

STEPS = [
    {"name": "gpt", "config": "gpt-shakespeare", "asked_milliseconds": 5, "asked_ratio": 1.5, "small": _SMALL,
     "compare": "compare_gpt", "compared": ["model.dropout=0"], "worth": 1,
     "full": ["data.path={text}", "train.batch_size=64", "train.sample_characters=0"]},
    {"name": "llama", "config": "llama-shakespeare-cpu", "small": _SMALL},
    {"name": "gpt2", "config": "gpt2-124m", "asked_milliseconds": 35, "asked_ratio": 1.2, "compare": "compare_gpt", "worth": 2,
     "full": ["data.path={text}", "data.tokenizer=byte", "model.vocabulary=50304", "train.batch_size=16", "model.context=1024",
              "train.sample_characters=0"]},
]
