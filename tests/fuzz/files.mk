# Fuzz targets: 'make check' replays their corpora, fuzz.sh searches for more.
PROGRAM_TESTS += %D%/replay_csv %D%/replay_dataset %D%/replay_ini %D%/replay_nifti %D%/replay_note \
	%D%/replay_picture %D%/replay_safetensors %D%/replay_store %D%/replay_torch
%C%_replay_csv_SOURCES = %D%/fuzz_csv.c %D%/fuzz_replay.c
%C%_replay_dataset_SOURCES = %D%/fuzz_dataset.c %D%/fuzz_replay.c
%C%_replay_ini_SOURCES = %D%/fuzz_ini.c %D%/fuzz_replay.c
%C%_replay_nifti_SOURCES = %D%/fuzz_nifti.c %D%/fuzz_replay.c
%C%_replay_note_SOURCES = %D%/fuzz_note.c %D%/fuzz_replay.c
%C%_replay_picture_SOURCES = %D%/fuzz_picture.c %D%/fuzz_replay.c
%C%_replay_safetensors_SOURCES = %D%/fuzz_safetensors.c %D%/fuzz_replay.c
%C%_replay_store_SOURCES = %D%/fuzz_store.c %D%/fuzz_replay.c
%C%_replay_torch_SOURCES = %D%/fuzz_torch.c %D%/fuzz_replay.c
EXTRA_DIST += %D%/fuzz.sh %D%/fuzz_file.h
