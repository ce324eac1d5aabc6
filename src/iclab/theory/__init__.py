"""What the theorems predict: conditions and rates as functions of the settings, one module per paper; fits of exponents."""
