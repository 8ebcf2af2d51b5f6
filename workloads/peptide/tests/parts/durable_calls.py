"""Of tests/tools/durable_calls.py."""

FILES = {"spectra.mgf": "BEGIN IONS\nTITLE=first\nPEPMASS=257.6290\nCHARGE=2+\nSEQ=PEPTA\n"
                        + "".join(f"{80 + 3.1 * i:.3f} {1 + i % 7}\n" for i in range(40)) + "END IONS\n"}
COMMANDS = {"convert": ["peptide", "convert", "spectra.mgf", "--min-length", "5", "-o", "spectra.cache"]}
