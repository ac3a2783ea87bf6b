#!/bin/sh
# The random transforms of MONAI's pathology guide on pictures beside torchvision's: colours, flips, quarter turns, zoom
# and scaling to -1 and 1 of patches of 224 x 224. Both programs in turn, one thread each, medians of processor
# milliseconds a patch, since shared machines stretch wall time.
#
#   tests/peers/colours.sh PONS [ROUNDS [FOLDER]]      needs: pip install torchvision monai pillow; taskset
#
# Lines of the table, the peer's parts:
#
#   pil       torchvision's ColorJitter of PIL pictures, the rest by MONAI, as in the guide
#   tensor    all by torchvision, on float tensors
#
# pons' time includes the choice of a position and the cut, the peers' neither.
. "$(dirname "$0")/rounds.sh"

rounds=${2:-3}
whole ROUNDS "$rounds"
keep "${3:-}"
cp "$here/colours.ini" "$folder"
[ -d "$folder/images" ] || python3 "$here/colours.py" "$folder" make

rm -f "$folder"/pons "$folder"/peer.*
round=0
while [ "$round" -lt "$rounds" ]; do
    taskset -c 0 "$pons" bench "$folder/colours.ini" --data --json --steps 80 --set data.loader_threads=0 \
        2>"$folder/log" >"$folder/ours"
    sed 's/.*"processor_seconds_each": *\([0-9.e-]*\).*/\1/' "$folder/ours" | awk '{ print 1000 * $1 }' >>"$folder/pons"
    for kind in pil tensor; do
        taskset -c 0 python3 "$here/colours.py" "$folder" "$kind" 2>"$folder/log" |
            awk '$1 == "figures" { print $2 }' >>"$folder/peer.$kind"
    done
    round=$((round + 1))
done

for kind in pil tensor; do
    echo "$(median <"$folder/pons") $(median <"$folder/peer.$kind")" |
        awk -v name="$kind" '{ printf "%-9s pons %.2f ms, peer %.2f ms, ratio %.1f\n", name, $1, $2, $2 / $1 }'
done
