# Loss plugins and the terms that they share.
loss_LTLIBRARIES += losses/bce.la losses/cross_entropy.la losses/dice.la losses/dice_ce.la \
	losses/dice_focal.la losses/focal.la losses/generalized_dice.la losses/l1.la losses/mse.la \
	losses/nnunet.la losses/tversky.la
LOSS_VOXELS = losses/voxels.c losses/voxels.h
LOSS_CLASSES = losses/classes.c losses/classes.h $(LOSS_VOXELS)
LOSS_OVERLAP = losses/overlap.c losses/overlap.h $(LOSS_CLASSES)
LOSS_DICE = losses/dice_term.c losses/dice_term.h $(LOSS_OVERLAP)
LOSS_ENTROPY = losses/entropy.c losses/entropy.h
LOSS_FOCAL = losses/focal_term.c losses/focal_term.h
losses_bce_la_SOURCES = losses/bce.c $(LOSS_ENTROPY) $(LOSS_CLASSES)
losses_cross_entropy_la_SOURCES = losses/cross_entropy.c $(LOSS_ENTROPY) $(LOSS_CLASSES)
losses_dice_la_SOURCES = losses/dice.c $(LOSS_DICE)
losses_dice_ce_la_SOURCES = losses/dice_ce.c $(LOSS_ENTROPY) $(LOSS_DICE)
losses_dice_focal_la_SOURCES = losses/dice_focal.c $(LOSS_FOCAL) $(LOSS_DICE)
losses_focal_la_SOURCES = losses/focal.c $(LOSS_FOCAL) $(LOSS_CLASSES)
losses_generalized_dice_la_SOURCES = losses/generalized_dice.c $(LOSS_OVERLAP)
losses_l1_la_SOURCES = losses/l1.c $(LOSS_VOXELS)
losses_mse_la_SOURCES = losses/mse.c $(LOSS_VOXELS)
losses_nnunet_la_SOURCES = losses/nnunet.c $(LOSS_ENTROPY) $(LOSS_DICE)
losses_tversky_la_SOURCES = losses/tversky.c $(LOSS_OVERLAP)
