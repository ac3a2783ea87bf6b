# pons.m4 - what configure.ac of pons needs beyond Autoconf.

# PONS_KEEP_CORE
# --------------
# Configure removes 'core' again and again, taking it for a dump of a crashed test program. Here it is
# a folder of sources (or of objects, out of tree). All else is removed as before.
AC_DEFUN([PONS_KEEP_CORE], [
rm ()
{
    for pons_word
    do
        shift
        test "x$pons_word" = xcore || set -- "$[@]" "$pons_word"
    done
    command rm "$[@]"
}
])

# PONS_OPTIONAL(NAME, VARIABLE, DEBIAN-PACKAGE, WHAT-FOR, CHECK, [KIND])
# ----------------------------------------------------------------------
# A part that may be there: --with-NAME=yes|no|auto. CHECK sets pons_have=yes when it is found. The
# result is the conditional HAVE_VARIABLE and a line of the summary. KIND: without it there is no plugin
# NAME of that kind.
AC_DEFUN([PONS_OPTIONAL], [
AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=yes|no|auto], [$4 (auto)])], [], [with_$1=auto])
AS_CASE([$with_$1], [yes|no|auto], [],
    [AC_MSG_ERROR([--with-$1=$with_$1: expected yes, no or auto])])
pons_have=no
AS_IF([test "x$with_$1" != xno], [$5])
AS_IF([test "x$with_$1$pons_have" = xyesno],
    [AC_MSG_ERROR([$1 was asked for and not found (Debian: $3)])])
AM_CONDITIONAL([HAVE_$2], [test "x$pons_have" = xyes])
AS_IF([test "x$pons_have" = xyes], [pons_line="yes"],
      [test "x$with_$1" = xno], [pons_line="no, not wanted"],
      [pons_line="no (Debian: $3)"; pons_missing="$pons_missing $3"])
pons_summary="$pons_summary
    $1: $4: $pons_line"
AS_IF([test "x$pons_have" = xyes], [pons_there=true], [pons_there=false])
pons_parts="$pons_parts { \"$1\", \"$4\", \"$3\", \"$6\", $pons_there },"
])

# PONS_OPTIONAL_MODULE(NAME, VARIABLE, DEBIAN-PACKAGE, WHAT-FOR, PKG-CONFIG-MODULE, [KIND])
AC_DEFUN([PONS_OPTIONAL_MODULE],
[PONS_OPTIONAL([$1], [$2], [$3], [$4], [PKG_CHECK_MODULES([$2], [$5], [pons_have=yes], [pons_have=no])], [$6])])

# PONS_OPTIONAL_LIBRARY(NAME, VARIABLE, DEBIAN-PACKAGE, WHAT-FOR, HEADER, FUNCTION, LIBRARY, [KIND],
#                       [PROLOGUE])
# A library without a pkg-config module; VARIABLE_CFLAGS and VARIABLE_LIBS may be set outside. PROLOGUE
# stands behind the header; FUNCTION may be one of its own.
AC_DEFUN([PONS_OPTIONAL_LIBRARY], [
AC_ARG_VAR([$2_CFLAGS], [flags for compiling with $1])
AC_ARG_VAR([$2_LIBS], [flags for linking with $1])
PONS_OPTIONAL([$1], [$2], [$3], [$4], [
    pons_saved_CPPFLAGS=$CPPFLAGS; pons_saved_LIBS=$LIBS
    AS_IF([test "x$$2_LIBS" = x], [$2_LIBS="-l$7"])
    CPPFLAGS="$CPPFLAGS $$2_CFLAGS"; LIBS="$$2_LIBS $LIBS"
    AC_MSG_CHECKING([for $1])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$5>
$9]], [[return (int)(long)&$6;]])], [pons_have=yes])
    AC_MSG_RESULT([$pons_have])
    CPPFLAGS=$pons_saved_CPPFLAGS; LIBS=$pons_saved_LIBS
], [$8])])

# PONS_OPTIONAL_CXX_LIBRARY(NAME, VARIABLE, DEBIAN-PACKAGE, WHAT-FOR, HEADER, STATEMENT, LIBRARY, [KIND],
#                           [PROLOGUE])
# The same of a library of C++. Without a compiler of C++ it is as if it was not there.
AC_DEFUN([PONS_OPTIONAL_CXX_LIBRARY], [
AC_LANG_PUSH([C++])
PONS_OPTIONAL_LIBRARY([$1], [$2], [$3 g++], [$4], [$5], [$6], [$7], [$8], [$9])
AC_LANG_POP([C++])
])

# PONS_TEST_PART(WHAT, VARIABLE, PART, NEEDS, CHECK)
# --------------------------------------------------
# Tests of WHAT, of a PART that is built or not. CHECK, where it is, sets pons_have=yes when what the
# tests need is there, too: then they are built, and fail rather than be skipped. The result is the
# conditional HAVE_VARIABLE and a line of the summary.
AC_DEFUN([PONS_TEST_PART], [
pons_have=no
AM_COND_IF([HAVE_$3], [$5])
AM_CONDITIONAL([HAVE_$2], [test "x$pons_have" = xyes])
AS_IF([test "x$pons_have" = xyes], [pons_line="yes"],
      [AM_COND_IF([HAVE_$3], [pons_line="no: $4"], [pons_line="no, there is none"])])
pons_summary="$pons_summary
    tests of $1: $pons_line"
])

# PONS_TEST_OPENS(WHAT, PROLOGUE, NAMES, BODY)
# --------------------------------------------
# Whether the first of the libraries in NAMES that is there passes BODY, which returns 0 when it does.
AC_DEFUN([PONS_TEST_OPENS], [
AC_MSG_CHECKING([for $1 to test with])
AC_RUN_IFELSE([AC_LANG_PROGRAM([[
#include <dlfcn.h>
$2]], [[
    static const char *const names[] = { $3 };
    void *library = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names && library == 0; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (library == 0)
        return 1;
    $4]])], [pons_have=yes], [], [AS_VAR_SET([pons_have], [no])])
AC_MSG_RESULT([$pons_have])
])
