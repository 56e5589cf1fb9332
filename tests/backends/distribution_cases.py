"""Parameters of every distribution, for the backends that transpile."""

from __future__ import annotations

import numpy as np

COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])
P = np.array([0.1, 0.2, 0.3, 0.15, 0.25])

#: name -> parameters of several draws
PARAMETERS = {
    "bernoulli": [(0.3,), (1.0,)],
    "beta": [(2.0, 0.5), (0.3, 40.0)],
    "betabinom": [(20, 2.0, 3.0)],
    "binomial": [(5, 0.3), (1000, 0.7), (3, 1.0)],
    "categorical": [(P,)],
    "cauchy": [(1.0, 2.0)],
    "chisquare": [(3.0,)],
    "choice": [(6,), (P * 7,)],
    "dirichlet": [(np.array([1.0, 2.0, 0.5]),)],
    "exponential": [(2.0,)],
    "f": [(3.0, 5.0)],
    "gamma": [(0.5, 2.0), (7.0, 0.1)],
    "gengamma": [(2.0, 3.0, 0.5)],
    "geometric": [(0.2,), (1.0,), (0.999,)],
    "gumbel": [(1.0, 2.0)],
    "halfcauchy": [(1.0, 2.0)],
    "halfnormal": [(1.0, 2.0)],
    "integers": [(-3, 12), (0, 2**62)],
    "invgamma": [(3.0, 2.0)],
    "laplace": [(1.0, 2.0)],
    "logistic": [(1.0, 2.0)],
    "lognormal": [(0.5, 0.7)],
    "multinomial": [(20, P), (3, np.array([0.0, 1.0, 0.0]))],
    "multivariate_normal": [(np.arange(3.0), COV)],
    "nbinom": [(4.5, 0.3)],
    "negative_binomial": [(2.0, 0.9)],
    "normal": [(2.0, 3.0)],
    "pareto": [(3.0, 2.0)],
    "permutation": [(np.arange(4.0),)],
    "poisson": [(0.7,), (300.0,)],
    "power": [(2.5,)],
    "random": [(-1.0, 3.0)],
    "randint": [(-3, 12)],
    "rayleigh": [(2.0,)],
    "standard_cauchy": [()],
    "standard_exponential": [()],
    "standard_gamma": [(1.5,)],
    "standard_normal": [()],
    "standard_t": [(3.0,)],
    "t": [(3.0, 1.0, 2.0)],
    "triangular": [(-1.0, 0.5, 3.0), (0.0, 0.0, 1.0)],
    "truncexpon": [(2.0, 1.0, 0.5)],
    "uniform": [(-1.0, 3.0)],
    "vonmises": [(1.0, 2.0), (3.0, 50.0), (0.0, 0.0)],
    "wald": [(2.0, 3.0)],
    "weibull": [(1.5,)],
}
#: those that JAX lacks: functions with them run in Python
MISSING = {
    "hypergeometric": (10, 20, 7),
    "multivariate_hypergeometric": (np.array([3, 4, 5]), 4),
    "zipf": (2.5,),
}
