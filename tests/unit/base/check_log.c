/*
 * check_log.c - text that reaches the terminal and the log file.
 */
#include "support/suite.h"

#include "base/broken_pipe.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static char terminal[4096], file[4096];
static logger l;

static void open_terminal_and_file(void)
{
    memset(terminal, 0, sizeof terminal);
    memset(file, 0, sizeof file);
    l = (logger){ .terminal = fmemopen(terminal, sizeof terminal, "w"),
                  .file = fmemopen(file, sizeof file, "w"), .level = LOG_NORMAL, .live = true };
}

static void close_terminal_and_file(void)
{
    fclose(l.terminal);
    fclose(l.file);
}

/* Each line of 'text' begins with a date and a time; the rest is 'expected'. */
static void expect_dated(const char *text, const char *expected)
{
    while (*text != '\0') {
        int date = 0;
        size_t size = strcspn(expected, "\n") + 1;

        sscanf(text, "%*4d-%*2d-%*2d %*2d:%*2d:%*2d%n", &date);
        ck_assert_msg(date == 19 && text[date] == ' '
                      && strncmp(text + date + 1, expected, size) == 0, "%s", text);
        text += (size_t)date + 1 + size;
        expected += size;
    }
    ck_assert_str_eq(expected, "");
}

START_TEST(control_characters_reach_neither_terminal_nor_file)
{
    log_line(&l, "case '%s'", "a\033[2Jb\r");
    ck_assert_str_eq(terminal, "case 'a\\x1b[2Jb\\r'\n");
    expect_dated(file, "case 'a\\x1b[2Jb\\r'\n");
}
END_TEST

START_TEST(progress_is_redrawn_on_a_terminal_and_absent_from_the_file)
{
    log_progress(&l, "step %d", 10);
    log_progress(&l, "step %d", 8); /* comes too early */
    l.drawn -= 1;
    log_progress(&l, "step %d", 9);
    log_line(&l, "done");
    expect_dated(file, "done\n");
    ck_assert_ptr_nonnull(strstr(terminal, "step 10\033[K\033[J\033[?7h\r\r\033[?7lstep 9\033[K"));
    ck_assert_ptr_nonnull(strstr(terminal, "\r\033[Jdone\n"));
}
END_TEST

/* A third of the bytes took 100 s, so 200 s are left. */
START_TEST(progress_of_bytes_tells_the_time_left)
{
    byte_progress p = { .log = &l, .verb = "reading", .path = "a.pth" };

    byte_progress_begin(&p, 6000000);
    byte_progress_add(&p, 1000000); /* comes too early */
    ck_assert_str_eq(terminal, "");
    p.begin -= 100;
    byte_progress_add(&p, 1000000);
    ck_assert_ptr_nonnull(strstr(terminal, "\033[?7lreading 2.00 MB of 6.00 MB, 33 %, 3:20 left, "
                                           "'a.pth'"));
    byte_progress_end(&p);
    ck_assert_ptr_nonnull(strstr(terminal, "'\033[K\033[J\033[?7h\r\r\033[J"));
}
END_TEST

START_TEST(short_work_on_bytes_leaves_the_terminal_alone)
{
    byte_progress p = { .log = &l, .verb = "reading", .path = "a.pth" };

    byte_progress_begin(&p, 1000);
    byte_progress_add(&p, 1000);
    byte_progress_end(&p);
    ck_assert_str_eq(terminal, "");
    ck_assert(l.drawn <= 0);
    byte_progress_begin(NULL, 1000);
    byte_progress_add(NULL, 1000);
    byte_progress_end(NULL);
}
END_TEST

START_TEST(a_block_stays_below_later_lines_until_it_is_empty)
{
    static const char block[] = "\r\033[?7lone\033[K\ntwo\033[K\033[J\033[?7h\r\033[1A";
    static const char back[] = "\r\033[J";
    char expected[256];

    log_block(&l, "one\ntwo");
    log_line(&l, "line");
    log_block(&l, "");
    log_line(&l, "done");
    snprintf(expected, sizeof expected, "%s%sline\n%s%sdone\n", block, back, block, back);
    ck_assert_str_eq(terminal, expected);
    expect_dated(file, "line\ndone\n");
}
END_TEST

/* Read what a terminal shows until it shows 'end', which may come in parts; at most 60 s. */
static void read_until(int screen, const char *end, char *sent, size_t room)
{
    struct pollfd ready = { .fd = screen, .events = POLLIN };
    size_t size = 0;

    sent[0] = '\0';
    while (strstr(sent, end) == NULL && size + 1 < room && poll(&ready, 1, 60000) == 1) {
        ssize_t got = read(screen, sent + size, room - 1 - size);
        ck_assert_int_gt(got, 0);
        size += (size_t)got;
        sent[size] = '\0';
    }
}

/* The cursor stands where the block begins, whatever a terminal made of lines that were wider. */
START_TEST(a_block_is_found_again_after_a_resize)
{
    struct winsize size = { .ws_row = 24, .ws_col = 20 };
    int screen = posix_openpt(O_RDWR | O_NOCTTY);
    logger here = { .level = LOG_NORMAL, .live = true };
    static const char redrawn[] = "\r\033[2A\r\033[?7l"
                                  "one\033[K\r\ntwo\033[K\033[J\033[?7h\r\033[1A";
    char sent[256];

    ck_assert(screen >= 0 && grantpt(screen) == 0 && unlockpt(screen) == 0);
    here.terminal = fopen(ptsname(screen), "r+e");
    ck_assert_ptr_nonnull(here.terminal);
    ck_assert_int_eq(ioctl(screen, TIOCSWINSZ, &size), 0);
    log_block(&here, "one two\nthree\nfour");
    size = (struct winsize){ .ws_row = 3, .ws_col = 6 };
    ck_assert_int_eq(ioctl(screen, TIOCSWINSZ, &size), 0);
    log_block(&here, "one\ntwo\nthree");
    read_until(screen, redrawn, sent, sizeof sent);
    ck_assert_msg(strstr(sent, redrawn) != NULL, "%s", sent);
    fclose(here.terminal);
    close(screen);
}
END_TEST

START_TEST(quiet_hides_lines_but_not_warnings_and_details_need_verbose)
{
    l.level = LOG_QUIET;
    log_line(&l, "line");
    log_detail(&l, "detail");
    log_warning(&l, "%d classes are empty", 2);
    ck_assert_str_eq(terminal, "warning: 2 classes are empty\n");
    expect_dated(file, "line\nwarning: 2 classes are empty\n");
    l.level = LOG_VERBOSE;
    log_detail(&l, "detail");
    ck_assert_ptr_nonnull(strstr(terminal, "detail\n"));
}
END_TEST

/* The bytes that a terminal of 'columns' columns receives for one line of progress. */
static const char *progress_bytes(int columns, const char *text)
{
    static char sent[8192];
    struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
    int screen = posix_openpt(O_RDWR | O_NOCTTY);
    logger here = { .level = LOG_NORMAL, .live = true };
    ssize_t got;

    ck_assert(screen >= 0 && grantpt(screen) == 0 && unlockpt(screen) == 0);
    here.terminal = fopen(ptsname(screen), "r+e");
    ck_assert_ptr_nonnull(here.terminal);
    ck_assert_int_eq(ioctl(screen, TIOCSWINSZ, &size), 0);
    log_progress(&here, "%s", text);
    got = read(screen, sent, sizeof sent - 1);
    ck_assert_int_gt(got, 0);
    sent[got] = '\0';
    fclose(here.terminal);
    close(screen);
    return sent;
}

START_TEST(progress_takes_one_line_of_a_terminal_of_any_width)
{
    static const char line[] = "step 12345 of 250000, epoch 12, loss 0.3456, 0.123 s a step";

    ck_assert_str_eq(progress_bytes(20, line),
                     "\r\033[?7lstep 12345 of 25000\033[K\033[J\033[?7h\r");
    ck_assert_str_eq(progress_bytes(40, line),
                     "\r\033[?7lstep 12345 of 250000, epoch 12\033[K\033[J\033[?7h\r");
    ck_assert_str_eq(progress_bytes(44, line),
                     "\r\033[?7lstep 12345 of 250000, epoch 12, loss 0.3456\033[K\033[J\033[?7h\r");
    for (int columns = 60; columns <= 400; columns += 20) {
        ck_assert_ptr_nonnull(strstr(progress_bytes(columns, line), line));
    }
}
END_TEST

START_TEST(terminal_without_a_size_has_eighty_columns)
{
    ck_assert_int_eq((int)strlen(progress_bytes(0, "0123456789012345678901234567890123456789"
                                                "0123456789012345678901234567890123456789")),
                     79 + (int)strlen("\r\033[?7l\033[K\033[J\033[?7h\r"));
}
END_TEST

START_TEST(wide_characters_take_two_columns_and_are_not_cut_in_two)
{
    static const struct { const char *text; int columns, size; } cut[] = {
        { "caf\xc3\xa9 au lait", 4, 5 }, { "\xe8\x82\x9d\xe8\x87\x93", 4, 6 },
        { "\xe8\x82\x9d\xe8\x87\x93", 3, 3 }, { "a\xe8\x82\x9d", 2, 1 },
        { "\xf0\x9f\xab\x80!", 2, 4 }, { "\xff\xe8\x82", 2, 2 }, { "a, b, c", 5, 4 },
        { "a, b", 1, 1 }, { "abc", 0, 0 }, { "", 0, 0 }
    };

    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        ck_assert_int_eq((int)terminal_fit(cut[i].text, cut[i].columns), cut[i].size);
}
END_TEST

START_TEST(a_closed_terminal_is_reported_once_in_the_log_file)
{
    static const char warning[] = "warning: nobody reads the standard error any more; its lines "
                                  "are here alone\n";
    logger broken = { .level = LOG_NORMAL, .live = _i == 1 };
    int ends[2];

    broken_pipe_ignore();
    ck_assert_int_eq(pipe(ends), 0);
    FILE *stream = broken.terminal = fdopen(ends[1], "w");
    ck_assert_ptr_nonnull(stream);
    log_line(&broken, "read");
    ck_assert_ptr_eq(broken.terminal, stream);
    close(ends[0]);
    if (_i == 1)
        log_progress(&broken, "step 1");
    else
        log_line(&broken, "lost");
    ck_assert_ptr_null(broken.terminal);
    broken.file = l.file;
    log_line(&broken, "kept");
    log_line(&broken, "too");
    ck_assert(strncmp(file, warning, strlen(warning)) == 0);
    expect_dated(file + strlen(warning), "kept\ntoo\n");
    fclose(stream);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("log");
    tcase_add_checked_fixture(c, open_terminal_and_file, close_terminal_and_file);
    tcase_add_test(c, control_characters_reach_neither_terminal_nor_file);
    tcase_add_test(c, progress_is_redrawn_on_a_terminal_and_absent_from_the_file);
    tcase_add_test(c, progress_of_bytes_tells_the_time_left);
    tcase_add_test(c, short_work_on_bytes_leaves_the_terminal_alone);
    tcase_add_test(c, a_block_stays_below_later_lines_until_it_is_empty);
    tcase_add_test(c, a_block_is_found_again_after_a_resize);
    tcase_add_test(c, quiet_hides_lines_but_not_warnings_and_details_need_verbose);
    tcase_add_test(c, progress_takes_one_line_of_a_terminal_of_any_width);
    tcase_add_test(c, terminal_without_a_size_has_eighty_columns);
    tcase_add_test(c, wide_characters_take_two_columns_and_are_not_cut_in_two);
    tcase_add_loop_test(c, a_closed_terminal_is_reported_once_in_the_log_file, 0, 2);
    return suite_run();
}
