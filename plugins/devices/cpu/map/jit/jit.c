/*
 * jit.c - the main program of a pass as machine code.
 *
 * The instructions of interpreter.h bring every value that is read twice to memory and back, and
 * each goes over a whole unit. Here a run of them becomes one: for a few vectors at a time it does
 * what they do, in their order, and values stay in registers. What the processor has no instruction
 * for (calls, visits) stays as it is between the runs. A run that is the whole program goes on to
 * the next unit by itself.
 *
 * A run is there twice if it has an output that goes past the caches: that must begin at a line of
 * memory, and where it does not the second one writes through them.
 */
#include "cpu/map/jit/jit_internal.h"

#include <stdlib.h>

static bool is_stream(const step *s)
{
    return s->i->code == MAP_CODE_STREAM_F32 || s->i->code == MAP_CODE_STREAM_BF16;
}

/* A jump to 'plain' if what goes past the caches does not begin at a line of memory. */
static void check_streams(compiler *c, size_t plain)
{
    x86_code *x = c->code;

    for (int s = 0; s < c->step_count; s++) {
        const map_address *to = &c->step[s].i->at[0];
        if (!is_stream(&c->step[s]))
            continue;
        x86_load_64(x, X86_RAX, x86_at(X86_RSI, UNIT_AT(base)));
        x86_load_64(x, X86_RAX, x86_at(X86_RAX, (int64_t)to->base * 8));
        x86_add_64(x, X86_RAX, x86_at(X86_RSI, UNIT_AT(walked) + (int64_t)to->walk * 8));
        x86_add_number(x, X86_RAX, to->place);
        x86_test_8(x, X86_RAX, 63);
        x86_land_at(x, x86_jump_unless_zero(x), plain);
    }
}

static void write_body(compiler *c, bool streams)
{
    c->streams = streams;
    compile_load_pointers(c);
    compile_load_steady(c);
    compile_vectors(c);
    compile_restore(c);
    x86_add_number(c->code, X86_RDI, (int32_t)sizeof(map_instruction));
    x86_jump(c->code, x86_at(X86_RDI, (int64_t)offsetof(map_instruction, run)));
}

/* Where the code of the run begins, or 0. */
static size_t write_run(compiler *c)
{
    size_t plain, begin;
    bool streams = false;

    c->failed = false;
    c->late_count = 0;
    if (!compile_steps(c))
        return 0;
    compile_find_pointers(c);
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
    compile_late(c);
    return c->failed ? 0 : begin;
}

/* May a run end before the instruction? It must not read the accumulator. */
static bool is_cut(const compiler *c, int k)
{
    int role = compile_traits[c->program[k].code].role;

    return role == ROLE_LOAD || role == ROLE_MAKE || role == ROLE_FETCH;
}

/* A shorter end of the run, near its middle; or its begin: there is none. */
static int shorter_end(const compiler *c)
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

static bool is_alone(const compiler *c, int k)
{
    return compile_traits[c->program[k].code].role == ROLE_ALONE;
}

/* The program with a new instruction for each run; 'place_of_code' is where its code begins. */
static int write_program(compiler *c, map_instruction *to, size_t *place_of_code)
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

void map_compile(map_plan *plan, map_pass *pass)
{
    x86_code code = { 0 };
    compiler c = { .machine = plan->lanes->machine, .plan = plan, .code = &code,
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
        compile_constants(&c);
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

void map_compiled_free(map_pass *pass)
{
    x86_release(pass->compiled, pass->compiled_size);
    pass->compiled = NULL;
    pass->quick = NULL;
}
