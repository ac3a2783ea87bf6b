#!/bin/sh
# Learn the brain on one half of a real head, predict the other half, and score it: the whole of pons
# in a few minutes on two cores.
#
#   examples/quickstart.sh [--folder DIR] [--phantom]
#
# Installs the Debian packages that are missing (with root or password-less sudo; says what it would do
# otherwise), builds pons in DIR/build, and works in DIR (default: quickstart); started again there, it
# goes on with a training that was interrupted, and else begins anew. The head is the T1 template of
# Debian's package mricron-data; without it, or with --phantom, a synthetic one is made.
set -eu

folder=quickstart
phantom=no
while [ $# -gt 0 ]; do
    case $1 in
    --folder)
        [ $# -gt 1 ] || { echo "quickstart.sh: --folder needs a folder" >&2; exit 2; }
        folder=$2
        shift 2
        ;;
    --phantom) phantom=yes; shift ;;
    --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "quickstart.sh: unknown argument '$1', expected --folder DIR or --phantom" >&2; exit 2 ;;
    esac
done
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
case $source$folder in
*[[:space:]]*)
    echo "quickstart.sh: libtool cannot build in '$folder' from '$source': a name holds a blank" >&2
    echo "hint: --folder DIR names another folder; pons itself takes any name" >&2
    exit 2
    ;;
esac
for own in build installed train held-out phantom; do
    if [ -e "$folder/$own" ] && [ ! -e "$folder/.quickstart" ]; then
        echo "quickstart.sh: '$folder/$own' was not made by this script and would be lost" >&2
        echo "hint: --folder DIR names another folder" >&2
        exit 2
    fi
done
: >"$folder/.quickstart"
templates=/usr/share/mricron/templates

# ---- packages -------------------------------------------------------------------------------------

required="gcc make autoconf automake libtool pkg-config zlib1g-dev libinih-dev libnifti-dev libjansson-dev
    libxxhash-dev"
better="libdnnl-dev libdeflate-dev libpng-dev liblmdb-dev libcurl4-openssl-dev mricron-data"

missing() {
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed' || echo "$package"
    done
}

# shellcheck disable=SC2086 # lists of packages are meant to split
install_packages() {
    absent=$(missing $required $better | tr '\n' ' ')
    [ -n "$absent" ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        echo "not installed: $absent"
        echo "I may not install packages here; as root I would run: apt-get install $absent"
        [ -z "$(missing $required)" ] || exit 1
        return 0
    fi
    echo "installing: $absent"
    $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $absent \
        >"$folder/apt.log" 2>&1 || {
        echo "apt-get failed, see $folder/apt.log" >&2
        [ -z "$(missing $required)" ] || exit 1
    }
}

# ---- build ----------------------------------------------------------------------------------------

build() {
    echo "building pons in $folder/build"
    {
        [ -x "$source/configure" ] || "$source/autogen.sh"
        mkdir -p "$folder/build"
        cd "$folder/build"
        [ -f Makefile ] || "$source/configure" --prefix="$folder/installed"
        make -j"$(nproc)"
        make install
    } >"$folder/build.log" 2>&1 || {
        tail -n 20 "$folder/build.log" >&2
        echo "the build failed, see $folder/build.log" >&2
        exit 1
    }
    pons=$folder/installed/bin/pons
}

# ---- the main job ---------------------------------------------------------------------------------

find_head() {
    if [ "$phantom" = no ] && [ -f $templates/ch2.nii.gz ] && [ -f $templates/ch2bet.nii.gz ]; then
        name=ch2
        image=$templates/ch2.nii.gz
        mask=$templates/ch2bet.nii.gz
    else
        why="no template of mricron-data"
        [ "$phantom" = no ] || why="--phantom"
        echo "$why: this run is on a synthetic head (pons data phantom)"
        name=phantom
        [ -d "$folder/phantom" ] || "$pons" data phantom -o "$folder/phantom" --cases 1 --extent 181,217,181
        image=$(ls "$folder"/phantom/imagesTr/*.nii.gz)
        mask=$(ls "$folder"/phantom/labelsTr/*.nii.gz)
    fi
}

# The extent of an image along i, j and k, from its header (dim[1..3], little-endian).
extent() {
    gzip -dc "$1" | od -An -t u2 -j 42 -N 6 | tr -s ' ' ' ' | sed 's/^ //; s/ *$//'
}

# half SIDE FOLDER START EXTENT: image and mask of one half as case NAME-SIDE.
half() {
    "$pons" data crop "$image" -o "$2/images/$name-$1.nii.gz" --start "$3" --extent "$4"
    "$pons" data crop "$mask" -o "$2/labels/$name-$1.nii.gz" --start "$3" --extent "$4" --above 0
    echo "case $name-$1: extent $4, label sha256 $(sha256sum <"$2/labels/$name-$1.nii.gz" | cut -c 1-16)"
}

install_packages
build
begin=$(date +%s)
going_on=no
[ ! -d "$folder/train/runs" ] || [ -d "$folder/held-out" ] || going_on=yes
[ $going_on = yes ] || rm -rf "$folder/train" "$folder/held-out" "$folder/phantom"
find_head
# shellcheck disable=SC2046 # three numbers
set -- $(extent "$image")
left=$(($1 / 2))
right=$(($1 - left))

if [ $going_on = no ] || [ ! -f "$folder/train/labels/$name-left.nii.gz" ]; then
    rm -rf "$folder/train"
    half left "$folder/train" 0,0,0 "$left,$2,$3"
    cp "$source/examples/brain.ini" "$folder/train/brain.ini"
fi
"$pons" train "$folder/train/brain.ini"

half right "$folder/held-out" "$left,0,0" "$right,$2,$3"
prediction=$folder/held-out/prediction-$name-right.nii.gz
"$pons" predict "$folder/train/runs/brain" "$folder/held-out/images/$name-right.nii.gz" -o "$prediction"
"$pons" evaluate --prediction "$prediction" --label "$folder/held-out/labels/$name-right.nii.gz" \
    --labels brain:1 --overlay "$folder/held-out/overlay.png" \
    --image "$folder/held-out/images/$name-right.nii.gz" --json >"$folder/held-out/scores.json"
dice=$(grep -o '"dice":[0-9.]*' "$folder/held-out/scores.json" | head -n 1 | cut -d : -f 2)

echo "run         $folder/train/runs/brain"
echo "prediction  $prediction"
echo "overlay     $folder/held-out/overlay.png"
echo "seconds since the build: $(($(date +%s) - begin))"
printf 'held-out Dice %.4f case %s-right\n' "$dice" "$name"
