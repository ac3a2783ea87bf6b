#!/bin/sh
# Plugins built with the installed headers alone pass the conformance test, and train in fp32 and
# bf16 with a loss that falls. OUTSIDE_CC and OUTSIDE_DEFS are the compiler and flags of the tree's
# plugins, OUTSIDE_CXX the compiler of C++.
set -eu

srcdir=$(cd "${srcdir:-.}" && pwd)
builddir=$(pwd)
work=$builddir/tests/outside-work
cd "$builddir"
rm -rf "$work"
mkdir -p "$work"
passed=0

fail() {
    echo "check_outside: $*" >&2
    exit 1
}

make -s install DESTDIR="$work/root" >"$work/install.log" 2>&1 || fail "install failed"
prefix=$(sed -n 's/^prefix=//p' pons.pc)

# Check every link from an installed text to a file beside it.
readme=$(find "$work/root" -name README.md)
[ -n "$readme" ] || fail "no README.md is installed"
documents=$(dirname "$readme")
find "$documents" -name '*.md' | while read -r text; do
    grep -o '](\([^)#:]*\))' "$text" | sed 's/^](//; s/)$//' | sort -u | while read -r link; do
        echo link >>"$work/links"
        [ -e "$(dirname "$text")/$link" ] || echo "${text#"$documents"/}: $link"
    done
done >"$work/broken"
[ -s "$work/links" ] && [ ! -s "$work/broken" ] || fail "links of installed texts break: $(cat "$work/broken")"
passed=$((passed + 1))
PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name pons.pc)")
libraries=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR="$work/root"

# The examples of docs/kinds begin with a comment that names their file: /* KIND/NAME.c - ...
mkdir "$work/guide"
awk -v folder="$work/guide" '
    /^```c$/ { code = 1; file = ""; next }
    /^```$/ { if (file != "") close(file); code = 0 }
    code && file == "" { path = $2; kind = path; sub("/.*", "", kind)
                         system("mkdir -p " folder "/" kind); file = folder "/" path }
    code { print > file }' "$srcdir"/docs/kinds/*.md
examples=$(cd "$work/guide" && find . -name '*.c' | sed 's/^\.\///; s/\.c$//' | sort)
[ "$(echo "$examples" | wc -l)" -ge 8 ] || fail "docs/kinds has the examples: $examples"
make -s -C "$work" -f "$srcdir/tests/outside/Makefile" SOURCE="$srcdir/tests/outside" GUIDE="$work/guide" \
    DEFS="$OUTSIDE_DEFS" CC="$OUTSIDE_CC" >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    fail "the plugins do not build"
}
pons=$work/root$prefix/bin/pons
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PONS_PLUGIN_PATH="$work/plugins:$libraries/pons"

# A model of 46 tensors is evaluated 180 times in double, which takes a minute in a build with sanitizers.
for plugin in op/box_mean model/branches model/levels loss/power optimizer/unit transform/gamma_shift sink/lines \
    device/host comm/single $examples; do
    "$pons" plugin check "$work/plugins/$plugin.so" --timeout 900 >"$work/check.log" 2>&1 || {
        cat "$work/check.log" >&2
        fail "plugin check refuses $plugin"
    }
    passed=$((passed + 1))
done

# A new plugin of each kind compiles, passes its test and trains as it is.
for kind in loss model op optimizer schedule sink transform; do
    "$pons" plugin new $kind my_$kind -o "$work/new/$kind" 2>"$work/check.log" &&
        PATH="$(dirname "$pons"):$PATH" make -s -C "$work/new/$kind" check CC="$OUTSIDE_CC" \
            LDFLAGS="$OUTSIDE_DEFS -Werror" >"$work/check.log" 2>&1 || {
        cat "$work/check.log" >&2
        fail "a new $kind does not pass its test"
    }
    passed=$((passed + 1))
done

# The check of an example names the option.
status=0
"$pons" plugin check "$work/plugins/optimizer/heavy.so" --set optimizer.ahead=yes --set optimizer.momentum=0 \
    >"$work/check.log" 2>&1 || status=$?
[ "$status" -eq 3 ] && grep -q "\[optimizer\] ahead: found yes, expected no without momentum" "$work/check.log" ||
    fail "options that contradict each other give $status: $(cat "$work/check.log")"
passed=$((passed + 1))

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

sed 's/^plugin = branches$/plugin = levels/; s/^width = .*/features = 2 4 4/' outside.ini >levels.ini
"$pons" train levels.ini --set experiment.name=levels >train.log 2>&1 || { cat train.log >&2; fail "training of levels failed"; }
awk -F'"loss":' '{ split($2, v, ","); if (NR == 1) first = v[1]; last = v[1] } END { exit !(last < first) }' \
    runs/levels/metrics.jsonl || fail "the loss of levels does not fall"
passed=$((passed + 1))

# A transform of values that only runs on the host is named if the device is to extract the patches.
status=0
"$pons" train outside.ini --set data.cache=device >train.log 2>&1 || status=$?
[ "$status" -eq 3 ] && grep -q "'gamma_shift': transform 'gamma_shift' works on the host only" train.log ||
    fail "a step of the host gives $status: $(cat train.log)"
passed=$((passed + 1))

# A sink's options come from its section.
[ "$(grep -c '^step ' runs/fp32/steps.txt)" -eq 20 ] || fail "the sink has not got its option"
sed -n '/^\[log.lines\]/,$p' runs/fp32/resolved.ini | grep -q '^file = steps.txt' ||
    fail "resolved.ini does not hold the sink's option"
"$pons" predict runs/fp32 phantom/imagesTr/phantom_000.nii.gz -o out.nii.gz >/dev/null ||
    fail "a prediction minds the sink"
status=0
"$pons" train outside.ini --set log.lines.fil=x >train.log 2>&1 || status=$?
[ "$status" -eq 3 ] && grep -q "unknown key 'fil' in \[log.lines\]; did you mean 'file'" train.log ||
    fail "a wrong option of a sink gives $status: $(cat train.log)"
passed=$((passed + 4))

# A run names the file of a plugin that is not found, and the path that finds it; it is not loaded by itself.
grep -qx "; model branches is $work/plugins/model/branches.so" runs/fp32/resolved.ini ||
    fail "resolved.ini does not name the file of the model"
for command in "predict runs/fp32 phantom/imagesTr/phantom_000.nii.gz -o lost.nii.gz" "evaluate --run runs/fp32" \
    "export runs/fp32 -o lost.onnx" "train outside.ini --set experiment.name=fp32 --set train.steps=30"; do
    status=0
    # shellcheck disable=SC2086 # words of a command
    PONS_PLUGIN_PATH="$libraries/pons" "$pons" $command >lost.log 2>&1 || status=$?
    [ "$status" -eq 3 ] && grep -q "no model plugin is called 'branches'" lost.log &&
        grep -q "^hint: the run had it from '$work/plugins/model/branches.so', which PONS_PLUGIN_PATH=$work/plugins:" \
            lost.log || fail "'pons ${command%% *}' without a plugin gives $status: $(cat lost.log)"
    passed=$((passed + 1))
done
mv plugins/op/box_mean.so plugins/box_mean.so
status=0
"$pons" predict runs/fp32 phantom/imagesTr/phantom_000.nii.gz -o lost.nii.gz >lost.log 2>&1 || status=$?
[ "$status" -ne 0 ] && grep -q "hint: the run had it from '$work/plugins/op/box_mean.so', where there is no file" lost.log ||
    fail "a file that is gone gives $status: $(cat lost.log)"
mv plugins/box_mean.so plugins/op/box_mean.so
[ ! -e lost.nii.gz ] || fail "a plugin that is not found leaves a prediction"
passed=$((passed + 3))

# The example of a program finds the classes that the command writes, and returns its exit codes.
cp -r "$srcdir/examples/embed" embed
make -s -C embed CC="$OUTSIDE_CC" >build.log 2>&1 || { cat build.log >&2; fail "examples/embed does not build"; }
embed/volumes runs/fp32 phantom/imagesTr/phantom_000.nii.gz >volumes.txt 2>&1 ||
    { cat volumes.txt >&2; fail "examples/embed/volumes failed"; }
# The headers are those of a C++ program too.
if $OUTSIDE_CXX --version >/dev/null 2>&1; then
    # shellcheck disable=SC2046 # lists of words
    $OUTSIDE_CXX -std=c++2a -x c++ embed/volumes.c -x none $(pkg-config --cflags --libs pons) -o embed/volumes_cxx \
        >build.log 2>&1 || { cat build.log >&2; fail "examples/embed/volumes.c does not build as C++"; }
    embed/volumes_cxx runs/fp32 phantom/imagesTr/phantom_000.nii.gz | cmp - volumes.txt ||
        fail "volumes.c finds other volumes in C++"
    passed=$((passed + 1))
fi
"$pons" evaluate --prediction out.nii.gz --label out.nii.gz --labels thing:1 --json >out.json
found=$(sed -n '2s/.*: \([0-9]*\) voxels.*/\1/p' volumes.txt)
grep -q "\"voxels\":{\"prediction\":$found," out.json ||
    fail "volumes finds '$(cat volumes.txt)', the command $(cat out.json)"
status=0
embed/volumes runs/none x.nii.gz >volumes.txt 2>&1 || status=$?
[ "$status" -eq 3 ] && grep -q "there is no run" volumes.txt || fail "a missing run gives $status: $(cat volumes.txt)"
passed=$((passed + 2))

# The run records the op with its hash, and a continued run reports another file of that name.
grep -q '^; op box_mean 1.0 sha256 [0-9a-f]*$' runs/fp32/resolved.ini ||
    fail "resolved.ini does not name the op"
grep -q '"plugin op.box_mean":"box_mean 1.0 sha256 [0-9a-f]\{64\}"' \
    "runs/fp32/checkpoints/$(cat runs/fp32/checkpoints/last)/manifest.json" ||
    fail "the checkpoint does not name the op"
"$pons" explain outside.ini --kernels | grep -q 'op  *plugin .*box_mean$' || fail "explain does not show the op"
"$pons" train outside.ini --set experiment.name=exact --set experiment.deterministic=yes \
    --set train.steps=2 >train.log 2>&1 || { cat train.log >&2; fail "training failed"; }
printf x >>plugins/op/box_mean.so
"$pons" train outside.ini --set experiment.name=fp32 --set train.precision=fp32 \
    --set train.steps=21 >train.log 2>&1 || { cat train.log >&2; fail "it does not go on"; }
grep -q "in another environment than it began in; .*: plugin op.box_mean was 'box_mean 1.0 sha256" train.log ||
    fail "a changed op is not told"
status=0
"$pons" train outside.ini --set experiment.name=exact --set experiment.deterministic=yes \
    --set train.steps=3 >train.log 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "a changed op of a deterministic run gives $status, expected 3"
passed=$((passed + 5))

cd "$builddir"
rm -rf "$work"
echo "100%: Checks: $passed, Failures: 0, Errors: 0"
