"""Library catalogues in MARC 21 and UNIMARC."""
