#!/bin/sh
# Print the folder for the tests' temporary folders: TMPDIR if it is set, else /dev/shm if it has space and allows
# execution, else /tmp. tests/support/process/disk_shim.c simulates slow and failing disks; hundreds of fsyncs on a real one
# would only cost time.
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
