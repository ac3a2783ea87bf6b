"""folds.py OUT: the cases that nnU-Net's folds hold out, by their places in the sorted list.

Folds 0 to 4 as generate_crossval_split of nnunetv2, a larger one as do_split of its trainer.
"""
import json
import pathlib
import sys

import numpy as np
from sklearn.model_selection import KFold

rows = []
for n in 5, 7, 10, 23, 50, 484:
    parts = KFold(n_splits=5, shuffle=True, random_state=12345).split(np.arange(n))
    rows += [dict(count=n, fold=k, val=[int(i) for i in val]) for k, (_, val) in enumerate(parts)]
for n, k in (10, 5), (10, 7), (484, 9):
    train = np.random.RandomState(seed=12345 + k).choice(n, int(n * 0.8), replace=False)
    rows.append(dict(count=n, fold=k, val=sorted(set(range(n)) - {int(i) for i in train})))
(pathlib.Path(sys.argv[1]) / "folds.json").write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
