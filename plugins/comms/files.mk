# Comm plugins: each is there when its library is.
COMM_QUEUE = plugins/comms/queue.h plugins/comms/queue.c
COMM_LDFLAGS = $(PLUGIN_LDFLAGS) -export-symbols-regex '^pons_plugin_entry$$'
GLOO_FILES = plugins/comms/gloo.c plugins/comms/gloo_link.h plugins/comms/gloo_link.cc
EXTRA_DIST += $(COMM_QUEUE) $(GLOO_FILES) plugins/comms/mpi.c
if HAVE_GLOO
comm_LTLIBRARIES += plugins/comms/gloo.la
plugins_comms_gloo_la_SOURCES = $(COMM_QUEUE) $(GLOO_FILES)
plugins_comms_gloo_la_CFLAGS = $(AM_CFLAGS)
plugins_comms_gloo_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden -fvisibility-inlines-hidden \
	-ftree-vectorize -fvect-cost-model=dynamic
plugins_comms_gloo_la_CPPFLAGS = $(AM_CPPFLAGS) $(GLOO_CFLAGS)
plugins_comms_gloo_la_LDFLAGS = $(COMM_LDFLAGS)
plugins_comms_gloo_la_LIBADD = $(PLUGIN_LIBADD) $(GLOO_LIBS)
endif
if HAVE_MPI
comm_LTLIBRARIES += plugins/comms/mpi.la
plugins_comms_mpi_la_SOURCES = $(COMM_QUEUE) plugins/comms/mpi.c
plugins_comms_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
plugins_comms_mpi_la_LDFLAGS = $(COMM_LDFLAGS)
plugins_comms_mpi_la_LIBADD = $(PLUGIN_LIBADD) $(MPI_LIBS)
endif
