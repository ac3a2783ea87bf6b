#!/bin/sh
# The programs that time kernels by hand refuse arguments that they cannot use.
. "${srcdir:-.}/tests/support/checks.sh"

# refuses PROGRAM TEXT ARGUMENT...: with one line, before any measurement.
refuses() {
    bench=$1
    text=$2
    shift 2
    check "$bench $*" ends 2 "$bench: $text" "./tests/bench/$bench" "$@"
    check "$bench $* says one line" [ "$(wc -l <"$folder/out")" -eq 1 ]
}

for bench in bench_cpu_kernels bench_few_channels bench_map bench_ops; do
    for threads in x 0 -3 2x '' 1025; do
        refuses $bench "threads is '$threads', expected a whole number from 1 to 1024" "$threads"
    done
done
refuses bench_cpu_kernels "no kernel like 'nothing'" 1 nothing
refuses bench_cpu_kernels "no convolution like 'nothing'" 1 convolution nothing
refuses bench_cpu_kernels "'more' is one argument too many" 1 copy more
refuses bench_cpu_kernels "'more' is one argument too many" 1 convolution f32 more
refuses bench_map "the logarithm of the elements is '5', expected a whole number from 8 to 30" 1 5
refuses bench_map "runs is '0'" 1 8 0
refuses bench_map "lanes is '99'" 1 8 1 99
refuses bench_map "channels is 'more', expected a whole number from 1 to 1024" 1 8 1 0 more
refuses bench_few_channels "lanes is 'wide'" 1 wide
refuses bench_few_channels "no layer '5 -> 5'" 1 library "5 -> 5"
refuses bench_few_channels "'more' is one argument too many" 1 library "2 -> 2" more
refuses bench_ops "rounds is '0'" 1 0
refuses bench_ops "'more' is one argument too many" 1 1 more
finish
