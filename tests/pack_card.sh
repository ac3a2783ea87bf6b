#!/bin/sh
# What tests/on_card.sh runs, for a machine that has a card and neither a compiler nor pons' libraries: programs without
# their debugging symbols, plugins, and the libraries that they need, but for the C and C++ ones and NVIDIA's.
#
#   tests/pack_card.sh [-m VERSION] BUILD FOLDER
#
# There, beside this source tree: tests/on_card.sh FOLDER. The glibc there must be as new as the one here. A FOLDER that
# git ignores, as build-card, may be left behind by whatever carries the tree: call it 'card'. -m: with MONAI of that
# version from PyPI (1.6.1), which tests/on_card.sh needs beside PyTorch for its peers.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
monai=
usage() { echo "usage: tests/pack_card.sh [-m VERSION] BUILD FOLDER" >&2; exit 2; }
while getopts m: option; do
    [ "$option" = m ] || usage
    monai=$OPTARG
done
shift $((OPTIND - 1))
[ $# -eq 2 ] || usage
[ -x "$1/tests/integration/golden/.libs/check_cuda_losses" ] || {
    echo "tests/pack_card.sh: '$1' is no build with tests of cards: make, make check TESTS=" >&2
    exit 2
}
build=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
mkdir -p "$folder/.libs" "$folder/lib" "$folder/tests/.libs" "$folder/tests/fake/.libs" "$folder/stage/comm"

# take FILE TO: without what only a debugger reads.
take() {
    cp -L "$1" "$2"
    strip -g "$2"
}

# program NAME LIBRARIES: what libtool's script does, wherever the folder is.
program() {
    mkdir -p "$folder/$(dirname "$1")/.libs"
    take "$build/$(dirname "$1")/.libs/$(basename "$1")" "$folder/$(dirname "$1")/.libs/$(basename "$1")"
    cat >"$folder/$1" <<END_OF_PROGRAM
#!/bin/sh
at=\$(dirname "\$(realpath "\$0")")
LD_LIBRARY_PATH=\$at/.libs:\$at/$2\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "\$at/.libs/$(basename "$1")" "\$@"
END_OF_PROGRAM
    chmod +x "$folder/$1"
}

take "$build/.libs/libpons.so.1" "$folder/.libs/libpons.so.1"
take "$build/tests/.libs/libpons.so.1" "$folder/tests/.libs/libpons.so.1"
program pons lib
for test in $(sed -n 's/^\(golden\|kernels\|runs\)=//p' "$source/tests/on_card.sh" | tr '" ' '\n' | grep -v '\.sh$'); do
    found=$(find "$build/tests" -name "$test" ! -path '*/.libs/*')
    [ -z "$found" ] || program "${found#"$build/"}" '../../.libs:$at/../../../lib'
done
for plugin in "$build"/stage/*/*.so; do
    kind=$(basename "$(dirname "$plugin")")
    [ "$kind" != comm ] || [ "$(basename "$plugin")" = nccl.so ] || continue
    mkdir -p "$folder/stage/$kind"
    take "$plugin" "$folder/stage/$kind/$(basename "$plugin")"
done
# What traces kernels.
mkdir -p "$folder/tests/tools/.libs"
take "$build/tests/tools/.libs/libcuptitrace.so" "$folder/tests/tools/.libs/libcuptitrace.so"
# What reads the ranges that a profiler sees.
take "$build/tests/fake/.libs/libnvtx.so" "$folder/tests/fake/.libs/libnvtx.so"
find "$folder/stage" "$folder/.libs" "$folder/tests" -type f -exec ldd {} + 2>/dev/null |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(lib(c|m|mvec|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s)\.so|ld-linux|libpons)' |
    grep -vE '/lib(cuda|nccl|cudnn|nvrtc|cublas)[a-zA-Z_]*\.so' |
    while read -r library; do
        take "$library" "$folder/lib/$(basename "$library")"
    done
if [ -n "$monai" ]; then
    python3 -m pip -q download --no-deps --only-binary=:all: -d "$folder/python" "monai==$monai"
fi
du -sk "$folder" | awk '{ printf "%.1f MiB in %s\n", $1 / 1024, $2 }'
