#!/bin/sh
# Plugins built with the installed headers alone: they pass the conformance test, and train in fp32 and
# bf16 with a loss that falls.
set -eu

builddir=$(pwd)
work=$builddir/tests/outside-work
rm -rf "$work"
mkdir -p "$work"
passed=0

fail() {
    echo "check_outside: $*" >&2
    exit 1
}

make -s install prefix="$work/installed" exec_prefix="$work/installed" \
    libdir="$work/installed/lib" >"$work/install.log" 2>&1 || fail "install failed"
export PKG_CONFIG_PATH="$work/installed/lib/pkgconfig"
# The .pc file names the configured prefix; the trial installation is somewhere else.
sed -i "s|^prefix=.*|prefix=$work/installed|; s|^exec_prefix=.*|exec_prefix=$work/installed|
        s|^libdir=.*|libdir=$work/installed/lib|; s|^includedir=.*|includedir=$work/installed/include|" \
    "$PKG_CONFIG_PATH/pons.pc"
make -s -C "$work" -f "$srcdir/tests/outside/Makefile" SOURCE="$srcdir/tests/outside" \
    DEFS="${OUTSIDE_DEFS--Wl,-z,defs}" CC="${CC:-cc}" >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    fail "the plugins do not build"
}
pons=$work/installed/bin/pons
export LD_LIBRARY_PATH="$work/installed/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PONS_PLUGIN_PATH="$work/plugins:$work/installed/lib/pons"

for plugin in model/branches loss/power optimizer/unit; do
    "$pons" plugin check "$work/plugins/$plugin.so" >"$work/check.log" 2>&1 || {
        cat "$work/check.log" >&2
        fail "plugin check refuses $plugin"
    }
    passed=$((passed + 1))
done

cd "$work"
"$pons" data phantom -o phantom --cases 1 --extent 16,16,16
cp "$srcdir/tests/outside/outside.ini" .
for precision in fp32 bf16; do
    "$pons" train outside.ini --set experiment.name=$precision --set train.precision=$precision \
        >train.log 2>&1 || { cat train.log >&2; fail "training in $precision failed"; }
    awk -F'"loss":' '{ split($2, v, ","); if (NR == 1) first = v[1]; last = v[1] }
        END { exit !(last < first) }' runs/$precision/metrics.jsonl ||
        fail "the loss does not fall in $precision"
    passed=$((passed + 1))
done
echo "100%: Checks: $passed, Failures: 0, Errors: 0"
