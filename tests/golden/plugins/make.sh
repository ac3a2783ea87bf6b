#!/bin/sh
# Store the plugins of tests/outside as a version's, compiled with its headers, for check_old_plugins.sh. To be run in
# a build folder on x86-64:
#
#   srcdir=.. sh ../tests/golden/plugins/make.sh VERSION
#
# A release stores its plugins once. A folder is written again only until its version is released.
. "${srcdir:-.}/tests/support/checks.sh"
[ $# = 1 ] && [ "$(uname -m)" = x86_64 ] || { echo "make.sh: expected VERSION, on x86-64" >&2; exit 1; }
make -s install DESTDIR="$folder/root" >"$folder/install.log" 2>&1 || { tail "$folder/install.log"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$folder/root" -name pons.pc)")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR="$folder/root"
plugins="model/branches loss/power optimizer/unit op/box_mean transform/gamma_shift sink/lines"
# shellcheck disable=SC2086 # a list of words
make -s -C "$folder" -f "$source/tests/outside/Makefile" SOURCE="$source/tests/outside" GUIDE=none \
    LDFLAGS="-s -Wl,-z,noseparate-code -Wl,--build-id=none" $(printf 'plugins/%s.so ' $plugins) || exit 1
golden=$source/tests/golden/plugins/$1
rm -rf "$golden"
cp -r "$folder/plugins" "$golden"
