#!/usr/bin/env python3
"""The energy flow's training step in PyTorch, as fast as PyTorch documents how to do it.

Usage: energy_torch.py share=FILE [key=value ...]        keys and defaults: DEFAULTS below and in energy_options.py

The lattice of flow_torch.py in the relative mode; clipping of the global norm, AdamW on fused kernels with decay of all
tensors, cosine schedule. Batches are the shared ones in their order. way=compact works on active flows alone, in tensors of
as many rows, and stops when the stop rule says so, which the host learns in every step; way=masked is one graph of T steps
of C rows; way=loop is one flow after another. precision=bf16 is torch.autocast of mapper and networks, with fp32 parameters,
positions, energies and readout.

Obeys the protocol of bench/peers/README.md. What is counted is samples.
"""
import itertools
import os

import energy_options  # finds what all peers share
import peer_job

DEFAULTS = {
    **peer_job.TORCH_DEFAULTS,  # compiled are a step of flows and the readout (compact), or the whole loss (masked)
    "way": "compact",  # or masked, loop
    "dynamic": 1,  # compact: compiled once for any number of rows; 0: anew for each number
}
OPTIONS = energy_options.options(__doc__, DEFAULTS, {"way": ("compact", "masked", "loop"), "mode": ("eager", "compile")})
if OPTIONS["way"] == "loop" and (OPTIONS["mode"], OPTIONS["precision"]) != ("eager", "fp32"):
    raise SystemExit("one flow after another is for eager fp32 alone")
os.environ.setdefault("OMP_NUM_THREADS", str(OPTIONS["threads"]))  # read when torch is loaded

import torch  # noqa: E402

import flow_torch  # noqa: E402
import peer_torch  # noqa: E402


class Job(peer_torch.Steps):
    def __init__(self, o):
        self.counts = {}
        shared = peer_job.read_shared(o["share"])
        given = {name: value for name, value in shared.items() if energy_options.is_parameter(name)}
        self.model = flow_torch.Flows(flow_torch.sizes_of({name: value.shape for name, value in given.items()}),
                                      flow_torch.lattice_of(o))
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(torch.from_numpy(given.pop(name).copy()))
        if given:
            raise SystemExit(f"parameters that the model has not: {', '.join(given)}")
        self.model.to(o["device"])
        surface_of, batches, places = self.way(o), energy_options.Batches(shared), itertools.count()

        def loss(inputs, targets):
            with peer_torch.autocast(o):
                start, target = self.model.surfaces(inputs, targets)
                surface = surface_of(start)
            return (surface - target).square().mean()

        trained = self.model.trained()
        super().__init__(o, loss, trained, peer_torch.adamw(trained, o), lambda: batches[next(places)])

    def way(self, o):
        """Energies [B, S] -> surface [B, S]."""
        model, compiles = self.model, o["mode"] == "compile"
        dtype = torch.bfloat16 if o["precision"] == "bf16" else torch.float32
        if o["way"] == "loop":
            return lambda start: flow_torch.run_loop(model, start, dtype, self.counts)
        if o["way"] == "masked":
            whole = lambda start: flow_torch.run_masked(model, start, dtype)  # noqa: E731
            return torch.compile(whole, **peer_torch.compile_settings(o)) if compiles else whole
        parts = {}
        if compiles:
            settings = peer_torch.compile_settings(o, bool(o["dynamic"]))
            parts = {"move": torch.compile(model.move, **settings), "weigh": torch.compile(model.weigh, **settings)}
        return lambda start: flow_torch.run_compact(model, start, dtype, self.counts, **parts)


def main():
    peer_torch.prepare(OPTIONS)
    job = Job(OPTIONS)
    ways = {"compact": "active flows alone, stopped by the host", "loop": "one flow after another",
            "masked": f"all steps of {OPTIONS['capacity']} rows with masks"}
    flags = [ways[OPTIONS["way"]], "fused AdamW", "foreach clipping", *peer_torch.flags(OPTIONS)]
    if OPTIONS["precision"] == "bf16":
        flags.append("autocast(bfloat16) of mapper and networks")
    if OPTIONS["mode"] == "compile":
        whole = OPTIONS["way"] == "masked"
        flags.append(f"torch.compile(mode={OPTIONS['compile_mode']}, dynamic={not whole and bool(OPTIONS['dynamic'])}, "
                     f"fullgraph=True) of {'all steps' if whole else 'a step of flows and the readout'}")
    peer_job.serve(job, {"side": "torch-" + OPTIONS["mode"],
                         "versions": peer_torch.versions(OPTIONS),
                         "flags": flags, "threads": torch.get_num_threads(),
                         "parameters": sum(p.numel() for p in job.model.parameters())},
                   counted=OPTIONS["batch"])


if __name__ == "__main__":
    main()
