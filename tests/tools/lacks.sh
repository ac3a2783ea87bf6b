# The needs of tests; read by a script that runs in a build folder, with the source tree in 'source'.
#
# has_part NAME: configure has found the library. is_off CONDITION: a condition of the Makefile is false.
has_part() { grep -q "{ \"$1\",[^}]* true }" core/base/build_features.h; }
is_off() { grep -q "^S\\[\"HAVE_$1_TRUE\"\\]=\"#\"" config.status; }

# lacks WHAT: this machine or build lacks WHAT. Any other skip is a failure, because a test skipped by mistake looks
# like one that passed.
lacks() {
    case $1 in
    cuda) [ ! -f stage/device/cuda.so ] ;;
    gloo | nccl | mpi) [ ! -f "stage/comm/$1.so" ] ;;
    png | libpng) ! has_part libpng ;;
    libjpeg | libtiff | openslide | lmdb | curl | onnx) ! has_part "$1" ;;
    cuDNN) lacks cudnn ;;
    NCCL) lacks nccl ;;
    onednn | cudnn) ! has_part "$1" ;;
    nvrtc) is_off NVRTC ;;
    cudnn_library) is_off CUDNN_LIBRARY ;;
    mricron-data) [ ! -f /usr/share/mricron/templates/ch2.nii.gz ] || [ ! -f /usr/share/mricron/templates/aal.nii.gz ] ;;
    mandoc | mpirun | script | valgrind) ! command -v "$1" >/dev/null ;;
    'made-up cards' | 'two cards') [ "${PONS_TEST_CARD:-}" = real ] ;;
    'no sanitizer') grep -q '^CFLAGS = .*-fsanitize' Makefile ;;
    'optimised kernels') ! grep -q '^CFLAGS = .*-O[23]' Makefile || lacks 'no sanitizer' ;;
    root) [ "$(id -u)" != 0 ] ;;
    'root and a program that others can start') lacks root || ! setpriv --reuid 54321 --clear-groups test -x "$PWD/pons" ;;
    x86-64) [ "$(uname -m)" != x86_64 ] ;;
    IPv6) [ ! -e /proc/net/if_inet6 ] ;;
    'a disk that can be mounted') ! unshare -m mount -t tmpfs none /mnt 2>/dev/null ;;
    'a network of its own') ! unshare -n true 2>/dev/null ;;
    netem) ! unshare -n sh -c 'ip link set lo up && tc qdisc add dev lo root netem loss 1%' 2>/dev/null ;;
    ptrace) ! strace -o /dev/null true 2>/dev/null ;;
    'counts of what a process reads') ! grep -q '^rchar: [1-9]' /proc/self/io 2>/dev/null ;;
    de_DE) [ ! -e /usr/share/i18n/locales/de_DE ] || ! command -v localedef >/dev/null ;;
    libcublasLt) [ ! -e /usr/local/cuda/lib64/libcublasLt.so.13 ] ;;
    'products of bf16') ! grep -qE 'avx512_bf16|amx_bf16' /proc/cpuinfo || grep -q '^ISA_LIMIT = -D' Makefile ;;
    # Bounds and bits are stored by kind of processor and compiler; CONTRIBUTING.md says how to store more.
    'bounds for '*) [ ! -f "$source/tests/bench/counts_${1#bounds for }" ] ;;
    "values for '"*"'") ! grep -qxF "# $(expr "$1" : "values for '\(.*\)'")" "$source"/tests/golden/runs/values/* ;;
    'AVX2 alone') ! grep -qw avx2 /proc/cpuinfo ;;
    'a valgrind that knows this processor') ! valgrind -q ./pons --version >/dev/null 2>&1 ;;
    'winograd by itself') grep -q amx_bf16 /proc/cpuinfo || lacks 'products of bf16' ;;
    'a build that runs in little memory') lacks 'no sanitizer' ;;
    *) false ;;
    esac
}
