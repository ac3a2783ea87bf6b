#!/bin/sh
# Plugins that were compiled with the headers of earlier versions (tests/golden/plugins, for x86-64). Those of this
# version's ABI major pass their check and train together. Those of another one are refused with both numbers, and a
# training that names none of them does not mind them.
. "${srcdir:-.}/tests/support/checks.sh"
[ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: stored plugins: needs x86-64"; exit 77; }
cp -r "$source/tests/golden/plugins" "$folder/plugins" && chmod -R u+w,go-w "$folder/plugins" && cd "$folder" || exit 1
major=$(sed -n 's/^#define PONS_ABI_MAJOR //p' "$source/core/pons/plugin.h")
phantom phantom 1 16,16,16
cp "$source/tests/outside/outside.ini" .

# with VERSION COMMAND...: the program with the plugins of that version before its own.
with() (
    PONS_PLUGIN_PATH=$folder/plugins/$1:$PONS_PLUGIN_PATH
    shift
    "$program" "$@"
)

# major_of FILE: the fifth byte of its note (pons_note), behind the kind.
major_of() { readelf -n "$1" | awk '/description data/ { print 0 + $7 }'; }

refused() {
    for plugin in "plugins/$1"/*/*.so; do
        check "$plugin is refused by its number" \
            ends 6 "ABI major is $2, expected $major" "$program" plugin check "$plugin"
    done
    check "the list names each broken plugin of $1" ends 0 "plugins/$1/loss/power.so  BROKEN: " with "$1" plugin list
    check "a training with plugins of $1 is refused" \
        ends 6 "ABI major is $2, expected $major" with "$1" train outside.ini -q
    check "its run folder is not made" [ ! -e runs/outside ]
    { sed '/^\[augment\]/,$d' outside.ini; small_unet; printf '[train]\nsteps = 2\n'; } >plain.ini
    check "a training without them does not fail" with "$1" train plain.ini -q --set experiment.name=plain
}

accepted() {
    for plugin in "plugins/$1"/*/*.so; do
        check "$plugin passes its check" with "$1" plugin check "$plugin"
    done
    check "plugins of $1 train" with "$1" train outside.ini -q --fresh
    hash=$(sha256sum <"plugins/$1/loss/power.so" | cut -c 1-64)
    check "the plugins of $1 were those that trained" grep -q "^; loss power 1.0 sha256 $hash" runs/outside/resolved.ini
    check "its loss falls" awk -F'"loss":' '{ split($2, v, ","); if (NR == 1) first = v[1]; last = v[1] }
        END { exit !(last < first) }' runs/outside/metrics.jsonl
}

for version in plugins/[0-9]*/; do
    version=$(basename "$version")
    found=$(major_of "plugins/$version/loss/power.so")
    if [ "$found" = "$major" ]; then
        accepted "$version"
    else
        refused "$version" "$found"
    fi
done
finish
