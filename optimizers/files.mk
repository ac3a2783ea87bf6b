# Files of optimizers.
