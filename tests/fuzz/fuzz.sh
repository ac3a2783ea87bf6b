#!/bin/sh
# Search for bytes that break a reader: tests/fuzz/fuzz.sh TARGET [SECONDS] [FOLDER], with clang's libFuzzer.
#
# TARGET is one of csv, dataset, ini, nifti, note, picture, safetensors, store, torch. FOLDER (default fuzz-TARGET)
# keeps the inputs that were found; those for 'make check' belong into tests/corpus/TARGET.
set -u
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
target=$1
seconds=${2:-60}
folder=${3:-fuzz-$target}
mkdir -p "$folder/found" || exit 1
: >"$folder/config.h"
mkdir -p "$folder/core/base" && echo '#define BUILD_FEATURES' >"$folder/core/base/build_features.h" || exit 1
# transpose.c parses no input; gcc compiles it, because it uses gcc's vector shuffles.
gcc -g -O1 -std=gnu11 -I"$source/core" -c "$source/core/data/volume/transpose.c" -o "$folder/transpose.o" || exit 1
version=$(sed -n 's/^AC_INIT(\[pons\], \[\(.*\)\])/\1/p' "$source/configure.ac")
# All files of the readers, with the parts of the program that need no optional library.
# shellcheck disable=SC2046,SC2086 # lists of words
clang -g -O1 -std=gnu11 -D_GNU_SOURCE -w -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -DPACKAGE_VERSION="\"$version\"" \
    -DPONS_PLUGINDIR='"/nowhere"' -I"$folder" -I"$source/core" -I"$source/tests" \
    ${NIFTI_CPPFLAGS:--I/usr/include/nifti} "$source/tests/fuzz/fuzz_$target.c" \
    $(find "$source"/core/base "$source"/core/config "$source"/core/data -name '*.c' \
        ! -name gzip_libdeflate.c ! -name cache_lmdb.c ! -name cache_lmdb_check.c \
        ! -name 'picture_*_absent.c' ! -name transpose.c ! -name batch_layout.c \
        ! -name loader.c) "$folder/transpose.o" \
    "$source"/core/plugin/*.c "$source/core/checkpoint/safetensors.c" \
    "$source"/core/checkpoint/torch/*.c \
    "$source/core/cluster/store/message.c" \
    -o "$folder/fuzz" -lnifti2 -lznz -lz -linih -ljansson -lxxhash -lpng -ljpeg -lm -ldl -lpthread || exit 1
exec nice "$folder/fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=10 \
    -artifact_prefix="$folder/" "$folder/found" "$source/tests/corpus/$target"
