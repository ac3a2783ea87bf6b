#!/bin/sh
# Run a test program and end its log with its seconds, 'took 12 s, 8.31 s of processors'. run.sh prints the programs
# with the most. The status is the program's.
#
#   tests/tools/timed.sh PROGRAM [ARGUMENT...]
begun=$(date +%s)
"$@"
status=$?
# The user and the system time of all ended children, in hundredths of a second.
processors=$(awk '{ sub(/.*\) /, ""); printf "%.2f", ($14 + $15) / 100 }' "/proc/$$/stat")
echo "took $(($(date +%s) - begun)) s, $processors s of processors"
exit $status
