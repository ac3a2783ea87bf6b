#!/bin/sh
# Train on the nodes that SLURM gives, one process per device.
#
#   sbatch examples/slurm.sh FILE.ini                                       two nodes, as below
#   sbatch --nodes=1 --ntasks-per-node=4 examples/slurm.sh FILE.ini         one node
#
# What sbatch is told on its command line wins over the lines below. The processes find each other by
# what srun tells them: no address and no port is written down. Two minutes before the time is over
# SLURM sends USR1, the run saves where it is and ends with code 75, and the job queues up again.
#SBATCH --job-name=pons
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
# With GPUs, and devices = cuda in the file:
##SBATCH --gpus-per-task=1
set -u

# SLURM may send USR1 to this script as well; srun's tasks are those that save.
trap : USR1

# One task that fails does not have to be answered by SLURM: the others end by themselves, and say why.
srun --kill-on-bad-exit=0 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" pons train "$@"
status=$?
if [ "$status" -eq 75 ]; then
    echo "job $SLURM_JOB_ID was interrupted and queues up again"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
