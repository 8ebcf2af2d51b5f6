"""Of tools/campaigns/support/two_builds.py."""

SMALLER = {
    "peptide": ["train.batch_size=2", "data.validation_spectra=64"],
    "peptide-cpu": ["data.validation_spectra=64"],
}
MADE_UP = ["peptide", "peptide-cpu"]
NO_TEXT = MADE_UP
