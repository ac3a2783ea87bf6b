#!/bin/sh
# Print the factor for the deadlines of tests: a whole number from 1 on. It is the larger of two ratios: the
# time of a loop over LOOP_MS, and the load of the last minute over the number of processors.
# CK_TIMEOUT_MULTIPLIER overrides it.
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
