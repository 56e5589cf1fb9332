"""Neural networks: convolutions of images, activations, losses, with Aesara's names."""
# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false

from __future__ import annotations

from phintys.lazy import hand_on
from phintys.tensor.elemwise import functions
from phintys.tensor.nnet import abstract_conv, abstract_ops, conv3d2d, conv_shapes, corr, upsampling
from phintys.tensor.nnet.abstract_conv import *
from phintys.tensor.nnet.abstract_ops import *
from phintys.tensor.nnet.basic import *
from phintys.tensor.nnet.batchnorm import *
from phintys.tensor.nnet.blocksparse import *
from phintys.tensor.nnet.conv_shapes import *
from phintys.tensor.nnet.neighbours import *
from phintys.tensor.nnet.upsampling import *

sigmoid = functions.sigmoid
softplus = functions.softplus
hand_on(abstract_conv, abstract_ops, conv_shapes, upsampling)
