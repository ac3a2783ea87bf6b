# Made-up files of MNIST's layout, for shell tests.

# idx_stack FILE COUNT SEED CLASSES ROWS COLUMNS: FILE-images-idx3-ubyte and FILE-labels-idx1-ubyte. An image of class c
# has row c bright, beside noise.
idx_stack() {
    awk -v n="$2" -v s="$3" -v classes="$4" -v rows="$5" -v columns="$6" -v labels="$1.labels" '
        function octal(v) { return sprintf("\\0%o", v) }
        function long(v) { return octal(0) octal(0) octal(int(v / 256)) octal(v % 256) }
        function next_number() { s = (s * 1103 + 12345) % 65536; return s }
        BEGIN {
            printf "%s%s%s%s", long(2051), long(n), long(rows), long(columns)
            printf "%s%s", long(2049), long(n) >labels
            for (i = 0; i < n; i++) {
                class = i % classes
                printf "%s", octal(class) >labels
                for (row = 0; row < rows; row++)
                    for (column = 0; column < columns; column++)
                        printf "%s", octal((row == class ? 150 : 0) + int(next_number() / 656))
            }
        }' </dev/null >"$1.images"
    printf '%b' "$(cat "$1.images")" >"$1-images-idx3-ubyte"
    printf '%b' "$(cat "$1.labels")" >"$1-labels-idx1-ubyte"
    rm "$1.images" "$1.labels"
}
