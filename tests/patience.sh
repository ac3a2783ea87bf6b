#!/bin/sh
# Print by how much the deadlines of tests are multiplied here and now: a whole number from 1 on, the larger
# one of two ratios. A loop takes LOOP_MS where the deadlines were chosen; and of the processes that wanted a
# processor in the last minute each processor has its share. CK_TIMEOUT_MULTIPLIER, where it is set, decides.
LOOP_MS=50
MOST=30

if [ -n "${CK_TIMEOUT_MULTIPLIER-}" ]; then
    echo "$CK_TIMEOUT_MULTIPLIER"
    exit
fi
now_ms() { echo $(($(date +%s%N) / 1000000)); }
begin=$(now_ms)
awk 'BEGIN { for (i = 0; i < 1000000; i++) s += i % 7 }'
took=$(($(now_ms) - begin))
awk -v took=$took -v usual=$LOOP_MS -v most=$MOST -v processors="$(nproc)" '{
    times = took / usual
    if ($1 / processors > times)
        times = $1 / processors
    if (times > most)
        times = most
    whole = int(times)
    if (whole < times)
        whole++
    print (whole < 1 ? 1 : whole)
}' /proc/loadavg
