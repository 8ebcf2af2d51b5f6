"""Of tools/campaigns/support/two_builds.py."""

SMALLER = {
    "hybrid-8m": ["model.context=128", "train.batch_size=2", "data.context_curriculum=[{until_step: 50, length: 64}]"],
    "hybrid-p1": ["model.context=128"],
    "hybrid-p2": ["model.context=128"],
}
MADE_UP = ["mqar-hybrid"]
