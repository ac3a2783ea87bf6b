# Tests of data.
PROGRAM_TESTS += tests/check_augment tests/check_cache tests/check_case_geometry \
	tests/check_dataset tests/check_loader \
	tests/check_nifti tests/check_overlay tests/check_preprocess tests/check_run_folder \
	tests/check_shared_cache tests/check_slabs tests/check_stream tests/check_transforms \
	tests/check_volume
tests_check_nifti_LDADD = $(LDADD) $(ZLIB_LIBS)
SCRIPT_TESTS += tests/check_data_cli.sh tests/check_gallery.sh
check_PROGRAMS += tests/gallery_files
tests_gallery_files_LDADD = $(LDADD) $(ZLIB_LIBS)

# Fuzz targets: make check replays their corpora, tests/fuzz.sh searches for more.
PROGRAM_TESTS += tests/replay_nifti tests/replay_ini tests/replay_safetensors tests/replay_json \
	tests/replay_note tests/replay_dataset
tests_replay_nifti_SOURCES = tests/fuzz_nifti.c tests/fuzz_replay.c
tests_replay_ini_SOURCES = tests/fuzz_ini.c tests/fuzz_replay.c
tests_replay_safetensors_SOURCES = tests/fuzz_safetensors.c tests/fuzz_replay.c
tests_replay_json_SOURCES = tests/fuzz_json.c tests/fuzz_replay.c
tests_replay_note_SOURCES = tests/fuzz_note.c tests/fuzz_replay.c
tests_replay_dataset_SOURCES = tests/fuzz_dataset.c tests/fuzz_replay.c
EXTRA_DIST += tests/corpus tests/fuzz.sh tests/thread.sh
