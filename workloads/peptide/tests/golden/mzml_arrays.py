#!/usr/bin/env python3
"""Writes the same spectrum in every encoding of arrays that mzML has, and what other programs read there:

    python3 workloads/peptide/tests/golden/mzml_arrays.py workloads/peptide/tests/golden

-> arrays.mzML, and arrays.json: by spectrum id the m/z and the intensities. MS-Numpress is written and read by
pynumpress 0.1.5 (the reference implementation); pymzdata 0.68 (Rust, an implementation of its own) must agree on what
it reads: neither zstd nor positive integers. Shuffled and dictionary-encoded arrays are written here, by the
definitions that workloads/peptide/shuffled_array.h cites. Needs numpy and pyzstd as well; neither the build nor the tests
do.
"""
import base64
import json
import pathlib
import struct
import sys
import zlib

import numpy
import pymzdata
import pynumpress
import pyzstd

MZ = numpy.array([100.1, 129.102265, 175.118952, 200.25, 200.2500001, 523.77536, 523.9, 987.654321, 1500.25])
INTENSITY = numpy.array([0, 1, 15, 16, 255.25, 255.25, 70000, 2.0e9, 7.5])


def shuffled(array):
    return array.view(numpy.uint8).reshape(len(array), -1).T.tobytes()


def dictionary(array):
    values, rows = numpy.unique(array, return_inverse=True)
    assert len(values) < 256
    return struct.pack("<QQ", 16 + values.nbytes, len(values)) + shuffled(values) + rows.astype(numpy.uint8).tobytes()


def bytes_of(encode):
    return lambda array: encode(array).tobytes()


def logarithms(array):
    return pynumpress.encode_slof(array, pynumpress.optimal_slof_fixed_point(array)).tobytes()


def linear(array):
    return pynumpress.encode_linear(array, pynumpress.optimal_linear_fixed_point(array)).tobytes()


# By accession: of the m/z, and its encoding; of the intensities. `read` is None where nothing is lost.
PLAIN = (lambda array: array.tobytes(), None)
SHUFFLED = (shuffled, None)
DICTIONARY = (dictionary, None)
LINEAR = (linear, pynumpress.decode_linear)
INTEGERS = (bytes_of(pynumpress.encode_pic), pynumpress.decode_pic)
LOGARITHMS = (logarithms, pynumpress.decode_slof)
NONE = bytes
CASES = [("MS:1000576", PLAIN, NONE), ("MS:1000574", PLAIN, zlib.compress), ("MS:1003780", PLAIN, pyzstd.compress),
         ("MS:1003781", SHUFFLED, pyzstd.compress), ("MS:1003782", DICTIONARY, pyzstd.compress),
         ("MS:1002312", LINEAR, NONE), ("MS:1002746", LINEAR, zlib.compress), ("MS:1003783", LINEAR, pyzstd.compress)]
LOSSY = {"MS:1002312": [("MS:1002313", INTEGERS, NONE), ("MS:1002314", LOGARITHMS, NONE)],
         "MS:1002746": [("MS:1002747", INTEGERS, zlib.compress), ("MS:1002748", LOGARITHMS, zlib.compress)],
         "MS:1003783": [("MS:1003784", INTEGERS, pyzstd.compress), ("MS:1003785", LOGARITHMS, pyzstd.compress)]}
NAMES = {
    "MS:1000576": "no compression", "MS:1000574": "zlib compression", "MS:1003780": "zstd compression",
    "MS:1003781": "byte-shuffled zstd compression", "MS:1003782": "dictionary-encoded zstd compression"}
for first, suffix in (("MS:1002312", ""), ("MS:1002746", " followed by zlib compression"),
                      ("MS:1003783", " followed by zstd compression")):
    for number, name in enumerate(("linear prediction", "positive integer", "short logged float")):
        NAMES[f"MS:{int(first[3:]) + number}"] = f"MS-Numpress {name} compression{suffix}"


def term(accession, name, value="", unit=""):
    return f'<cvParam cvRef="MS" accession="{accession}" name="{name}" value="{value}"{unit}/>'


def array_text(kind, case, array, bits):
    """-> its element, and the numbers in it."""
    accession, (write, read), compress = case
    written = write(array)
    packed = base64.b64encode(compress(written)).decode()
    numbers = array if read is None else read(numpy.frombuffer(written, dtype=numpy.uint8))
    name, unit = {"MS:1000514": ("m/z array", ' unitCvRef="MS" unitAccession="MS:1000040" unitName="m/z"'),
                  "MS:1000515": ("intensity array", ' unitCvRef="MS" unitAccession="MS:1000131" '
                                 'unitName="number of detector counts"')}[kind]
    precision = term("MS:1000523", "64-bit float") if bits == 64 else term("MS:1000521", "32-bit float")
    return (f'<binaryDataArray encodedLength="{len(packed)}">{precision}{term(accession, NAMES[accession])}'
            f"{term(kind, name, unit=unit)}<binary>{packed}</binary></binaryDataArray>\n",
            [float(number) for number in numbers])


def spectra():
    for case in CASES:
        for partner in LOSSY.get(case[0], [case]):
            for bits in (64,) if case[0] in LOSSY else (32, 64):
                plain = numpy.float64 if bits == 64 else numpy.float32
                mz_text, mz = array_text("MS:1000514", case, MZ.astype(plain), bits)
                text, intensity = array_text("MS:1000515", partner, INTENSITY.astype(plain), bits)
                yield f"{case[0]} {partner[0]} {bits}", mz_text + text, mz, intensity


def spectrum_text(index, name, arrays):
    return (f'<spectrum index="{index}" id="scan={index + 1} {name}" defaultArrayLength="{len(MZ)}">\n'
            f'{term("MS:1000511", "ms level", "2")}{term("MS:1000127", "centroid spectrum")}\n'
            '<precursorList count="1"><precursor><selectedIonList count="1"><selectedIon>'
            f'{term("MS:1000744", "selected ion m/z", "450.5")}{term("MS:1000041", "charge state", "2")}'
            "</selectedIon></selectedIonList><activation/></precursor></precursorList>\n"
            f'<binaryDataArrayList count="2">\n{arrays}</binaryDataArrayList></spectrum>\n')


def main():
    folder = pathlib.Path(sys.argv[1])
    found = list(spectra())
    texts = [spectrum_text(index, name, arrays) for index, (name, arrays, _, _) in enumerate(found)]
    path = folder / "arrays.mzML"
    path.write_text('<?xml version="1.0" encoding="utf-8"?>\n'
                    '<mzML xmlns="http://psi.hupo.org/ms/mzml" version="1.1.0"><run id="arrays">'
                    f'<spectrumList count="{len(texts)}">\n{"".join(texts)}</spectrumList></run></mzML>\n')
    golden = {f"scan={index + 1} {name}": {"mz": mz, "intensity": intensity}
              for index, (name, _, mz, intensity) in enumerate(found)}
    (folder / "arrays.json").write_text(json.dumps(golden, indent=0) + "\n")
    reader = pymzdata.MZReader(str(path))
    agreed = 0
    for index, expected in enumerate(golden.values()):
        spectrum = reader[index]
        if spectrum is None:
            continue
        numpy.testing.assert_allclose(spectrum.mz_array(), expected["mz"], rtol=1e-12)
        numpy.testing.assert_allclose(spectrum.intensity_array(), expected["intensity"], rtol=1e-6)
        agreed += 1
    assert agreed == 6, f"pymzdata reads {agreed}"


if __name__ == "__main__":
    main()
