#!/bin/sh
# The trees of docs/data.md: each is made as the page shows it, and 'pons data check' finds no error in it. Every
# layout of the page's table has a tree.
. "${srcdir:-.}/tests/support/checks.sh"
page=$(realpath "${srcdir:-.}")/docs/data.md
cd "$folder" || exit 1
"$program" data phantom -o ph --cases 1 --extent 12,12,12 2>/dev/null || exit 1

# The trees as lines 'TREE<tab>PATH<tab>TEXT'. A line without a file has more text of the one above it. The text of a
# top is its [data] section, whose lines ';' divides.
sed -n 's/^    //p; t
    /^$/p' "$page" | sed 's/│/ /g; s/├──/+--/; s/└──/+--/' | awk '
    /^[A-Za-z0-9_]+  +(image|source) = / {
        tree = $1; name[0] = tree; path = tree; sub(/^[^ ]+ +/, ""); print tree "\t" tree "\t" $0; next
    }
    /^$/ { tree = "" }
    tree != "" {
        at = index($0, "+--")
        text = $0
        if (at > 0) {
            depth = (at + 3) / 4
            text = substr($0, at + 4)
            file = text; sub(/ .*/, "", file); sub(/^[^ ]+ */, "", text)
            name[depth] = file; path = tree
            for (i = 1; i <= depth; i++) path = path "/" name[i]
        } else
            sub(/^ +/, "", text)
        print tree "\t" path "\t" text
    }' >trees

# make_tree TREE: its files, and TREE.ini.
make_tree() {
    printf '[data]\n' >"$1.ini"
    while IFS="$tab" read -r of path text; do
        [ "$of" = "$1" ] || continue
        mkdir -p "$(dirname "$path")"
        case $path in
        "$1") [ -z "$text" ] || printf '%s\n' "$text" | sed 's/; */\n/g' >>"$1.ini" ;;
        *seg.nii.gz | */seg/*.nii.gz | */labelsTr/*.nii.gz | */label.nii.gz)
            cp ph/labelsTr/phantom_000.nii.gz "$path" ;;
        *.nii.gz) cp ph/imagesTr/phantom_000.nii.gz "$path" ;;
        *.tsv) printf '%s\n' "$text" | tr -s ' ' '\t' >>"$path" ;;
        *.json | *.csv) printf '%s\n' "$text" >>"$path" ;;
        # beside a folder stands more of the [data] section
        *) [ -z "$text" ] || printf '%s\n' "$text" | sed 's/; */\n/g' >>"$1.ini" ;;
        esac
    done <trees
}

tab=$(printf '\t')
for tree in $(cut -f 1 trees | uniq); do
    make_tree "$tree"
    checks=$((checks + 1))
    "$program" data check "$tree.ini" >said 2>&1 && grep -q '^0 errors' said && grep -q '^2 cases' said ||
        fail "$tree: $(cat "$tree.ini" said)"
    sed -n 's/^layout: \([a-z]*\),.*/\1/p' said >>found
done
checks=$((checks + 1))
sed -n '/^| `layout`/,/^$/s/^| `\([a-z]*\)` | `.*/\1/p' "$page" | sort >listed
sort found | cmp -s - listed || fail "layouts with a tree: $(sort found | xargs), in the table: $(xargs <listed)"
finish
