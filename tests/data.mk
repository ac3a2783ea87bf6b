# Tests of data.
check_PROGRAMS += tests/check_nifti
tests_check_nifti_SOURCES = tests/check_nifti.c tests/gallery_nifti.h tests/nifti_maker.h tests/suite.h
tests_check_nifti_LDADD = $(TEST_LDADD) $(ZLIB_LIBS)
TESTS += tests/check_nifti
check_PROGRAMS += tests/check_volume
tests_check_volume_SOURCES = tests/check_volume.c tests/suite.h
tests_check_volume_LDADD = $(TEST_LDADD)
TESTS += tests/check_volume
check_PROGRAMS += tests/check_transforms
tests_check_transforms_SOURCES = tests/check_transforms.c tests/suite.h tests/tolerance.h
tests_check_transforms_LDADD = $(TEST_LDADD)
TESTS += tests/check_transforms
check_PROGRAMS += tests/check_stream tests/check_dataset tests/check_loader \
	tests/check_augment
tests_check_stream_SOURCES = tests/check_stream.c tests/suite.h
tests_check_stream_LDADD = $(TEST_LDADD)
tests_check_dataset_SOURCES = tests/check_dataset.c tests/dataset_maker.h tests/gallery_json.h \
	tests/suite.h
tests_check_dataset_LDADD = $(TEST_LDADD)
TESTS += tests/check_stream tests/check_dataset
check_PROGRAMS += tests/check_preprocess
tests_check_preprocess_SOURCES = tests/check_preprocess.c tests/suite.h
tests_check_preprocess_LDADD = $(TEST_LDADD)
TESTS += tests/check_preprocess
tests_check_loader_SOURCES = tests/check_loader.c tests/dataset_maker.h tests/suite.h
tests_check_loader_LDADD = $(TEST_LDADD)
tests_check_augment_SOURCES = tests/check_augment.c tests/dataset_maker.h tests/suite.h
tests_check_augment_LDADD = $(TEST_LDADD)
TESTS += tests/check_stream tests/check_dataset tests/check_loader tests/check_augment
check_PROGRAMS += tests/check_overlay
tests_check_overlay_SOURCES = tests/check_overlay.c tests/suite.h
tests_check_overlay_LDADD = $(TEST_LDADD)
TESTS += tests/check_overlay
TESTS += tests/check_data_cli.sh
EXTRA_DIST += tests/check_data_cli.sh
# Fuzz targets: make check replays their corpora, tests/fuzz.sh searches for more.
check_PROGRAMS += tests/replay_nifti tests/replay_ini tests/replay_safetensors \
	tests/replay_json tests/replay_note tests/replay_dataset
TESTS += tests/replay_nifti tests/replay_ini tests/replay_safetensors \
	tests/replay_json tests/replay_note tests/replay_dataset
tests_replay_nifti_SOURCES = tests/fuzz_nifti.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_nifti_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/nifti"'
tests_replay_nifti_LDADD = $(TEST_LDADD)
tests_replay_ini_SOURCES = tests/fuzz_ini.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_ini_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/ini"'
tests_replay_ini_LDADD = $(TEST_LDADD)
tests_replay_safetensors_SOURCES = tests/fuzz_safetensors.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_safetensors_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/safetensors"'
tests_replay_safetensors_LDADD = $(TEST_LDADD)
tests_replay_json_SOURCES = tests/fuzz_json.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_json_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/json"'
tests_replay_json_LDADD = $(TEST_LDADD)
tests_replay_note_SOURCES = tests/fuzz_note.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_note_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/note"'
tests_replay_note_LDADD = $(TEST_LDADD)
tests_replay_dataset_SOURCES = tests/fuzz_dataset.c tests/fuzz_file.h tests/fuzz_replay.c
tests_replay_dataset_CPPFLAGS = $(AM_CPPFLAGS) -DCORPUS='"tests/corpus/dataset"'
tests_replay_dataset_LDADD = $(TEST_LDADD)
EXTRA_DIST += tests/corpus tests/fuzz.sh tests/thread.sh
check_PROGRAMS += tests/gallery_files
tests_gallery_files_SOURCES = tests/gallery_files.c tests/gallery_ini.h tests/gallery_json.h \
	tests/gallery_nifti.h tests/gallery_plugin.h tests/gallery_safetensors.h tests/nifti_maker.h \
	tests/suite.h
tests_gallery_files_LDADD = $(TEST_LDADD) $(ZLIB_LIBS)
TESTS += tests/check_gallery.sh
EXTRA_DIST += tests/check_gallery.sh
check_PROGRAMS += tests/check_cache
tests_check_cache_SOURCES = tests/check_cache.c tests/dataset_maker.h tests/suite.h
tests_check_cache_LDADD = $(TEST_LDADD)
TESTS += tests/check_cache
check_PROGRAMS += tests/check_shared_cache
tests_check_shared_cache_SOURCES = tests/check_shared_cache.c tests/dataset_maker.h tests/suite.h
tests_check_shared_cache_LDADD = $(TEST_LDADD)
TESTS += tests/check_shared_cache
