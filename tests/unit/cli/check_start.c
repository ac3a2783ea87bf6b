/*
 * check_start.c - start-up cost: the libraries that '--help' maps, its CPU time, and the time from
 * the start of a training to its first step.
 *
 * The dynamic linker reports each file that it opens (LD_DEBUG), at the start or later by dlopen.
 * Times are the least of several runs, because other work can only make a run slower. Sanitizers
 * cost more than the bounds allow, so that their builds skip the times.
 */
#include "support/run/run_pons.h"
#include "support/suite.h"

#include <stdbool.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

#define HELP_SECONDS 0.020
#define START_SECONDS 0.3 /* bound without reading the data, which is small here */

enum { RUNS = 25 };

/* Library names of C++, OpenMP, oneDNN, BLAS, MPI, gloo and CUDA, by their beginnings. */
static const char *const heavy[] = {
    "libstdc++", "libc++", "libgomp", "libomp", "libiomp", "libdnnl", "libopenblas", "libblas",
    "libmpi", "libopen-", "libgloo", "libcuda", "libnvidia", "libnvrtc", "libcudnn", "libnccl"
};

static const char training[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = data\n"
    "[patch]\nextent = 48\n"
    "[model]\nplugin = unet\nchannels = 8 16 32\nstrides = 2 2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\n"
    "[train]\nsteps = 1\n";

/* The binary behind libtool's script 'pons', whose environment finds the built library. */
static const char *binary_path(void)
{
    static char path[4096];
    char folder[4096];

    if (path[0] != '\0')
        return path;
    if (realpath(".libs/pons", path) != NULL) {
        ck_assert_ptr_nonnull(realpath(".libs", folder));
        setenv("LD_LIBRARY_PATH", folder, 1);
    } else {
        ck_assert_ptr_nonnull(realpath("pons", path));
    }
    return path;
}

/* Start the binary in root; 'said' is its stderr, and all other streams are /dev/null. */
static pid_t start_binary(int said, const char *const *word)
{
    const char *argument[16] = { binary_path() };
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; word[i] != NULL; i++)
        argument[i + 1] = word[i];
    pid_t child = fork();
    if (child == 0) {
        dup2(none, 1);
        dup2(said >= 0 ? said : none, 2);
        if (chdir(root) == 0)
            execv(argument[0], (char *const *)argument);
        _exit(99);
    }
    close(none);
    return child;
}

/* ---- mapped files ---------------------------------------------------------------------------- */

/* The dynamic linker's report of the files that it opens. */
static char *opened_by(const char *const *word)
{
    char name[32];

    setenv("LD_DEBUG", "files", 1);
    setenv("LD_DEBUG_OUTPUT", in_root("opened"), 1);
    pid_t child = start_binary(-1, word);
    unsetenv("LD_DEBUG");
    ck_assert_int_eq(process_finish(child), 0);
    snprintf(name, sizeof name, "opened.%d", (int)child);
    return root_text(name);
}

/*
 * The file of a line "file=NAME [0]; needed by ..." or "dynamically loaded by"; NULL for a
 * sanitizer's library.
 */
static const char *opened_file(char *line)
{
    char *file = strstr(line, "file="), *last;

    if (file == NULL || strstr(file, " by ") == NULL || strstr(file, "san.so") != NULL)
        return NULL;
    file += strlen("file=");
    file[strcspn(file, " ")] = '\0';
    last = strrchr(file, '/');
    return last != NULL ? last + 1 : file;
}

static void assert_light(const char *word)
{
    char *rest = opened_by((const char *[]){ word, NULL }), *line;
    int files = 0;

    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *file = opened_file(line);

        files += file != NULL;
        for (size_t i = 0; file != NULL && i < sizeof heavy / sizeof *heavy; i++)
            ck_assert_msg(strncmp(file, heavy[i], strlen(heavy[i])) != 0, "pons %s opens %s", word,
                          file);
    }
    ck_assert_int_gt(files, 0);
}

START_TEST(help_maps_no_plugin_library)
{
    assert_light("--help");
    assert_light("--version");
}
END_TEST

START_TEST(libraries_loaded_by_dlopen_are_detected)
{
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "4", "--extent", "16");
    write_text("e.ini", training);
    ck_assert_ptr_nonnull(strstr(opened_by((const char *[]){ "train", "e.ini", "--set",
                                                             "patch.extent=16", NULL }),
                                 "/device/cpu.so"));
}
END_TEST

/* ---- time ------------------------------------------------------------------------------------ */

/* CPU time of a run. */
static double cost_of_help(void)
{
    struct rusage used;
    int status;
    pid_t child = start_binary(-1, (const char *[]){ "--help", NULL });

    ck_assert_int_eq(wait4(child, &status, 0, &used), child);
    ck_assert_int_eq(status, 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
         + 1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

START_TEST(help_takes_less_than_20_ms)
{
    double least = 1e9;

    for (int i = 0; i < RUNS && !sanitized; i++) {
        double cost = cost_of_help();
        least = cost < least ? cost : least;
    }
    ck_assert_msg(sanitized || least < HELP_SECONDS, "%.1f ms", 1e3 * least);
}
END_TEST

/*
 * Seconds in which the first thread of a process was runnable without a CPU; 0: the kernel does
 * not count them.
 */
static double seconds_preempted(pid_t process)
{
    char name[64];
    double ran, aside = 0;
    FILE *file;

    snprintf(name, sizeof name, "/proc/%d/schedstat", (int)process);
    file = fopen(name, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%lf %lf", &ran, &aside) != 2)
        aside = 0;
    fclose(file);
    return 1e-9 * aside;
}

/* Seconds from the start to the report of the first step, less the time lost to other processes. */
static double time_to_first_step(void)
{
    int ends[2];
    char text[8192] = "";
    size_t size = 0;
    ssize_t got = 1;
    double begin, seconds = 1e9;

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    begin = seconds_now();
    pid_t child = start_binary(ends[1], (const char *[]){ "train", "e.ini", "--fresh", NULL });
    close(ends[1]);
    while (got > 0 && size < sizeof text - 1) {
        got = read(ends[0], text + size, sizeof text - 1 - size);
        size += got > 0 ? (size_t)got : 0;
        text[size] = '\0';
        if (seconds > 1e8 && strstr(text, "step 1/1") != NULL)
            seconds = seconds_now() - begin - seconds_preempted(child);
    }
    close(ends[0]);
    ck_assert_msg(process_finish(child) == 0, "%s", text);
    return seconds;
}

START_TEST(the_first_step_ends_within_300_ms)
{
    double least = 1e9;

    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "4", "--extent", "48");
    write_text("e.ini", training);
    for (int i = 0; i < RUNS && least >= START_SECONDS && !sanitized; i++) {
        double seconds = time_to_first_step();
        least = seconds < least ? seconds : least;
    }
    printf("%.3f s\n", least);
    ck_assert_msg(sanitized || least < START_SECONDS, "%.2f s", least);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("start");

    tcase_add_checked_fixture(c, make_root, remove_root);
    pons_program();
    binary_path();
    tcase_add_test(c, help_maps_no_plugin_library);
    tcase_add_test(c, libraries_loaded_by_dlopen_are_detected);
    tcase_add_test(c, help_takes_less_than_20_ms);
    tcase_add_test(c, the_first_step_ends_within_300_ms);
    return suite_run();
}
