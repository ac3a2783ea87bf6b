# Files of core/train.
