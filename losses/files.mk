# Loss plugins; dice, dice_ce and dice_focal share the Dice term.
loss_LTLIBRARIES += losses/dice.la losses/dice_ce.la losses/dice_focal.la

losses_dice_la_SOURCES = losses/dice.c losses/overlap.c losses/overlap.h
losses_dice_la_LDFLAGS = $(PLUGIN_LDFLAGS)
losses_dice_la_LIBADD = $(PLUGIN_LIBADD)
losses_dice_ce_la_SOURCES = losses/dice_ce.c losses/overlap.c losses/overlap.h
losses_dice_ce_la_LDFLAGS = $(PLUGIN_LDFLAGS)
losses_dice_ce_la_LIBADD = $(PLUGIN_LIBADD)
losses_dice_focal_la_SOURCES = losses/dice_focal.c losses/overlap.c losses/overlap.h
losses_dice_focal_la_LDFLAGS = $(PLUGIN_LDFLAGS)
losses_dice_focal_la_LIBADD = $(PLUGIN_LIBADD)
