"""What the peers' jobs in JAX share: an update of the parameters."""
import jax.numpy as jnp


def adamw(parameters, gradients, first, second, count, rate, o, decays=lambda gradient: True):
    """AdamW (Loshchilov and Hutter 2019) after clipping by the global norm: parameters and both moments, by name. `count`
    from 1 on; `decays`: of a parameter's gradient."""
    if o["clip"] > 0:
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in gradients.values()))
        scale = jnp.minimum(1.0, o["clip"] / (norm + 1e-6))
        gradients = {name: g * scale for name, g in gradients.items()}
    following = [{}, {}, {}]
    for name, gradient in gradients.items():
        m = o["beta1"] * first[name] + (1 - o["beta1"]) * gradient
        v = o["beta2"] * second[name] + (1 - o["beta2"]) * gradient * gradient
        step = (m / (1 - o["beta1"] ** count)) / (jnp.sqrt(v / (1 - o["beta2"] ** count)) + o["epsilon"])
        decay = o["decay"] if decays(gradient) else 0.0
        following[0][name] = parameters[name] - rate * (step + decay * parameters[name])
        following[1][name], following[2][name] = m, v
    return following
