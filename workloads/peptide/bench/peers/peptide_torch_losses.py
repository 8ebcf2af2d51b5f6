"""The losses of the peptide workload in PyTorch; see peptide_torch.py. Masses in Da, all arithmetic in the inputs' type.

What the specification leaves open is settled here:
- `residues`: of targets with SOS and EOS, slots 1 .. S-2; of bare targets all slots. A masked token has mass 0.
- `fragments` (coverage, cosine): b and y at cleavages between two real residues, singly and doubly charged; a cleavage
  is real where the residue after it is. EOS's slot keeps its expected mass, which is near 0 once that slot is learned.
- `cosine_loss`: every predicted ion has intensity 1; both spectra are sums of Gaussians, of one sigma.
"""
import functools

import torch
import torch.nn.functional as F

MASSES = (0, 0, 0, 0, 71.03711, 156.10111, 114.04293, 115.02694, 103.00919, 129.04259, 128.05858, 57.02146, 137.05891,
          113.08406, 113.08406, 128.09496, 131.04049, 147.06841, 97.05276, 87.03203, 101.04768, 186.07931, 163.06333,
          99.06841)
WATER, CARBON_MONOXIDE, PROTON = 18.01056, 27.99491, 1.00727
WINDOW, TEMPERATURE, HUBER_DELTA = 0.5, 0.1, 0.2  # of the spectrum-matching term
MEAN_RESIDUE, PRECURSOR_BETA = 110.0, 0.1


def iteration_weights(kind, steps):
    t = torch.arange(steps, dtype=torch.float64)
    weights = {"linear": t + 1, "uniform": torch.ones_like(t), "exponential": (t / 2).exp()}[kind]
    return weights / weights.sum()


def cross_entropies(logits, targets, target_mask, smoothing=0.0):
    """Logits [T,B,S,V] -> [T]: of each step the mean over all real slots of the batch."""
    log_p = logits.log_softmax(-1)
    nll = -log_p.gather(-1, targets.expand(logits.shape[:-1]).unsqueeze(-1)).squeeze(-1)
    terms = (1 - smoothing) * nll - smoothing * log_p.mean(-1)
    mask = target_mask.to(terms.dtype)
    return (terms * mask).sum((1, 2)) / mask.sum().clamp(min=1)


@functools.lru_cache
def masses_of_tokens(dtype, device):
    """On the device once: a copy to it can be no part of a captured step."""
    return torch.tensor(MASSES, dtype=dtype, device=device)


def expected_masses(logits, target_mask=None):
    """[B,S,V] -> [B,S]; 0 where a mask is given and false."""
    expected = logits.softmax(-1) @ masses_of_tokens(logits.dtype, logits.device)
    return expected if target_mask is None else expected * target_mask


def residues(expected, has_ends):
    return expected[:, 1:-1] if has_ends else expected


def ladders(residue_masses):
    """[B,R] -> b and y of every cleavage and of the whole, [B,R] each: y[r] is of the suffix that starts at r."""
    b = residue_masses.cumsum(1) + PROTON
    y = residue_masses.flip(1).cumsum(1).flip(1) + WATER + PROTON
    return b, y


def spectrum_loss(logits, target_mask, mz, intensity, peak_mask, huber=True, mask_padding=True, has_ends=True):
    """The window softmin term over b, y and a ions; 0 if no predicted ion has a peak in its window."""
    masses = residues(expected_masses(logits, target_mask if mask_padding else None), has_ends)
    b, y = (ladder[:, :-1] for ladder in ladders(masses))
    ions = torch.cat([b, y, b - CARBON_MONOXIDE], 1)
    distance = (ions.unsqueeze(2) - mz.unsqueeze(1)).abs()  # [B,J,P]
    candidate = peak_mask.unsqueeze(1) & (distance < WINDOW)
    share = torch.where(candidate, -distance / TEMPERATURE, -1e4).softmax(-1) * candidate
    penalty = distance.clamp(max=WINDOW)
    if huber:
        penalty = torch.where(penalty <= HUBER_DELTA, penalty**2 / 2, HUBER_DELTA * (penalty - HUBER_DELTA / 2))
    mismatch = (share * penalty).sum(-1)
    weight = (share * intensity.unsqueeze(1)).sum(-1)
    return (mismatch * weight).sum() / candidate.any(-1).sum().clamp(min=1)


def fragments(logits, target_mask, has_ends=True):
    """m/z [B,J] of b, y, b++, y++ and whether each is real."""
    masses = residues(expected_masses(logits, target_mask), has_ends)
    # The residue of a slot is real if the next slot is: there at the latest stands EOS.
    real = target_mask[:, 2:] if has_ends else target_mask
    b, y = (ladder[:, part] for ladder, part in zip(ladders(masses), (slice(None, -1), slice(1, None))))
    doubly = [(ladder + PROTON) / 2 for ladder in (b, y)]
    return torch.cat([b, y, *doubly], 1), real[:, 1:].repeat(1, 4)


def coverage_loss(logits, target_mask, mz, intensity, peak_mask, sigma=0.2, has_ends=True):
    ions, real = fragments(logits, target_mask, has_ends)
    closeness = torch.exp(-((mz.unsqueeze(1) - ions.unsqueeze(2)) / sigma)**2 / 2)
    covered = torch.where(real.unsqueeze(2), closeness, 0).amax(1)  # [B,P]
    weight = intensity * peak_mask
    weight = weight / weight.sum(1, keepdim=True).clamp(min=1e-12)
    return 1 - (weight * covered).sum(1).mean()


def overlap(x, x_weight, y, y_weight, sigma):
    """Inner products [B] of sums of Gaussians, without a grid and up to a factor: two at distance d overlap by
    exp(-(d / sigma)^2 / 4). On a grid of 0.1 Da, that is sigma / 2, sums equal integrals to 1e-16."""
    distance = x.unsqueeze(2) - y.unsqueeze(1)
    return torch.einsum("bj,bk,bjk->b", x_weight, y_weight, torch.exp(-(distance / sigma)**2 / 4))


def cosine_loss(logits, target_mask, mz, intensity, peak_mask, sigma=0.2, has_ends=True):
    """1 - cos of the rendered spectra, mean over the batch; 1 where one of them is empty."""
    ions, real = fragments(logits, target_mask, has_ends)
    unit, weight = real.to(ions.dtype), intensity * peak_mask
    squares = overlap(ions, unit, ions, unit, sigma) * overlap(mz, weight, mz, weight, sigma)
    cosine = overlap(ions, unit, mz, weight, sigma) / squares.clamp(min=1e-24).sqrt()
    return (1 - cosine).mean()


def cosine_loss_on_grid(logits, target_mask, mz, intensity, peak_mask, sigma=0.2, has_ends=True, bin_width=0.1,
                        largest=2000):
    """The same by its definition, 20,000 bins; the tests of cosine_loss."""
    grid = torch.arange(round(largest / bin_width), dtype=mz.dtype) * bin_width

    def render(at, weight):
        return torch.einsum("bj,bjg->bg", weight, torch.exp(-((grid - at.unsqueeze(2)) / sigma)**2 / 2))

    ions, real = fragments(logits, target_mask, has_ends)
    predicted, observed = render(ions, real.to(ions.dtype)), render(mz, intensity * peak_mask)
    return (1 - F.cosine_similarity(predicted, observed, dim=1, eps=1e-12)).mean()


def precursor_loss(logits, target_mask, precursor_mass, form="smooth_l1"):
    """Mean over the batch, of the expected mass beside the precursor's; `smooth_l1` in residues, or `log_ppm`."""
    error = expected_masses(logits, target_mask).sum(1) + WATER - precursor_mass
    if form == "smooth_l1":
        scaled = error / MEAN_RESIDUE
        return F.smooth_l1_loss(scaled, torch.zeros_like(scaled), beta=PRECURSOR_BETA)
    return torch.log1p(error.abs() / precursor_mass * 1e6 / 1e5).mean()


def total_loss(logits, batch, weights, smoothing=0.0, spectrum_weight=0.0):
    """What the reference trains on, of logits [T,B,S,V]; `weights` [T] of iteration_weights."""
    total = (weights * cross_entropies(logits, batch["targets"], batch["target_mask"], smoothing)).sum()
    return total + spectrum_weight * spectrum_loss(
        logits[-1], batch["target_mask"], batch["mz"], batch["intensity"], batch["peak_mask"])
