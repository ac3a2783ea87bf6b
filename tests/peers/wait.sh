#!/bin/sh
# The share of a training step that waits for patches: the spleen tutorial's network, 8 patches of 96^3 a step from
# 2 cases, 2 loader threads and 2 kernel threads on 2 processors.
#
#   tests/peers/wait.sh PONS [STEPS [FOLDER]]      needs: taskset
#
# PROFILES: none light standard heavy nnunet; PRECISIONS: fp32 bf16. A line for each: median seconds of a step, and the
# share of the steps' seconds that waits, without the first five, in which the loader's queue fills.
. "$(dirname "$0")/rounds.sh"

profiles=$(chosen PROFILES "${PROFILES:-}" none light standard heavy nnunet)
precisions=$(chosen PRECISIONS "${PRECISIONS:-}" fp32 bf16)
steps=${2:-25}
whole STEPS "$steps"
keep "${3:-}"
networks
[ -e "$folder/wide" ] || "$pons" data phantom -o "$folder/wide" --cases 2 --extent 160,160,160 >&2

for precision in $precisions; do
    for profile in $profiles; do
        name=$profile-$precision
        (cd "$folder" && taskset -c 0,1 "$pons" train spleen.ini --fresh --set experiment.name="$name" \
            --set data.source=wide --set patch.per_case=4 --set augment.profile=$profile \
            --set data.loader_threads=2 --set train.steps="$steps" --set train.precision=$precision \
            >"$folder/log" 2>&1) || refuse "$(tail -n 1 "$folder/log")"
        sed 's/.*"seconds":\([0-9.e-]*\),"data_seconds":\([0-9.e-]*\).*/\1 \2/' "$folder/runs/$name/metrics.jsonl" |
            awk 'NF == 2 && ++n > 5' >"$folder/$name"
        cut -d ' ' -f 1 "$folder/$name" | median | awk -v name=$name -v share="$(
            awk '{ all += $1; wait += $2 } END { print 100 * wait / all }' "$folder/$name")" '{
            printf "%-14s %.3f s a step, %.1f %% of it waits for data\n", name, $1, share }'
    done
done
