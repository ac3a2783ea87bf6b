#!/bin/sh
# Time each cache of preprocessed cases: MONAI's experiment with datasets (none, memory, disk, lmdb, smart).
#
#   examples/datasets_speed.sh [--cases N] [--extent "I J K"] [--epochs N] [--folder DIR] [SETTING...]
#
# Makes a dataset in DIR (default: datasets_speed), trains datasets_speed.ini on it with each cache, and
# prints seconds. The first epoch includes the start, where all cases are read. A line 'again' is a second run
# on the files of the first. A smart cache has fewer cases in an epoch: compare the milliseconds of a case.
# PONS names the program (default: pons). A SETTING such as patch.extent=96 changes the INI file's value.
set -eu

pons=${PONS:-pons}
cases=12
extent="128 128 96"
epochs=5
folder=datasets_speed
while [ $# -gt 0 ]; do
    case $1 in
    --cases | --extent | --epochs | --folder)
        [ $# -gt 1 ] || { echo "datasets_speed.sh: $1 needs a value" >&2; exit 2; }
        case $1 in
        --cases) cases=$2 ;;
        --extent) extent=$2 ;;
        --epochs) epochs=$2 ;;
        --folder) folder=$2 ;;
        esac
        shift 2
        ;;
    --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "datasets_speed.sh: unknown argument '$1'" >&2; exit 2 ;;
    *) break ;;
    esac
done
case $epochs in
'' | *[!0-9]* | 0 | 1) echo "datasets_speed.sh: --epochs '$epochs', expected 2 or more" >&2; exit 2 ;;
esac
ini=$(cd "$(dirname "$0")" && pwd)/datasets_speed.ini
mkdir -p "$folder"
cd "$folder"
for own in phantom runs cases; do
    if [ -e "$own" ] && [ ! -e .datasets_speed ]; then
        echo "datasets_speed.sh: '$folder/$own' was not made by this script and would be lost" >&2
        exit 2
    fi
done
: >.datasets_speed
rm -rf phantom runs cases
"$pons" data phantom -o phantom --cases "$cases" --extent "$extent" >phantom.log 2>&1 || { cat phantom.log >&2; exit 1; }
cp "$ini" .

# Settings become arguments of --set, behind those of the script.
for setting; do
    shift
    set -- "$@" --set "$setting"
done

# timed CACHE NAME SETTING...: a line of the table.
timed() {
    cache=$1 name=$2
    shift 2
    begin=$(date +%s%N)
    "$pons" train datasets_speed.ini --set data.cache="$cache" --set data.cache_dir="$PWD/cases/$cache" \
        --set experiment.name="$name" --set train.epochs="$epochs" "$@" >log 2>&1 || { cat log >&2; exit 1; }
    end=$(date +%s%N)
    seen=$(sed -n 's/^\([0-9]*\) of [0-9]* training cases are in the cache.*/\1/p' log)
    awk -F'[:,]' -v nanoseconds=$((end - begin)) -v name="$name" -v cases="${seen:-$cases}" \
        -v none="${none:-0}" '
        /"kind":"step"/ {
            for (i = 1; i < NF; i++) {
                if ($i == "\"epoch\"") epoch = $(i + 1)
                if ($i == "\"seconds\"") seconds = $(i + 1)
            }
            if (epoch > 1) later += seconds
            last = epoch
        }
        END {
            all = nanoseconds / 1e9
            each = later / (last - 1)
            ms = 1000 * each / cases
            times = (none > 0) ? none / ms : 1
            printf "%-12s %8d %14.2f %14.3f %10.2f %10.1f %8.1f\n", name, cases, all - later, each, all,
                ms, times
        }' "runs/$name/metrics.jsonl"
}

echo "$cases cases of $extent voxels, $epochs epochs; seconds"
printf '%-12s %8s %14s %14s %10s %10s %8s\n' cache cases "first epoch" "later epoch" total "ms a case" faster
line=$(timed none none "$@")
echo "$line"
none=$(echo "$line" | awk '{ print $6 }')
timed memory memory "$@"
timed disk disk "$@"
timed disk disk-again "$@"
if "$pons" help data.cache | grep -q 'Not in this build:.*lmdb'; then
    echo "lmdb         not in this build"
else
    timed lmdb lmdb "$@"
    timed lmdb lmdb-again "$@"
fi
timed smart smart "$@"
