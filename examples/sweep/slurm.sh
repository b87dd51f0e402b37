#!/bin/sh
# sbatch slurm.sh; afterwards: leyden sweep merge parts --output runs.parquet
#SBATCH --job-name=sweep
#SBATCH --array=1-4
#SBATCH --cpus-per-task=2
#SBATCH --time=00:30:00
# A task that was killed goes on where it was when the array is submitted again.
leyden sweep plan.toml --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --out parts --jobs "$SLURM_CPUS_PER_TASK"
