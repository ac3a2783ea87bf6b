/*
 * compiler.c - a libnvrtc for tests: the host's compiler on the same text.
 *
 * The text is compiled as C behind shim.h. Each kernel gets a caller that takes the parameters of
 * cuLaunchKernel. The result is a shared object behind fake_image. A build with AddressSanitizer or
 * UndefinedBehaviorSanitizer compiles the text with them, too. FAKE_OBJECTS names a folder of
 * compiled objects, with the text and the command as their key: many tests have the same kernels.
 */
#include "fake.h"
#include "named.h"

#include "base/hash/sha256.h"
#include "graph/ir/shape.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct nvrtc_program_object {
    char *text, *log;
    char *binary;
    size_t size;
    bool translated;          /* the result is PTX, and no binary                                 */
} *nvrtcProgram;

int nvrtcVersion(int *major, int *minor);
int nvrtcGetNumSupportedArchs(int *count);
int nvrtcGetSupportedArchs(int *architectures);
int nvrtcCreateProgram(nvrtcProgram *program, const char *text, const char *name, int headers,
                       const char *const *header, const char *const *header_name);
int nvrtcDestroyProgram(nvrtcProgram *program);
int nvrtcCompileProgram(nvrtcProgram program, int options, const char *const *option);
int nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size);
int nvrtcGetProgramLog(nvrtcProgram program, char *log);
int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
int nvrtcGetCUBIN(nvrtcProgram program, char *binary);
int nvrtcGetPTXSize(nvrtcProgram program, size_t *size);
int nvrtcGetPTX(nvrtcProgram program, char *ptx);

int nvrtcVersion(int *major, int *minor)
{
    *major = named_version((const void *)nvrtcVersion);
    *minor = 0;
    return 0;
}

/* Architectures that the compilers of CUDA 11.8, 12.9 and 13.0 know. */
static const struct { int cuda, count, known[20]; } lists[] = {
    { 11, 15, { 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 90 } },
    { 12, 18, { 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120 } },
    { 13, 12, { 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121 } },
};
enum { LISTS = sizeof lists / sizeof *lists };

static int list_number(void)
{
    int i = 0;

    while (i < LISTS - 1 && lists[i].cuda != named_version((const void *)nvrtcVersion))
        i++;
    return i;
}

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = lists[list_number()].count;
    return 0;
}

int nvrtcGetSupportedArchs(int *architectures)
{
    const int i = list_number();

    memcpy(architectures, lists[i].known, (size_t)lists[i].count * sizeof(int));
    return 0;
}

static bool is_known(int architecture)
{
    const int i = list_number();

    for (int k = 0; k < lists[i].count; k++)
        if (lists[i].known[k] == architecture)
            return true;
    return false;
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

/*
 * A parameter of a kernel. "const float *in0 /" "* 120 *" "/" is memory of 120 elements that is
 * read, "/" "* 1+ *" "/" is memory of one element and those behind it, "/" "* 0 *" "/" is memory
 * that is not touched.
 */
typedef struct parameter {
    const char *type, *name;
    int type_size, name_size;
    long long count;          /* elements that it points to                                       */
    bool more;
} parameter;

/* Parse the parameter at 'at'; returns the start of the next one, NULL behind the last. */
static const char *read_parameter(const char *at, const char *end, parameter *p)
{
    const char *stop = at + strcspn(at, ",)/"), *count = strstr(at, "/*");
    const char *next = at + strcspn(at, ",)"), *name = stop;
    char *behind = NULL;

    while (name[-1] == ' ')
        name--;
    p->name_size = (int)(name - at);
    while (name > at && name[-1] != ' ' && name[-1] != '*')
        name--;
    p->name_size -= (int)(name - at);
    *p = (parameter){ .type = at, .name = name, .type_size = (int)(name - at),
                      .name_size = p->name_size };
    if (count != NULL && count < next)
        p->count = strtoll(count + 2, &behind, 10);
    p->more = behind != NULL && *behind == '+';
    next += strspn(next, ", ");
    return next < end ? next : NULL;
}

static void write_caller(FILE *f, const char *name, int size, const char *open, const char *close)
{
    parameter p;
    int i = 0, pointer;

    fprintf(f, "void shim_call_%.*s(void **p) { %.*s(", size, name, size, name);
    for (const char *at = open + 1; at != NULL; i++) {
        at = read_parameter(at, close, &p);
        fprintf(f, "%s*(%.*s *)p[%d]", i > 0 ? ", " : "", p.type_size, p.type, i);
    }
    fprintf(f, "); }\nstruct shim_parameter shim_parameters_%.*s[] = {\n", size, name);
    for (const char *at = open + 1; at != NULL;) {
        at = read_parameter(at, close, &p);
        pointer = p.type[p.type_size - 1] == '*';
        fprintf(f, "    { \"%.*s\", %d, %d, %d, %lld * sizeof(*(%.*s *)0) },\n", p.name_size,
                p.name, pointer && p.count > 0, strncmp(p.type, "const ", 6) != 0, p.more, p.count,
                p.type_size - pointer, p.type);
    }
    fprintf(f, "    { 0 }\n};\n");
}

static void write_callers(FILE *f, const char *text)
{
    for (const char *at = text; (at = strstr(at, "\nKERNEL ")) != NULL; at++) {
        const char *name = at + strlen("\nKERNEL "), *open = strchr(name, '(');

        write_caller(f, name, (int)(open - name), open, strchr(open, ')'));
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

/* ---- cache of objects ------------------------------------------------------------------------ */

static void add_text(sha256 *h, const char *text)
{
    sha256_add(h, text, strlen(text) + 1);
}

/* The path of the cached object of a text; false without a cache. */
static bool find_place(const nvrtcProgram p, const char *compiler, const char *flags, char *path,
                       size_t room)
{
    const char *folder = getenv("FAKE_OBJECTS");
    size_t size;
    char *shim = folder != NULL ? read_all(HOST_SHIM, &size) : NULL, hex[65];
    sha256 h;

    if (shim == NULL)
        return false;
    sha256_init(&h);
    add_text(&h, p->text);
    add_text(&h, shim);
    add_text(&h, compiler);
    add_text(&h, flags);
    add_text(&h, HOST_SANITIZERS);
    sha256_finish(&h, hex);
    free(shim);
    mkdir(folder, 0777);
    return snprintf(path, room, "%s/%s.so", folder, hex) < (int)room;
}

/* Store an object in the cache. Two processes that store the same object write the same bytes. */
static void keep_object(const char *path, const char *object, size_t size)
{
    char part[4200];
    FILE *f;
    bool good;

    snprintf(part, sizeof part, "%s.%d", path, (int)getpid());
    if ((f = fopen(part, "wbx")) == NULL)
        return;
    good = fwrite(object, 1, size, f) == size;
    if (fclose(f) != 0 || !good || rename(part, path) != 0)
        remove(part);
}

/* ---- compiling ------------------------------------------------------------------------------- */

static int take_object(nvrtcProgram p, const char *object, size_t size)
{
    fake_image facts = { size, (uint64_t)named_version((const void *)nvrtcVersion) };

    if (object == NULL || (p->binary = malloc(size + sizeof facts)) == NULL)
        return 1;
    memcpy(p->binary, &facts, sizeof facts);
    memcpy(p->binary + sizeof facts, object, size);
    p->size = size + sizeof facts;
    return 0;
}

/* Compile in a folder; the object is also stored at 'kept', unless that is empty. */
static int compile_in(nvrtcProgram p, const char *folder, const char *compiler, const char *flags,
                      const char *kept)
{
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
             "-fno-strict-aliasing -ffp-contract=off %s %s -include %s unit.c -o unit.so -lm "
             ">log 2>&1", folder, compiler, flags, HOST_SANITIZERS, HOST_SHIM);
    result = system(command);
    snprintf(path, sizeof path, "%s/log", folder);
    p->log = read_all(path, &size);
    if (result != 0)
        return 1;
    snprintf(path, sizeof path, "%s/unit.so", folder);
    object = read_all(path, &size);
    result = take_object(p, object, size);
    if (result == 0 && kept[0] != '\0')
        keep_object(kept, object, size);
    free(object);
    return result;
}

static int compile_apart(nvrtcProgram p, const char *compiler, const char *flags, const char *kept)
{
    char folder[] = "/tmp/fake-compiler-XXXXXX", command[128];
    int result;

    if (mkdtemp(folder) == NULL)
        return 1;
    result = compile_in(p, folder, compiler, flags, kept);
    if (getenv("FAKE_KEEP") == NULL) {
        snprintf(command, sizeof command, "rm -rf %s", folder);
        if (system(command) != 0)
            result = 1;
    }
    return result;
}

static int compile(nvrtcProgram p)
{
    const char *compiler = getenv("FAKE_CC"), *flags = getenv("FAKE_CFLAGS");
    char kept[4096] = "", *object = NULL;
    size_t size = 0;
    int result;

    compiler = compiler != NULL ? compiler : HOST_CC;
    flags = flags != NULL ? flags : "-O0";
    if (getenv("FAKE_KEEP") == NULL && find_place(p, compiler, flags, kept, sizeof kept))
        object = read_all(kept, &size);
    if (object == NULL)
        return compile_apart(p, compiler, flags, kept);
    result = take_object(p, object, size);
    p->log = calloc(1, 1);
    free(object);
    return result;
}

/* ---- compilers beside each other ------------------------------------------------------------- */

static bool is_there(const char *pattern)
{
    glob_t found;
    bool there = glob(pattern, 0, NULL, &found) == 0;

    globfree(&found);
    return there;
}

/* Wait for the file of FAKE_NVRTC; returns NULL, or an error if it does not appear. */
static const char *wait_beside(void)
{
    const char *given = getenv("FAKE_NVRTC"), *begun = getenv("FAKE_NVRTC_BEGUN");
    const struct timespec moment = { .tv_nsec = 10000000 };

    if (begun != NULL)
        close(open(begun, O_WRONLY | O_CREAT, 0666));
    if (given == NULL || strncmp(given, "beside=", 7) != 0)
        return NULL;
    for (int i = 0; i < 3000; i++) {
        if (is_there(given + 7))
            return NULL;
        nanosleep(&moment, NULL);
    }
    return "error: nothing came meanwhile";
}

/*
 * Parse a target: the architecture of a GPU, or that of PTX, which a driver translates for later
 * ones.
 */
static bool take_target(nvrtcProgram program, const char *option)
{
    static const char key[] = "--gpu-architecture=", real[] = "sm_", virtual[] = "compute_";
    const char *target = option + strlen(key);

    if (strncmp(option, key, strlen(key)) != 0)
        return false;
    program->translated = strncmp(target, virtual, strlen(virtual)) == 0;
    if (!program->translated && strncmp(target, real, strlen(real)) != 0)
        return false;
    return is_known(atoi(strchr(target, '_') + 1));
}

int nvrtcCompileProgram(nvrtcProgram program, int options, const char *const *option)
{
    const char *wrong = wait_beside();

    if (wrong != NULL) {
        program->log = strdup(wrong);
        return 1;
    }
    if (options < 1 || !take_target(program, option[0])) {
        program->log = strdup("nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
        return 5;
    }
    return compile(program);
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

static int get_size(nvrtcProgram program, bool translated, size_t *size)
{
    *size = program->translated == translated ? program->size : 0;
    return program->binary == NULL;
}

static int get(nvrtcProgram program, bool translated, char *to)
{
    if (program->translated != translated)
        return 7;
    memcpy(to, program->binary, program->size);
    return 0;
}

int nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    return get_size(program, false, size);
}

int nvrtcGetCUBIN(nvrtcProgram program, char *binary) { return get(program, false, binary); }

int nvrtcGetPTXSize(nvrtcProgram program, size_t *size) { return get_size(program, true, size); }

int nvrtcGetPTX(nvrtcProgram program, char *ptx) { return get(program, true, ptx); }
