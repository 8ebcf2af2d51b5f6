"""Of tools/campaigns/support/two_builds.py."""

SMALLER = {
    "gpt-shakespeare": ["train.batch_size=4", "model.context=128"],
    "gpt2-124m": ["model.layers=1", "model.context=32", "train.batch_size=2"],
}
