"""Mistakes that people make, as data: in a file of their own (what is replaced by what in `broken.SOUND`) and on the
command line; with words of the sentence that must answer them.
"""

EXPERIMENT = "def experiment(lab):"
FILES = [
    # what Python itself does not take
    ("import dataclasses\n", "import dataclases\n", "line 2: ModuleNotFoundError: No module named 'dataclases'"),
    ("import dataclasses\n", "import dataclasses)\n", "line 2: SyntaxError: unmatched ')'"),
    ("import dataclasses\n", "import dataclasses\n1 / 0\n", "line 3: ZeroDivisionError"),
    ("import dataclasses\n", "import dataclasses\nundefined\n", "line 3: NameError"),
    # exits
    ("import dataclasses\n", "import dataclasses, sys\nsys.exit(0)\n", "it calls sys.exit(0)"),
    ("import dataclasses\n", "import dataclasses, os\nos._exit(0)\n", "os._exit(0)"),
    (EXPERIMENT, f"{EXPERIMENT}\n    raise SystemExit", "in the experiment 'experiment': it calls sys.exit(None)"),
    (
        EXPERIMENT,
        f"{EXPERIMENT}\n    import os; os._exit(0)",
        "in the experiment 'experiment': _LeftError: os._exit(0)",
    ),
    # settings
    ("settings = Settings()", "settings = Settings", "must define `settings`, an instance of a dataclass"),
    ("settings = Settings()", "settings = None", "must define `settings`"),
    ("settings = Settings()", "settings = {}", "must define `settings`"),
    ("settings = Settings()", 'settings = {"fast": Settings()}', "profile 'fast'"),
    ("noise: float = 0.1\n    steps", 'noise: float = float("nan")\n    steps', "the setting noise is nan"),
    ("noise: float = 0.1\n    steps", "noise: object = object()\n    steps", "the setting noise is <object"),
    ("noise: float = 0.1\n    steps", "noise: complex = 1j\n    steps", "the setting noise is 1j"),
    ("settings = Settings()", "settings = Settings()\ndef check(s):\n    1 / 0", "in `check`: ZeroDivisionError"),
    # experiments
    (EXPERIMENT, "def experimnt(lab):", "must define `experiment(lab)`"),
    (EXPERIMENT, f"{EXPERIMENT}\n    1 / 0", "in the experiment 'experiment': ZeroDivisionError"),
    (EXPERIMENT, f"{EXPERIMENT}\n    return None", "must return an xarray Dataset, not NoneType"),
    (EXPERIMENT, f"{EXPERIMENT}\n    return 3", "must return an xarray Dataset, not int"),
    ("return lab.evaluate(", "return float(", "in the experiment 'experiment': TypeError"),
    (EXPERIMENT, f'experiments = {{"../../x": print}}\n{EXPERIMENT}', "'../../x' is no name for an experiment"),
    (EXPERIMENT, f'experiments = {{"": print}}\n{EXPERIMENT}', "'' is no name for an experiment"),
    (EXPERIMENT, f"experiments = {{1: print}}\n{EXPERIMENT}", "1 is no name for an experiment"),
    (EXPERIMENT, f'experiments = {{"a": 3}}\n{EXPERIMENT}', "must define `experiment(lab)`"),
    # statements
    ('"small",', '"small one",', "'small one' is no name for a statement"),
    ('"small",', '"../small",', "is no name for a statement"),
    ('"small",', '"",', "'' is no name for a statement"),
    ("(small,)", "()", "the statement small has no part"),
    ("statements = [", "statements = 3, [", "`statements` must be a list of statements"),
    ("statements = [", "statements = lambda s: 1 / 0\nothers = [", "in `statements`: ZeroDivisionError"),
    ('measured("experiment",', 'measured("experimnt",', "needs 'experimnt'. Did you mean 'experiment'?"),
    ('"output"), below', '"outptu"), below', "the experiment 'experiment' has no 'outptu'. Did you mean 'output'?"),
    (
        'measured("experiment", "output")',
        'apply(lambda x: "a", measured("experiment", "output"))',
        "DataArray, not str",
    ),
    (
        'measured("experiment", "output")',
        'apply(lambda x: x.astype(str), measured("experiment", "output"))',
        "values of the type <U32; numbers are needed",
    ),
    (
        'measured("experiment", "output")',
        'apply(lambda x: x + 1j, measured("experiment", "output"))',
        "values of the type complex128; numbers are needed",
    ),
    ('measured("experiment", "output")', 'measured("experiment", "output").sel(nowhere=1)', "nowhere"),
    # figures
    ("statements = [", "figures = 3\nstatements = [", "`figures` must be functions of (results, settings) by name"),
    ("statements = [", 'figures = {"a": 3}\nstatements = [', "'a' of `figures` is no function"),
    ("statements = [", 'figures = {"a/b": print}\nstatements = [', "'a/b' is no name for one of the figures"),
]
TYPES = [  # what has another type than it should; put there behind the back of the tests' own checks of types
    ("small", "rule", '"small"', "has no rule: 'small' is none of below"),
    ("small", "rule", "None", "has no rule"),
    ("small", "rule", 'below(float("nan"))', "its rule or its bounds are no numbers"),
    ("small", "rule", "3.0", "has no rule: 3.0"),
    ("small", "statistic", "3.0", "has no statistic: it is a float"),
    ("small", "name", "5", "has no name"),
    ("statements[0]", "parts", "(3,)", "a part of small is a int, not a Part"),
    ("statements[0]", "id", "5", "5 is no name for a statement"),
    ("statements[0]", "readings", '("a",)', "a reading of small is a str, not a Reading with a name"),
]
PAPER = "nonlinear-icl/fig2a"
SWEPT = ["sweep", "nonlinear-icl/training"]
COMMANDS = [
    (["reproduce", PAPER, "--seeds", "9999999999999999999999"], "a whole number is needed"),
    (["reproduce", PAPER, "--seeds", "1.5"], "--seeds 1.5: a whole number is needed"),
    (["reproduce", PAPER, "--seeds", "many"], "a whole number is needed"),
    (["reproduce", PAPER, "--seeds", "0"], "at least one seed"),
    (["reproduce", PAPER, "--seeds", "1000000000"], "more than 100,000 do not fit"),
    (["reproduce", PAPER, "--set", "neurons=99999999999999999999"], "whole numbers end at 2,147,483,647"),
    (["reproduce", PAPER, "--set", "prompts=1000000000000"], "whole numbers end at 2,147,483,647"),
    (["reproduce", PAPER, "--set", "batch=1000000000"], "GB of memory, and this machine has"),
    (["reproduce", PAPER, "--set", "step_size=1e308"], "numbers have 32 bits here"),
    (["reproduce", PAPER, "--set", "step_size=1e39"], "numbers have 32 bits here"),
    (["reproduce", PAPER, "--set", "step_size=1e-320"], "numbers have 32 bits here"),
    (["reproduce", PAPER, "--set", "step_size=nan"], "must be finite"),
    (["reproduce", PAPER, "--set", "step_size=inf"], "must be finite"),
    (["reproduce", PAPER, "--set", "step_size=fast"], "takes a value like"),
    (["reproduce", PAPER, "--set", "step_size"], "write it as name=value"),
    (["reproduce", PAPER, "--set", "step_sise=1"], "Did you mean 'step_size'?"),
    (["reproduce", PAPER, "--set", "step_size=1", "--set", "step_size=2"], "given twice"),
    (["reproduce", PAPER, "--profile", "fast"], "profile 'fast' is unknown"),
    (["reproduce", PAPER, "--only", "x"], "no such group"),
    (["reproduce", "nonlinear-icl/fig99"], "Did you mean"),
    (["reproduce", "nowhere.py"], "cannot read nowhere.py"),
    (["reproduce", "good.py/"], "name a statement behind the slash"),
    ([*SWEPT, "--grid", "step_size=1:2:²"], "write a range as start:stop:count"),
    ([*SWEPT, "--grid", "step_size=1:2:1111111111111111111111"], "write a range as start:stop:count"),
    ([*SWEPT, "--grid", "step_size=0.1:1:100000001"], "a sweep has 100,000 points at most"),
    (
        [*SWEPT, "--grid", "step_size=1:2:1000", "--grid", "matching_fraction=0.1:1:1000"],
        "1,000,000 points are too many",
    ),
    ([*SWEPT, "--grid", "neurons=50000000"], "GB of memory, and this machine has"),
    ([*SWEPT, "--grid", "step_size=1,1"], "given twice"),
    ([*SWEPT, "--grid", "neurons=1:2:3"], "a whole number, but the range has others"),
    (SWEPT, "nothing is swept"),
    (["new", "claim", "class"], "a word of Python itself"),
    (["new", "claim", "../x"], "is no name for a file"),
    (["claims", "nowhere"], "holds no claims.json"),
    (["figures", "nowhere"], "is not a run of iclab"),
    (["serve", "nowhere"], "is not a run of iclab"),
    (["diff", "nowhere", "nowhere"], "is not a run of iclab"),
]
