#!/usr/bin/env python3
"""The energy flow's training step in JAX: the whole step, optimiser included, is one jitted function whose buffers are
donated.

Usage: energy_jax.py share=FILE [key=value ...]        keys and defaults: DEFAULTS in energy_options.py

The same step as energy_torch.py's way=masked: a lax.scan over the T steps that there can be at most, each of all C rows of
the store, with masks for what is not there and for steps behind the stop; a lax.while_loop, which would make the steps that
are needed, has no reverse mode. precision=bf16 does the matmuls, activations and hidden states in bf16; norms, positions,
energies, readout, parameters and optimiser are in fp32. Obeys the protocol of bench/peers/README.md.
"""
import functools
import os
import platform

import energy_options  # finds what all peers share
import peer_job

OPTIONS = energy_options.options(__doc__)
# XLA takes a thread for each processor it may use.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:OPTIONS["threads"]])
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import numpy  # noqa: E402

import peer_jax  # noqa: E402

LONGEST_MOVE = 0.5
AGE_WEIGHT = 0.1


def clamped(x, low, high):
    """Whose derivative is 1 on the closed interval; that of jnp.clip is a half at its ends."""
    return jnp.where((x >= low) & (x <= high), x, jax.lax.stop_gradient(jnp.clip(x, low, high)))


def absolute(x):
    return jnp.where(x < 0, -x, x)


class Networks:
    def __init__(self, parameters, low):
        self.parameters, self.low = parameters, low

    def linear(self, name, x):
        weight, bias = (self.parameters[f"{name}.{part}"].astype(self.low) for part in ("weight", "bias"))
        return x.astype(self.low) @ weight.T + bias

    def norm(self, name, x):
        x = x.astype(jnp.float32)
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        y = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
        return (y * self.parameters[name + ".weight"] + self.parameters[name + ".bias"]).astype(self.low)

    def mapped(self, x):
        for i in range(2):
            x = self.norm(f"mapper.norms.{i}", jax.nn.gelu(self.linear(f"mapper.layers.{i}", x), approximate=False))
        v = jnp.tanh(self.linear("mapper.layers.2", x)).astype(jnp.float32)
        return self.parameters["mapper.gain"] * v + self.parameters["mapper.shift"] + self.parameters["mapper.table"]

    def predict(self, position, energy, hidden):
        """[C, 3], [C, 1], [C, Hd] each -> next energy, displacement, next hidden states."""
        x = jnp.concatenate([self.linear("neuron.coordinates", position), energy.astype(self.low)], 1)
        for i in range(2):
            x = jax.nn.gelu(self.norm(f"neuron.norms.{i}", self.linear(f"neuron.layers.{i}", x)), approximate=False)
        x = jnp.concatenate([self.linear("neuron.layers.2", x), energy.astype(self.low)], 1)
        following = []
        for layer, h in enumerate(hidden):
            weights = {part: self.parameters[f"carrier.gru.{layer}.{part}"].astype(self.low)
                       for part in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")}
            new = jnp.split(x @ weights["weight_ih"].T + weights["bias_ih"], 3, 1)
            old = jnp.split(h @ weights["weight_hh"].T + weights["bias_hh"], 3, 1)
            r, z = jax.nn.sigmoid(new[0] + old[0]), jax.nn.sigmoid(new[1] + old[1])
            x = (1 - z) * jnp.tanh(new[2] + r * old[2]) + z * h
            following.append(x)
        heads = [self.linear(f"carrier.{name}.output",
                             jax.nn.gelu(self.linear(f"carrier.{name}.hidden", x), approximate=False)).astype(jnp.float32)
                 for name in ("energy", "displacement")]
        return jnp.tanh(heads[0]), heads[1], following


def surface_of(networks, o, energies):
    """Energies [B, S] -> surface [B, S]."""
    width, height, depth, capacity = o["width"], o["height"], o["depth"], o["capacity"]
    samples, cells = energies.shape
    most_steps, threshold = depth // 2, o["spawn_threshold"]
    row = jnp.arange(capacity, dtype=jnp.int32)
    layers = sum(name.endswith("weight_hh") for name in networks.parameters)
    units = networks.parameters["carrier.gru.0.weight_hh"].shape[1]

    def record(store, which, position, energy, age):
        place = (jax.lax.stop_gradient(position[:, :2]) + 1) / 2 * jnp.array([width - 1, height - 1], jnp.float32)
        place = jnp.clip(jnp.round(place), 0, jnp.array([width - 1, height - 1], jnp.float32)).astype(jnp.int32)
        z = position[:, 2]
        distance = jnp.minimum(absolute(z + 1), absolute(1 - z))
        weight = jnp.exp(absolute(energy[:, 0]) * (1 + AGE_WEIGHT * age) / (1 + distance))
        cell = jnp.where(which, store["sample"] * cells + place[:, 1] * width + place[:, 0], samples * cells)
        return {**store, "weighted": store["weighted"].at[cell].add(weight * energy[:, 0], mode="drop"),
                "weights": store["weights"].at[cell].add(weight, mode="drop")}

    def stops(store, step):
        of = samples * cells if o["stop_of_initial"] else store["created"]
        due = (step >= o["stop_min_steps"]) & bool(o["early_stop"])
        # Fractions of such counts are told apart in fp32.
        enough = store["completed"] / of >= o["stop_threshold"]
        better = store["completed"] > store["best"]
        stall = jnp.where(due, jnp.where(better, 0, store["stall"] + 1), store["stall"])
        best = jnp.where(due & better, store["completed"], store["best"])
        stopped = store["stopped"] | (due & (enough | (stall >= o["stop_patience"])))
        return {**store, "best": best, "stall": stall, "stopped": stopped}

    def make_step(store, step):
        store = stops(store, step)
        stopped = store["stopped"]
        alive = (row < store["count"]) & ~stopped
        position = store["position"]
        energy, displacement, hidden = networks.predict(position, store["energy"], store["hidden"])
        reached = position + clamped(displacement, -LONGEST_MOVE, LONGEST_MOVE)
        inside = clamped(reached, -1, 1)
        length = jnp.sqrt((jax.lax.stop_gradient(inside - position) ** 2).sum(1))
        folded = clamped(jnp.where(reached < -1, -2 - reached, jnp.where(reached > 1, 2 - reached, reached)), -1, 1)
        moved = jnp.concatenate([folded[:, :2], inside[:, 2:]], 1)
        age = store["age"] + 1
        ends = (jnp.abs(inside[:, 2]) >= 1) | (age >= most_steps)
        recorded, stays = alive & ends, alive & ~ends
        store = record(store, recorded, moved, energy, age)
        children = jnp.clip(jnp.floor(length / threshold) - 1, 0, o["most_spawned"]).astype(jnp.int32)
        children = jnp.where(stays & (length > threshold), children, 0)
        staying = stays.sum(dtype=jnp.int32)
        # The row that each place is filled from; place C is for those that go nowhere.
        source = jnp.zeros(capacity, jnp.int32)
        source = source.at[jnp.where(stays, jnp.cumsum(stays) - 1, capacity)].set(row, mode="drop")
        first_child = jnp.cumsum(children) - children + staying
        for k in range(o["most_spawned"]):
            source = source.at[jnp.where(children > k, first_child + k, capacity)].set(row, mode="drop")
        following = jnp.minimum(staying + children.sum(dtype=jnp.int32), capacity)
        is_child = row >= staying

        def filled(old, new):
            return jnp.where(stopped, old, new[source])

        return {**store,
                "position": jnp.where(stopped, position, jnp.where(is_child[:, None], position[source], moved[source])),
                "energy": filled(store["energy"], energy),
                "hidden": [filled(old, new) for old, new in zip(store["hidden"], hidden)],
                "sample": filled(store["sample"], store["sample"]),
                "age": jnp.where(stopped, store["age"], jnp.where(is_child, 0, age[source])),
                "completed": store["completed"] + recorded.sum(dtype=jnp.int32),
                "created": store["created"] + jnp.where(stopped, 0, following - staying),
                "count": jnp.where(stopped, store["count"], following)}, None

    started = samples * cells
    cell = row % cells
    places = jnp.stack([2 * (cell % width) / (width - 1) - 1, 2 * (cell // width) / (height - 1) - 1,
                        jnp.full(capacity, 2 * (depth // 2) / depth - 1)], 1).astype(jnp.float32)
    none, zero = jnp.zeros(started), jnp.int32(0)
    store = {"position": jnp.where(row[:, None] < started, places, 0),
             "energy": jnp.pad(energies.reshape(-1, 1), ((0, capacity - started), (0, 0))),
             "hidden": [jnp.zeros((capacity, units), networks.low)] * layers,
             "sample": jnp.minimum(row // cells, samples - 1), "age": jnp.zeros(capacity, jnp.int32),
             "weighted": none, "weights": none, "completed": zero, "best": zero, "stall": zero,
             "created": jnp.int32(started), "count": jnp.int32(started), "stopped": jnp.bool_(False)}
    store, _ = jax.lax.scan(make_step, store, jnp.arange(most_steps))
    if o["project_on_stop"]:
        store = record(store, row < store["count"], store["position"], store["energy"], store["age"])
    some = store["weights"] > 0
    return jnp.where(some, store["weighted"] / jnp.where(some, store["weights"], 1), 0).reshape(samples, cells)


def loss_of(trained, frozen, inputs, targets, o):
    networks = Networks({**trained, **frozen}, jnp.bfloat16 if o["precision"] == "bf16" else jnp.float32)
    start, target = (jax.lax.stop_gradient(networks.mapped(x)) for x in (inputs, targets))
    return ((surface_of(networks, o, start) - target) ** 2).mean()


def train_step(o, trained, first, second, frozen, count, rate, inputs, targets):
    """One step. `count` from 1 on."""
    loss, gradients = jax.value_and_grad(loss_of)(trained, frozen, inputs, targets, o)
    return (*peer_jax.adamw(trained, gradients, first, second, count, rate, o), loss)


class Job:
    def __init__(self, o):
        self.o, self.step = o, 0
        shared = peer_job.read_shared(o["share"])
        self.batches = energy_options.Batches(shared)
        given = {name: jnp.array(value) for name, value in shared.items() if energy_options.is_parameter(name)}
        self.trained = {name: value for name, value in given.items() if energy_options.is_trained(name)}
        self.frozen = {name: value for name, value in given.items() if name not in self.trained}
        self.first = {name: jnp.zeros_like(value) for name, value in self.trained.items()}
        self.second = {name: jnp.zeros_like(value) for name, value in self.trained.items()}
        self.train_step = jax.jit(functools.partial(train_step, o), donate_argnums=(0, 1, 2))

    def train(self):
        inputs, targets = self.batches[self.step]
        rate = peer_job.learning_rate(self.o, self.step)
        self.step += 1
        self.trained, self.first, self.second, loss = self.train_step(
            self.trained, self.first, self.second, self.frozen, numpy.float32(self.step), numpy.float32(rate),
            inputs, targets)
        return float(loss)


def main():
    job = Job(OPTIONS)
    flags = ["jit of the whole step", "donated buffers",
             f"lax.scan over all steps of {OPTIONS['capacity']} rows with masks"]
    if OPTIONS["precision"] == "bf16":
        flags.append("bf16 matmuls, activations and hidden states")
    peer_job.serve(job, {"side": "jax",
                         "versions": {"jax": jax.__version__, "jaxlib": jaxlib.__version__,
                                      "python": platform.python_version()},
                         "flags": flags, "threads": len(os.sched_getaffinity(0)),
                         "parameters": sum(p.size for p in (*job.trained.values(), *job.frozen.values()))},
                   counted=OPTIONS["batch"])


if __name__ == "__main__":
    main()
