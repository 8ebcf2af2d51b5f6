#!/usr/bin/env python3
"""The polynomial of vectors/exponential.inc where no instruction scales by a power of two: e^r = 1 + r +
r^2 (c0 + c1 r + ... + c5 r^5) for |r| <= ln 2, so that e^x = (e^r 2^m) 2^m with m = round(x / (2 ln 2)).

Fitted for the relative error of e^r (least squares, reweighted towards the largest errors); coefficients are rounded to f32
one by one, and those after it fitted anew to what is left. Prints them, and the largest error of e^x in units of the last
place, evaluated in f32 with fused multiply-adds.

    python3 tools/golden/exp_polynomial.py        # needs numpy
"""
import numpy as np

TERMS = 6
LOG2 = np.log(2.0)


def fit():
    r = LOG2 * 1.001 * np.cos(np.pi * (np.arange(4000) + 0.5) / 4000)
    relative = r**2 / np.exp(r)
    rest = (np.expm1(r) - r) / r**2
    coefficients = []
    for k in range(TERMS):
        powers = np.stack([r**j for j in range(k, TERMS)], axis=1)
        weights = relative.copy()
        for _ in range(100):
            c = np.linalg.lstsq(powers * weights[:, None], rest * weights, rcond=None)[0]
            error = np.abs((powers @ c - rest) * relative)
            weights *= np.sqrt(0.5 + error / error.max())
        coefficients.append(float(np.float32(c[0])))
        rest = rest - coefficients[-1] * r**k
    return coefficients


def fma(a, b, c):
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(np.float32)


def evaluate(coefficients, x):
    f32 = np.float32
    m = np.rint(np.float64(x) * np.float64(f32(0.5 / LOG2))).astype(f32)
    r = fma(m, f32(-float.fromhex("0x1.62e400p+0")), x)
    r = fma(m, f32(-float.fromhex("0x1.7f7d1cp-19")), r)
    q = np.full_like(x, f32(coefficients[-1]))
    for c in reversed(coefficients[:-1]):
        q = fma(q, r, f32(c))
    p = (fma((r * r).astype(f32), q, r) + f32(1)).astype(f32)
    scale = np.ldexp(1.0, m.astype(int))
    return (np.float64(p) * scale * scale).astype(f32)


def main():
    coefficients = fit()
    print(", ".join(f"{np.float32(c):.9g} = {float(np.float32(c)).hex()}" for c in coefficients))
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-104, 88.7, 2000000), rng.uniform(-1.5, 1.5, 2000000)]).astype(np.float32)
    exact = np.exp(np.float64(x))
    spacing = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, -126) - 23)
    error = np.abs(np.float64(evaluate(coefficients, x)) - exact) / spacing
    print(f"largest error {error.max():.2f} ulps at {x[error.argmax()]:.9g}")


if __name__ == "__main__":
    main()
