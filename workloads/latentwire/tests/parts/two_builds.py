"""Of tools/campaigns/support/two_builds.py."""

_SMALL = ["receivers.folders=[bpe=random:bpe]", "train.batch_size=4", "wire.width=16", "wire.layers=1", "wire.heads=2",
          "data.validation_prompts=16"]
_NAMES = ["latentwire-ci", "latentwire-smoke"]

SMALLER = {name: _SMALL for name in _NAMES}
MADE_UP = _NAMES
NO_TEXT = MADE_UP
