"""The runtime type checker of the tests: an int is accepted where a float is asked for, as in every type checker."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
