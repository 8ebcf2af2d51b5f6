"""RWKV-6 beside Mamba-2 in PyTorch, written from the papers (arXiv:2404.05892, 2405.21060): the model of workloads/hybrid
with gains as its fusion. Parameters have Fullbore's names, so state dictionaries are exchanged as they are.

Recurrences are chunked, as fast as PyTorch documents how to do it: products of matrices within chunks of 64 tokens, one
step from chunk to chunk; or, with recurrent=True, token by token, as the equations are written.
"""
import torch
import torch.nn.functional as F
from torch import nn

CHUNK, SUB_CHUNK = 64, 16
LEAST_LOG_DECAY = -20.0


class Weight(nn.Module):
    """A parameter `weight`, and on demand `bias`."""

    def __init__(self, *shape, bias=0):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(*shape))
        if bias:
            self.bias = nn.Parameter(torch.zeros(bias))

    def forward(self, x):
        return F.linear(x, self.weight)


class Named(nn.Module):
    """Parameters of their own names and shapes."""

    def __init__(self, **shapes):
        super().__init__()
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(*shape)))


def rms_norm(x, weight, epsilon=1e-6):
    x = x.float()
    return weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon))


def in_chunks(x, chunk):  # [B,T,H,D] -> [B,H,n,chunk,D]; T a multiple of chunk
    batch, length, heads, depth = x.shape
    return x.view(batch, length // chunk, chunk, heads, depth).permute(0, 3, 1, 2, 4)


def padded(x, chunk):  # [B,T,...] -> T a multiple of chunk
    missing = -x.shape[1] % chunk
    return F.pad(x, [0, 0] * (x.dim() - 2) + [0, missing]) if missing else x


def within_chunks(r, k, inclusive, exclusive, bonus):
    """A [B,H,n,C,C] of which A v is what tokens of a chunk have of those before them; every exponent is <= 0."""
    rows = []
    count = r.shape[-2] // SUB_CHUNK
    before = torch.ones(SUB_CHUNK, SUB_CHUNK, dtype=torch.bool, device=r.device).tril(-1)
    for i in range(count):
        own = slice(i * SUB_CHUNK, (i + 1) * SUB_CHUNK)
        parts = []
        if i > 0:
            anchor = exclusive[..., i * SUB_CHUNK:i * SUB_CHUNK + 1, :]
            left = r[..., own, :] * torch.exp(exclusive[..., own, :] - anchor)
            right = k[..., :i * SUB_CHUNK, :] * torch.exp(anchor - inclusive[..., :i * SUB_CHUNK, :])
            parts.append(left @ right.transpose(-1, -2))
        exponents = exclusive[..., own, None, :] - inclusive[..., None, own, :]
        pairs = torch.exp(exponents.masked_fill(~before[..., None], float("-inf")))
        parts.append(torch.einsum("...ik,...jk,...ijk->...ij", r[..., own, :].float(), k[..., own, :].float(), pairs)
                     + torch.diag_embed((r[..., own, :] * bonus * k[..., own, :]).sum(-1)))
        parts.append(r.new_zeros(*r.shape[:-2], SUB_CHUNK, r.shape[-2] - (i + 1) * SUB_CHUNK))
        rows.append(torch.cat([part.float() for part in parts], -1))
    return torch.cat(rows, -2)


def wkv6(r, k, v, log_decay, bonus):
    """r, k, log_decay [B,T,H,K], v [B,T,H,V], bonus [H,K] -> [B,T,H,V]."""
    batch, length, heads, depth = v.shape
    r, k, v, g = (in_chunks(padded(x, CHUNK), CHUNK) for x in (r, k, v, log_decay.clamp(min=LEAST_LOG_DECAY)))
    inclusive = g.float().cumsum(-2)
    exclusive = inclusive - g
    y = within_chunks(r, k, inclusive, exclusive, bonus[:, None, None]) @ v.float()
    last = inclusive[..., -1:, :]
    reads = r * torch.exp(exclusive)
    added = (k * torch.exp(last - inclusive)).transpose(-1, -2) @ v.to(k.dtype)
    kept = torch.exp(last).transpose(-1, -2)
    state = torch.zeros(batch, heads, k.shape[-1], depth, device=v.device)
    carried = []
    for chunk in range(v.shape[2]):
        carried.append(reads[:, :, chunk] @ state)
        state = kept[:, :, chunk] * state + added[:, :, chunk]
    y = y + torch.stack(carried, 2)
    return y.permute(0, 2, 3, 1, 4).reshape(batch, -1, heads, depth)[:, :length]


def wkv6_by_tokens(r, k, v, log_decay, bonus):
    state = torch.zeros(v.shape[0], v.shape[2], k.shape[-1], v.shape[-1], device=v.device)
    decay, y = torch.exp(log_decay.clamp(min=LEAST_LOG_DECAY)), []
    for t in range(v.shape[1]):
        pair = k[:, t, :, :, None] * v[:, t, :, None, :]
        y.append((r[:, t, :, :, None] * (state + bonus[..., None] * pair)).sum(-2))
        state = decay[:, t, :, :, None] * state + pair
    return torch.stack(y, 1)


def ssd(x, dt, a, b, c, skip):
    """x [B,T,H,P], dt [B,T,H], a, skip [H], b, c [B,T,N] -> [B,T,H,P]."""
    batch, length, heads, depth = x.shape
    spread = x * dt[..., None]
    log_decay = (dt * a).clamp(min=LEAST_LOG_DECAY)[..., None]
    spread, log_decay = (in_chunks(padded(each, CHUNK), CHUNK) for each in (spread, log_decay))
    b, c = (in_chunks(padded(each[:, :, None], CHUNK), CHUNK) for each in (b, c))  # heads share them
    sums = log_decay.float().cumsum(-2)  # [B,H,n,C,1]
    allowed = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=x.device).tril()
    decays = torch.exp((sums - sums.transpose(-1, -2)).masked_fill(~allowed, float("-inf")))
    y = ((c @ b.transpose(-1, -2)) * decays) @ spread.float()
    last = sums[..., -1:, :]
    added = (b * torch.exp(last - sums)).transpose(-1, -2) @ spread.float()
    state = torch.zeros(batch, heads, b.shape[-1], depth, device=x.device)
    carried = []
    for chunk in range(spread.shape[2]):
        carried.append(torch.exp(sums[:, :, chunk]) * (c[:, :, chunk] @ state))
        state = torch.exp(last[:, :, chunk]) * state + added[:, :, chunk]
    y = (y + torch.stack(carried, 2)).permute(0, 2, 3, 1, 4).reshape(batch, -1, heads, depth)[:, :length]
    return y + skip[:, None] * x


def ssd_by_tokens(x, dt, a, b, c, skip):
    state = torch.zeros(x.shape[0], x.shape[2], b.shape[-1], x.shape[-1], device=x.device)
    decay, y = torch.exp((dt * a).clamp(min=LEAST_LOG_DECAY)), []
    for t in range(x.shape[1]):
        state = decay[:, t, :, None, None] * state \
            + b[:, t, None, :, None] * (dt[:, t, :, None] * x[:, t])[:, :, None, :]
        y.append((c[:, t, None, :, None] * state).sum(-2) + skip[:, None] * x[:, t])
    return torch.stack(y, 1)


class TimeMix(nn.Module):
    """RWKV-6 with decays that depend on the input."""

    def __init__(self, o):
        super().__init__()
        width, mix, decay = o["width"], o["mix_rank"], o["decay_rank"]
        self.heads, self.recurrence = o["heads"], wkv6_by_tokens if o["recurrent"] else wkv6
        self.mix = Named(x=(width,), w=(width,), k=(width,), v=(width,), r=(width,), g=(width,),
                         down=(width, 5 * mix), up=(5, mix, width))
        self.decay = Named(base=(width,), down=(width, decay), up=(decay, width))
        self.bonus = nn.Parameter(torch.zeros(self.heads, width // self.heads))
        for name in ("receptance", "key", "value", "gate", "output"):
            setattr(self, name, Weight(width, width))
        self.norm = Weight(width, bias=width)

    def forward(self, x):
        batch, length, width = x.shape
        heads = (batch, length, self.heads, width // self.heads)
        delta = F.pad(x, (0, 0, 1, -1)) - x
        low = torch.tanh((x + delta * self.mix.x) @ self.mix.down).view(batch * length, 5, -1)
        w, k, v, r, g = torch.bmm(low.transpose(0, 1), self.mix.up).view(5, batch, length, width).unbind(0)
        def mixed(share, more):
            return x + delta * (share + more)
        decay = -torch.exp((torch.tanh(mixed(self.mix.w, w) @ self.decay.down) @ self.decay.up).float() + self.decay.base)
        y = self.recurrence(self.receptance(mixed(self.mix.r, r)).view(heads), self.key(mixed(self.mix.k, k)).view(heads),
                            self.value(mixed(self.mix.v, v)).view(heads), decay.view(heads), self.bonus)
        y = F.layer_norm(y.float(), (heads[-1],), eps=64e-5).reshape(batch, length, width)
        gate = F.silu(self.gate(mixed(self.mix.g, g)))
        return self.output((y * self.norm.weight + self.norm.bias) * gate)


class StaticMix(nn.Module):
    """The same recurrence with decays of its own, norms and a hidden layer."""

    def __init__(self, o):
        super().__init__()
        width = o["width"]
        self.heads, self.recurrence = o["heads"], wkv6_by_tokens if o["recurrent"] else wkv6
        self.norm, self.hidden_norm = Weight(width, bias=width), Weight(width, bias=width)
        self.decay = nn.Parameter(torch.zeros(self.heads, width // self.heads))
        self.bonus = nn.Parameter(torch.zeros(self.heads, width // self.heads))
        for name in ("receptance", "key", "value", "output"):
            setattr(self, name, Weight(width, width))
        self.up, self.down = Weight(4 * width, width), Weight(width, 4 * width)

    def forward(self, x):
        batch, length, width = x.shape
        heads = (batch, length, self.heads, width // self.heads)
        z = F.layer_norm(x, (width,), self.norm.weight, self.norm.bias)
        r = self.receptance(z).view(heads)
        decay = (-torch.exp(self.decay)).expand(heads)
        y = self.recurrence(r, self.key(z).view(heads), self.value(z).view(heads), decay, self.bonus)
        h = x + self.output((torch.sigmoid(r) * y).reshape(batch, length, width))
        hidden = F.relu(self.up(F.layer_norm(h, (width,), self.hidden_norm.weight, self.hidden_norm.bias)))
        return h + self.down(hidden * hidden)


class Mamba2(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.inner, self.heads, self.states = o["inner"], o["mamba_heads"], o["states"]
        self.recurrence = ssd_by_tokens if o["recurrent"] else ssd
        channels = self.inner + 2 * self.states
        self.input = Weight(self.inner + channels + self.heads, o["width"])
        self.convolution = Weight(channels, o["convolution"], bias=channels)
        self.step_bias, self.decay, self.skip = (nn.Parameter(torch.zeros(self.heads)) for _ in range(3))
        self.norm, self.output = Weight(self.inner), Weight(o["width"], self.inner)

    def forward(self, x):
        batch, length, _ = x.shape
        z, xbc, dt = self.input(x).split((self.inner, self.inner + 2 * self.states, self.heads), -1)
        kernel = self.convolution.weight
        xbc = F.silu(F.conv1d(F.pad(xbc.transpose(1, 2), (kernel.shape[1] - 1, 0)), kernel[:, None],
                              self.convolution.bias, groups=kernel.shape[0])).transpose(1, 2)
        x, b, c = xbc.split((self.inner, self.states, self.states), -1)
        y = self.recurrence(x.view(batch, length, self.heads, -1), F.softplus(dt.float() + self.step_bias),
                            -torch.exp(self.decay), b, c, self.skip)
        return self.output(rms_norm(y.reshape(batch, length, self.inner) * F.silu(z), self.norm.weight, 1e-5))


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        width = o["width"]
        self.rwkv = TimeMix(o) if o["branch"] == "finch" else StaticMix(o)
        self.mamba = Mamba2(o)
        for name in ("norm", "rwkv_norm", "mamba_norm", "hidden_norm"):
            setattr(self, name, Weight(width))
        self.rwkv_gain, self.mamba_gain = (nn.Parameter(torch.zeros(width)) for _ in range(2))
        self.up, self.down = Weight(o["hidden"], width), Weight(width, o["hidden"])

    def forward(self, x):  # [B,T,C]
        n = rms_norm(x, self.norm.weight)
        x = x + self.rwkv_gain * rms_norm(self.rwkv(n), self.rwkv_norm.weight) \
            + self.mamba_gain * rms_norm(self.mamba(n), self.mamba_norm.weight)
        return x + self.down(F.gelu(self.up(rms_norm(x, self.hidden_norm.weight))))


class Hybrid(nn.Module):
    def __init__(self, vocabulary, o):
        super().__init__()
        self.embed = Weight(vocabulary, o["width"])
        self.layers = nn.ModuleList(Block(o) for _ in range(o["layers"]))
        self.final_norm = Weight(o["width"])

    def fill(self, tensors):
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(torch.from_numpy(tensors[name].copy()))

    def forward(self, tokens, targets):  # i64 [B,T] both -> mean loss
        x = F.embedding(tokens, self.embed.weight)
        for layer in self.layers:
            x = layer(x)
        logits = self.embed(rms_norm(x, self.final_norm.weight))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.reshape(-1))
