"""Follow the regularised leader with a Tsallis regulariser: HTINF, OptTINF, AdaTINF, Ada2TINF and uniINF."""
