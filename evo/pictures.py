"""Statistics of square pictures, and colours of complex numbers: for tasks whose programs make pictures.

    from evo.pictures import Coloring, PictureStatistics

    statistics = PictureStatistics(64)                     # pictures of 64x64 pixels
    coloring = Coloring(saturation=0.65)
    sums = statistics.sums_of_complex(f, g, coloring)      # or of pictures: statistics.sums(rgb)
    found = statistics.statistics(sums)                    # found["contrast"]: of each picture
    coloring.rgb(f, g)                                     # the pictures, to be drawn

Statistics, of pictures with red, green and blue from 0 to 1. Y is luminance (luma of ITU-R BT.601); opponent colours are
red - green and (red + green) / 2 - blue. tasks/domain_coloring/README.md has the formulas and their sources.

    brightness          mean of Y
    contrast            standard deviation of Y
    entropy             of the histogram of Y, from 0 to 1
    spectral_deviation  root mean square distance, in octaves of power, of Y's power spectrum from the 1/f^2 line
    coherence           how much of the gradients' energy has one orientation within a block, from 0 to 1; 1/3 for white noise
    anisotropy          how much one orientation prevails in the whole picture, from 0 to 1 (stripes)
    squareness          how much two orthogonal orientations prevail, from 0 to 1 (grids)
    spread              share of the picture that its structure covers, from 0 to 1
    seam                the greatest share of a row or column of pixels that is an edge along it, from 0 to 1
    hue_variety         roundness of the cloud of opponent colours, from 0 (two-tone) to 1
    colourfulness       that of Hasler & Suesstrunk, for colours in [0, 1]
    detail              share of the pixels that lie on an edge
    hue                 angle of the mean opponent colour in degrees, from 0 to 360: 0 for more red than green, 90 for more yellow
                        than blue
    orientation         the main direction of edges in degrees, from 0 to 180: 0 for level ones, 90 for upright ones
    finite              share of the pixels where f and g are finite

A picture decides every bit of its sums, at every SIMD level. Owns the public names. Knows nothing of programs.
"""

from evo.native.picture import FIRST_BAND, STATISTICS, SUMS, Coloring, PictureStatistics, PictureSums

__all__ = ["FIRST_BAND", "STATISTICS", "SUMS", "Coloring", "PictureStatistics", "PictureSums"]
