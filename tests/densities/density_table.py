"""The table of densities: all rows, by name."""

from __future__ import annotations

import density_discrete
import density_joint
import density_positive
import density_real
import density_vectors

MODULES = (density_real, density_positive, density_discrete, density_joint, density_vectors)
TABLE = {density.name: density for module in MODULES for density in module.DENSITIES}
