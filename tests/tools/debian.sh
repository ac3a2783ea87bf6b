#!/bin/sh
# Build the Debian packages of a copy of the sources, let lintian read them, and train with what they hold. The manual
# is built where its tools are. The last line is 'N passed, N failed'.
#
#   tests/tools/debian.sh [--build FOLDER]
. "$(dirname "$0")/own_build.sh"
build=$source/build-debian
read_build "$@"

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
    cd "$build/pons" && ./autogen.sh && DEB_BUILD_OPTIONS="parallel=2 ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -us -uc -b
}

# Train and predict with the files of the packages, as debian/tests does once they are installed.
use() {
    rm -rf "$build/root" "$build/use"
    for package in "$build"/*.deb; do
        dpkg-deb -x "$package" "$build/root" || return 1
    done
    mkdir "$build/use" && cd "$build/use" || return 1
    libraries=$(dirname "$(find "$build/root/usr/lib" -name 'libpons.so.*' | head -n 1)")
    LD_LIBRARY_PATH=$libraries PONS_PLUGIN_PATH=$libraries/pons PATH=$build/root/usr/bin:$PATH \
        sh -ec "$(sed -n 's/^Test-Command: //p' "$source/debian/tests/control")"
}

for tool in dpkg-buildpackage dh lintian; do
    command -v $tool >/dev/null || { echo "SKIPPED: packages of Debian: need $tool"; echo "0 passed, 0 failed"; exit 77; }
done
manual=yes
for tool in cmark-gfm doxygen mandoc; do
    command -v $tool >/dev/null || manual=no
done
[ $manual = yes ] || export DEB_BUILD_PROFILES=nodoc
rm -rf "$build"
mkdir -p "$build/pons"
tar -c -C "$source" --exclude-vcs --exclude='./build' --exclude='./build-[!a]*' --exclude=./ci --exclude=./autom4te.cache . |
    tar -x -C "$build/pons"
check "packages" make_packages
# No bug of Debian's asks for the package.
check "lintian" lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$build"/*.changes
check "a training with them" use
check "pages" [ -s "$build/root/usr/share/man/man1/pons-train.1.gz" ]
check "completions" [ -s "$build/root/usr/share/bash-completion/completions/pons" ]
[ $manual = no ] || check "the manual" [ -s "$build/root/usr/share/doc/pons-doc/html/index.html" ]
finish
