#!/bin/sh
# Print the folder in which tests make theirs: TMPDIR where that is set, else memory where there is room
# and files of it may run, else /tmp. Slow and failing disks are played by tests/disk_shim.c; waiting for
# the real one's fsync, hundreds of times, is no part of a test.
memory=/dev/shm

fits() {
    awk -v at="$memory" '$2 == at && $3 == "tmpfs" && $4 !~ /noexec/ { found = 1 } END { exit !found }' \
        /proc/mounts 2>/dev/null && [ -w "$memory" ] &&
        [ "$(df -Pk "$memory" | awk 'NR == 2 { print $4 }')" -ge 4194304 ]
}

if [ -n "${TMPDIR-}" ]; then
    echo "$TMPDIR"
elif fits; then
    echo "$memory"
else
    echo /tmp
fi
