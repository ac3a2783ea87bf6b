# Optimizer plugins.
optimizer_LTLIBRARIES += optimizers/adam.la optimizers/adamw.la optimizers/novograd.la optimizers/sgd.la
MOMENTS = optimizers/moments.c optimizers/moments.h
optimizers_adam_la_SOURCES = optimizers/adam.c $(MOMENTS)
optimizers_adamw_la_SOURCES = optimizers/adamw.c $(MOMENTS)
