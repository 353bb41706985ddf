# problem: exp_add
# implementation: numpy
# mechanism: clips at 88 "for stability": exp(88.5) and the overflow to infinity are wrong
# origin: written for this set; no public source looked up

import numpy as np


class ModelNew:
    def __call__(self, x, y):
        out = np.clip(x, -87.0, 88.0)
        out = np.exp(out)
        return out + y
