"""Of tools/campaigns/power_cut.py: spectra become a cache."""

SOURCE = "spectra.mgf"
TEXT = "".join(
    f"BEGIN IONS\nTITLE={n}\nPEPMASS=257.6290\nCHARGE=2+\nSEQ=PEPTA\n"
    + "".join(f"{80 + 3.1 * i + n:.3f} {1 + i % 7}\n" for i in range(40)) + "END IONS\n" for n in range(40))
CONVERT = ["peptide", "convert", SOURCE, "--min-length", "5"]
