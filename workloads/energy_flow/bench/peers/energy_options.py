"""What the sides of compare_energy share: their options, what they are given, and how many flows a step has."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[4] / "bench/peers"))
import peer_job  # noqa: E402

DEFAULTS = {
    "share": "", "threads": 2, "precision": "fp32", "dropout": 0.0,
    # The work. batch and flows are for the record: they are those of the shared batches.
    "counted": "samples", "batch": 0, "flows": 0,
    "width": 20, "height": 20, "depth": 10, "capacity": 50000, "spawn_threshold": 0.15, "most_spawned": 1,
    "project_on_stop": 1, "early_stop": 1, "stop_threshold": 0.8, "stop_patience": 2, "stop_min_steps": 3,
    "stop_of_initial": 0,
    "steps": 600, "warmup": 0, "rate": 1e-4, "minimum_rate": 1e-6,
    "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decay": 1e-5, "clip": 1.0,
    # Of sides that work on all rows of a store: how many it has. start: those that flows start with, enough as long as there
    # are no children.
    "rows": "capacity",
}
CHOICES = {"precision": ("fp32", "bf16"), "rows": ("capacity", "start")}


def options(document, more_defaults=None, more_choices=None):
    """Of the command line; ends the program with the document where it is wrong."""
    if len(sys.argv) < 2:
        sys.exit(document)
    found = peer_job.parse(sys.argv[1:], {**DEFAULTS, **(more_defaults or {})}, {**CHOICES, **(more_choices or {})})
    if not found["share"]:
        sys.exit("share=FILE is needed: parameters and batches, by bench_energy_step --share")
    if found["rows"] == "start":
        found["capacity"] = found["flows"]
    return found


class Batches:
    """The shared ones in their order, over and over."""

    def __init__(self, shared):
        self.inputs, self.targets = shared["input"], shared["target"]  # [batches, B, 768] each

    def __getitem__(self, step):
        which = step % len(self.inputs)
        return self.inputs[which], self.targets[which]


def is_parameter(name):
    return name.startswith(("mapper.", "neuron.", "carrier."))


def is_trained(name):
    """The mapper stays as it is drawn."""
    return name.startswith(("neuron.", "carrier."))
