"""Of tools/campaigns/support/two_builds.py."""

_SMALL = ["train.batch_size=4", "engine.accumulate=1", "lattice.width=8", "lattice.height=8", "lattice.depth=6",
          "lattice.capacity=512", "lattice.tile_rows=64", "lattice.segments=1", "model.carrier_hidden=64",
          "model.embedding_width=64", "data.pairs=256", "data.validation_pairs=32"]
_NAMES = ["energy-debug", "energy-exp0", "energy-exp28", "energy-full", "energy-learn", "energy-rtx"]

SMALLER = {name: _SMALL for name in _NAMES}
SMALLER["energy-bridge"] = ["train.batch_size=4", "bridge.width=32", "bridge.hidden=32", "data.pairs=64",
                            "data.validation_pairs=16"]
MADE_UP = [*_NAMES, "energy-bridge"]
NO_TEXT = MADE_UP
