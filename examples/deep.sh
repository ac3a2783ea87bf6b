#!/bin/sh
# Learn hippocampus, caudate, putamen and thalamus on the left half of a real head, and score the right half.
#
#   examples/deep.sh [--folder DIR] [--data] [SETTING...]
#
# The head and its labels are ch2 and the AAL atlas of Debian's package mricron-data, which is installed if it is
# missing (with root or password-less sudo). Both are cut at the midline into DIR (default: deep): train has
# the left half and deep.ini, held-out the right half, which no training reads. --data ends after the cut. A second
# call continues an interrupted training. PONS names the program (default: pons). A SETTING such as
# train.steps=100 changes the INI file's value. The last line has the mean Dice of the right half.
set -eu

pons=${PONS:-pons}
templates=/usr/share/mricron/templates
folder=deep
data_only=no
while [ $# -gt 0 ]; do
    case $1 in
    --folder)
        [ $# -gt 1 ] || { echo "deep.sh: --folder needs a folder" >&2; exit 2; }
        folder=$2
        shift 2
        ;;
    --data) data_only=yes; shift ;;
    --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "deep.sh: unknown argument '$1', expected --folder DIR or --data" >&2; exit 2 ;;
    *) break ;;
    esac
done
ini=$(cd "$(dirname "$0")" && pwd)/deep.ini
for own in train held-out; do
    if [ -e "$folder/$own" ] && [ ! -e "$folder/.deep" ]; then
        echo "deep.sh: '$folder/$own' was not made by this script and would be lost" >&2
        echo "hint: --folder DIR names another folder" >&2
        exit 2
    fi
done

install_head() {
    [ ! -f "$templates/ch2.nii.gz" ] || [ ! -f "$templates/aal.nii.gz" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        echo "deep.sh: mricron-data is not installed; as root: apt-get install mricron-data" >&2
        exit 1
    fi
    $as_root apt-get update -qq >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq mricron-data >&2
}

# half NAME FOLDER START EXTENT: image and labels of one half.
half() {
    "$pons" data crop "$templates/ch2.nii.gz" -o "$2/images/ch2-$1.nii.gz" --start "$3" --extent "$4"
    "$pons" data crop "$templates/aal.nii.gz" -o "$2/labels/ch2-$1.nii.gz" --start "$3" --extent "$4"
}

install_head
mkdir -p "$folder"
: >"$folder/.deep"
if [ ! -f "$folder/held-out/labels/ch2-right.nii.gz" ]; then
    half left "$folder/train" 0,0,0 90,217,181
    half right "$folder/held-out" 91,0,0 90,217,181
fi
cp "$ini" "$folder/train/deep.ini"
[ "$data_only" = no ] || exit 0

count=$#
while [ "$count" -gt 0 ]; do
    set -- "$@" --set "$1"
    shift
    count=$((count - 1))
done
"$pons" train "$folder/train/deep.ini" "$@"

held=$folder/held-out
"$pons" predict "$folder/train/runs/deep" "$held/images/ch2-right.nii.gz" -o "$held/prediction.nii.gz"
score() {
    "$pons" evaluate --prediction "$held/prediction.nii.gz" --label "$held/labels/ch2-right.nii.gz" \
        --labels "hippocampus:37,38 caudate:71,72 putamen:73,74 thalamus:77,78" --metrics "dice hd95" "$@"
}
score --overlay "$held/overlay.png" --image "$held/images/ch2-right.nii.gz" || score
dice=$(score --json | grep -o '"dice":[0-9.]*' | tail -n 1 | cut -d : -f 2) # the mean comes last
echo "prediction  $held/prediction.nii.gz"
echo "overlay     $held/overlay.png"
printf 'held-out Dice %.4f, the mean of four structures\n' "$dice"
