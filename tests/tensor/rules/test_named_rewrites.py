"""What stands here for each named rewrite of PyTensor: an expression, and its form in FAST_RUN.

Names are those of elementwise functions, shapes, joins, indexing and reductions.  Where ours is
another form, or another mechanism, a test shows it: see `SHOWN_BY`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from expressions import FUNCTIONS, text_of, variables

import phintys
import phintys.tensor as pt
from phintys.rewriting import rewrite_graph

#: inverse pairs, signs, absolute values
SIGNS = {
    "useless_Neg_of_Neg": ("neg(neg(x))", "x"),
    "useless_Reciprocal_of_Reciprocal": ("reciprocal(reciprocal(x))", "x"),
    "useless_Conj_of_Conj": ("conj(conj(cast(x, 'complex128')))", "Cast{complex128}(x)"),
    "useless_Arcsinh_of_Sinh": ("arcsinh(sinh(x))", "x"),
    "useless_Sinh_of_Arcsinh": ("sinh(arcsinh(x))", "x"),
    "useless_Arctanh_of_Tanh": ("arctanh(tanh(x))", "x"),
    "useless_Tanh_of_Arctanh": (
        "tanh(arctanh(x))",
        "Switch(And_(Ge(x, -1), Le(x, 1)), x, nan)",
    ),
    "useless_Cosh_of_Arccosh": ("cosh(arccosh(x))", "Switch(Ge(x, 1), x, nan)"),
    "local_useless_abs": ("abs(abs(x)) + abs(exp(y))", "Add(Abs(x), Exp(y))"),
    "local_useless_sign": ("sign(sign(x))", "Sign(x)"),
    "local_abs_mul_unit": ("abs(-2.0 * x)", "Mul(2.0, Abs(x))"),
    "local_abs_lift": ("abs(-x)", "Abs(x)"),
    "local_abs_merge": ("abs(x) * abs(y)", "Abs(Mul(x, y))"),
    "local_sign_div": ("x / abs(x)", "Sign(x)"),
    "local_sign_prod": ("sign(x) * abs(x)", "x"),
    "local_sqrt_sqr": ("sqrt(sqr(x))", "Abs(x)"),
}

#: comparisons and switch
CHOICES = {
    "local_useless_switch": ("switch(gt(x, 0), y, y)", "y"),
    "local_mul_switch_sink": ("switch(gt(x, 0), y, 0) * z", "Switch(Gt(x, 0), Mul(y, z), 0.0)"),
    "local_div_switch_sink": (
        "switch(gt(x, 0), y, 0) / z",
        "Switch(Gt(x, 0), True_div(y, z), 0.0)",
    ),
    "local_merge_switch_same_cond": (
        "switch(gt(x, 0), switch(gt(x, 0), x, y), z)",
        "Switch(Gt(x, 0), x, z)",
    ),
    "local_useless_elemwise_comparison": ("lt(s, s) | eq(v.shape[0], -1)", "False"),
}

#: dimshuffles and fills
AXES = {
    "local_dimshuffle_lift": ("exp(M.T).T", "Exp(M)"),
    "local_useless_dimshuffle_makevector": ("stack([s]).dimshuffle()", "s"),
    "local_alloc_sink_dimshuffle": ("alloc(s, n, 3).T", "Alloc(s, 3, n)"),
    "local_dimshuffle_alloc": ("alloc(s, n).dimshuffle('x', 0)", "Alloc(s, 1, n)"),
    "local_alloc_dimshuffle": ("alloc(v.dimshuffle('x', 0), 2, n)", "Alloc(v, 2, n)"),
    "local_second_sink": ("second(v, s) + w", "Add(ExpandDims{axis=0}(s), w)"),
    "local_second_to_alloc": ("second(x, s)", "Alloc(s, Shape_i{0}(x))"),
    "local_elemwise_alloc": ("alloc(s, n) + v", "Add(ExpandDims{axis=0}(s), v)"),
    "local_alloc_unary": ("exp(alloc(s, n))", "Alloc(Exp(ExpandDims{axis=0}(s)), n)"),
    "local_useless_fill": ("second(v, w)", "w"),
    "local_useless_alloc": ("alloc(v, v.shape[0])", "v"),
    "local_merge_alloc": ("alloc(alloc(s, n), 2, n)", "Alloc(s, 2, n)"),
}

RESHAPES = {
    "local_reshape_chain": ("M.reshape((6,)).reshape((2, 3))", "Reshape{2}(M, [2, 3])"),
    "local_useless_reshape": ("M.reshape((M.shape[0], -1))", "M"),
    "local_reshape_to_dimshuffle": ("v.reshape((1, -1))", "ExpandDims{axis=0}(v)"),
    "local_reshape_lift": ("exp(M).reshape((6,))", "Exp(Reshape{1}(M, 6))"),
    "local_fuse_squeeze_reshape": (
        "M.reshape((2, 1, 3)).squeeze(1)",
        "Reshape{2}(M, [2, 3])",
    ),
    "local_fuse_expand_dims_reshape": (
        "M.reshape((6,)).dimshuffle('x', 0)",
        "Reshape{2}(M, [1, 6])",
    ),
    "local_useless_expand_dims_in_reshape": ("v.dimshuffle(0, 'x').reshape((-1,))", "v"),
    "local_join_dims": ("join_dims(N)", "Reshape{1}(N, 6)"),
    "local_split_dims": ("split_dims(M, (M.shape[1],), 1)", "M"),
}

JOINS = {
    "local_join_1": ("Join(0)(v)", "v"),
    "local_join_empty": ("join(0, h, zeros((0,), 'float64'))", "Cast{float64}(h)"),
    "local_join_make_vector": (
        "join(0, stack([s, t]), stack([t]))",
        "MakeVector{dtype='float64'}(s, t, t)",
    ),
    "local_join_subtensors": ("join(0, v[:n], v[n:])", "v"),
    "local_join_of_alloc": ("join(0, alloc(s, 2), alloc(s, 3))", "Alloc(s, 5)"),
    "local_join_to_repeat": ("join(1, C, C, C)", "Alloc(C, Shape_i{0}(C), 3)"),
    "local_reduce_join": ("stack([v, w]).sum(axis=0)", "Add(v, w)"),
    "local_subtensor_of_join": ("join(0, N, 2 * N)[:2]", "N"),
    "local_useless_split": ("split(v, [v.shape[0]])[0]", "v"),
}

READS = {
    "local_subtensor_merge_slice": ("v[1:][2:]", "Subtensor{start:}(v, 3)"),
    "local_subtensor_merge_integer": ("v[1:5][0]", "Subtensor{i}(v, 1)"),
    "local_subtensor_of_batch_dims": (
        "matmul(K, K)[0]",
        "Dot(Subtensor{i}(K, 0), Subtensor{i}(K, 0))",
    ),
    "local_subtensor_of_elemwise": ("exp(M)[0]", "Exp(Subtensor{i}(M, 0))"),
    "local_subtensor_of_reduce": ("M.sum(axis=1)[0]", "Sum{axes=None}(Subtensor{i}(M, 0))"),
    "local_subtensor_of_dot": ("dot(M, v)[1:]", "Dot(Subtensor{start:}(M, 1), v)"),
    "local_advanced_subtensor_of_dot": (
        "dot(N, Q)[np.array([1])]",
        "Dot(Subtensor{start:}(N, 1), Q)",
    ),
    "local_subtensor_of_transpose": ("M.T[0]", "Subtensor{:, i}(M, 0)"),
    "local_subtensor_of_expand_dims": ("v.dimshuffle('x', 0)[0]", "v"),
    "local_subtensor_of_squeeze": (
        "R.squeeze(0)[1:]",
        "Squeeze{axis=0}(Subtensor{:, start:}(R, 1))",
    ),
    "local_subtensor_of_alloc": ("alloc(s, 5)[2]", "s"),
    "local_subtensor_of_softmax": (
        "special.softmax(M, axis=1)[0]",
        "Softmax{axis=(0,)}(Subtensor{i}(M, 0))",
    ),
    "local_subtensor_make_vector": ("stack([s, t])[1]", "t"),
    "local_subtensor_remove_broadcastable_index": ("R[0]", "Squeeze{axis=0}(R)"),
    "local_subtensor_shape_constant": ("N.shape[0]", "2"),
    "local_subtensor_SpecifyShape_lift": (
        "specify_shape(M, (None, 3))[0]",
        "SpecifyShape(Subtensor{i}(M, 0), 3)",
    ),
    "local_convert_negative_indices": ("N[-1]", "Subtensor{i}(N, 1)"),
    "local_adv_idx_to_slice": ("N[:, np.array([0, 2])]", "Subtensor{:, ::step}(N, 2)"),
    "local_adv_idx_to_diagonal": (
        "N[np.arange(2), np.arange(1, 3)]",
        "ExtractDiag{offset=0, axis1=0, axis2=1, view=True}(Subtensor{:, start:}(N, 1))",
    ),
    "bool_idx_to_nonzero": (
        "N[np.array([[True, False, False], [True, False, True]])]",
        "AdvancedSubtensor{i, j}(N, [0, 1, 1], [0, 0, 2])",
    ),
    "local_useless_subtensor": ("M[:, 0:]", "M"),
    "local_useless_slice": ("v[0::1]", "v"),
}

WRITES = {
    "local_set_to_inc_subtensor": ("set_subtensor(v[0], v[0] + s)", "IncSubtensor{i}(v, s, 0)"),
    "local_incsubtensor_of_zeros_to_setsubtensor": (
        "inc_subtensor(zeros((5,))[0], s)",
        "SetSubtensor{i}(Alloc(0.0, 5), s, 0)",
    ),
    "local_setsubtensor_of_constants": ("set_subtensor(zeros((4,))[1:], 0)", "Alloc(0.0, 4)"),
    "local_IncSubtensor_serialize": (
        "inc_subtensor(zeros_like(v)[0], s) + inc_subtensor(zeros_like(v)[1], t) + w",
        "IncSubtensor{i}(IncSubtensor{i}(w, s, 0), t, 1)",
    ),
    "local_add_of_sparse_write": (
        "v + set_subtensor(zeros_like(v)[0], s)",
        "IncSubtensor{i}(v, s, 0)",
    ),
    "local_read_of_write_same_indices": ("set_subtensor(v[0], s)[0]", "s"),
    "local_slice_read_of_write": ("set_subtensor(v[1:3], w[:2])[2]", "Subtensor{i}(w, 1)"),
    "local_advanced_read_of_write_constant_indices": (
        "set_subtensor(N[:, np.array([0, 2, 1])], N)[:, np.array([0, 2, 1])]",
        "N",
    ),
    "local_write_of_write_same_indices": (
        "set_subtensor(set_subtensor(v[k], s)[k], t)",
        "AdvancedSetSubtensor{i}(v, t, k)",
    ),
    "local_useless_inc_subtensor": ("inc_subtensor(v[:], w)", "Add(v, w)"),
    "local_useless_inc_subtensor_alloc": (
        "inc_subtensor(M[k], alloc(s, 2, 3))",
        "AdvancedIncSubtensor{i}(M, s, k)",
    ),
}

REDUCTIONS = {
    "local_sum_prod_all_to_none": ("M.sum(axis=(0, 1))", "Sum{axes=None}(M)"),
    "local_reduce_chain": ("M.max(axis=0).max()", "Max{axes=None}(M)"),
    "local_reduce_broadcastable": ("R.sum(axis=0)", "Squeeze{axis=0}(R)"),
    "local_useless_reduce": ("s.sum()", "s"),
    "local_careduce_of_alloc": ("alloc(s, 3).sum()", "Mul(3.0, s)"),
    "local_sum_make_vector": ("stack([s, t]).sum()", "Add(s, t)"),
    "local_max_to_min": ("(-v).max()", "Neg(Min{axes=None}(v))"),
    "local_sort_under_reduce": ("sort(v).sum()", "Sum{axes=None}(v)"),
    "local_sum_prod_of_mul_or_div": (
        "(2 * i).prod()",
        "Mul(Pow(2, Shape_i{0}(i)), Prod{axes=None}(i))",
    ),
    "local_sum_of_neg_to_neg_of_sum": ("(-v).sum()", "Neg(Sum{axes=None}(v))"),
    "local_greedy_distributor": ("(x * y + x * z) / x", "Add(y, z)"),
    "local_useless_unbatched_blockwise": (
        "Blockwise(Dot(), '(m,k),(k)->(m)')(M, w)",
        "Dot(M, w)",
    ),
}

FORMS = SIGNS | CHOICES | AXES | RESHAPES | JOINS | READS | WRITES | REDUCTIONS

#: names whose effect is reached in another way, and the test that shows it
SHOWN_BY = {
    # sums of squares are one pass over memory, without a call
    "local_sumsqr2dot": "lowering/test_named_fusions.py::test_reductions_are_fused",
    # indices are compared with lengths in machine code; their sign costs nothing
    "local_uint_constant_indices": "backends/llvm/test_positions.py",
    # a DimShuffle is a view, wherever it stands
    "local_dimshuffle_subtensor": "lowering/test_fusion.py::test_transposed_space_does_not_share",
    "local_reshape_dimshuffle": "lowering/test_fusion.py::test_contiguous_loops_are_merged",
    # sets of zeros are what increments of zeros become
    "local_incsubtensor_of_zeros": "tensor/rules/test_laws.py",
    "elemwise_fusion": "lowering/test_fusion.py::test_chain_is_one_kernel",
    "add_mul_fusion": "lowering/test_fusion.py::test_chain_is_one_kernel",
    "composite_elemwise_fusion": (
        "lowering/test_fusion.py::test_outputs_over_one_space_share_a_kernel"
    ),
    "inline_symbolic_for_fusion": (
        "lowering/test_fusion.py::test_softmax_is_one_kernel_with_one_exp_per_element"
    ),
    "local_inline_composite_constants": (
        "lowering/test_fusion.py::test_negative_zero_is_a_constant_of_its_own"
    ),
    "local_careduce_fusion": "lowering/test_named_fusions.py::test_reductions_are_fused",
    "fuse_indexed_into_elemwise": "lowering/test_named_fusions.py::test_reads_and_writes_are_fused",
    "wrap_reduced_gather_in_elemwise": (
        "lowering/test_named_fusions.py::test_reads_and_writes_are_fused"
    ),
    "inplace_elemwise": (
        "lowering/test_memory.py::test_elementwise_kernel_writes_over_its_dead_operand"
    ),
    "local_inplace_setsubtensor": (
        "lowering/test_memory.py::test_update_of_a_dead_value_copies_nothing"
    ),
    "local_inplace_AdvancedIncSubtensor": (
        "lowering/test_memory.py::test_update_of_a_dead_value_copies_nothing"
    ),
    "InplaceBlasOpt": "lowering/test_named_fusions.py::test_buffers_are_reused",
    "blockwise_inplace": "lowering/test_named_fusions.py::test_buffers_are_reused",
    "random_make_inplace": "backends/test_in_place.py::test_shared_variables",
    "jax_boolean_indexing_sum": "backends/jax/test_jax_masks.py::test_values",
    "jax_boolean_indexing_set_or_inc": "backends/jax/test_jax_masks.py::test_values",
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    expression, form = FORMS[name]
    out = eval(expression, {**FUNCTIONS, **variables()})
    assert text_of(rewrite_graph(out, include=("fast_run",))) == form


@cache
def functions_of(path):
    tree = ast.parse((Path(__file__).parents[2] / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", SHOWN_BY)
def test_the_test_exists(name):
    path, _, function = SHOWN_BY[name].partition("::")
    assert not function or function in functions_of(path)
    assert functions_of(path)


def test_powers_of_factors_do_not_overflow():
    """``c**n * prod(x)`` would be NaN here: the power is infinite, the product of x is 0."""
    v = pt.dvector("v")
    f = phintys.function([v], (2 * v).prod())
    assert f(np.full(2000, 0.5)) == 1


def test_an_index_out_of_range_is_still_an_error():
    """Positions become slices, which are clipped, only where they are known to be in range."""
    v = pt.dvector("v")
    for out in (v[np.array([0, 1, 2])], v[np.array([0, 1])].sum(), v[np.array([2, 1])]):
        with pytest.raises(IndexError):
            phintys.function([v], out)([1.0])


def test_set_at_repeated_positions_is_not_an_increment():
    v, k = pt.dvector("v"), pt.lvector("k")
    f = phintys.function([v, k], v[k].set(v[k] + 1))
    np.testing.assert_array_equal(f([1.0, 2.0], [0, 0]), [2.0, 2.0])
