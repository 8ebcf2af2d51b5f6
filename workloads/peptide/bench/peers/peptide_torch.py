"""The recursive peptide transformer in PyTorch: the model of the peptide workload at any configuration.

Written from the workload's specification alone, so that it is a second opinion: workloads/peptide/tests/golden/peptide.py takes golden
values from it and compare_peptide races it. Parameters carry Fullbore's names and PyTorch's layouts ([out, in]).
Axes: B batch, P peak slots, L = P + 1, S sequence slots, H width, V vocabulary, T supervision steps, n latent steps.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

PROTON = 1.00727
TOP_FREQUENCY = 20000  # of the mass embedding: a wavelength of 0.1 Da where the largest mass is 2000
INTENSITY_WIDTH, CHARGE_WIDTH, CHARGES = 32, 16, 7
# Top-level names in the order in which Fullbore declares the parameters.
ORDER = ("precursor_token", "peak_mass", "intensity", "precursor_mass", "charge_embedding", "encoder", "latent_start",
         "answer_start", "token_embedding", "position_embedding", "soft_embedding", "decoder", "head",
         "step_embedding", "gate")


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 256
    heads: int = 4
    encoder_layers: int = 2
    decoder_layers: int = 2
    slots: int = 25
    vocabulary: int = 24
    supervision_steps: int = 8
    latent_steps: int = 4
    max_mass: float = 2000
    dropout: float = 0.0
    step_embedding: bool = False
    gated_answer: bool = False
    precursor_mz: bool = False  # the encoder is fed the precursor's m/z instead of its neutral mass
    hoist: bool = False  # keys and values of the encoder's output are computed once per layer, not per application


class MassEmbedding(nn.Module):
    """m [...] -> [..., width]: sines, then cosines, of 2 pi f m / largest, times a learned scale."""

    def __init__(self, width, largest):
        super().__init__()
        count = width // 2
        exponents = torch.arange(count, dtype=torch.float64) / (count - 1)
        turns_per_dalton = (TOP_FREQUENCY**exponents / largest).to(torch.get_default_dtype())
        self.register_buffer("turns_per_dalton", turns_per_dalton, persistent=False)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, mass):
        turns = mass.unsqueeze(-1) * self.turns_per_dalton
        phase = 2 * math.pi * (turns - turns.round())
        return torch.cat([phase.sin(), phase.cos()], -1) * self.scale


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):  # [B,N,H] -> [B,heads,N,H/heads]
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, context):
        return self.split(self.key(context)), self.split(self.value(context))

    def forward(self, x, keys_values, mask=None):
        """mask: bool, true where a key counts, broadcast to [B,heads,queries,keys]."""
        mixed = F.scaled_dot_product_attention(self.split(self.query(x)), *keys_values, attn_mask=mask,
                                               dropout_p=self.dropout if self.training else 0.0)
        return self.output(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(self.down(self.drop(F.gelu(self.up(x)))))


class EncoderLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention_norm = nn.LayerNorm(c.width)
        self.attention = Attention(c.width, c.heads, c.dropout)
        self.feed_forward_norm = nn.LayerNorm(c.width)
        self.feed_forward = FeedForward(c.width, c.dropout)
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x, mask):
        normed = self.attention_norm(x)
        x = x + self.drop(self.attention(normed, self.attention.keys_values(normed), mask))
        return x + self.drop(self.feed_forward(self.feed_forward_norm(x)))


class DecoderLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.self_norm = nn.LayerNorm(c.width)
        self.self_attention = Attention(c.width, c.heads, c.dropout)
        self.cross_norm = nn.LayerNorm(c.width)
        self.cross_attention = Attention(c.width, c.heads, c.dropout)
        self.feed_forward_norm = nn.LayerNorm(c.width)
        self.feed_forward = FeedForward(c.width, c.dropout)
        self.drop = nn.Dropout(c.dropout)

    def forward(self, x, keys_values=None, context=None, mask=None):
        """The context's keys and values, or the context to compute them from."""
        if keys_values is None:
            keys_values = self.cross_attention.keys_values(context)
        normed = self.self_norm(x)
        x = x + self.drop(self.self_attention(normed, self.self_attention.keys_values(normed)))
        x = x + self.drop(self.cross_attention(self.cross_norm(x), keys_values, mask))
        return x + self.drop(self.feed_forward(self.feed_forward_norm(x)))


class Stack(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.final_norm = nn.LayerNorm(width)


class Intensity(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(1, INTENSITY_WIDTH), nn.Linear(INTENSITY_WIDTH, INTENSITY_WIDTH)

    def forward(self, intensity):
        return self.down(F.relu(self.up((intensity + 1e-8).log().unsqueeze(-1))))


class Peptide(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = c = config
        self.precursor_token = nn.Parameter(0.02 * torch.randn(c.width))
        self.peak_mass = MassEmbedding(c.width - INTENSITY_WIDTH, c.max_mass)
        self.intensity = Intensity()
        self.precursor_mass = MassEmbedding(c.width - CHARGE_WIDTH, 1.5 * c.max_mass)
        self.charge_embedding = nn.Embedding(CHARGES, CHARGE_WIDTH)
        self.encoder = Stack([EncoderLayer(c) for _ in range(c.encoder_layers)], c.width)
        self.latent_start = nn.Parameter(0.02 * torch.randn(c.slots, c.width))
        self.answer_start = nn.Parameter(torch.zeros(c.slots, c.vocabulary))
        self.token_embedding = nn.Embedding(c.vocabulary, c.width)  # counted and stored, never used
        self.position_embedding = nn.Embedding(c.slots, c.width)
        self.soft_embedding = nn.Linear(c.vocabulary, c.width)
        self.decoder = Stack([DecoderLayer(c) for _ in range(c.decoder_layers)], c.width)
        self.head = nn.Linear(c.width, c.vocabulary)
        if c.step_embedding:
            self.step_embedding = nn.Embedding(c.supervision_steps, c.width)
        if c.gated_answer:
            self.gate = nn.Linear(c.width, c.vocabulary)
            nn.init.zeros_(self.gate.weight)
            nn.init.constant_(self.gate.bias, -2.0)

    def ordered_parameters(self):
        """(name, parameter) pairs in Fullbore's order."""
        return sorted(self.named_parameters(), key=lambda pair: ORDER.index(pair[0].split(".")[0]))

    def encode(self, mz, intensity, peak_mask, precursor_mass, precursor_charge):
        """[B,P], [B,P], bool [B,P], [B], i64 [B] -> [B,L,H] and the mask of its keys, [B,1,1,L]."""
        if self.config.precursor_mz:
            precursor_mass = precursor_mass / precursor_charge + PROTON
        precursor = self.precursor_token + torch.cat(
            [self.precursor_mass(precursor_mass), self.charge_embedding(precursor_charge)], -1)
        peaks = torch.cat([self.peak_mass(mz), self.intensity(intensity)], -1)
        x = torch.cat([precursor.unsqueeze(1), peaks], 1)
        mask = F.pad(peak_mask, (1, 0), value=True)[:, None, None, :]
        for layer in self.encoder.layers:
            x = layer(x, mask)
        return self.encoder.final_norm(x), mask

    def forward(self, mz, intensity, peak_mask, precursor_mass, precursor_charge):
        """-> logits [T,B,S,V] and the last latent [B,S,H]."""
        c, layers = self.config, self.decoder.layers
        encoded, mask = self.encode(mz, intensity, peak_mask, precursor_mass, precursor_charge)
        hoisted = [layer.cross_attention.keys_values(encoded) if c.hoist else None for layer in layers]
        batch = mz.shape[0]
        answer = self.answer_start.expand(batch, -1, -1)
        latent = self.latent_start.expand(batch, -1, -1)
        answers = []
        for step in range(c.supervision_steps):
            base = self.soft_embedding(answer.softmax(-1)) + self.position_embedding.weight
            if c.step_embedding:
                base = base + self.step_embedding.weight[step]
            for _ in range(c.latent_steps):
                h = base + latent
                for layer, keys_values in zip(layers, hoisted):
                    h = layer(h, keys_values, encoded, mask)
                latent = self.decoder.final_norm(h) + latent
            h = base + latent
            for layer in layers:
                h = layer(h, context=h)
            h = self.decoder.final_norm(h)
            candidate = self.head(h)
            if c.gated_answer:
                gate = self.gate(h).sigmoid()
                candidate = (1 - gate) * answer + gate * candidate
            answer = candidate
            answers.append(answer)
        return torch.stack(answers), latent
