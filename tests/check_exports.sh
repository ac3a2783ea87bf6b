#!/bin/sh
# The installed library exports pons_* and nothing else; the tests' library exports the core as well.
. "${srcdir:-.}/tests/checks.sh"
library=.libs/libpons.so

checks=$((checks + 1))
foreign=$(nm -D --defined-only "$library" | awk '$3 !~ /^pons_/ { print $3 }')
[ -z "$foreign" ] || fail "exported besides pons_*: $foreign"

# exports LIBRARY NAME
exports() { nm -D --defined-only "$1" | grep " $2\$"; }
check "the program's entry is exported" exports "$library" pons_main
check "the tests' library exports the core" exports tests/.libs/libpons.so sha256_init
finish
