# What the scripts of this folder begin with: the program, a folder for what is measured, the middle of
# measurements. Each reads it first, . "$(dirname "$0")/rounds.sh", and takes the program as its first argument.
set -eu
pons=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
runner=${RUNNER:-}

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
