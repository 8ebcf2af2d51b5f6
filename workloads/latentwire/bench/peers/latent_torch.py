"""The model of a LatentWire job in PyTorch, by section 2 of its specification: bytes to slots, slots to prefixes, and the
frozen language models as functions of embeddings, all tokens of an answer in one pass.

Parameters have Fullbore's names, with `_` for the dots within a name that PyTorch would not take.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


def heads_of(x, heads):  # [B,T,C] -> [B,H,T,C/H]
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def joined(x):  # [B,H,T,D] -> [B,T,HD]
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def xavier(module):
    """As the specification has it: of each matrix by its own inputs and outputs, of queries, keys and values too."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            for block in part.weight.data.split(getattr(part, "block", part.out_features)):
                nn.init.xavier_uniform_(block)
            nn.init.zeros_(part.bias)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "projection": nn.Linear(width, width)})
        self.attention["qkv"].block = width
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        q, k, v = (heads_of(part, self.heads) for part in self.attention["qkv"](self.attention_norm(x)).chunk(3, 2))
        x = x + self.attention["projection"](joined(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Encoder(nn.Module):
    def __init__(self, o):
        super().__init__()
        width = o["latent_width"]
        self.bytes = nn.Embedding(256, width)
        self.layers = nn.ModuleList(EncoderLayer(width, o["latent_heads"]) for _ in range(o["latent_layers"]))
        self.norm = nn.LayerNorm(width)
        place = torch.arange(o["bytes"])[:, None]
        wave = place / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("places", torch.stack([wave.sin(), wave.cos()], 2).reshape(o["bytes"], width), False)

    def forward(self, tokens, mask):
        x = self.bytes(tokens) + self.places
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Pooler(nn.Module):
    def __init__(self, o):
        super().__init__()
        width = o["latent_width"]
        self.heads = o["latent_heads"]
        self.queries = nn.Parameter(torch.randn(o["slots"], width) / math.sqrt(width))
        for name in ("query", "key", "value", "projection", "gate"):
            setattr(self, name, nn.Linear(width, width))
        self.gate_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, mask):
        batch = x.shape[0]
        q = heads_of(self.query(self.queries)[None], self.heads).expand(batch, -1, -1, -1)
        seen = F.scaled_dot_product_attention(q, heads_of(self.key(x), self.heads), heads_of(self.value(x), self.heads),
                                              attn_mask=mask)
        o = self.projection(joined(seen)) + self.queries
        g = torch.sigmoid(self.gate(self.gate_norm(o)))
        o = g * o + (1 - g) * self.queries
        return o + self.down(F.gelu(self.up(self.norm(o))))


class Adapter(nn.Module):
    def __init__(self, o, width):
        super().__init__()
        inputs = o["latent_width"]
        self.code = nn.Parameter(0.02 * torch.randn(o["slots"], inputs))
        self.norm = nn.LayerNorm(inputs)
        self.first, self.middle = nn.Linear(inputs, 2 * inputs), nn.Linear(2 * inputs, 2 * inputs)
        self.output, self.skip = nn.Linear(2 * inputs, width), nn.Linear(inputs, width)
        self.film_scale, self.film_shift = nn.Linear(inputs, width), nn.Linear(inputs, width)
        self.output_norm = nn.LayerNorm(width)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, slots):
        z = slots + self.code
        x = self.norm(z)
        h = F.gelu(self.middle(F.gelu(self.first(x))))
        y = self.output(h) + self.skip(x)
        y = y * torch.sigmoid(self.film_scale(z)) + self.film_shift(z)
        return self.scale * self.output_norm(y)


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


class LlamaBlock(nn.Module):
    def __init__(self, o):
        super().__init__()
        width, self.heads, self.groups = o["width"], o["heads"], o["groups"]
        keys = width // self.heads * self.groups
        linear = lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False)
        self.attention_norm, self.mlp_norm = RmsNorm(width, o["epsilon"]), RmsNorm(width, o["epsilon"])
        self.attention = nn.ModuleDict({"query": linear(width, width), "key": linear(width, keys),
                                        "value": linear(width, keys), "projection": linear(width, width)})
        self.mlp = nn.ModuleDict({"gate": linear(width, o["hidden"]), "up": linear(width, o["hidden"]),
                                  "down": linear(o["hidden"], width)})

    def forward(self, x, rotary):
        y = self.attention_norm(x)
        q, k, v = (heads_of(self.attention[name](y), heads)
                   for name, heads in (("query", self.heads), ("key", self.groups), ("value", self.groups)))
        seen = F.scaled_dot_product_attention(turned(q, rotary), turned(k, rotary), v, is_causal=True, enable_gqa=True)
        x = x + self.attention["projection"](joined(seen))
        y = self.mlp_norm(x)
        return x + self.mlp["down"](F.silu(self.mlp["gate"](y)) * self.mlp["up"](y))


def turned(x, rotary):
    """Rotary positions on pairs (i, i + half)."""
    cosine, sine = rotary
    half = x.shape[3] // 2
    return x * cosine + torch.cat([-x[..., half:], x[..., :half]], 3) * sine


class Gpt2Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        width, self.heads = o["width"], o["heads"]
        self.attention_norm, self.mlp_norm = (nn.LayerNorm(width, eps=o["epsilon"]) for _ in range(2))
        self.attention = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "projection": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"up": nn.Linear(width, o["hidden"]), "down": nn.Linear(o["hidden"], width)})

    def forward(self, x, _):
        q, k, v = (heads_of(part, self.heads) for part in self.attention["qkv"](self.attention_norm(x)).chunk(3, 2))
        x = x + self.attention["projection"](joined(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        return x + self.mlp["down"](F.gelu(self.mlp["up"](self.mlp_norm(x)), approximate="tanh" if self.tanh else "none"))


class Statistics(nn.Module):
    """Of a receiver's table of embeddings: root mean square of all, mean and deviation of each channel."""

    def __init__(self, width):
        super().__init__()
        self.rms = nn.Parameter(torch.ones(()))
        self.mean, self.deviation = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.ones(width))


class Receiver(nn.Module):
    """A frozen model as a function of embeddings."""

    def __init__(self, o):
        super().__init__()
        self.llama = o["style"] == "llama"
        self.register_buffer("anchor", torch.tensor(o["anchor"], dtype=torch.int64), False)
        self.head_width, self.theta = o["width"] // o["heads"], o["theta"]
        self.token_embedding = nn.Embedding(o["vocabulary"], o["width"])
        if self.llama:
            self.layers = nn.ModuleList(LlamaBlock(o) for _ in range(o["layers"]))
            self.final_norm = RmsNorm(o["width"], o["epsilon"])
        else:
            self.position_embedding = nn.Embedding(o["context"], o["width"])
            self.layers = nn.ModuleList(Gpt2Block(o) for _ in range(o["layers"]))
            self.final_norm = nn.LayerNorm(o["width"], eps=o["epsilon"])
            for layer in self.layers:
                layer.tanh = o["tanh"]
        self.head = None if o["tied"] else nn.Linear(o["width"], o["vocabulary"], bias=False)
        self.statistics = Statistics(o["width"])
        self.requires_grad_(False)

    def forward(self, prefix, answer):  # [B,M,C], i64 [B,T] -> logits [B,T,V]
        batch, slots = prefix.shape[:2]
        parts = [prefix]
        if len(self.anchor):
            parts.append(self.token_embedding(self.anchor)[None].expand(batch, -1, -1).to(prefix.dtype))
        parts.append(self.token_embedding(answer[:, :-1].clamp_min(0)).to(prefix.dtype))
        x = torch.cat(parts, 1)
        rotary = None
        if self.llama:
            exponents = torch.arange(0, self.head_width, 2, device=x.device) / self.head_width
            angles = torch.arange(x.shape[1], device=x.device)[:, None] / self.theta ** exponents
            angles = torch.cat([angles, angles], 1)
            rotary = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        else:
            x = x + self.position_embedding.weight[:x.shape[1]]
        for layer in self.layers:
            x = layer(x, rotary)
        x = self.final_norm(x[:, slots + len(self.anchor) - 1:])
        return F.linear(x, self.token_embedding.weight if self.head is None else self.head.weight)


class Latents(nn.Module):
    """`o["receivers"]`: by name, sizes of each."""

    def __init__(self, o):
        super().__init__()
        self.encoder, self.pooler = Encoder(o), Pooler(o)
        self.scale_weight, self.slots = o["scale_weight"], o["slots"]
        self.adapters = nn.ModuleDict({name: Adapter(o, r["width"]) for name, r in o["receivers"].items()})
        for part in (self.encoder, self.pooler, self.adapters):
            xavier(part)
        self.receivers = nn.ModuleDict({name: Receiver(r) for name, r in o["receivers"].items()})

    def prefix(self, name, wire):
        y = self.adapters[name](wire)
        rms = self.receivers[name].statistics.rms
        return y * (rms / y.float().square().mean((1, 2), keepdim=True).sqrt()).to(y.dtype)

    def forward(self, tokens, lengths, answers):  # i64 [B,N], i64 [B], {name: i64 [B,T], -1 behind the end} -> mean loss
        mask = (torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None])[:, None, None]
        wire = self.pooler(self.encoder(tokens, mask), mask)
        total = 0
        for name, answer in answers.items():
            logits = self.receivers[name](self.prefix(name, wire), answer)
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), answer.reshape(-1), ignore_index=-1)
            total = total + loss / len(answers) + self.scale_weight * (self.adapters[name].scale - 1) ** 2
        return total
