/*
 * compiler.c - a libnvrtc.so.13 for tests: the host's compiler, on the same text.
 *
 * The text is compiled as C behind shim.h. For each kernel a caller is added that takes the
 * parameters as cuLaunchKernel has them. What comes out is a shared object behind its length.
 *
 * CARD_CC and CARD_CFLAGS in the environment replace compiler and flags; CARD_KEEP keeps the files.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct nvrtc_program_object {
    char *text, *log;
    char *binary;
    size_t size;
} *nvrtcProgram;

int nvrtcVersion(int *major, int *minor);
int nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int headers,
                       const char *const *header, const char *const *header_name);
int nvrtcDestroyProgram(nvrtcProgram *program);
int nvrtcCompileProgram(nvrtcProgram program, int options, const char *const *option);
int nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size);
int nvrtcGetProgramLog(nvrtcProgram program, char *log);
int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
int nvrtcGetCUBIN(nvrtcProgram program, char *binary);

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int headers,
                       const char *const *header, const char *const *header_name)
{
    nvrtcProgram p = calloc(1, sizeof *p);

    (void)name;
    (void)header;
    (void)header_name;
    if (p == NULL || headers != 0)
        return 1;
    p->text = strdup(text);
    *program = p;
    return 0;
}

int nvrtcDestroyProgram(nvrtcProgram *program)
{
    free((*program)->text);
    free((*program)->log);
    free((*program)->binary);
    free(*program);
    *program = NULL;
    return 0;
}

/* "*(T *)p[i]" for each parameter "T name" between the parentheses; how many there are. */
static int write_arguments(FILE *f, const char *at, const char *end)
{
    int count = 0;

    while (at < end) {
        size_t size = strcspn(at, ",)");
        const char *name = at + size;
        while (name > at && name[-1] != ' ' && name[-1] != '*')
            name--;
        if (f != NULL)
            fprintf(f, "%s*(%.*s *)p[%d]", count > 0 ? ", " : "", (int)(name - at), at, count);
        count++;
        at += size + 1;
        at += strspn(at, " ");
    }
    return count;
}

static void write_callers(FILE *f, const char *text)
{
    for (const char *at = text; (at = strstr(at, "\nKERNEL ")) != NULL; at++) {
        const char *name = at + strlen("\nKERNEL "), *open = strchr(name, '(');
        const char *close = strchr(open, ')');
        int size = (int)(open - name);

        fprintf(f, "void shim_call_%.*s(void **p) { %.*s(", size, name, size, name);
        write_arguments(f, open + 1, close);
        fprintf(f, "); }\nint shim_count_%.*s = %d;\n", size, name,
                write_arguments(NULL, open + 1, close));
    }
}

static char *read_all(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    long length;

    if (f == NULL)
        return NULL;
    fseek(f, 0, SEEK_END);
    length = ftell(f);
    rewind(f);
    data = calloc(1, (size_t)length + 1);
    *size = data != NULL ? fread(data, 1, (size_t)length, f) : 0;
    fclose(f);
    return data;
}

static int compile_in(nvrtcProgram p, const char *folder)
{
    const char *compiler = getenv("CARD_CC"), *flags = getenv("CARD_CFLAGS");
    char path[256], command[2048], *object;
    size_t size = 0;
    FILE *f;
    int result;

    snprintf(path, sizeof path, "%s/unit.c", folder);
    f = fopen(path, "w");
    if (f == NULL)
        return 1;
    fputs(p->text, f);
    write_callers(f, p->text);
    fclose(f);
    snprintf(command, sizeof command, "cd %s && %s -x c -std=gnu11 -w -fPIC -shared "
             "-fno-strict-aliasing -ffp-contract=off %s -include %s unit.c -o unit.so -lm "
             ">log 2>&1", folder, compiler != NULL ? compiler : HOST_CC,
             flags != NULL ? flags : "-O0", HOST_SHIM);
    result = system(command);
    snprintf(path, sizeof path, "%s/log", folder);
    p->log = read_all(path, &size);
    if (result != 0)
        return 1;
    snprintf(path, sizeof path, "%s/unit.so", folder);
    object = read_all(path, &size);
    if (object == NULL || (p->binary = malloc(size + sizeof(uint64_t))) == NULL)
        return 1;
    memcpy(p->binary, &(uint64_t){ size }, sizeof(uint64_t));
    memcpy(p->binary + sizeof(uint64_t), object, size);
    p->size = size + sizeof(uint64_t);
    free(object);
    return 0;
}

int nvrtcCompileProgram(nvrtcProgram program, int options, const char *const *option)
{
    char folder[] = "/tmp/card-compiler-XXXXXX", command[128];
    int result;

    if (options < 1 || strncmp(option[0], "--gpu-architecture=sm_", 22) != 0
        || mkdtemp(folder) == NULL)
        return 1;
    result = compile_in(program, folder);
    if (getenv("CARD_KEEP") == NULL) {
        snprintf(command, sizeof command, "rm -rf %s", folder);
        if (system(command) != 0)
            result = 1;
    }
    return result;
}

int nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    *size = program->log != NULL ? strlen(program->log) + 1 : 0;
    return 0;
}

int nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    strcpy(log, program->log);
    return 0;
}

int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    *size = program->size;
    return program->binary == NULL;
}

int nvrtcGetCUBIN(nvrtcProgram program, char *binary)
{
    memcpy(binary, program->binary, program->size);
    return 0;
}
