#!/bin/sh
# Train with torchrun as launcher, where a cluster expects it; 'pons launch' needs no Python.
#
#   examples/torchrun.sh FILE.ini                          one node, two processes
#   PROCESSES=8 examples/torchrun.sh FILE.ini
#   NODES=2 MASTER=node-a:29400 JOB=17 examples/torchrun.sh FILE.ini      on each of two nodes
set -eu

if [ "${NODES:-1}" -gt 1 ]; then
    set -- --nnodes="$NODES" --rdzv-backend=c10d --rdzv-endpoint="$MASTER" --rdzv-id="$JOB" \
        --nproc-per-node="${PROCESSES:-2}" --no-python pons train "$@"
else
    set -- --standalone --nproc-per-node="${PROCESSES:-2}" --no-python pons train "$@"
fi
exec torchrun "$@"
