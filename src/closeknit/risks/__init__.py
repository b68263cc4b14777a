"""Re-identification risk in the terms of regulators: attackers, population uniques, sample weights, minimal sample uniques.

`closeknit.risk` is the function for users; the package has another name because a package would hide the function.
"""
