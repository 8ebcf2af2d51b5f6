"""Of tools/campaigns/support/two_builds.py."""

_SMALL = ["receivers.folders=[bpe=random:bpe]", "train.batch_size=4", "wire.width=16", "wire.layers=1", "wire.heads=2",
          "data.validation_prompts=16"]
_LARGE = [*_SMALL, "wire.slots=8", "engine.accumulate=1", "engine.memory_budget=2GiB"]

SMALLER = {name: _SMALL for name in ["latentwire-ci", "latentwire-smoke"]}
SMALLER |= {name: _LARGE for name in ["latentwire-smollm2", "latentwire-ref", "latentwire-hero"]}
MADE_UP = list(SMALLER)
NO_TEXT = MADE_UP
