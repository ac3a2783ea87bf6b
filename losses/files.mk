# Loss plugins; they share the Dice term.
loss_LTLIBRARIES += losses/dice.la losses/dice_ce.la losses/dice_focal.la
OVERLAP = losses/overlap.c losses/overlap.h
losses_dice_la_SOURCES = losses/dice.c $(OVERLAP)
losses_dice_ce_la_SOURCES = losses/dice_ce.c $(OVERLAP)
losses_dice_focal_la_SOURCES = losses/dice_focal.c $(OVERLAP)
