"""What the peers' jobs in PyTorch share: how it documents that steps and updates of parameters are fast, on a processor and
on an NVIDIA card."""
import platform

import numpy
import torch

import peer_job

# Steps before a captured one: kernels are compiled, and the optimiser's state is made, outside of a capture.
STEPS_BEFORE_CAPTURE = 3


def prepare(o):
    """Before anything else: threads, seed, and what of the card's arithmetic is asked for."""
    torch.set_num_threads(o["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(o.get("seed", 1))
    # Products of fp32 in fp32: convolutions are in tf32 unless this is said.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def autocast(o, on=True):
    """Products in bf16 where precision=bf16. Its cache of converted parameters would outlive the capture that made it."""
    kind = torch.device(o["device"]).type
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=on and o["precision"] == "bf16", cache_enabled=not o["capture"])


def compile_settings(o, dynamic=False):
    """Of torch.compile, in the options' mode."""
    mode = None if o["compile_mode"] == "default" else o["compile_mode"]
    return {"mode": mode, "dynamic": dynamic, "fullgraph": True}


def adamw(groups, o):
    """On fused kernels. In a captured step the rate is a tensor of the card."""
    rate = torch.tensor(o["rate"], device=o["device"]) if o["capture"] else o["rate"]
    return torch.optim.AdamW(groups, lr=rate, betas=(o["beta1"], o["beta2"]), eps=o["epsilon"],
                             weight_decay=o["decay"], fused=True, capturable=bool(o["capture"]))


def optimiser(parameters, o):
    """AdamW; matrices decay, vectors do not."""
    return adamw([{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": o["decay"]},
                  {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}], o)


def set_rate(optimiser, step, o):
    """The schedule's."""
    rate = peer_job.learning_rate(o, step)
    for group in optimiser.param_groups:
        if torch.is_tensor(group["lr"]):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def apply(optimiser, loss, parameters, o):
    """Gradients of the loss, clipping of their global norm, AdamW."""
    loss.backward()
    if o["clip"] > 0:
        torch.nn.utils.clip_grad_norm_(parameters, o["clip"], foreach=True)
    optimiser.step()


class Steps:
    """The training steps of a job. On a processor the loss is a number after each. On a card steps are issued without
    waiting for one another, the next batch is copied beside them, and losses are read at the end of a block (finish())."""

    def __init__(self, o, loss, parameters, optimiser, next_batch, after=None):
        """`loss(*batch)`: a scalar; `next_batch()`: numpy arrays or tensors; `after()`: the rest of a step."""
        self.o, self.loss, self.parameters, self.optimiser = o, loss, parameters, optimiser
        self.next_batch, self.after = next_batch, after or (lambda: None)
        self.step = 0
        self.on_card = torch.device(o["device"]).type == "cuda"
        self.ahead = self.graph = None
        self.copies = torch.cuda.Stream() if self.on_card else None
        if o["capture"] and not self.on_card:
            raise SystemExit("capture=1 is for device=cuda")

    def placed(self):
        """The next batch as tensors of the device."""
        parts = [torch.from_numpy(numpy.array(part, order="C")) if isinstance(part, numpy.ndarray) else part
                 for part in self.next_batch()]
        if not self.on_card:
            return parts
        with torch.cuda.stream(self.copies):
            return [part if part.is_cuda else part.pin_memory().to(self.o["device"], non_blocking=True) for part in parts]

    def batch(self):
        """That which was prepared beside the step before."""
        parts = self.ahead or self.placed()
        torch.cuda.current_stream().wait_stream(self.copies)
        for part in parts:
            part.record_stream(torch.cuda.current_stream())
        return parts

    def whole(self, *batch):
        """Loss, gradients, update."""
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(*batch)
        apply(self.optimiser, loss, self.parameters, self.o)
        self.after()
        return loss.detach()

    def train(self):
        set_rate(self.optimiser, self.step, self.o)
        if not self.on_card:
            loss = self.whole(*self.placed()).item()
        else:
            batch = self.batch()
            loss = self.captured(batch) if self.o["capture"] else self.whole(*batch)
            loss = loss.clone()  # the next replay writes where this one did
            self.ahead = self.placed()
        self.step += 1
        return loss

    def captured(self, batch):
        """A step of one CUDA graph, but for the first ones, which run on a stream of their own as a capture asks for."""
        if self.step == 0:
            self.inputs = [part.clone() for part in batch]
            self.side = torch.cuda.Stream()
        else:
            for own, part in zip(self.inputs, batch):
                own.copy_(part, non_blocking=True)
        if self.step < STEPS_BEFORE_CAPTURE:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                loss = self.whole(*self.inputs)
            torch.cuda.current_stream().wait_stream(self.side)
            return loss
        if self.graph is None:
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.loss_of_graph = self.whole(*self.inputs)
        self.graph.replay()
        return self.loss_of_graph

    def finish(self, losses):
        """As numbers, when the steps that they are of are made."""
        return torch.stack(losses).tolist() if self.on_card else losses

    def run(self, count):
        """Losses of so many steps, and the seconds of the shortest."""
        if not self.on_card:
            return peer_job.run_one_by_one(count, self.train)
        marks, losses = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)], []
        marks[0].record()
        for mark in marks[1:]:
            losses.append(self.train())
            mark.record()
        losses = self.finish(losses)
        return losses, min(1e-3 * before.elapsed_time(after) for before, after in zip(marks, marks[1:]))

    def memory(self):
        return {"peak_device_bytes": torch.cuda.max_memory_allocated()} if self.on_card else {}

    def notes(self):
        """What only the first step showed: how many parts of it mode=reduce-overhead could make no CUDA graph of."""
        if not self.on_card or self.o["compile_mode"] != "reduce-overhead":
            return {}
        from torch._dynamo.utils import counters  # is loaded when anything is compiled, and costs eager sides seconds
        return {"parts_without_graphs": counters["inductor"]["cudagraph_skips"]}


def versions(o):
    found = {"torch": torch.__version__, "python": platform.python_version()}
    if torch.device(o["device"]).type == "cuda":
        return {**found, "cuda": torch.version.cuda, "card": torch.cuda.get_device_name()}
    return {**found, "cpu_capability": torch.backends.cpu.get_cpu_capability()}


def flags(o):
    """Those that follow from the options that all jobs share."""
    if torch.device(o["device"]).type != "cuda":
        return ["flush_denormal"]
    found = ["fp32 without tf32", "batches copied beside the steps", "losses read once a block"]
    if o["capture"]:
        found.append("the whole step, its update included, as one captured CUDA graph")
    return found
