"""Of tools/campaigns/cuda_steps.py and bench/peers/card_beside_torch."""

STEPS = [
    {"name": "peptide", "config": "peptide-cpu",
     "small": ["train.batch_size=2", "model.hidden_dim=48", "data.validation_spectra=2", "model.num_supervision_steps=1",
               "model.num_latent_steps=1"]},
    {"name": "peptide-64", "config": "peptide", "asked_milliseconds": 13, "asked_ratio": 3, "compare": "compare_peptide", "worth": 4,
     "full": ["train.batch_size=64", "data.validation_spectra=64"]},
]
