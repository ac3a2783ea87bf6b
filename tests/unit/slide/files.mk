# Tests of whole-slide images.
PROGRAM_TESTS += %D%/check_layout_slides %D%/check_slide
