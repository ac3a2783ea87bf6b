# What the scripts of this folder begin with: the program, the words that tell them what to measure, a folder for
# what is measured, the middle of measurements. Each reads it first, . "$(dirname "$0")/rounds.sh", and takes the
# program as its first argument. Words are looked at before anything is made.
set -eu

# refuse WHY: ends the script, or, in $(...) behind "name=", both.
refuse() {
    echo "$(basename "$0"): $1" >&2
    exit 2
}

# The words of a script's call are those of the comment that it opens with.
case ${1:-} in
'' | -*)
    sed -n '/^# *tests\/peers\//{ s/^# */usage: /; s/   *needs:.*//; s/   *[A-Z]*: .*//; p; q; }' "$0" >&2
    exit 2
    ;;
esac
pons=$(realpath -m "$1")
[ -f "$pons" ] && [ -x "$pons" ] || refuse "no program '$1'"
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/small_unet.sh"
runner=${RUNNER:-}

# chosen WHAT WORDS KNOWN...: the words, of those that are known; all of those where there are none.
chosen() (
    set -f
    what=$1
    words=$2
    shift 2
    for word in $words; do
        case " $* " in
        *" $word "*) ;;
        *) refuse "unknown word '$word' of $what, expected of: $*" ;;
        esac
    done
    case $words in
    *[![:space:]]*) echo "$words" ;;
    *) echo "$*" ;;
    esac
)

# whole WHAT WORD: refuses all but whole numbers from 1 up.
whole() {
    case $2 in
    '' | 0* | *[!0-9]*) refuse "'$2' of $1, expected a whole number from 1 up" ;;
    esac
}

# keep [FOLDER]: what is measured stays in FOLDER; without one it goes away at the end.
keep() {
    folder=${1:-$(mktemp -d)}
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    [ -n "${1:-}" ] || trap 'rm -rf "$folder"' EXIT
}

# The middle of the numbers on the standard input; nothing where there are none.
median() {
    sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# has_round FILE ROUND: a line of FILE begins with that number.
has_round() { [ -e "$1" ] && awk -v r="$2" '$1 == r { found = 1 } END { exit !found }' "$1"; }

# The networks that are measured, in $folder, and the cases that they read.
networks() {
    for name in spleen segresnet dynunet vnet attention residual fast_ddpm basicunet swin_unetr resnet50 xresnet50 \
        resnet18; do
        cp "$here/$name.ini" "$folder"
    done
    sed 's/^channels = .*/channels = 32 64 128 256 512/' "$folder/spleen.ini" >"$folder/fast.ini"
    [ -e "$folder/phantom" ] || "$pons" data phantom -o "$folder/phantom" --cases 1 --extent 112,112,112 >&2
    [ -e "$folder/regions" ] ||
        "$pons" data phantom -o "$folder/regions" --cases 1 --extent 112,112,112 --channels 4 --classes 4 >&2
    classified pictures 1,224,224 3
    classified volumes 64,64,64 1
}

# classified NAME EXTENT CHANNELS: two images of that extent with their classes, in $folder/NAME.csv.
classified() {
    [ -e "$folder/$1.csv" ] && return
    "$pons" data phantom -o "$folder/$1" --cases 2 --extent "$2" --channels "$3" >&2
    printf '%s\n' image,label "$1/imagesTr/phantom_000.nii.gz,cat" "$1/imagesTr/phantom_001.nii.gz,dog" \
        >"$folder/$1.csv"
}
