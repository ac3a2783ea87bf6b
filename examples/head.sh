# head.sh - the arguments of deep.sh and head_t1.sh, and the head of mricron-data that both take. The script sets
# 'name' and reads this file; then 'pons', 'templates', 'folder', 'data_only' and 'ini' are set, the folder is its own,
# and "$@" has '--set SETTING' for every setting.
pons=${PONS:-pons}
templates=/usr/share/mricron/templates
folder=$name
data_only=no
while [ $# -gt 0 ]; do
    case $1 in
    --folder)
        [ $# -gt 1 ] || { echo "$name.sh: --folder needs a folder" >&2; exit 2; }
        folder=$2
        shift 2
        ;;
    --data) data_only=yes; shift ;;
    --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "$name.sh: unknown argument '$1', expected --folder DIR or --data" >&2; exit 2 ;;
    *) break ;;
    esac
done
count=$#
while [ "$count" -gt 0 ]; do
    set -- "$@" --set "$1"
    shift
    count=$((count - 1))
done
ini=$(cd "$(dirname "$0")" && pwd)/$name.ini
for own in train held-out; do
    if [ -e "$folder/$own" ] && [ ! -e "$folder/.$name" ]; then
        echo "$name.sh: '$folder/$own' was not made by this script and would be lost" >&2
        echo "hint: --folder DIR names another folder" >&2
        exit 2
    fi
done
mkdir -p "$folder"
: >"$folder/.$name"

# install_head FILE...: mricron-data, unless its files are there.
install_head() {
    missing=no
    for file; do
        [ -f "$templates/$file" ] || missing=yes
    done
    [ "$missing" = yes ] || return 0
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        echo "$name.sh: mricron-data is not installed; as root: apt-get install mricron-data" >&2
        exit 1
    fi
    $as_root apt-get update -qq >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq mricron-data >&2
}
