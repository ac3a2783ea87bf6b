#!/bin/sh
# tests/on_card.sh on made-up GPUs, whose libraries the loader finds as it would find a real GPU's. Its
# messages without a GPU, and for tests that pass, are skipped, fail or have no time left. Its figures. Every
# test that computes on GPUs is in its lists.
. "${srcdir:-.}/tests/support/checks.sh"
script=$source/tests/on_card.sh
unset CUDA_VISIBLE_DEVICES # hides a machine's own GPUs from other tests

# on_card ARGUMENT...: run on_card.sh on made-up GPUs; its output folder is 'left'.
on_card() {
    rm -rf "$folder/left"
    LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$script" -o "$folder/left" "$@"
}
# ended STATUS LAST ARGUMENT...: on_card.sh ends with that status and that last line.
ended() {
    status=$1
    last=$2
    shift 2
    on_card "$@" >"$folder/told" 2>&1
    found=$?
    [ $found = "$status" ] && tail -n 1 "$folder/told" | grep -qE -e "$last" && return 0
    echo "status $found, expected $status and '$last'"
    cat "$folder/told"
    return 1
}
one_line() { test "$(wc -l <"$folder/told")" = 1; }

cd "$folder" || exit 1
if [ ! -f "$fakes/libcublasLt.so.13" ]; then
    echo "SKIPPED: check_on_card.sh: needs cuda"
    exit 77
fi

# ---- without a GPU -------------------------------------------------------------------------------

FAKE_CUDA=none
export FAKE_CUDA
check "a driver that has no card" ended 77 "^tests/on_card.sh: no card: .*no CUDA-capable device" "$build"
check "is one line" one_line
# Sections of a test remain although pons reports no made-up GPU.
all_given() {
    given two x && { [ ! -f "$fakes/libcudnn.so.9" ] || given cudnn x; } &&
        { [ ! -f "$fakes/libnccl.so.2" ] || given nccl x; }
}
check "made-up cards are two, with all libraries" all_given
FAKE_CUDA=1
# On real GPUs a section with NCCL runs if NCCL works.
real_nccl() (
    export LD_LIBRARY_PATH="$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    cards=
    given nccl x && export FAKE_NCCL=version=21003 && ! given nccl x
)
[ ! -f "$fakes/libnccl.so.2" ] || check "NCCL that works, and one that does not" real_nccl
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; then
    check "no driver" ends 77 "tests/on_card.sh: no card: there is no driver (libcuda.so.1)" \
        "$script" -o left "$build"
fi
check "a part that it does not know" ended 2 "no part 'golding'" "$build" golding
check "a time that is none" ended 2 "'soon' of -l" -l soon "$build"

# ---- tests ---------------------------------------------------------------------------------------

built() { find tests -name "$1" ! -path '*/.libs/*'; }
# own TEST: the test's own counts on such GPUs, as "PASSED SKIPPED".
own() {
    (cd "$build" && srcdir=$source PONS_TEST_CARD=real LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
        "$(built "$1")") >"$folder/own" 2>&1
    echo "$(sed -n 's/^100%: Checks: \([0-9]*\), .*/\1/p' "$folder/own") $(grep -c '^SKIPPED: ' "$folder/own")"
}
read -r blas_passed blas_skipped <<END_OF_COUNTS
$(own check_blas)
END_OF_COUNTS
read -r optimizers optimizers_skipped <<END_OF_COUNTS
$(own check_cuda_optimizers)
END_OF_COUNTS
check "both kinds of tests" test "$blas_passed" -gt 0 -a "$blas_skipped" -gt 0 -a "$optimizers" -gt 0 \
    -a "$optimizers_skipped" = 0
# The counts include three checks of the machine and those of both tests.
check "tests that pass" ended 0 "^$((3 + optimizers + blas_passed)) passed, 0 failed, $blas_skipped skipped$" "$build" \
    machine check_cuda_optimizers check_blas
check "the machine" grep -q "^cuda:0 " left/machine.txt
check "who is left out" grep -q "^SKIPPED: a_product_without_algorithm_uses_the_generated_kernel: needs made-up cards$" left/tests.txt
check "a line for each test" grep -q \
    "^check_blas: $blas_passed passed, 0 failed, $blas_skipped skipped in [0-9]* s$" left/report.txt
fails() {
    FAKE_CUDA_FAIL=launch:1 ended 1 "^[0-9]* passed, $optimizers failed, 0 skipped$" "$build" check_cuda_optimizers
}
check "a test that fails" fails
check "says where" grep -q "cannot launch" left/report.txt
check "a test that has no time" ended 0 "^0 passed, 0 failed, 1 skipped$" -l 1 "$build" check_cuda_optimizers
stuck() {
    FAKE_NVRTC="beside=$folder/never" ended 1 "^0 passed, 1 failed, 0 skipped$" -t 3 "$build" check_cuda_optimizers
}
check "a test that does not end" stuck
check "says so" grep -q "^check_cuda_optimizers: 0 passed, 1 failed, .*, ended after its 3 s" left/report.txt

# ---- libraries that are missing ------------------------------------------------------------------

# without LIBRARY=FAULT TEST NEEDS: on GPUs where that library does not start.
without() {
    checks_of=$2
    needs=$3
    (
        export "$1"
        ended 0 "^3 passed, 0 failed, 1 skipped$" "$build" machine "$checks_of"
    ) && grep -qx "there is no $needs" left/report.txt &&
        grep -qx "SKIPPED: $checks_of: needs $needs" left/report.txt
}
while read -r fault test needs; do
    [ -z "$(cd "$build" && built "$test")" ] || check "without $needs" without "$fault" "$test" "$needs"
done <<'END_OF_LIBRARIES'
FAKE_CUBLAS=start check_blas cuBLASLt
FAKE_CUDNN=start check_dnn cuDNN
FAKE_NCCL=version=21003 check_nccl NCCL
END_OF_LIBRARIES

# ---- the user's cache ----------------------------------------------------------------------------

own_cache() {
    XDG_CACHE_HOME=$folder/user ended 0 "^[1-9][0-9]* passed, 0 failed" "$build" check_cuda_optimizers &&
        ! ls -d "$folder/user"
}
check "the user's cache is left alone" own_cache

# ---- peers ---------------------------------------------------------------------------------------

# PyTorch and MONAI are stubs with fixed answers, and RUNNER replaces pons' own measurement: steps of that
# size take hours on made-up GPUs.
mkdir stubs
cat >stubs/python3 <<'END_OF_STUB'
#!/bin/sh
case "$*" in
*glob*) ;;
*__version__*) echo "PyTorch 1 MONAI 2" ;;
*pip*download*) while [ "$1" != -d ]; do shift; done; mkdir -p "$2" && echo "$3" >"$2/monai.whl" ;;
*zipfile*) mkdir -p "$4" && cp "$3" "$4/monai" ;;
*graphs*) echo '{"median": 0.25, "peak_mib": 512, "losses": []}' ;;
*step.py*) echo '{"median": 0.5, "peak_mib": 256, "losses": []}' ;;
esac
END_OF_STUB
cat >stubs/runner <<'END_OF_STUB'
#!/bin/sh
case $1 in
python3) exec "$@" ;;
*) echo '{"step_seconds":{"median":0.125,"least":0}}' ;;
esac
END_OF_STUB
chmod +x stubs/*
peers() {
    PATH=$folder/stubs:$PATH RUNNER=$folder/stubs/runner ROWS=spleen_card ended 0 "^2 passed, 0 failed, 0 skipped$" \
        "$@" "$build" peers
}
check "peers" peers
check "a row of them" grep -qF "| 0.25 s (graphs_last) | 0.125 s | 2.00 | 512 MiB |" left/report.txt
eager_first() {
    sed -n 's/.* round 1: PyTorch \([a-z_]*\) .*/\1/p' left/peers.txt | paste -s |
        grep -q "^eager_last.graphs_last$"
}
check "what is compiled comes last" eager_first
check "of two ways" grep -q "^spleen_card, round 1: PyTorch eager_last 0.5 s$" left/peers.txt
only_two() { [ "$(grep -c "round 1: PyTorch" left/peers.txt)" = 2 ]; }
check "and no more" only_two
sed -i 's/^\*step.py.*/*step.py*) sleep 60 ;;/' stubs/python3
late() {
    PATH=$folder/stubs:$PATH RUNNER=$folder/stubs/runner ROWS=spleen_card ended 1 "^0 passed, 1 failed, 1 skipped$" \
        -l 12 "$build" peers
}
check "peers that have no time left" late
check "leave what they measured" grep -q "^spleen_card, round 1: pons 0.125 s$" left/peers.txt

# ---- a packed folder -----------------------------------------------------------------------------

# The folder already has a plugin. The name of its library begins with the name of one of the C library's.
mkdir -p carried/stage/comm
[ ! -f "$build/stage/comm/mpi.so" ] || cp "$build/stage/comm/mpi.so" carried/stage/comm
pack() { PATH=$folder/stubs:$PATH "$source/tests/pack_card.sh" "$@"; }
check "what another machine needs" pack -m 9.9 "$build" carried
check "with MONAI" grep -qx "monai==9.9" carried/python/monai.whl
check "and what traces kernels" test -f carried/tests/tools/.libs/libcuptitrace.so
check "words that it does not know" ends 2 "usage: tests/pack_card.sh [-m VERSION] BUILD FOLDER" \
    "$source/tests/pack_card.sh" -x "$build" carried
check "is enough for a test" ended 0 "^$optimizers passed, 0 failed, 0 skipped$" "$folder/carried" check_cuda_optimizers
own_libraries() {
    LD_LIBRARY_PATH=$folder/carried/.libs:$folder/carried/lib ldd carried/.libs/pons \
        carried/tests/integration/golden/.libs/check_cuda_optimizers carried/stage/*/*.so >needed || return
    grep -q "$folder/carried/.libs/libpons" needed && ! grep -e "$build/" -e "not found" needed
}
check "and nothing of the build" own_libraries
# Libraries that are not packed: those of C and C++, matched by whole names, and NVIDIA's.
left_there() {
    awk -v own="$folder/carried/" '$2 == "=>" && index($3, own) != 1 { sub(/.*\//, "", $3); print $3 }' needed |
        sort -u | grep -vE '^lib(c|m|mvec|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s)\.so\.[0-9]+$' |
        grep -v '^lib\(cuda\|nccl\|cudnn\|nvrtc\|cublas\)'
}
check "all but the C libraries and NVIDIA's" eval '! left_there'
check "a folder where nothing was made" ends 2 "is no build with tests of cards" \
    "$source/tests/pack_card.sh" "$folder" x

# ---- figures -------------------------------------------------------------------------------------

# Measurements come first in a group, and all are reported although a later test does not end.
check "does it run, and how fast" ended 0 "^[0-9]* passed, 0 failed, [0-9]* skipped$" -s "$build" A
measured_first() {
    sed -n 's/^\(figure\|check\)[:_].*/\1/p' left/report.txt | uniq | paste -s -d ' ' | grep -qx "figure check"
}
check "what is measured comes first" measured_first
while read -r figure; do
    check "figure '$figure'" grep -qE -e "$figure" left/figures.txt
done <<'END_OF_FIGURES'
^spleen: step [0-9.]+ ms, [0-9.]+ patches per second; [1-9][0-9]* kernels, [0-9.]+ ms on the card
^nnunet: step [0-9.]+ ms
^cache = device: step [0-9.]+ ms, with data [0-9.]+ ms, data in time for [0-9]+ %
^start: one step, warm cache of kernels: [1-9][0-9]+ ms
^aim: nnU-Net, 128.3: 76 patches per second
^spleen-bf16-autotune-no: step [0-9.]+ ms, [0-9.]+ patches per second$
^spleen-bf16-autotune-yes: step [0-9.]+ ms
^spleen-bf16-deterministic: step [0-9.]+ ms
END_OF_FIGURES
if command -v python3 >/dev/null; then
    check "the first step" grep -qE "^start: first step done after [0-9.]+ s" left/figures.txt
fi

# ---- the other groups -----------------------------------------------------------------------------

check "correctness, without time" ended 0 "^0 passed, 0 failed, 18 skipped$" -l 1 "$build" B
no_peers() { PATH=$folder/stubs:$PATH WAYS= ended "$@"; }
check "where the time goes" no_peers 0 "^2 passed, 0 failed, 0 skipped$" -s "$build" C
check "of two networks" grep -qE "^nnunet, as the card ran it: [1-9][0-9]* steps of [0-9.]+ us, \
[0-9.]+ % of it nothing runs;[1-9][0-9]* kernels, copies and fills a step" left/figures.txt
check "the longest kernels" grep -qE "^spleen: +[0-9.]+ +[0-9.]+ us +[0-9.]+ % [0-9]+,1,1 256,1,1 [a-z]+" \
    left/trace.txt
# kernel START DURATION STREAM GRID BLOCK NAME
traced() {
    gzip -dc left/trace-spleen.kernels.gz |
        grep -qE '^[0-9.]+ [0-9.]+ [0-9]+ [1-9][0-9]*,1,1 256,1,1 [a-z_0-9]+$'
}
check "a line for each kernel" traced
lost() {
    FAKE_CUPTI=drops ended 0 "^2 passed" -s "$build" trace &&
        grep -q "^spleen: [1-9][0-9]* records are lost$" left/trace.txt
}
check "records that are lost" lost

# ---- every test that computes on GPUs ------------------------------------------------------------

known() {
    sed -n 's/^\(golden\|kernels\|runs\|without\)=//p' "$script" | tr '" ' '\n' | sed 's/:.*//' | grep -qx "$1"
}
# Programs that open the made-up libraries or are linked with their driver.
programs() {
    find "$source/tests" -name files.mk -exec sed -n 's/^\(EXTRA_\)*%C%_\(check_[a-z_]*\)_[A-Z]* = .*\(FAKES\|libnccl\.la\|libcuda\.la\).*/\2/p' {} + |
        sort -u
}
scripts() { find "$source/tests" -name 'check_*.sh' -exec grep -lE '^[^#]*(cuda|on_cards) ' {} + | sed 's/.*\///' | grep -v check_on_card; }
for test in $(programs) $(scripts); do
    check "on_card.sh knows $test" known "$test"
done
check "of both kinds" test "$(programs | wc -l)" -ge 10 -a "$(scripts | wc -l)" -ge 3
finish
