# Optimizer plugins.
optimizer_LTLIBRARIES += optimizers/adam.la optimizers/novograd.la optimizers/sgd.la
