/*
 * run_pons.c - see run_pons.h.
 */
#include "support/run/run_pons.h"

const char *pons_program(void)
{
    static char path[4096];

    if (path[0] == '\0')
        ck_assert_ptr_nonnull(realpath("pons", path));
    return path;
}

pid_t process_start_to(const char *name, const char *const *word)
{
    const char *argument[64] = { pons_program() };
    int count = 1;

    while (*word != NULL && count < 63)
        argument[count++] = *word++;
    int out = open(in_root("out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int said = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    pid_t child = fork_child();
    if (child == 0) {
        dup2(out, 1);
        dup2(said, 2);
        if (chdir(root) == 0)
            execv(argument[0], (char *const *)argument);
        _exit(99);
    }
    close(out);
    close(said);
    return child;
}

pid_t process_start(const char *const *word)
{
    return process_start_to("said", word);
}

int process_finish(pid_t child)
{
    int status;

    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int process_finish_timed(pid_t child, double *seconds)
{
    double before = seconds_now();
    siginfo_t ended = { .si_pid = 0 };

    *seconds = 0;
    while (ended.si_pid == 0) {
        usleep(2000);
        double now = seconds_now();
        *seconds += now - before < 0.25 ? now - before : 0.25;
        before = now;
        ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    return process_finish(child);
}

char *root_text(const char *name)
{
    static char text[1 << 20];
    FILE *file = fopen(in_root(name), "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

void search_first(const char *folder)
{
    const char *given = getenv("PONS_PLUGIN_PATH");
    char folders[8192];

    snprintf(folders, sizeof folders, "%s%s%s", folder, given != NULL ? ":" : "",
             given != NULL ? given : "");
    setenv("PONS_PLUGIN_PATH", folders, 1);
}

void add_plugin(const char *kind, const char *name)
{
    char command[512];

    snprintf(command, sizeof command, "mkdir -p %s/plugins/%s && cp tests/plugins/.libs/%s.so "
             "%s/plugins/%s", root, kind, name, root, kind);
    ck_assert_int_eq(system(command), 0);
}
