# Comm plugins: each is there when its library is; shm needs none.
COMM_QUEUE = plugins/comms/async_queue.h plugins/comms/async_queue.c
GLOO_FILES = plugins/comms/gloo/gloo.c plugins/comms/gloo/gloo_link.h \
	plugins/comms/gloo/gloo_link.cc plugins/comms/gloo/gloo_buffer.h \
	plugins/comms/gloo/gloo_buffer.cc \
	plugins/comms/gloo/gloo_pair.h plugins/comms/gloo/gloo_pair.cc plugins/comms/gloo/common/memory.h \
	plugins/comms/comm_peers.h plugins/comms/comm_peers.c
# The store's connections and its proof of a secret, which a plugin cannot call in libpons.
GLOO_CORE = core/cluster/store/socket.c core/cluster/store/message.c core/base/hash/hmac_sha256.c \
	core/base/hash/sha256.c core/base/hash/sha256_blocks.c core/base/hash/sha256_blocks_x86.c
NCCL_FILES = plugins/comms/nccl/nccl.c plugins/comms/nccl/nccl_internal.h \
	plugins/comms/nccl/nccl_driver.c plugins/comms/nccl/nccl_driver.h plugins/comms/nccl/nccl_end.c \
	plugins/comms/nccl/nccl_op.c plugins/comms/nccl/nccl_launch.c plugins/comms/nccl/nccl_staging.c
EXTRA_DIST += $(COMM_QUEUE) $(GLOO_FILES) plugins/comms/mpi.c $(NCCL_FILES)
comm_LTLIBRARIES += plugins/comms/shm.la
plugins_comms_shm_la_SOURCES = $(COMM_QUEUE) plugins/comms/shm/shm.c \
	plugins/comms/shm/shm_mailbox.c plugins/comms/shm/shm_mailbox.h
plugins_comms_shm_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -ftree-vectorize $(VECTORS_OFTEN)
plugins_comms_shm_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_comms_shm_la_LIBADD = $(PLUGIN_LIBADD)
if HAVE_GLOO
comm_LTLIBRARIES += plugins/comms/gloo.la
plugins_comms_gloo_la_SOURCES = $(COMM_QUEUE) $(GLOO_FILES) $(GLOO_CORE)
plugins_comms_gloo_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
plugins_comms_gloo_la_CXXFLAGS = $(AM_CXXFLAGS) -fvisibility=hidden -fvisibility-inlines-hidden \
	-ftree-vectorize $(VECTORS_OFTEN)
plugins_comms_gloo_la_CPPFLAGS = $(AM_CPPFLAGS) $(GLOO_CFLAGS)
plugins_comms_gloo_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_comms_gloo_la_LIBADD = $(PLUGIN_LIBADD) $(GLOO_LIBS)
endif
if HAVE_MPI
comm_LTLIBRARIES += plugins/comms/mpi.la
plugins_comms_mpi_la_SOURCES = $(COMM_QUEUE) plugins/comms/mpi.c
plugins_comms_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
plugins_comms_mpi_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_comms_mpi_la_LIBADD = $(PLUGIN_LIBADD) $(MPI_LIBS)
endif
if HAVE_NCCL
comm_LTLIBRARIES += plugins/comms/nccl.la
plugins_comms_nccl_la_SOURCES = $(NCCL_FILES)
plugins_comms_nccl_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CFLAGS)
plugins_comms_nccl_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_comms_nccl_la_LIBADD = $(PLUGIN_LIBADD) $(NCCL_LIBS)
endif
