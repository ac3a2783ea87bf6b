# Tests of pons/predict.h and pons/train.h.
PROGRAM_TESTS += %D%/check_embed
