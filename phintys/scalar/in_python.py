"""Why compiled functions compute some elementwise functions in Python: see `Op.in_python`."""

from __future__ import annotations

_COMPLEX = "of complex numbers: NumPy or SciPy computes it"
_INTEGERS = "of integers: NumPy computes it"

#: reason -> names of rows
_ROWS = {
    _COMPLEX: """
        sign exp2 expm1 log1p log1mexp sigmoid softplus xlogy xlog1py exp1 expi spence gamma psi erf
        sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh
    """,
    _INTEGERS: "fmod gcd lcm",
    "of integers and of complex numbers: NumPy computes it": "pow",
    "of float16: NumPy computes it": "nextafter",
    "a series of many terms, by NumPy": """
        gammainc_der gammainc_der2 betainc_der_a betainc_der_b betainc_der_aa betainc_der_ab
        betainc_der_bb hyp2f1_der_a hyp2f1_der_c hyp2f1_der_aa hyp2f1_der_ab hyp2f1_der_ac
        hyp2f1_der_cc
    """,
}
#: name of a row -> reason
REASONS = {name: reason for reason, names in _ROWS.items() for name in names.split()}
