/*
 * check_cuda_visible_devices.c - the physical devices behind the device numbers of a run.
 */
#include <config.h>

#include "device/cuda_visible_devices.h"

#include "support/run/run_pons.h"
#include "support/suite.h"

static device_list list_of(const char *text)
{
    pons_error err = PONS_ERROR_INIT;
    device_list list;

    ck_assert_int_eq(device_list_parse(text, "a.ini:1", &list, &err), PONS_OK);
    return list;
}

START_TEST(lists_are_read_in_their_order)
{
    static const struct {
        const char *text;
        int physical, count;
        const char *first, *last;
    } lists[] = {
        { "0", -1, 1, "0", "0" }, { "3,1,0", 4, 3, "3", "0" }, { " 2 , 5 ", -1, 2, "2", "5" },
        { "01", 2, 1, "1", "1" }, { "GPU-8932f937-d72c", 1, 1, "GPU-8932f937-d72c", NULL },
        { "MIG-GPU-8932f937/1/0,2", 4, 2, "MIG-GPU-8932f937/1/0", "2" },
        { "", 4, 0, NULL, NULL }, { "-1", 4, 0, NULL, NULL }, { "NoDevFiles", 4, 0, NULL, NULL },
        { "2,-1,3", 4, 1, "2", NULL }, { NULL, 4, 4, NULL, NULL }, { NULL, -1, -1, NULL, NULL }
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        pons_error err = PONS_ERROR_INIT;
        cuda_visible_devices v;
        ck_assert_msg(cuda_visible_devices_parse(lists[i].text, lists[i].physical, &v,
                                                 &err) == PONS_OK,
                      "%s", err.text);
        ck_assert_int_eq(v.given, lists[i].text != NULL);
        ck_assert_int_eq(v.count, lists[i].count);
        if (lists[i].first != NULL)
            ck_assert_str_eq(v.item[0], lists[i].first);
        if (lists[i].last != NULL)
            ck_assert_str_eq(v.item[v.count - 1], lists[i].last);
    }
}
END_TEST

START_TEST(devices_that_cuda_silently_ignores_are_refused)
{
    static const struct { const char *text; int physical; const char *said; } lists[] = {
        { "0,1,4", 4, "CUDA_VISIBLE_DEVICES = '0,1,4' in the environment: there is no device 4, "
          "this machine has 4" },
        { "0,0", 4, "'0' is there twice" }, { "1,01", 4, "'01' is there twice" },
        { "0,,1", 4, "'' is no device" }, { "0,", 4, "'' is no device" },
        { "0,cuda:1", 4, "'cuda:1' is neither a number nor the beginning of a UUID" },
        { "-2", 4, "there is no device -2" }, { "GPU-", 4, "'GPU-' is neither" },
        { "0 1", 4, "'0 1' is neither" }, { "99999999999999999999", -1, "is neither a number" },
        { "GPU-00000000-00000000-00000000-00000000-00000000-00000000-0000000", 4, "is no device" }
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        pons_error err = PONS_ERROR_INIT;
        cuda_visible_devices v = { .count = 77 };
        ck_assert_msg(cuda_visible_devices_parse(lists[i].text, lists[i].physical, &v, &err)
                      == PONS_CONFIG, "'%s'", lists[i].text);
        ck_assert_msg(strstr(err.text, lists[i].said) != NULL, "%s", err.text);
        ck_assert_int_eq(v.count, 77);
    }
}
END_TEST

START_TEST(at_most_64_cuda_devices_are_listed)
{
    char text[512] = "0";
    pons_error err = PONS_ERROR_INIT;
    cuda_visible_devices v;

    for (int i = 1; i < DEVICES_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i);
    ck_assert_int_eq(cuda_visible_devices_parse(text, -1, &v, &err), PONS_OK);
    ck_assert_int_eq(v.count, DEVICES_MAX);
    strcat(text, ",64");
    ck_assert_int_eq(cuda_visible_devices_parse(text, -1, &v, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "'64' is one device more than 64") != NULL, "%s", err.text);
}
END_TEST

static pons_status check_devices(const char *visible, int physical, const char *devices,
                                 pons_error *err)
{
    const device_list list = list_of(devices);
    cuda_visible_devices v;

    ck_assert_int_eq(cuda_visible_devices_parse(visible, physical, &v, err), PONS_OK);
    return cuda_visible_devices_check(&v, &list, "a.ini:7", err);
}

START_TEST(missing_cuda_devices_are_refused)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(check_devices("5,2", 8, "cuda:0,1", &err), PONS_OK);
    ck_assert_int_eq(check_devices(NULL, -1, "cuda:63", &err), PONS_OK);
    ck_assert_int_eq(check_devices("5,2", 8, "cuda:0,1,2", &err), PONS_DEVICE);
    ck_assert_msg(strstr(err.text, "a.ini:7: [distribute] devices: there is no cuda:2, "
                         "CUDA_VISIBLE_DEVICES = '5,2' leaves 2 devices\n"
                         "hint: devices are counted from 0") != NULL, "%s", err.text);
    err = (pons_error)PONS_ERROR_INIT;
    /* Device numbers of the run are not physical numbers. */
    ck_assert_int_eq(check_devices("5", 8, "cuda:5", &err), PONS_DEVICE);
    ck_assert_msg(strstr(err.text, "no cuda:5, CUDA_VISIBLE_DEVICES = '5' leaves 1 device\n")
                  != NULL, "%s", err.text);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(check_devices(NULL, 1, "cuda:0,1", &err), PONS_DEVICE);
    ck_assert_msg(strstr(err.text, "there is no cuda:1, this machine has 1 device") != NULL, "%s",
                  err.text);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(check_devices("", 8, "cuda", &err), PONS_DEVICE);
    ck_assert_msg(strstr(err.text, "leaves 0 devices") != NULL, "%s", err.text);
}
END_TEST

static int rank_of(const char *visible, int physical, int local_rank, int local_size,
                   pons_error *err)
{
    cuda_visible_devices v;
    int index = -1;

    ck_assert_int_eq(cuda_visible_devices_parse(visible, physical, &v, err), PONS_OK);
    cuda_visible_devices_rank(&v, local_rank, local_size, &index, err);
    return index;
}

START_TEST(each_process_of_a_node_has_its_own_device)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(rank_of("3,1,0,2", 4, 2, 4, &err), 2);
    ck_assert_int_eq(rank_of(NULL, 8, 7, 8, &err), 7);
    ck_assert_int_eq(rank_of(NULL, -1, 7, 8, &err), 7);
    ck_assert_int_eq(rank_of("6", 8, 3, 4, &err), 0); /* each process sees its own device only */
    ck_assert_int_eq(rank_of("0,1", 8, 2, 4, &err), -1);
    ck_assert_str_eq(err.text,
                     "4 processes on this node, but CUDA_VISIBLE_DEVICES = '0,1' leaves 2 devices");
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(rank_of(NULL, 1, 1, 2, &err), -1);
    ck_assert_str_eq(err.text, "2 processes on this node, but this machine has 1 device");
}
END_TEST

static const char *physical_devices_text(const char *visible, const char *devices, char *out,
                                         size_t size)
{
    const device_list list = list_of(devices);
    pons_error err = PONS_ERROR_INIT;
    cuda_visible_devices v;

    ck_assert_int_eq(cuda_visible_devices_parse(visible, -1, &v, &err), PONS_OK);
    memset(out, 'x', size);
    cuda_visible_devices_print(&v, &list, out, size);
    return out;
}

START_TEST(physical_devices_are_printed)
{
    char out[256];

    ck_assert_str_eq(physical_devices_text("5,1,3", "cuda:0,2", out, sizeof out),
                     "cuda:0 and cuda:2 are the devices 5 and 3 of CUDA_VISIBLE_DEVICES = 5,1,3");
    ck_assert_str_eq(physical_devices_text("GPU-12", "cuda", out, sizeof out),
                     "cuda:0 is the device GPU-12 of CUDA_VISIBLE_DEVICES = GPU-12");
    ck_assert_str_eq(physical_devices_text("2,1,0", "cuda:2,1,0", out, sizeof out),
                     "cuda:2, cuda:1 and cuda:0 are "
                     "the devices 0, 1 and 2 of CUDA_VISIBLE_DEVICES = 2,1,0");
    ck_assert_str_eq(physical_devices_text(NULL, "cuda:2", out, sizeof out), "");
    ck_assert_str_eq(physical_devices_text("5,1,3", "cuda:0,2", out, 8), "cuda:0 ");
}
END_TEST

START_TEST(the_program_prints_and_obeys_cuda_visible_devices)
{
    /* The program accepts the device and fails later, at a dataset that does not exist. */
    bool built = access("stage/device/cuda.so", F_OK) == 0;

    make_root();
    write_text("e.ini", "[experiment]\nname = run\n[data]\nsource = nothing\n[patch]\nextent = 16\n"
               "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\n[loss]\nplugin = dice\n"
               "[optimizer]\nplugin = adam\nlr = 0.1\n[train]\nsteps = 1\n"
               "[distribute]\ndevices = cuda:0,1\n");
    setenv("CUDA_VISIBLE_DEVICES", "5", 1);
    EXPECT(5, "e.ini:19: [distribute] devices: there is no cuda:1, CUDA_VISIBLE_DEVICES = '5' "
           "leaves 1 device",
           "train", "e.ini");
    setenv("CUDA_VISIBLE_DEVICES", "5,5", 1);
    EXPECT(3, "CUDA_VISIBLE_DEVICES = '5,5' in the environment: '5' is there twice", "train",
           "e.ini");
    setenv("CUDA_VISIBLE_DEVICES", "5,2", 1);
    EXPECT(built ? 4 : 3, "cuda:0 and cuda:1 are the devices 5 and 2 of CUDA_VISIBLE_DEVICES = 5,2",
           "train", "e.ini");
    unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT(built ? 4 : 3, built ? "of [data] source"
           : "e.ini:19: [distribute] devices = 'cuda:0,1': 'cuda' is not in this build\n", "train",
           "e.ini");
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("visible");

    tcase_add_test(c, lists_are_read_in_their_order);
    tcase_add_test(c, devices_that_cuda_silently_ignores_are_refused);
    tcase_add_test(c, at_most_64_cuda_devices_are_listed);
    tcase_add_test(c, missing_cuda_devices_are_refused);
    tcase_add_test(c, each_process_of_a_node_has_its_own_device);
    tcase_add_test(c, physical_devices_are_printed);
    tcase_add_test(c, the_program_prints_and_obeys_cuda_visible_devices);
    return suite_run();
}
