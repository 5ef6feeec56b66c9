"""nn.rnn, nn.gru and nn.lstm, each sequence by itself."""

import functools

import numpy as np

CURVES = {"hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1), "relu": lambda x, a, b: np.maximum(x, 0),
          "scaledtanh": lambda x, a, b: a * np.tanh(b * x), "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
          "softsign": lambda x, a, b: x / (1 + abs(x)), "tanh": lambda x, a, b: np.tanh(x)}
USUAL = {"nn.rnn": "tanh", "nn.gru": "sigmoid tanh", "nn.lstm": "sigmoid tanh tanh"}


def recurrent_step(name, a, f, x, u, bias, peepholes, h, c):
    """The state after one step; x: the input's product, u: the recurrent weights."""
    x = x + bias[:len(bias) // 2]
    own = bias[len(bias) // 2:]
    if name == "nn.rnn":
        return f[0](x + u @ h + own), c
    if name == "nn.gru":
        update, reset, candidate = np.split(x, 3)
        (uz, ur, uh), (bz, br, bh) = np.split(u, 3), np.split(own, 3)
        z, r = f[0](update + uz @ h + bz), f[0](reset + ur @ h + br)
        seen = r * (uh @ h + bh) if a["linear_before_reset"] else uh @ (r * h) + bh
        return z * h + (1 - z) * f[1](candidate + seen), c
    (i, o, forget, cell), (pi, po, pf) = np.split(x + u @ h + own, 4), np.split(peepholes, 3)
    i = f[0](i + pi * c)
    forget = 1 - i if a["input_forget"] else f[0](forget + pf * c)
    c = forget * c + i * f[1](cell)
    return f[0](o + po * c) * f[2](c), c


def recurrent(name, a, x, w, u, bias, lengths, h0, c0=None, peepholes=None):
    steps, batch, _ = x.shape
    directions, _, hidden = u.shape
    usual = USUAL[name].split()
    chosen = a["activations"].split() or usual * directions
    alpha, beta = (list(a[key]) or [0.0] * len(chosen) for key in ("alpha", "beta"))

    def clipped(v):
        return np.clip(v, -a["clip"], a["clip"]) if a["clip"] else v

    y, last_h = np.zeros((steps, directions, batch, hidden)), h0.copy()
    last_c = np.zeros_like(h0) if c0 is None else c0.copy()
    for d in range(directions):
        own = slice(d * len(usual), (d + 1) * len(usual))
        f = [lambda v, k=k, p=p, q=q, i=i: CURVES[k](v if i == 2 else clipped(v), p, q)
             for i, (k, p, q) in enumerate(zip(chosen[own], alpha[own], beta[own]))]
        holes = np.zeros(3 * hidden) if peepholes is None else peepholes[d]
        for b in range(batch):
            order = range(lengths[b])
            for t in reversed(order) if d or a["direction"] == "reverse" else order:
                last_h[d, b], last_c[d, b] = recurrent_step(name, a, f, w[d] @ x[t, b], u[d], bias[d], holes, last_h[d, b], last_c[d, b])
                y[t, d, b] = last_h[d, b]
    return [y, last_h] if c0 is None else [y, last_h, last_c]


RECURRENT = {name: functools.partial(recurrent, name) for name in USUAL}
