"""Of tools/campaigns/switches.py: jobs, the switches that `lab ablate` measures in them, and for `lab gate` what is changed and
whether it must be no worse."""

SMALL = ["configs/gpt-shakespeare-cpu.yaml", "data.path={text}", "train.steps=160", "train.eval_interval=160",
         "train.eval_batches=20", "train.sample_characters=0", "optim.warmup_steps=20"]
TINY = [*SMALL, "model.layers=1", "model.width=16", "model.heads=2", "model.context=16", "train.batch_size=2",
        "train.eval_batches=1"]
JOBS = {
    "fp32": {
        "job": SMALL,
        "switches": ["engine.moments=bf16,int8", "model.norm=rms", "model.positions=rotary"],
        "gates": {
            "moments in bf16": (["engine.moments=bf16"], True),
            "moments in 8 bits": (["engine.moments=int8"], True),
            "RMS norms": (["model.norm=rms"], False),
            "rotary positions": (["model.positions=rotary"], False),
        },
    },
    # Beside rates that are not rescaled for a batch of twice as many rows.
    "batch of 24": {
        "job": [*SMALL, "train.batch_size=24", "optim.base_batch_size=12"],
        "switches": ["optim.batch_scaling=linear,root"],
        "gates": {
            "rates grow linearly": (["optim.batch_scaling=linear"], False),
            "rates grow as the root": (["optim.batch_scaling=root"], False),
        },
    },
    "bf16": {
        "job": [*SMALL, "engine.precision=bf16"],
        "switches": ["engine.master_weights=false"],
        "gates": {
            "bf16 weights, stochastic rounding": (["engine.master_weights=false"], True),
            "bf16 weights, rounded to nearest": (["engine.master_weights=false", "engine.rounding=nearest"], False),
        },
    },
    # Without kernels a step of the others takes seconds.
    "compile effort": {
        "job": TINY,
        "switches": ["engine.compile=fast,off"],
        "gates": {
            "fast": (["engine.compile=fast"], True),
            "off": (["engine.compile=off"], True),
        },
    },
}
