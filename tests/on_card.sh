#!/bin/sh
# What only a card can say, on the card of this machine: every test of the cuda device against the driver, NVRTC,
# cuDNN, cuBLASLt and NCCL that are installed, and the times that docs/performance.md wants. Minutes; the last line is
# 'N passed, N failed, N skipped', the status 77 where there is no card.
#
#   tests/on_card.sh [-j JOBS] [-l SECONDS] [-o FOLDER] [-s] [-t SECONDS] [BUILD [PART...]]
#
# BUILD (build) is a folder where pons has been made, or will be, or what tests/pack_card.sh has made of one. Parts run
# in the order given:
#   machine   the card, the driver and the libraries: pons devices, pons doctor
#   figures   seconds per step, per kernel and to the first step, beside the aims
#   precisions  seconds per step in fp32, TF32 and bf16, without and with autotune, and with equal bits
#   trace     the kernels of replayed steps as the card ran them, by CUPTI
#   golden    golden cases in fp32, TF32 and 16 bit
#   kernels   each kernel, recorded steps, cuBLASLt, cuDNN
#   runs      whole runs: losses of the cpu, bits that repeat, one card listed twice, autotune, NCCL
#   peers     the same steps in PyTorch + MONAI, where they are installed: a round of tests/peers/step.sh for each word
#             of WAYS (eager_last graphs_last), of the rows ROWS (spleen_card nnunet_card)
# The name of a test is a part, too. Three groups of parts take less than ten minutes each:
#   A         does it run, and how fast: machine, figures, precisions, then tests of the libraries
#   B         correctness: golden, kernels, runs
#   C         where the time goes: trace, peers
# Without any part: A, B and C. -j: tests at a time (as many as processors; what is timed runs alone); -l: end within
# that time (540), what has not begun by then counts as skipped; -o: logs and figures (OUT, else on_card), each written
# when it is known; -s: small networks for the figures, to try this script; -t: what a test may take (480).
set -u
cd "$(dirname "$0")/.." || exit 1
source=$(pwd)
begun=$(date +%s)
jobs=$(nproc)
limit=540
patience=480
folder=${OUT:-on_card}
small=

say() { echo "$*" | tee -a "$folder/report.txt"; }
refuse() {
    echo "tests/on_card.sh: $1" >&2
    exit "${2:-2}"
}
whole() {
    case $2 in
    '' | 0* | *[!0-9]*) refuse "'$2' of -$1, expected a whole number from 1 up" ;;
    esac
}

while getopts j:l:o:st: option; do
    case $option in
    j) whole j "$OPTARG"; jobs=$OPTARG ;;
    l) whole l "$OPTARG"; limit=$OPTARG ;;
    o) folder=$OPTARG ;;
    s) small=yes ;;
    t) whole t "$OPTARG"; patience=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
build=${1:-build}
[ $# -eq 0 ] || shift

# ---- parts ---------------------------------------------------------------------------------------

golden="check_cuda_losses check_cuda_optimizers check_cuda_networks check_cuda_trajectory"
golden="$golden check_cuda_nnunet_networks"
kernels="check_cuda check_recording check_blas check_dnn"
runs="check_cuda_train.sh check_autotune.sh check_gpus.sh check_options.sh check_nccl"
# Nothing on a single card: NAME:WHY.
without="check_fake_cuda:needs_made-up_cards check_segments:needs_made-up_cards check_group_nccl:needs_two_cards"
without="$without check_init.sh:needs_made-up_cards"

alone="machine figures precisions trace peers"
# parts_of GROUP, another word is itself. What is measured stands before the tests: one that hangs costs no figure.
parts_of() {
    case $1 in
    A) echo "machine figures precisions check_dnn check_blas check_recording check_cuda_optimizers" ;;
    B) echo "golden kernels runs" ;;
    C) echo "trace peers" ;;
    *) echo "$1" ;;
    esac
}

[ $# -gt 0 ] || set -- A B C
parts=
for part in "$@"; do
    case " A B C $alone golden kernels runs $golden $kernels $runs " in
    *" $part "*) parts="$parts $(parts_of "$part")" ;;
    *) refuse "no part '$part', expected A, B, C, machine, figures, precisions, trace, golden, kernels, runs, peers or \
a test of: $golden $kernels $runs" ;;
    esac
done

# ---- libraries -----------------------------------------------------------------------------------

# knows NAME: the loader finds a library whose file begins with that.
knows() {
    ldconfig -p 2>/dev/null | grep -q "^[[:space:]]*$1" && return
    (IFS=:; for place in ${LD_LIBRARY_PATH:-}; do
        ls "$place/$1"* >/dev/null 2>&1 && exit
    done; exit 1)
}

# Where drivers, the Python packages of NVIDIA's libraries and the toolkit put them, behind what the loader knows.
find_libraries() {
    places="/usr/local/nvidia/lib64 /usr/lib/wsl/lib $(python3 -c '
import glob, nvidia
for place in nvidia.__path__:
    print(*glob.glob(place + "/*/lib"))' 2>/dev/null) /usr/local/cuda/lib64"
    for library in libcuda.so.1 libnvrtc.so libcublasLt.so libcudnn.so.9 libnccl.so.2 libcupti.so; do
        for place in $places; do
            knows $library || ! ls "$place/$library"* >/dev/null 2>&1 ||
                export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$place"
        done
    done
}

find_libraries
knows libcuda.so.1 || refuse "no card: there is no driver (libcuda.so.1)" 77

# ---- the build -----------------------------------------------------------------------------------

make_build() {
    [ -x configure ] || ./autogen.sh || return 1
    mkdir -p "$build" && cd "$build" || return 1
    [ -e Makefile ] || "$source/configure" -q || return 1
    make -s -j"$(nproc)" && make -s -j"$(nproc)" check TESTS=
}

mkdir -p "$folder" || refuse "cannot make '$folder'" 1
folder=$(cd "$folder" && pwd)
work=$(mktemp -d "$("$source/tests/tools/scratch.sh")/on-card-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
rm -f "$folder/report.txt" "$folder/tests.txt"
if [ ! -x "$build/pons" ] || [ ! -x "$build/tests/integration/golden/check_cuda_losses" ]; then
    (make_build) >"$work/make.log" 2>&1 || {
        tail -n 20 "$work/make.log"
        refuse "pons cannot be made in '$build'" 1
    }
fi
build=$(cd "$build" && pwd)
pons=$build/pons
# Processes of one machine meet on loopback, which is there without a network.
NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
export NCCL_SOCKET_IFNAME PONS_TEST_CARD=real PONS_PLUGIN_PATH="$build/stage" srcdir="$source" CK_DEFAULT_TIMEOUT=120
# The user's cache neither gives a kernel nor gets one.
TMPDIR=$work
XDG_CACHE_HOME=$work/cache
export TMPDIR XDG_CACHE_HOME
cd "$build" || exit 1

$pons devices >"$work/devices" 2>&1
grep -q '^cuda:[0-9]' "$work/devices" ||
    refuse "no card: $(sed -n 's/^cuda  *//p' "$work/devices" | head -n 1)" 77

# ---- what there is -------------------------------------------------------------------------------

# Libraries that pons does without, and the tests that do not: LIBRARY:TEST.
libraries="cuBLASLt:check_blas cuDNN:check_dnn NCCL:check_nccl"
needed_by() {
    for pair in $libraries; do
        [ "${pair#*:}" != "$1" ] || echo "${pair%%:*}"
    done
}

"$pons" doctor >"$work/found" 2>&1
# lacks LIBRARY: by what is said of card 0, and of communicators.
lacks() {
    case $1 in
    NCCL) ! grep -q '^nccl  *ready' "$work/found" ;;
    *) ! grep -q "^cuda:0 .*, $1 [0-9]" "$work/found" ;;
    esac
}

# ---- counts --------------------------------------------------------------------------------------

# Each test leaves 'PASSED FAILED SKIPPED' in a file of its own.
mkdir "$work/counts"
count() { echo "$2" >"$work/counts/$1"; }
left() { echo $((begun + limit - $(date +%s))); }
# skip NAME WHY
skip() {
    say "SKIPPED: $1: $2"
    count "$1" "0 0 1"
}

# test_file TREE NAME: where it lies in the source tree or in a build.
test_file() { find "$1/tests" -name "$2" ! -path '*/.libs/*' ! -path "$1/tests/*/plugins/*" | head -n 1; }

# One test, from its name: Check's own lines are counted, tests in shell print the same.
run_test() {
    name=$1
    seconds=$patience
    [ "$(left)" -ge "$seconds" ] || seconds=$(left)
    if [ "$(left)" -lt 5 ]; then
        skip "$name" "no time is left"
        return
    fi
    library=$(needed_by "$name")
    if [ -n "$library" ] && lacks "$library"; then
        skip "$name" "needs $library"
        return
    fi
    case $name in
    check_options.sh) set -- "$(test_file "$source" "$name")" devices=cuda ;;
    *.sh) set -- "$(test_file "$source" "$name")" ;;
    *) set -- "$(test_file "$build" "$name")" ;;
    esac
    since=$(date +%s)
    timeout -k 5 "$seconds" "$@" >"$work/$name.log" 2>&1
    status=$?
    count "$name" "$(awk -v status=$status '
        /^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+$/ {
            gsub(/,/, ""); passed += $3 - $5 - $7; failed += $5 + $7 }
        /^SKIPPED: / { skipped++ }
        END { if (status == 77) skipped++; else if (status != 0 && failed == 0) failed++
              print passed + 0, failed + 0, skipped + 0 }' "$work/$name.log")"
    read -r passed failed skipped <"$work/counts/$name"
    why=
    [ $status -ne 124 ] && [ $status -ne 137 ] || why=", ended after its $seconds s"
    say "$name: $passed passed, $failed failed, $skipped skipped in $(($(date +%s) - since)) s$why"
    { echo "== $name, status $status"; cat "$work/$name.log"; } >>"$folder/tests.txt"
    [ "$failed" -eq 0 ] || { grep -E ':[FE]:|^FAILED' "$work/$name.log" || tail -n 5 "$work/$name.log"; } |
        head -n 10 | cut -c 1-300 | tee -a "$folder/report.txt"
}

# The tests of parts that follow one another, as many at a time as -j says.
run_tests() {
    running=0
    for test in $waiting; do
        (run_test "$test") &
        running=$((running + 1))
        [ $running -lt "$jobs" ] || { wait; running=0; }
    done
    wait
    waiting=
}

# look NAME COMMAND...: one thing that shall succeed, within $most seconds; what it says is in $work/NAME.
most=180
look() {
    name=$1
    shift
    if [ "$(left)" -lt 5 ]; then
        skip "$name" "no time is left"
        return 1
    fi
    seconds=$most
    [ "$(left)" -ge "$seconds" ] || seconds=$(left)
    if timeout -k 5 "$seconds" "$@" >"$work/$name" 2>"$work/$name.err"; then
        count "$name" "1 0 0"
        return 0
    fi
    count "$name" "0 1 0"
    say "FAILED: $name: $(head -n 3 "$work/$name.err" "$work/$name" | cut -c 1-300)"
    return 1
}

# ---- machine -------------------------------------------------------------------------------------

part_machine() {
    {
        uname -srm
        nvidia-smi 2>/dev/null
        echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
    } >"$folder/machine.txt"
    look devices "$pons" devices && grep -A 1 '^cuda:' "$work/devices" | cut -c 1-300 | tee -a "$folder/report.txt"
    for pair in $libraries; do
        ! lacks "${pair%%:*}" || say "there is no ${pair%%:*}"
    done
    look doctor "$pons" doctor && cat "$work/doctor" >>"$folder/machine.txt"
    most=60
    look requests "$pons" plugin check "$PONS_PLUGIN_PATH/device/cuda.so" &&
        cat "$work/requests" >>"$folder/machine.txt"
    most=180
}

# ---- figures -------------------------------------------------------------------------------------

# number FILE KEY: the first number of that name.
number() { sed -n "s/.*\"$2\":\(-\{0,1\}[0-9][0-9.e+-]*\).*/\1/p" "$1" | head -n 1; }
# median FILE: seconds of a step.
median() { sed -n 's/.*"step_seconds":{"median":\([0-9.e+-]*\).*/\1/p' "$1" | head -n 1; }
note() { say "figure: $*" && echo "$*" >>"$folder/figures.txt"; }

# step NAME FILE PATCHES SET...: a step of FILE, its kernels and what is between them.
step() {
    what=$1
    file=$2
    patches=$3
    shift 3
    look "$what" "$pons" bench "$file" --json --kernels --no-data --warm-up 5 --steps "$steps" "$@" || return
    cp "$work/$what" "$folder/$what.json"
    all=$(sed -n 's/.*"summary":{"all":{\([^}]*\)}.*/\1/p' "$work/$what" | sed 's/"[a-z_]*"://g; s/,/ /g')
    note "$what: $(echo "$(median "$work/$what") $patches $all" | awk '{
        printf "step %.4f ms, %.1f patches per second; %d kernels, ", 1e3 * $1, $2 / $1, $3
        printf "%.4f ms on the card one by one, gaps %.1f %% of the step", 1e-6 * $5, 100 * (1 - 1e-9 * $5 / $1) }')"
}

# What is measured: a file and words for each of two networks, and their data, in $work; once.
networks_ready=
set_networks() {
    here="--set distribute.devices=cuda --set train.precision=bf16 --set device.cache_dir=$work/kernels"
    [ -z "$networks_ready" ] || return
    networks_ready=yes
    rm -f "$folder/figures.txt"
    cp "$source/tests/peers/spleen.ini" "$source/tests/peers/dynunet.ini" "$work"
    steps=50
    rounds=3
    extent=112
    spleen="--set train.batch=8"
    nnunet="--set train.batch=2 --set patch.extent=128"
    [ -z "$small" ] || {
        steps=2
        rounds=1
        extent=16
        spleen="--set train.batch=2 --set patch.extent=16 --set model.strides=2"
        nnunet="--set train.batch=1 --set patch.extent=16"
        sed -i 's/^channels = .*/channels = 4 8/' "$work/spleen.ini"
        sed -i 's/^kernel_size = .*/kernel_size = 3 3 3/; s/^strides = .*/strides = 1 2 2/
            s/^upsample_kernel_size = .*/upsample_kernel_size = 2 2/
            s/^filters = .*/filters = 4 8 8/' "$work/dynunet.ini"
    }
    (cd "$work" && "$pons" data phantom -o phantom --cases 4 --extent $extent,$extent,$extent 2>log) ||
        say "there is no data: $(tail -n 1 "$work/log")"
}

# batch_of WORDS
batch_of() { echo "$1" | sed 's/.*batch=\([0-9]*\).*/\1/'; }

part_figures() {
    set_networks
    cd "$work" || return
    # shellcheck disable=SC2046,SC2086 # words
    {
        step spleen spleen.ini "$(batch_of "$spleen")" $here $spleen
        note "aim: spleen, 8 x 96^3, bf16: 1.9 ms on an H200; gaps under 2 %"
        step nnunet dynunet.ini "$(batch_of "$nnunet")" $here $nnunet
        note "aim: nnU-Net, 128^3: 76 patches per second on an H200"
        for cache in memory device; do
            look cache-$cache "$pons" bench spleen.ini --json --steps "$steps" $here $spleen \
                --set data.cache=$cache &&
                note "cache = $cache: $(echo "$(median "$work/cache-$cache") \
                    $(number "$work/cache-$cache" with_data_seconds)" | awk '{
                    printf "step %.4f ms, with data %.4f ms, data in time for %.0f %%", 1e3 * $1, 1e3 * $2,
                    $1 < $2 ? 100 * $1 / $2 : 100 }')"
        done
        note "aim: 100 % with cache = device"
        for kernels in cold warm; do
            since=$(date +%s%N)
            look start-$kernels "$pons" train spleen.ini --fresh -q $here $spleen --set train.steps=1 \
                --set device.cache_dir="$work/started" --set experiment.name=started &&
                note "start: one step, $kernels cache of kernels: $((($(date +%s%N) - since) / 1000000)) ms," \
                    "the process and its checkpoint included"
        done
        if command -v python3 >/dev/null; then
            look first-step python3 "$source/tests/peers/start.py" "$pons" spleen.ini \
                distribute.devices=cuda train.precision=bf16 device.cache_dir="$work/started" \
                $(echo "$spleen" | sed 's/--set //g') --rounds "$rounds" && note "start: $(cat "$work/first-step")"
        else
            skip first-step "needs python3"
        fi
        note "aim: 3 s to the first step with a warm cache of kernels"
    }
    cd "$build" || exit 1
}

# ---- precisions ----------------------------------------------------------------------------------

# pace NAME FILE WORDS MORE...: a step of FILE.
pace() {
    what=$1
    file=$2
    words=$3
    shift 3
    # shellcheck disable=SC2086 # words
    look "pace-$what" "$pons" bench "$file" --json --no-data --warm-up 5 --steps "$steps" $here $words "$@" || return
    cp "$work/pace-$what" "$folder/pace-$what.json"
    note "$what: $(echo "$(median "$work/pace-$what") $(batch_of "$words")" |
        awk '{ printf "step %.4f ms, %.1f patches per second", 1e3 * $1, $2 / $1 }')"
}

part_precisions() {
    set_networks
    cd "$work" || return
    for precision in bf16 tf32 fp32; do
        for autotune in no yes; do
            for network in "spleen spleen.ini $spleen" "nnunet dynunet.ini $nnunet"; do
                named=${network%% *}
                network=${network#* }
                [ -z "$small" ] || [ "$named:$precision" = spleen:bf16 ] || continue
                pace "$named-$precision-autotune-$autotune" "${network%% *}" "${network#* }" \
                    --set train.precision=$precision --set device.autotune=$autotune
            done
        done
    done
    pace spleen-bf16-deterministic spleen.ini "$spleen" --set experiment.deterministic=yes
    cd "$build" || exit 1
}

# ---- trace ---------------------------------------------------------------------------------------

# trace NAME FILE WORDS: the longest kernels of a step; all of them are in files.
trace() {
    rm -f "$work/traced".*
    # shellcheck disable=SC2086 # words
    look "trace-$1" env CUDA_INJECTION64_PATH="$build/tests/tools/.libs/libcuptitrace.so" CUPTI_TRACE="$work/traced" \
        "$pons" bench "$2" --json --no-data --warm-up 5 --steps "$steps" $here $3 || return
    cat "$work/trace-$1.err" >>"$folder/tests.txt"
    for kind in summary kernels; do
        # Of the process that has most to tell.
        traced=$(ls -S "$work/traced".*.$kind 2>/dev/null | head -n 1)
        [ -s "$traced" ] || { count "trace-$1" "0 1 0"; say "FAILED: trace-$1: no $kind"; return; }
        gzip -c "$traced" >"$folder/trace-$1.$kind.gz"
        [ $kind = kernels ] || head -n 40 "$traced" | cut -c 1-160 | sed "s/^/$1: /" >>"$folder/trace.txt"
    done
    note "$1, as the card ran it: $(gzip -dc "$folder/trace-$1.summary.gz" | head -n 2 | paste -s -d ';')"
}

part_trace() {
    if [ ! -f "$build/tests/tools/.libs/libcuptitrace.so" ] || ! knows libcupti.so; then
        skip trace "needs CUPTI"
        return
    fi
    set_networks
    rm -f "$folder/trace.txt"
    cd "$work" || return
    trace spleen spleen.ini "$spleen"
    trace nnunet dynunet.ini "$nnunet"
    cd "$build" || exit 1
}

# ---- peers ---------------------------------------------------------------------------------------

part_peers() {
    # MONAI as tests/pack_card.sh has packed it.
    for wheel in "$build"/python/*.whl; do
        [ ! -f "$wheel" ] || { python3 -m zipfile -e "$wheel" "$work/python" &&
            export PYTHONPATH="$work/python${PYTHONPATH:+:$PYTHONPATH}"; }
    done
    if ! python3 -c 'import sys, torch, monai; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        skip peers "needs PyTorch with CUDA, and MONAI"
        return
    fi
    rm -f "$folder/peers.txt"
    # What is compiled takes minutes: it comes last.
    for way in ${WAYS-eager_last graphs_last}; do
        most=$(left)
        look "peers-$way" env ROWS="${ROWS:-spleen_card nnunet_card}" WAYS="$way" \
            "$source/tests/peers/step.sh" "$pons" 1 "$work/rows-$way" &&
            cat "$work/peers-$way" >>"$folder/report.txt"
        # Without its time, what it has measured.
        [ ! -e "$work/peers-$way.err" ] || cat "$work/peers-$way.err" "$work/peers-$way" >>"$folder/peers.txt"
    done
    most=180
}

# ---- all -----------------------------------------------------------------------------------------

waiting=
for part in $parts; do
    case $part in
    golden) waiting="$waiting $golden" ;;
    kernels) waiting="$waiting $kernels" ;;
    runs)
        waiting="$waiting $runs"
        for test in $without; do
            skip "${test%%:*}" "$(echo "${test#*:}" | tr _ ' ')"
        done
        ;;
    machine | figures | precisions | trace | peers)
        run_tests
        "part_$part"
        ;;
    *) waiting="$waiting $part" ;;
    esac
done
run_tests
read -r passed failed skipped <<STOP
$(cat "$work"/counts/* | awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
STOP
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
