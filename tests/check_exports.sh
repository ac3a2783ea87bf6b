#!/bin/sh
# The installed library exports pons_* and nothing else; the tests' library exports the core as well.
# Prints what Check prints, so that both are counted alike.
set -u
library=.libs/libpons.so
tests_library=tests/.libs/libpons.so
failures=0

foreign=$(nm -D --defined-only "$library" | awk '$3 !~ /^pons_/ { print $3 }')
if [ -n "$foreign" ]; then
    echo "exported besides pons_*: $foreign"
    failures=$((failures + 1))
fi
if ! nm -D --defined-only "$library" | grep -q ' pons_main$'; then
    echo "pons_main is not exported"
    failures=$((failures + 1))
fi
if ! nm -D --defined-only "$tests_library" | grep -q ' sha256_init$'; then
    echo "the tests' library hides sha256_init"
    failures=$((failures + 1))
fi
echo "$(((3 - failures) * 100 / 3))%: Checks: 3, Failures: $failures, Errors: 0"
[ "$failures" -eq 0 ]
