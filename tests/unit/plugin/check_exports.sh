#!/bin/sh
# The installed library exports the pons_* of tests/unit/plugin/exports and nothing else, and a plugin exports its
# entry. The tests' library exports the core as well. A symbol that is added raises 'current' and 'age' of
# LIBRARY_VERSION in Makefile.am; one that goes, or changes its meaning, raises 'current' and sets 'age' to 0.
. "${srcdir:-.}/tests/support/checks.sh"
library=.libs/libpons.so

checks=$((checks + 1))
foreign=$(nm -D --defined-only "$library" | awk '$3 !~ /^pons_/ { print $3 }')
[ -z "$foreign" ] || fail "exported besides pons_*: $foreign"

checks=$((checks + 1))
changed=$(nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort |
    LC_ALL=C comm -3 "$source/tests/unit/plugin/exports" - | tr '\n' ' ')
[ -z "$changed" ] || fail "symbols are not those of tests/unit/plugin/exports (first column: gone): $changed"

# The soname that docs/embedding.md tells programs.
checks=$((checks + 1))
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ -n "$soname" ] && grep -q "soname is \`$soname\`" "$source/docs/embedding.md" ||
    fail "the soname is '$soname', docs/embedding.md has another"

# exports LIBRARY NAME
exports() { nm -D --defined-only "$1" | grep " $2\$"; }
check "the program's entry is exported" exports "$library" pons_main
check "the tests' library exports the core" exports tests/.libs/libpons.so sha256_init

# only_entry FILE: weak symbols come from C++.
only_entry() {
    exported=$(nm -D --defined-only "$1" | awk '$2 !~ /^[VWu]$/ { print $3 }')
    echo "$exported"
    [ "$exported" = pons_plugin_entry ]
}
for file in "$build"/stage/*/*.so; do
    check "${file#"$build/stage/"} exports its entry alone" only_entry "$file"
done
finish
