"""Of tools/campaigns/damaged_text.py."""

JOB = """data: {min_length: 5, max_length: 6, validation_spectra: 16, min_peaks: 5}
model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1, num_heads: 2, max_peaks: 14,
  max_seq_len: 9, num_supervision_steps: 2, num_latent_steps: 2}
train: {steps: 2, batch_size: 8}
engine: {threads: 1}
"""
SPECTRUM = """BEGIN IONS
TITLE=spectrum {0}
PEPMASS=257.6290
CHARGE=2+
SEQ=PEPTA
98.06 1
227.103 2
324.155 3
425.203 2
90.055 4
191.103 5
288.155 6
417.198 7
END IONS
"""
FILES = {"peptide.yaml": JOB, "spectra.mgf": "".join(SPECTRUM.format(i) for i in range(12))}
COMMANDS = [("train", "peptide.yaml", "run.dir=peptide"), ("predict", "peptide", "spectra.mgf", "-o", "found.mztab")]
CASES = [("found.mztab", "", lambda copy: ("eval", copy, "--data", "spectra.mgf"))]
