# Tests of train.
