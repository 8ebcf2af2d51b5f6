"""The relative mode of the energy flow lattice in PyTorch, written from its specification: networks, a step of flows, and
three ways to go through all steps. Parameters have Fullbore's names.

S = width x height cells, C capacity, T = depth / 2 the most steps, n active flows, Hd the carrier's width.
"""
import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

LONGEST_MOVE = 0.5
AGE_WEIGHT = 0.1


@dataclasses.dataclass(frozen=True)
class Lattice:
    width: int
    height: int
    depth: int
    capacity: int
    spawn_threshold: float
    most_spawned: int
    project_on_stop: bool = True
    early_stop: bool = True
    stop_threshold: float = 0.95
    stop_patience: int = 3
    stop_min_steps: int = 5
    stop_of_initial: bool = False

    @property
    def surface(self):
        return self.width * self.height

    @property
    def most_steps(self):
        return self.depth // 2


def lattice_of(options):
    return Lattice(**{field.name: field.type(options[field.name]) for field in dataclasses.fields(Lattice)})


@dataclasses.dataclass(frozen=True)
class Sizes:
    embedding: int
    cells: int
    neuron_hidden: int
    neuron_outputs: int
    carrier_hidden: int
    carrier_layers: int
    head_hidden: int


def sizes_of(shapes):
    """From the shapes of all parameters, by name."""
    return Sizes(embedding=shapes["mapper.layers.0.weight"][1], cells=shapes["mapper.table"][0],
                 neuron_hidden=shapes["neuron.layers.0.weight"][0], neuron_outputs=shapes["neuron.layers.2.weight"][0],
                 carrier_hidden=shapes["carrier.gru.0.weight_hh"][1],
                 carrier_layers=sum(name.endswith("weight_hh") for name in shapes),
                 head_hidden=shapes["carrier.displacement.hidden.weight"][0])


class Mapper(nn.Module):
    """Embeddings [B, E] -> surfaces [B, S]."""

    def __init__(self, embedding, cells):
        super().__init__()
        inner = max(384, 2 * cells)
        self.layers = nn.ModuleList([nn.Linear(embedding, inner), nn.Linear(inner, 2 * cells),
                                     nn.Linear(2 * cells, cells)])
        self.norms = nn.ModuleList([nn.LayerNorm(inner), nn.LayerNorm(2 * cells)])
        self.gain, self.shift = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))
        self.table = nn.Parameter(torch.zeros(cells))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = norm(F.gelu(layer(x)))
        return self.gain * torch.tanh(self.layers[2](x)) + self.shift + self.table


class Neuron(nn.Module):
    def __init__(self, hidden, outputs):
        super().__init__()
        self.coordinates = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.Linear(4, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)])
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(hidden)])

    def forward(self, position, energy):
        x = torch.cat([self.coordinates(position), energy], 1)
        for layer, norm in zip(self.layers, self.norms):
            x = F.gelu(norm(layer(x)))
        return self.layers[2](x)


def head(inputs, hidden, outputs):
    return nn.ModuleDict({"hidden": nn.Linear(inputs, hidden), "output": nn.Linear(hidden, outputs)})


class Carrier(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes.carrier_hidden
        self.gru = nn.ModuleList(nn.GRUCell(sizes.neuron_outputs + 1 if layer == 0 else width, width)
                                 for layer in range(sizes.carrier_layers))
        self.energy = head(width, width // 2, 1)
        self.displacement = head(width, sizes.head_hidden, 3)

    def forward(self, x, hidden):
        following = []
        for cell, h in zip(self.gru, hidden):
            reset, update, new = F.linear(x, cell.weight_ih, cell.bias_ih).chunk(3, 1)
            old_reset, old_update, old_new = F.linear(h, cell.weight_hh, cell.bias_hh).chunk(3, 1)
            candidate = torch.tanh(new + torch.sigmoid(reset + old_reset) * old_new)
            # (1 - z) n + z h
            x = torch.lerp(candidate, h, torch.sigmoid(update + old_update))
            following.append(x)
        heads = [part["output"](F.gelu(part["hidden"](x))) for part in (self.energy, self.displacement)]
        return torch.tanh(heads[0]).to(torch.promote_types(heads[0].dtype, torch.float32)), heads[1], following


class Flows(nn.Module):
    """Mapper and networks, and a step of flows side by side."""

    def __init__(self, sizes, lattice):
        super().__init__()
        self.lattice, self.sizes = lattice, sizes
        self.mapper = Mapper(sizes.embedding, sizes.cells).requires_grad_(False)
        self.neuron = Neuron(sizes.neuron_hidden, sizes.neuron_outputs)
        self.carrier = Carrier(sizes)

    def trained(self):
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def move(self, position, energy, *hidden):
        """[n, 3], [n, 1], [n, Hd] each -> next position and energy; does it exit; children wanted, before it is known
        who stays; next hidden states."""
        features = self.neuron(position, energy)
        energy, displacement, hidden = self.carrier(torch.cat([features, energy.to(features.dtype)], 1), hidden)
        reached = position + displacement.to(position.dtype).clamp(-LONGEST_MOVE, LONGEST_MOVE)
        inside = reached.clamp(-1, 1)
        length = (inside - position).detach().square().sum(1).sqrt()
        folded = torch.where(reached < -1, -2 - reached, torch.where(reached > 1, 2 - reached, reached)).clamp(-1, 1)
        following = torch.cat([folded[:, :2], inside[:, 2:]], 1)
        exits = inside[:, 2].abs() >= 1
        threshold = self.lattice.spawn_threshold
        children = ((length / threshold).floor() - 1).clamp(0, self.lattice.most_spawned)
        children = torch.where(length > threshold, children, torch.zeros_like(children)).to(torch.int32)
        return following, energy, exits, children, *hidden

    def weigh(self, position, energy, age, sample):
        """Of flows that end here: cell of all samples i64 [n], importance [n]."""
        lattice = self.lattice
        extents = torch.stack([torch.full_like(position[0, 0], size - 1) for size in (lattice.width, lattice.height)])
        place = ((position[:, :2].detach() + 1) / 2 * extents).round().clamp_min(0).minimum(extents).long()
        z = position[:, 2]
        distance = torch.minimum((z + 1).abs(), (1 - z).abs())
        cell = sample * lattice.surface + place[:, 1] * lattice.width + place[:, 0]
        return cell, torch.exp(energy[:, 0].abs() * (1 + AGE_WEIGHT * age) / (1 + distance))

    def surface(self, weighted, weights, samples):
        some = weights > 0
        return torch.where(some, weighted / torch.where(some, weights, 1), 0).view(samples, self.lattice.surface)

    def start(self, energies):
        """A flow on each cell: position, energy and sample of all."""
        lattice = self.lattice
        like = {"dtype": energies.dtype, "device": energies.device}
        x = torch.arange(lattice.width, **like) * 2 / (lattice.width - 1) - 1
        y = torch.arange(lattice.height, **like) * 2 / (lattice.height - 1) - 1
        z = 2 * (lattice.depth // 2) / lattice.depth - 1
        places = torch.stack([x.repeat(lattice.height), y.repeat_interleave(lattice.width),
                              torch.full((lattice.surface,), z, **like)], 1)
        samples = len(energies)
        return (places.repeat(samples, 1), energies.reshape(-1, 1),
                torch.arange(samples, device=energies.device).repeat_interleave(lattice.surface))

    def surfaces(self, inputs, targets):
        """Of a batch, without gradient."""
        with torch.no_grad():
            return self.mapper(torch.cat([inputs, targets])).to(
                torch.promote_types(inputs.dtype, torch.float32)).split(len(inputs))


class StopRule:
    """On the host."""

    def __init__(self, lattice, initial):
        self.lattice, self.initial = lattice, initial
        self.best = self.stall = 0

    def stops(self, step, active, completed, created):
        lattice = self.lattice
        if active == 0:
            return True
        if not lattice.early_stop or step < lattice.stop_min_steps:
            return False
        if completed / (self.initial if lattice.stop_of_initial else created) >= lattice.stop_threshold:
            return True
        self.stall = 0 if completed > self.best else self.stall + 1
        self.best = max(self.best, completed)
        return self.stall >= lattice.stop_patience


def run_compact(model, energies, hidden_dtype, counts, move=None, weigh=None):
    """Active flows alone, in tensors of as many rows; the host knows how many there are and stops when the rule says so.
    `move` and `weigh`: compiled ones. `counts` (a dict) is told executed, created, dropped and flow_steps."""
    lattice, device = model.lattice, energies.device
    move, weigh = move or model.move, weigh or model.weigh
    position, energy, sample = model.start(energies)
    hidden = [torch.zeros(len(position), model.sizes.carrier_hidden, dtype=hidden_dtype, device=device)
              for _ in range(model.sizes.carrier_layers)]
    age = torch.zeros(len(position), dtype=torch.int32, device=device)
    created, completed, dropped, flow_steps, step = len(position), 0, 0, 0, 0
    records = []
    rule = StopRule(lattice, created)
    while step < lattice.most_steps and not rule.stops(step, len(position), completed, created):
        old = position
        position, energy, ends, children, *hidden = move(position, energy, *hidden)
        flow_steps += len(old)
        age = age + 1
        step += 1
        ends = ends | (age >= lattice.most_steps)
        ended = ends.nonzero().squeeze(1)
        stay = None
        if len(ended):
            records.append((position[ended], energy[ended], age[ended], sample[ended]))
            completed += len(ended)
            stay = (~ends).nonzero().squeeze(1)
            children = children.masked_fill(ends, 0)
        parents = torch.arange(len(old), device=device).repeat_interleave(children)
        room = lattice.capacity - (len(old) if stay is None else len(stay))
        dropped += max(0, len(parents) - room)
        parents = parents[:room]
        created += len(parents)
        if stay is None and len(parents) == 0:
            continue  # the same rows go on
        stay = torch.arange(len(old), device=device) if stay is None else stay
        rows = torch.cat([stay, parents])
        position = torch.cat([position[stay], old[parents]])
        energy, sample, hidden = energy[rows], sample[rows], [h[rows] for h in hidden]
        age = torch.cat([age[stay], torch.zeros(len(parents), dtype=torch.int32, device=device)])
    if lattice.project_on_stop and len(position):
        records.append((position, energy, age, sample))
    counts.update(executed=step, created=created, dropped=dropped, flow_steps=flow_steps)
    sums = [torch.zeros(energies.numel(), dtype=energies.dtype, device=device) for _ in range(2)]
    if records:
        position, energy, age, sample = records[0] if len(records) == 1 else map(torch.cat, zip(*records))
        cell, weight = weigh(position, energy, age, sample)
        sums = [total.index_add(0, cell, part) for total, part in zip(sums, (weight * energy[:, 0], weight))]
    return model.surface(*sums, len(energies))


def run_masked(model, energies, hidden_dtype, move=None):
    """C rows and T steps whatever happens, with masks for what is not there: nothing depends on the host, so that one graph
    can be compiled of it. Survivors and then their children are packed into the first rows after every step."""
    lattice, device = model.lattice, energies.device
    move = move or model.move
    capacity, all_cells = lattice.capacity, energies.numel()
    position, energy, sample = (F.pad(part, [0, 0] * (part.dim() - 1) + [0, capacity - all_cells])
                                for part in model.start(energies))
    hidden = [torch.zeros(capacity, model.sizes.carrier_hidden, dtype=hidden_dtype, device=device)
              for _ in range(model.sizes.carrier_layers)]
    row = torch.arange(capacity, device=device)
    age = torch.zeros(capacity, dtype=torch.int32, device=device)
    count = created = torch.full((), all_cells, device=device)
    completed = best = stall = torch.zeros((), dtype=torch.int64, device=device)
    stopped = torch.zeros((), dtype=torch.bool, device=device)
    weighted, weights = (torch.zeros(all_cells, dtype=energies.dtype, device=device) for _ in range(2))

    def record(which, position, energy, age):
        cell, weight = model.weigh(position, energy, age, sample)
        weight = torch.where(which, weight, 0)
        cell = torch.where(which, cell, 0)
        return (weighted.index_add(0, cell, weight * energy[:, 0]), weights.index_add(0, cell, weight))

    for step in range(lattice.most_steps):
        if lattice.early_stop and step >= lattice.stop_min_steps:
            of = all_cells if lattice.stop_of_initial else created
            enough = completed.double() / of >= lattice.stop_threshold
            stall = torch.where(completed > best, 0, stall + 1)
            best = torch.maximum(best, completed)
            stopped = stopped | enough | (stall >= lattice.stop_patience)
        alive = (row < count) & ~stopped
        moved, new_energy, ends, children, *new_hidden = move(position, energy, *hidden)
        new_age = age + 1
        ends = ends | (new_age >= lattice.most_steps)
        recorded, stays = alive & ends, alive & ~ends
        weighted, weights = record(recorded, moved, new_energy, new_age)
        completed = completed + recorded.sum()
        children = torch.where(stays, children, 0)
        staying = stays.sum()
        # The row that each place is filled from; place C is for those that go nowhere.
        places = [torch.where(stays, stays.cumsum(0) - 1, capacity)]
        first_child = children.cumsum(0) - children + staying
        for k in range(lattice.most_spawned):
            places.append(torch.where(children > k, first_child + k, capacity).clamp_max(capacity))
        source = torch.zeros(capacity + 1, dtype=torch.int64, device=device)
        for place in places:
            source = source.scatter(0, place, row)
        source = source[:capacity]
        following = (staying + children.sum()).clamp_max(capacity)
        is_child = row >= staying
        keep = stopped

        def filled(old, new):
            return torch.where(keep, old, new[source])

        position = torch.where(keep, position, torch.where(is_child[:, None], position[source], moved[source]))
        energy = filled(energy, new_energy)
        hidden = [filled(old, new) for old, new in zip(hidden, new_hidden)]
        sample = filled(sample, sample)
        age = torch.where(keep, age, torch.where(is_child, 0, new_age[source]))
        created = created + torch.where(keep, 0, following - staying)
        count = torch.where(keep, count, following)
    if lattice.project_on_stop:
        weighted, weights = record(row < count, position, energy, age)
    return model.surface(weighted, weights, len(energies))


def run_loop(model, energies, hidden_dtype, counts):
    """One flow after another, as a module of its own each time."""
    lattice = model.lattice
    positions, all_energies, samples = model.start(energies)
    flows = [(positions[i:i + 1], all_energies[i:i + 1],
              [torch.zeros(1, model.sizes.carrier_hidden, dtype=hidden_dtype)
               for _ in range(model.sizes.carrier_layers)], 0, samples[i].item()) for i in range(len(positions))]
    cells = {}
    created, completed, flow_steps, step = len(flows), 0, 0, 0
    rule = StopRule(lattice, created)

    def record(position, energy, age, sample):
        cell, weight = model.weigh(position, energy, age, sample)
        cells.setdefault(cell.item(), []).append((weight, energy[:, 0]))

    while step < lattice.most_steps and not rule.stops(step, len(flows), completed, created):
        stay, born = [], []
        for old, energy, hidden, age, sample in flows:
            position, energy, exits, children, *hidden = model.move(old, energy, *hidden)
            flow_steps += 1
            if exits.item() or age + 1 >= lattice.most_steps:
                record(position, energy, age + 1, sample)
                completed += 1
                continue
            stay.append((position, energy, hidden, age + 1, sample))
            born += [(old, energy, hidden, 0, sample)] * children.item()
        born = born[:lattice.capacity - len(stay)]
        created += len(born)
        flows = stay + born
        step += 1
    if lattice.project_on_stop:
        for position, energy, _, age, sample in flows:
            record(position, energy, age, sample)
    counts.update(executed=step, created=created, flow_steps=flow_steps)
    values = [torch.zeros((), dtype=energies.dtype)] * energies.numel()
    for cell, parts in cells.items():
        weight, energy = (torch.cat(part) for part in zip(*parts))
        values[cell] = (weight * energy).sum() / weight.sum()
    return torch.stack(values).view(len(energies), lattice.surface)
