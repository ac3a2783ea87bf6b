# Tests. Each area lists its own in tests/AREA.mk.
include tests/base.mk
include tests/graph.mk
include tests/program.mk
include tests/device.mk
include tests/data.mk
include tests/train.mk
include tests/faults.mk
include tests/plugins.mk
include tests/launch.mk
include tests/dist.mk
include tests/comms.mk
