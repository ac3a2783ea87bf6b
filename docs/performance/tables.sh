#!/bin/sh
# Write the tables of figures in pages from docs/performance/*.json, or compare them.
#
#   docs/performance/tables.sh [--check]
#
# A table stands in README.md or docs/performance.md between two lines,
#
#   <!-- table FILE.json: COLUMN ...[; KEY] -->
#   <!-- end of table -->
#
# A column is a key of the rows, or 'ratio' (how many times faster than the peer, from both unless the row has
# it), or the NAME of NAME_ms and NAME_limit. With KEY only rows that have this key are taken. A row is an object on a line of its own, whose values
# are numbers, or texts without a quotation mark. --check changes nothing; the status is 1 where a page differs.
set -eu
cd "$(dirname "$0")/../.."
LC_ALL=C
export LC_ALL
made=$(mktemp)
trap 'rm -f "$made"' EXIT
status=0

# table FILE COLUMNS KEY: its lines.
table() {
    awk -v columns="$2" -v key="$3" '
        function with_unit(name) { return value[name] (value["unit"] == "" ? "" : " " value["unit"]) }
        function ratio(   r) {
            if ("ratio" in value) r = value["ratio"] + 0
            else if (value["ours"] == "" || value["peer"] == "") return ""
            else r = value["better"] == "less" ? value["peer"] / value["ours"] : value["ours"] / value["peer"]
            return sprintf(r < 10 ? "%.1f" : "%.0f", r)
        }
        function cell(name) {
            if (name == "ratio") return ratio()
            if (name == "ours" || name == "peer") return value[name] == "" ? "" : with_unit(name)
            if (name == "command" && value[name] != "") return "`" value[name] "`"
            if ((name "_ms") in value)
                return value[name "_ms"] " ms" ((name "_limit") in value ? ", " value[name "_limit"] " %" : "")
            return value[name]
        }
        function print_line(   i, text) {
            text = "|"
            for (i = 1; i <= count; i++) text = text (line[i] == "" ? " |" : " " line[i] " |")
            print text
        }
        BEGIN {
            count = split(columns, column, " ")
            for (i = 1; i <= count; i++) line[i] = column[i]
            print_line()
            for (i = 1; i <= count; i++) line[i] = "---"
            print_line()
        }
        /^ *\{".*\},?$/ {
            split("", value)
            rest = $0
            while (match(rest, /"[a-z0-9_]+": *("[^"]*"|[0-9.]+)/)) {
                pair = substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
                name = substr(pair, 2, index(substr(pair, 2), "\"") - 1)
                sub(/^"[a-z0-9_]+": *"?/, "", pair)
                sub(/"$/, "", pair)
                value[name] = pair
            }
            if (key != "" && !(key in value)) next
            for (i = 1; i <= count; i++) line[i] = cell(column[i])
            print_line()
        }' "docs/performance/$1"
}

# page FILE: the page with its tables made again.
page() {
    inside=no
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '<!-- end of table -->') inside=no ;;
        esac
        [ $inside = yes ] || printf '%s\n' "$line"
        case $line in
        '<!-- table '*' -->')
            words=${line#<!-- table }
            words=${words% -->}
            key=
            case $words in
            *'; '*) key=${words#*; } ;;
            esac
            columns=${words#*: }
            table "${words%%:*}" "${columns%;*}" "$key"
            inside=yes
            ;;
        esac
    done <"$1"
}

for page in README.md docs/performance.md; do
    page $page >"$made"
    cmp -s "$made" $page && continue
    case ${1-} in
    --check)
        echo "$page: a table differs from docs/performance/*.json"
        diff $page "$made" || true
        status=1
        ;;
    *) cat "$made" >$page ;;
    esac
done
exit $status
