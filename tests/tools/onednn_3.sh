#!/bin/sh
# oneDNN 3 beside the system's version. The files that call it compile with the headers of an old and a new 3.x. A
# build with the library of the old one passes the tests that run it. The last line is 'N passed, N failed'.
#
#   tests/tools/onednn_3.sh [--build FOLDER]
#
# Packages come from PyPI, whose newer libraries require SYCL's runtime; pip and Python only download them. Without
# the packages nothing is tested, and the script ends with 77.
. "$(dirname "$0")/own_build.sh"
build=$source/build-onednn-3
read_build "$@"

# try COMMAND...: the command succeeds.
try() {
    if "$@" >said 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $*"
        tail -n 40 said
    fi
}

fetch() {
    cat >packages <<'END'
onednn-cpu-gomp==2023.2.0 --hash=sha256:2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
onednn-devel-cpu-gomp==2023.2.0 --hash=sha256:9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284
onednn-devel==2026.1.0 --hash=sha256:5dc592efaed768834ac02d9086b350e08440501b11ea3f6b230a66551c9b5fac
END
    rm -rf wheels old new
    python3 -m pip download -q --no-deps --only-binary :all: --require-hashes -r packages -d wheels &&
        for wheel in wheels/onednn_cpu_gomp-* wheels/onednn_devel_cpu_gomp-*; do
            python3 -m zipfile -e "$wheel" old || return 1
        done &&
        python3 -m zipfile -e wheels/onednn_devel-* new
}

# compile INCLUDES: compile both files; every warning of the build is an error.
compile() {
    rm -f plugins/devices/cpu/conv/onednn/libcpudevice_la-onednn.lo \
        plugins/devices/cpu/conv/onednn/libcpudevice_la-onednn_compat.lo
    make ONEDNN_CFLAGS="-I$1" CFLAGS="-O2 -g -Werror" plugins/devices/cpu/conv/onednn/libcpudevice_la-onednn.lo \
        plugins/devices/cpu/conv/onednn/libcpudevice_la-onednn_compat.lo
}

is_linked() {
    ./pons doctor | grep 'oneDNN 3\.'
}

passes() {
    grep -q '^:test-result: PASS' "$1.trs" || {
        cat "$1.log"
        return 1
    }
}

enter_build
fetch || {
    echo "$script: nothing was tested: oneDNN 3 cannot be fetched from PyPI" >&2
    echo "0 passed, 0 failed"
    exit 77
}
old=$(echo "$build"/old/onednn_devel_cpu_gomp-*.data/data/include)
new=$(echo "$build"/new/onednn_devel-*.data/data/include)
library=$(echo "$build"/old/onednn_cpu_gomp-*.data/data/lib)
LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PONS_PLUGIN_PATH=$build/stage
export LD_LIBRARY_PATH PONS_PLUGIN_PATH
"$source/configure" -q --with-onednn=yes --with-gloo=no --with-mpi=no --with-cuda=no --with-cudnn=no \
    --with-nccl=no ONEDNN_CFLAGS="-I$old" ONEDNN_LIBS="-L$library -ldnnl" >make.log 2>&1 ||
    { tail make.log; stop "configure failed"; }
try compile "$new"
try compile "$old"
tests="tests/kernels/cpu/check_onednn tests/kernels/cpu/check_device_table tests/unit/plugin/check_op tests/integration/golden/check_golden_networks
    tests/integration/golden/check_golden_trajectory"
# shellcheck disable=SC2086 # a list of words
{ make -j"$(nproc)" && make -j"$(nproc)" $tests; } >>make.log 2>&1 ||
    { tail make.log; stop "make failed"; }
try is_linked
make -k -j"$(nproc)" check-TESTS TESTS="$tests" >>make.log 2>&1
for test in $tests; do
    try passes "$test"
done

finish
