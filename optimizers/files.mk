# Optimizer plugins.
optimizer_LTLIBRARIES += optimizers/adam.la optimizers/sgd.la optimizers/novograd.la

optimizers_adam_la_SOURCES = optimizers/adam.c
optimizers_adam_la_LDFLAGS = $(PLUGIN_LDFLAGS)
optimizers_adam_la_LIBADD = $(PLUGIN_LIBADD)
optimizers_sgd_la_SOURCES = optimizers/sgd.c
optimizers_sgd_la_LDFLAGS = $(PLUGIN_LDFLAGS)
optimizers_sgd_la_LIBADD = $(PLUGIN_LIBADD)
optimizers_novograd_la_SOURCES = optimizers/novograd.c
optimizers_novograd_la_LDFLAGS = $(PLUGIN_LDFLAGS)
optimizers_novograd_la_LIBADD = $(PLUGIN_LIBADD)
