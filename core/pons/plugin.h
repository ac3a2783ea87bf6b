/*
 * plugin.h - the parts of every plugin: status and error, option table, descriptor, ELF note.
 *
 * A plugin is one shared object that exports one function, pons_plugin_entry, which returns one
 * constant descriptor. The macro of its kind writes both the function and an ELF note by which the
 * loader knows kind, name and ABI before any byte of the object runs. The macros of all kinds have
 * one form:
 *
 *     static const pons_loss_operations operations = { .check = check, .build = build };
 *
 *     PONS_LOSS(dice, "1.0", "soft Dice", options, operations);
 *
 * NAME is the name of the plugin, of its file and of the struct that OPTIONS fill; a plugin that
 * has none gives PONS_NO_OPTIONS and needs no struct. VERSION and SUMMARY are strings. OPERATIONS
 * is a static const struct of the kind. Members of these structs are only ever appended.
 *
 * The first operation of every kind is optional and called once, when the options have been read:
 *
 *     pons_status (*check)(const void *config, pons_error *err);
 *
 * It refuses options that contradict each other with pons_option_fail. The table itself checks
 * single values and numbers of entries. Devices and communicators have neither options nor 'check':
 * no section of an INI file fills them.
 */
#ifndef CORE_PONS_PLUGIN_H
#define CORE_PONS_PLUGIN_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions have the linkage of C, also in C++. */
#ifdef __cplusplus
#define PONS_C_BEGIN extern "C" {
#define PONS_C_END }
#else
#define PONS_C_BEGIN
#define PONS_C_END
#endif

PONS_C_BEGIN

#define PONS_ABI_MAJOR 2
#define PONS_ABI_MINOR 0

/* ---- status and error ------------------------------------------------------------------------ */

/* The exit code of the program is the status of the failure that ended it. */
typedef enum pons_status {
    PONS_OK = 0,
    PONS_FAILURE = 1,       /* anything without a code of its own                                 */
    PONS_USAGE = 2,         /* command line                                                       */
    PONS_CONFIG = 3,        /* INI file, option, or a combination that cannot work                */
    PONS_DATA = 4,          /* a volume, label, dataset or prediction                             */
    PONS_DEVICE = 5,        /* device or memory                                                   */
    PONS_PLUGIN = 6,        /* a plugin that cannot be loaded, or breaks a rule                   */
    PONS_COMMUNICATION = 7, /* another process                                                    */
    PONS_INTERRUPTED = 75   /* a signal; the run continues when it is started again               */
} pons_status;

/* One failure: a status and one complete line (a second line may hold 'hint: ...'). */
typedef struct pons_error {
    pons_status status;
    char text[2048];
} pons_error;

#define PONS_ERROR_INIT { PONS_OK, "" }

/*
 * Record a failure in 'err' unless it already holds one (the first failure wins), and return the
 * status that 'err' holds afterwards. The text is lower case and has no final stop; 'err' may be
 * NULL. Control characters of the arguments are written as in C. A '%s' at the end of the
 * format passes on the message of another failure, whose line breaks stay. Any thread, as long as
 * 'err' is its own.
 */
pons_status pons_fail(pons_error *err, pons_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The same of an option that cannot work, from 'check' or wherever it is found: PONS_CONFIG. The
 * text says what was found and what was expected, as in
 *
 *     pons_option_fail(err, "weight", "found %d numbers, expected 1", count);
 *
 * and the core puts file, line, section and key before it: "a.ini:7: [loss] weight: found 2 ...".
 */
pons_status pons_option_fail(pons_error *err, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- options --------------------------------------------------------------------------------- */

typedef enum pons_option_type {
    PONS_OPTION_REAL = 1, /* double                                                               */
    PONS_OPTION_INTEGER,  /* int64_t                                                              */
    PONS_OPTION_FLAG,     /* bool; yes or no                                                      */
    PONS_OPTION_CHOICE,   /* int, index into 'choices'                                            */
    PONS_OPTION_TEXT,     /* const char *, owned by the configuration                             */
    PONS_OPTION_SIZE,     /* int64_t bytes; 4096, 4KiB, 4MiB, 4GiB                                */
    PONS_OPTION_REALS,    /* pons_reals, any number of items                                      */
    PONS_OPTION_INTEGERS, /* pons_integers                                                        */
    PONS_OPTION_TEXTS,    /* pons_texts, separated by blanks; "in quotes" one may hold blanks     */
    PONS_OPTION_AXES,     /* int[3] in order i j k; one number stands for all three               */
    PONS_OPTION_REAL_AXES,/* double[3], likewise                                                  */
    PONS_OPTION_TRIPLES,  /* pons_triples; items separated by blanks, '2' or '2,2,1'              */
    PONS_OPTION_PATH,     /* const char *, absolute: relative ones begin at the INI file's folder */
    PONS_OPTION_PATHS     /* pons_texts of such paths, quoted likewise                            */
} pons_option_type;

/* Lists belong to the configuration and live as long as it does; count 0: not given. */
typedef struct pons_reals {
    int count;
    const double *item;
} pons_reals;

typedef struct pons_integers {
    int count;
    const int64_t *item;
} pons_integers;

typedef struct pons_texts {
    int count;
    const char *const *item;
} pons_texts;

typedef struct pons_triples {
    int count;
    const int (*item)[3];
} pons_triples;

/*
 * One row of an option table. The table does all parsing, range checks, defaults and help. The
 * default is text, as it would stand in the INI file; NULL: the option must be given; "": not
 * given (NULL text, empty list, zeros).
 */
typedef struct pons_option {
    const char *name;
    pons_option_type type;
    size_t offset;              /* of the member in the plugin's configuration struct             */
    const char *fallback;
    double minimum, maximum;    /* range of every number in the value, both ends allowed          */
    /*
     * NULL-terminated, for CHOICE; for INTEGER and SIZE words that may stand for the number and are
     * stored as -1, -2, ...
     */
    const char *const *choices;
    const char *help;           /* one sentence: 8 characters or more, the last a full stop       */
    int count_min, count_max;   /* range of the number of entries of a list; 0: no limit          */
} pons_option;

/*
 * The rows of a table. S is the plugin's struct, M its member and the name of the option, DEFAULT a
 * string or NULL. HELP ends a row; further members of pons_option may follow it:
 *
 *     PONS_REAL(scale, factor, "0.1", 0, 1, "Largest change of a value."),
 *     PONS_CHOICE(scale, source, NULL, sources, "Where foreground is looked for."),
 *     PONS_REALS(scale, from, NULL, 0, 100, "Two percentiles.", .count_min = 2, .count_max = 2),
 *     PONS_OPTIONS_END
 */
#define PONS_REAL(S, M, DEFAULT, LOW, HIGH, ...) /* ...: HELP */ \
    PONS_OPTION_(S, M, PONS_OPTION_REAL, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_INTEGER(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_INTEGER, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_FLAG(S, M, DEFAULT, ...) /* DEFAULT: "yes" or "no" */ \
    PONS_OPTION_(S, M, PONS_OPTION_FLAG, DEFAULT, 0, 0, NULL, __VA_ARGS__)
#define PONS_CHOICE(S, M, DEFAULT, CHOICES, ...) /* DEFAULT: a word of CHOICES */ \
    PONS_OPTION_(S, M, PONS_OPTION_CHOICE, DEFAULT, 0, 0, CHOICES, __VA_ARGS__)
#define PONS_TEXT(S, M, DEFAULT, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_TEXT, DEFAULT, 0, 0, NULL, __VA_ARGS__)
#define PONS_SIZE(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_SIZE, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_REALS(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_REALS, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_INTEGERS(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_INTEGERS, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_TEXTS(S, M, DEFAULT, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_TEXTS, DEFAULT, 0, 0, NULL, __VA_ARGS__)
#define PONS_AXES(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_AXES, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_REAL_AXES(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_REAL_AXES, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_TRIPLES(S, M, DEFAULT, LOW, HIGH, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_TRIPLES, DEFAULT, LOW, HIGH, NULL, __VA_ARGS__)
#define PONS_PATH(S, M, DEFAULT, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_PATH, DEFAULT, 0, 0, NULL, __VA_ARGS__)
#define PONS_PATHS(S, M, DEFAULT, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_PATHS, DEFAULT, 0, 0, NULL, __VA_ARGS__)
/* An integer for which a word of CHOICES may stand. */
#define PONS_INTEGER_OR(S, M, DEFAULT, LOW, HIGH, CHOICES, ...) \
    PONS_OPTION_(S, M, PONS_OPTION_INTEGER, DEFAULT, LOW, HIGH, CHOICES, __VA_ARGS__)
#define PONS_OPTIONS_END { .name = NULL }

#define PONS_OPTION_(S, M, TYPE, DEFAULT, LOW, HIGH, CHOICES, ...) \
    { .name = #M, .type = TYPE, .offset = offsetof(S, M), .fallback = DEFAULT, .minimum = LOW, \
      .maximum = HIGH, .choices = CHOICES, .help = __VA_ARGS__ }

/* ---- descriptor ------------------------------------------------------------------------------ */

typedef enum pons_kind {
    PONS_KIND_MODEL = 1,
    PONS_KIND_LOSS,
    PONS_KIND_OPTIMIZER,
    PONS_KIND_OP,
    PONS_KIND_TRANSFORM,
    PONS_KIND_SCHEDULE,
    PONS_KIND_DEVICE,
    PONS_KIND_COMM,
    PONS_KIND_SINK
} pons_kind;

/* 'size', 'option_size' and 'operations_size' let a newer pons read an older plugin. */
typedef struct pons_plugin {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    uint32_t kind;
    uint32_t option_size;
    uint32_t operations_size;
    uint32_t reserved;
    size_t config_size;         /* of the struct that the option table fills                      */
    const char *name;           /* the file's base name and the value in the INI file             */
    const char *version;
    const char *summary;        /* one line                                                       */
    const char *licence;        /* SPDX                                                           */
    const pons_option *options; /* ends with PONS_OPTIONS_END                                     */
    const void *operations;     /* the struct of the kind, pons_model_operations, ...             */
} pons_plugin;

const pons_plugin *pons_plugin_entry(void);

/* Read from the file, never from memory: the loader refuses a wrong note before loading. */
#define PONS_NOTE_OWNER "pons"
#define PONS_NOTE_TYPE 1
#define PONS_NAME_SIZE 48

typedef struct pons_note {
    uint32_t owner_size, content_size, type;
    char owner[8];
    uint32_t kind;
    uint16_t abi_major, abi_minor;
    char name[PONS_NAME_SIZE];
} pons_note;

#ifndef PONS_PLUGIN_LICENCE
#define PONS_PLUGIN_LICENCE "MIT" /* define another one before the first pons header */
#endif

#define PONS_EXPORT __attribute__((visibility("default")))

/* OPTIONS of a plugin without options. */
#define PONS_NO_OPTIONS NULL, 0

#define PONS_FIRST_(FIRST, ...) FIRST
#define PONS_SECOND_(FIRST, SECOND, ...) SECOND

/* The macro of a kind: TYPE is its struct of operations, ... the OPTIONS. */
#define PONS_PLUGIN_DEFINE_(KIND, TYPE, NAME, VERSION, SUMMARY, OPERATIONS, ...)                  \
    __attribute__((used, section(".note.pons"), aligned(4)))                                      \
    static const pons_note pons_note_of_this_plugin = {                                           \
        8, sizeof(pons_note) - offsetof(pons_note, kind), PONS_NOTE_TYPE, PONS_NOTE_OWNER,        \
        KIND, PONS_ABI_MAJOR, PONS_ABI_MINOR, #NAME                                               \
    };                                                                                            \
    PONS_EXPORT const pons_plugin *pons_plugin_entry(void)                                        \
    {                                                                                             \
        static const pons_plugin plugin = {                                                       \
            sizeof(pons_plugin), PONS_ABI_MAJOR, PONS_ABI_MINOR, KIND, sizeof(pons_option),       \
            sizeof(OPERATIONS), 0, PONS_SECOND_(__VA_ARGS__, sizeof(NAME), 0), #NAME, VERSION,    \
            SUMMARY, PONS_PLUGIN_LICENCE, PONS_FIRST_(__VA_ARGS__, 0), &(OPERATIONS)              \
        };                                                                                        \
        return &plugin;                                                                           \
    }                                                                                             \
    _Static_assert(_Generic(&(OPERATIONS), const TYPE *: 1, default: 0),                          \
                   "the operations of this kind are a static const " #TYPE);                      \
    _Static_assert(sizeof(#NAME) <= PONS_NAME_SIZE, "the name has more than 47 characters")

PONS_C_END

#endif
