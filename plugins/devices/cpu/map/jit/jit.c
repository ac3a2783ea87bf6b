/*
 * jit.c - compile the main program of a pass to machine code.
 *
 * Each instruction of interpreter.h processes a whole unit, and every value that is read twice goes
 * through memory. The compiler turns a run of instructions into one: it executes them in order on
 * one or two vectors at a time, with values in registers. Calls and visits have no machine code and
 * remain between the runs. A run that is the whole program also loops over the units.
 *
 * A run with a non-temporal output has two versions, because such a store must be aligned to a
 * cache line. The second version uses normal stores.
 */
#include "cpu/map/jit/jit_internal.h"

#include <stdlib.h>

static bool is_stream(const step *s)
{
    return s->i->code == MAP_CODE_STREAM_F32 || s->i->code == MAP_CODE_STREAM_BF16;
}

/* Jump to 'plain' if a non-temporal output is not aligned to a cache line. */
static void check_streams(jit_compiler *c, size_t plain)
{
    x86_code *x = c->code;

    for (int s = 0; s < c->step_count; s++) {
        const map_address *to = &c->step[s].i->at[0];
        if (!is_stream(&c->step[s]))
            continue;
        x86_load_64(x, X86_RAX, x86_at(X86_RSI, UNIT_AT(base)));
        x86_load_64(x, X86_RAX, x86_at(X86_RAX, (int64_t)to->base * 8));
        x86_add_64(x, X86_RAX, x86_at(X86_RSI,
                                      UNIT_AT(offset_of_addressing) + (int64_t)to->addressing * 8));
        x86_add_number(x, X86_RAX, to->place);
        x86_test_8(x, X86_RAX, 63);
        x86_land_at(x, x86_jump_unless_zero(x), plain);
    }
}

static void write_body(jit_compiler *c, bool streams)
{
    c->streams = streams;
    jit_load_pointers(c);
    jit_load_steady(c);
    jit_vectors(c);
    jit_restore(c);
    x86_add_number(c->code, X86_RDI, (int32_t)sizeof(map_instruction));
    x86_jump(c->code, x86_at(X86_RDI, (int64_t)offsetof(map_instruction, run)));
}

/* Compile the run; returns the offset of its entry, or 0. */
static size_t write_run(jit_compiler *c)
{
    size_t plain, begin;
    bool streams = false;

    c->failed = false;
    c->late_count = 0;
    if (!jit_steps(c))
        return 0;
    jit_find_pointers(c);
    if (c->failed)
        return 0;
    for (int s = 0; s < c->step_count; s++)
        streams = streams || is_stream(&c->step[s]);
    plain = c->code->size;
    if (streams)
        write_body(c, false);
    begin = c->code->size;
    x86_entry(c->code);
    check_streams(c, plain);
    write_body(c, streams);
    jit_out_of_line(c);
    return c->failed ? 0 : begin;
}

/* True if a run may end before the instruction, which must not read the accumulator. */
static bool is_cut(const jit_compiler *c, int k)
{
    int role = jit_traits[c->program[k].code].role;

    return role == ROLE_LOAD || role == ROLE_MAKE || role == ROLE_FETCH;
}

/* A shorter end of the run, near its middle; or its begin if there is none. */
static int shorter_end(const jit_compiler *c)
{
    int middle = (c->first + c->end) / 2;

    for (int k = middle; k > c->first; k--)
        if (is_cut(c, k))
            return k;
    for (int k = middle + 1; k < c->end; k++)
        if (is_cut(c, k))
            return k;
    return c->first;
}

static bool is_alone(const jit_compiler *c, int k)
{
    return jit_traits[c->program[k].code].role == ROLE_ALONE;
}

/*
 * Write the program with one instruction for each run. place_of_code[k] is the entry of its code,
 * or 0.
 */
static int write_program(jit_compiler *c, map_instruction *to, size_t *place_of_code)
{
    int count = 0;

    for (int k = 0; k < c->program_count;) {
        size_t begin = 0;
        c->first = c->end = k;
        while (c->end < c->program_count && !is_alone(c, c->end))
            c->end++;
        while (c->end - k > 1 && (begin = write_run(c)) == 0)
            c->end = shorter_end(c);
        if (begin == 0) {
            to[count] = c->program[k++];
            place_of_code[count++] = 0;
            continue;
        }
        to[count] = (map_instruction){ .code = MAP_CODE_COMPILED };
        place_of_code[count++] = begin;
        k = c->end;
    }
    return count;
}

void jit_compile(map_plan *plan, map_pass *pass)
{
    x86_code code = { 0 };
    jit_compiler c = { .machine = plan->lanes->machine, .plan = plan, .code = &code,
                       .program = &pass->code[pass->main] };
    map_instruction *quick;
    size_t *begin;
    int count;

    if (c.machine->compiles == MAP_COMPILES_NOT || plan->points < c.machine->unit)
        return;
    while (c.program[c.program_count++].code != MAP_CODE_END)
        ;
    c.step = calloc(2 * (size_t)c.program_count, sizeof *c.step);
    c.value = calloc(6 * (size_t)c.program_count, sizeof *c.value);
    c.late = calloc(4 * (size_t)c.program_count, sizeof *c.late);
    begin = calloc((size_t)c.program_count, sizeof *begin);
    quick = map_allocate(plan, (size_t)c.program_count, sizeof *quick);
    if (c.step != NULL && c.value != NULL && c.late != NULL && begin != NULL && quick != NULL) {
        jit_constants(&c);
        count = write_program(&c, quick, begin);
        pass->compiled = count < c.program_count ? x86_finish(&code) : NULL;
        pass->compiled_size = code.size;
        for (int k = 0; k < count && pass->compiled != NULL; k++)
            if (begin[k] != 0)
                quick[k].run = (void (*)(void))(uintptr_t)((char *)pass->compiled + begin[k]);
        pass->quick = pass->compiled != NULL ? quick : NULL;
    }
    free(code.byte);
    free(c.step);
    free(c.value);
    free(c.late);
    free(begin);
}

void jit_free(map_pass *pass)
{
    x86_release(pass->compiled, pass->compiled_size);
    pass->compiled = NULL;
    pass->quick = NULL;
}
