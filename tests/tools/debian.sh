#!/bin/sh
# Build the Debian packages of a copy of the sources, let lintian read them, and use what they hold: a training, a
# prediction, a program of libpons-dev, pages and completions. The manual is built where its tools are. The last line
# is 'N passed, N failed'.
#
#   tests/tools/debian.sh [--build FOLDER] [--root TAR]
#
# TAR is a root of Debian, as 'mmdebstrap --variant=minbase bookworm root.tar' makes it: as root, the packages are
# installed there by apt, whose network must be reached. Else they are unpacked side by side.
. "$(dirname "$0")/own_build.sh"
build=$source/build-debian
tar=
while [ $# -gt 0 ]; do
    case $1 in
    --build) value_of "$@"; build_in "$value" ;;
    --root) value_of "$@"; tar=$(realpath "$value") ;;
    *) refuse "unknown argument '$1'" ;;
    esac
    shift 2
done

# check NAME COMMAND...: the command succeeds, else its output is shown.
check() {
    name=$1
    shift
    if ("$@") >"$build/said" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        tail -n 60 "$build/said"
    fi
}

make_packages() {
    cd "$build/pons" && DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -us -uc -b
}

# ---- the packages in a root ----------------------------------------------------------------------

unpack() {
    for package in "$build"/*.deb; do
        case $package in
        *-dbgsym_*) ;;
        *) dpkg-deb -x "$package" "$root" || return 1 ;;
        esac
    done
}

# apt takes what the packages depend on, and what a program is compiled with.
install() {
    mkdir "$root" && tar -x -f "$tar" -C "$root" && mkdir "$root/packages" || return 1
    for package in "$build"/*.deb; do
        case $package in
        *-dbgsym_*) ;;
        *) cp "$package" "$root/packages" ;;
        esac
    done
    inside 'apt-get update -qq
        export DEBIAN_FRONTEND=noninteractive
        apt-get install -y -qq /packages/*.deb
        apt-get install -y -qq --no-install-recommends gcc libc6-dev make pkgconf'
}

# inside SCRIPT: run it with the packages, in the root or beside it.
inside() {
    if [ -n "$tar" ]; then
        # shellcheck disable=SC2016 # words of the inner shell
        unshare -m sh -ec 'mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; cp /etc/resolv.conf "$1/etc"
            exec chroot "$1" sh -ec "cd /root; $2"' sh "$root" "$1"
    else
        cd "$build/use" && LD_LIBRARY_PATH=$libraries PONS_PLUGIN_PATH=$libraries/pons PATH=$root/usr/bin:$PATH \
            PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root sh -ec "$1"
    fi
}

# Libraries that are opened when a file needs them are recommended, which no tool finds.
has_opened() { inside 'ldconfig -p | grep libtiff.so.6 && ldconfig -p | grep libopenslide.so'; }

# Lines that debian/tests runs, too, once the packages are installed: a training and a prediction.
use() { inside "$(sed -n 's/^Test-Command: //p' "$source/debian/tests/control")"; }

# A program with the headers, which finds the classes of the prediction.
compile() {
    inside "cp -r $place/usr/share/doc/pons-doc/examples/embed embed
        make -s -C embed CC=gcc
        embed/volumes runs/t data/imagesTr/phantom_000.nii.gz"
}

# The completion of bash offers 'train' behind 'tra'.
complete() {
    inside "bash -s -- '$place'" <<'END' | grep -x 'train *'
. "$1/usr/share/bash-completion/completions/pons"
COMP_WORDS=(pons tra) COMP_CWORD=1 COMP_LINE='pons tra' COMP_POINT=8
_pons
printf '%s\n' "${COMPREPLY[@]}"
END
}

# ---- the check -----------------------------------------------------------------------------------

for tool in dpkg-buildpackage dh lintian; do
    command -v $tool >/dev/null || {
        echo "$script: nothing was tested: there is no $tool" >&2
        echo "0 passed, 0 failed"
        exit 77
    }
done
manual=yes
for tool in cmark-gfm doxygen mandoc; do
    command -v $tool >/dev/null || manual=no
done
[ $manual = yes ] || export DEB_BUILD_PROFILES=nodoc
rm -rf "$build"
mkdir -p "$build/pons" "$build/use"
tar -c -C "$source" --exclude-vcs --exclude='./build' --exclude='./build-[!a]*' --exclude=./ci \
    --exclude=./autom4te.cache . | tar -x -C "$build/pons"
check "packages" make_packages
# No bug of Debian's asks for the package.
check "lintian" lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$build"/*.changes
root=$build/root
if [ -n "$tar" ]; then
    place=
    check "packages are installed" install
    check "libraries that are opened are installed" has_opened
else
    place=$root
    check "packages are unpacked" unpack
    libraries=$(dirname "$(find "$root/usr/lib" -name 'libpons.so.*' | head -n 1)")
fi
check "a training and a prediction" use
[ $manual = no ] || check "a program of libpons-dev" compile
check "a completion of bash" complete
for file in man/man1/pons-train.1.gz zsh/site-functions/_pons fish/vendor_completions.d/pons.fish; do
    check "share/$file" [ -s "$root/usr/share/$file" ]
done
[ $manual = no ] || check "the manual" [ -s "$root/usr/share/doc/pons-doc/html/index.html" ]
finish
