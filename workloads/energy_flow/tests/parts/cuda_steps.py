"""Of tools/campaigns/cuda_steps.py and bench/peers/card_beside_torch."""

STEPS = [
    {"name": "energy", "config": "energy-debug",
     "small": ["train.batch_size=1", "lattice.capacity=400", "lattice.depth=2", "model.neuron_hidden=8", "model.neuron_outputs=8",
               "model.carrier_hidden=8", "model.carrier_layers=1", "model.head_hidden=8", "data.pairs=16", "data.validation_pairs=4"]},
    {"name": "energy-rtx", "config": "energy-rtx", "asked_milliseconds": 320, "asked_ratio": 5, "compare": "compare_energy", "worth": 5,
     # All rows of a step at once: tiles are for a processor's caches, and make 220,000 launches of 7,400.
     "full": ["train.batch_size=64", "engine.accumulate=1", "lattice.tile_rows=0"]},
]
