#!/usr/bin/env python3
"""Writes small spectrum files by pyteomics and psims, and what pyteomics reads there:

    python3 workloads/peptide/tests/golden/spectrum_files.py workloads/peptide/tests/data

-> pyteomics.mgf, psims_indexed.mzML (64 bits in zlib, two MS levels, a profile, a spectrum without a precursor),
psims_plain.mzML (32 bits, uncompressed, no index), psims_numpress.mzML, and written.json: by file the MS2 spectra as
pyteomics reads them. Written with pyteomics 5.0.1, psims 1.4.0 and pynumpress; neither the build nor the tests need
them. Neither writes MSP.
"""
import json
import pathlib
import sys

import numpy
from psims.mzml.writer import IndexedMzMLWriter, MzMLWriter, PlainMzMLWriter
from pyteomics import mgf, mzml

# b and y ions of LESLIEK and PEPTIDE.
MZ = {"LESLIEK": [114.09133, 147.11279, 243.13392, 276.15538, 330.16595, 389.23944, 443.25001, 502.32350, 556.33407,
                  589.35553, 685.37666, 718.39812],
      "PEPTIDE": [98.06003, 148.06042, 227.10262, 263.08736, 324.15538, 376.17142, 425.20306, 477.21910, 538.28712,
                  574.27186, 653.31406, 703.31445]}
PRECURSOR = {"LESLIEK": 416.244725, "PEPTIDE": 400.687240}
INTENSITY = [100.0 * (i + 1) for i in range(12)]


def profile():
    """Three Gaussians of 0.01 Da, sampled every 0.005 Da, zeros left out."""
    mz, intensity = [], []
    for centre, height in ((200.1, 1000.0), (300.2, 500.0), (400.3, 2000.0)):
        for step in range(-8, 9):
            at = centre + 0.005 * step
            mz.append(at)
            intensity.append(height * float(numpy.exp(-0.5 * ((at - centre) / 0.01) ** 2)))
    return mz, intensity


def write_mgf(path):
    spectra = []
    for i, (peptide, charge) in enumerate((("LESLIEK", [2]), ("PEPTIDE", [2, 3]), ("PEPTIDE", None))):
        params = {"title": f"run.{i}.{i} of {peptide}=x", "pepmass": (PRECURSOR[peptide], 1234.5 if i == 0 else None),
                  "rtinseconds": 60.5 + i, "scans": str(17 + i), "seq": peptide}
        if charge:
            params["charge"] = charge
        spectra.append({"m/z array": numpy.array(MZ[peptide]), "intensity array": numpy.array(INTENSITY),
                        "params": params})
    mgf.write(spectra, str(path), header={"COM": "by pyteomics"}, file_mode="w")


def native(scan):
    return f"controllerType=0 controllerNumber=1 scan={scan}"


def write_mzml(path, writer, **options):
    with writer(str(path), close=True) as out:
        out.controlled_vocabularies()
        out.file_description(["MS1 spectrum", "MSn spectrum"],
                             [{"id": "RAW", "name": "run.raw", "location": "file:///data",
                               "params": ["Thermo RAW format", "Thermo nativeID format"]}])
        out.software_list([{"id": "psims", "version": "1.4.0", "params": ["python-psims"]}])
        out.instrument_configuration_list([out.InstrumentConfiguration(id="IC1", component_list=[])])
        out.data_processing_list([out.DataProcessing([{"order": 1, "software_reference": "psims",
                                                       "params": ["Conversion to mzML"]}], id="DP1")])
        with out.run(id="run1", instrument_configuration="IC1"), out.spectrum_list(count=5):
            def put(scan, mz, intensity, level, precursor=None, centroided=True):
                out.write_spectrum(mz, intensity, id=native(scan), centroided=centroided, scan_start_time=scan / 60,
                                   params=[{"ms level": level},
                                           "MS1 spectrum" if level == 1 else "MSn spectrum"],
                                   precursor_information=precursor, **options)

            def of(peptide, charge=2):
                return {"mz": PRECURSOR[peptide], "intensity": 5000.0, "charge": charge,
                        "activation": ["beam-type collision-induced dissociation",
                                       {"collision energy": 30.0}], "spectrum_reference": native(16),
                        "isolation_window": [1.0, PRECURSOR[peptide], 1.0]}

            put(16, MZ["LESLIEK"] + [900.5], INTENSITY + [1.0], 1)
            put(17, MZ["LESLIEK"], INTENSITY, 2, of("LESLIEK"))
            put(18, MZ["PEPTIDE"], INTENSITY, 2, of("PEPTIDE"))
            put(19, *profile(), 2, of("PEPTIDE"), centroided=False)
            put(20, MZ["PEPTIDE"], INTENSITY, 2)


def read_mzml(path):
    found = []
    for spectrum in mzml.MzML(str(path)):
        if spectrum["ms level"] != 2:
            continue
        ion = None
        if "precursorList" in spectrum:
            ion = spectrum["precursorList"]["precursor"][0]["selectedIonList"]["selectedIon"][0]
        scan = spectrum["scanList"]["scan"][0]
        found.append({"index": spectrum["index"], "id": spectrum["id"], "profile": "profile spectrum" in spectrum,
                      "seconds": float(scan["scan start time"]) * 60,
                      "precursor_mz": float(ion["selected ion m/z"]) if ion else None,
                      "charges": [int(ion["charge state"])] if ion else [],
                      "mz": [float(x) for x in spectrum["m/z array"]],
                      "intensity": [float(x) for x in spectrum["intensity array"]]})
    return found


def read_mgf(path):
    found = []
    with mgf.read(str(path), use_index=False) as spectra:
        for i, spectrum in enumerate(spectra):
            params = spectrum["params"]
            found.append({"index": i, "id": "", "profile": False, "seconds": float(params["rtinseconds"]),
                          "precursor_mz": float(params["pepmass"][0]),
                          "charges": [int(c) for c in params.get("charge", [])],
                          "mz": [float(x) for x in spectrum["m/z array"]],
                          "intensity": [float(x) for x in spectrum["intensity array"]]})
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_mgf(folder / "pyteomics.mgf")
    write_mzml(folder / "psims_indexed.mzML", IndexedMzMLWriter, compression="zlib",
               encoding={"m/z array": numpy.float64, "intensity array": numpy.float64})
    write_mzml(folder / "psims_plain.mzML", PlainMzMLWriter, compression="none",
               encoding={"m/z array": numpy.float32, "intensity array": numpy.float32})
    write_mzml(folder / "psims_numpress.mzML", MzMLWriter,
               encoding={"m/z array": numpy.float64, "intensity array": numpy.float64},
               compression={"m/z array": "MS-Numpress linear prediction compression",
                            "intensity array": "MS-Numpress short logged float compression"})
    written = {"pyteomics.mgf": read_mgf(folder / "pyteomics.mgf")}
    for path in sorted(folder.glob("psims_*.mzML")):
        written[path.name] = read_mzml(path)
    (folder / "written.json").write_text(json.dumps(written, indent=1) + "\n")


main()
