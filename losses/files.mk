# Files of losses.
