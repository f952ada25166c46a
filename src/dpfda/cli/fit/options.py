"""The options of `dpfda fit`, one alias each; `settings.DEFAULTS` holds their defaults, since TOML may set them too."""

from __future__ import annotations

from typing import Annotated, Any

import typer

DATA, MODEL, PROMISE, OUT = "The data", "The model", "The promise", "The result"


def _option(name: str, panel: str, help: str) -> Any:
    return typer.Option(name, rich_help_panel=panel, help=help, show_default=False)


_KINDS = "CSV (also .gz), Excel (.xlsx), Parquet file or folder, Arrow, database URL, or a .toml with these settings."
Source = Annotated[str, typer.Argument(help=_KINDS, show_default=False)]
Id = Annotated[str | None, _option("--id", DATA, "Column that names the subject.")]
X = Annotated[str | None, _option("--x", DATA, "Column of the argument (age, time, a date).")]
Y = Annotated[
    list[str] | None,
    _option(
        "--y",
        DATA,
        "Column of the value; with --wide, how the names of its columns begin. Given more than once: several outcomes, "
        "in one budget.",
    ),
]
Visits = Annotated[
    str | None,
    _option(
        "--visits",
        DATA,
        "With several outcomes: 'complete' (default), the visits at which all were measured; or 'own', those of each.",
    ),
]
Wide = Annotated[bool | None, _option("--wide", DATA, "One row per subject (with --id) or one column (with --x).")]
Query = Annotated[str | None, _option("--query", DATA, "SELECT statement, with a database URL.")]
Separator = Annotated[str | None, _option("--separator", DATA, "Field separator of a CSV, if it is not recognised.")]
Decimal = Annotated[str | None, _option("--decimal", DATA, "'point' (default) or 'comma'.")]
Sheet = Annotated[str | None, _option("--sheet", DATA, "Sheet to read, if the workbook has several.")]
DateFormat = Annotated[
    str | None,
    _option(
        "--date-format", DATA, "Order of dates: 'dmy' (23/04/1986), 'mdy' (04/23/1986), 'ymd', or like '%d-%b-%Y'."
    ),
]
Missing = Annotated[
    str | None, _option("--missing", DATA, "Codes for a missing value besides blank and NA: '-99,k.A.'.")
]
StripUnits = Annotated[
    bool | None, _option("--strip-units", DATA, "Read '182 cm' as 182; a column must have one unit.")
]
YLevels = Annotated[
    str | None,
    _option("--y-levels", DATA, "Both values of a yes/no y, the one for 0 first: no,yes; the curve is then a share."),
]
Outside = Annotated[
    str | None, _option("--outside", DATA, "Points with x outside the domain: 'drop' (default) or 'refuse'.")
]
Duplicates = Annotated[str | None, _option("--duplicates", DATA, "Copies of rows: 'refuse' (default), 'drop', 'keep'.")]
Scratch = Annotated[
    str | None,
    _option("--scratch", DATA, "Folder for tables larger than memory (default: $DPFDA_SCRATCH or /var/tmp)."),
]
Engine = Annotated[
    str | None, _option("--engine", DATA, "Dask scheduler whose workers read the table: tls://head:8786.")
]
Design = Annotated[
    str | None,
    _option(
        "--design",
        MODEL,
        "Covariates a,b,c, or a formula: 1 + a + C(b) + a:b + spline(a, 30, 50). Coefficient curves, not a mean.",
    ),
]
Bounds = Annotated[list[str] | None, _option("--bounds", MODEL, "PUBLIC bounds of a numeric covariate: NAME=LOW:HIGH.")]
Levels = Annotated[
    list[str] | None,
    _option(
        "--levels",
        MODEL,
        'PUBLIC levels of a category, reference first: NAME=a,b,c, or NAME="a, b","c" if they hold commas.',
    ),
]
Reference = Annotated[
    list[str] | None,
    _option(
        "--reference",
        MODEL,
        "Value of a covariate in the reference profile: NAME=VALUE. Default: the middle of its bounds, 0 if these are 0:1, "
        "or its first level.",
    ),
]
FillDown = Annotated[
    str | None,
    _option("--fill-down", MODEL, "Covariates a,b whose blanks take the value of the subject's previous visit."),
]
Method = Annotated[str | None, _option("--method", MODEL, "'adaptive' (default) or 'published'.")]
Variant = Annotated[
    str | None, _option("--variant", MODEL, "For --method published: 'sample-splitting' (as printed) or 'full-batch'.")
]
Basis = Annotated[
    str | None,
    _option(
        "--basis",
        MODEL,
        "'free-ends' (default), 'cosine' (flat at both ends; default of --method published), 'bspline' (local features), "
        "'fourier' (periodic: hours of a day), 'fourier-extension'.",
    ),
]
NBasis = Annotated[int | None, _option("--n-basis", MODEL, "Number of basis functions; chosen for you if left out.")]
Alpha = Annotated[float | None, _option("--alpha", MODEL, "Assumed smoothness; each method has a default.")]
PointsPerCurve = Annotated[
    float | None, _option("--points-per-curve", MODEL, "PUBLIC typical number of points per subject.")
]
AssumeSymmetric = Annotated[
    bool | None,
    _option(
        "--assume-symmetric",
        MODEL,
        "Declare that curves lie symmetrically around their mean: more precise; biased, with too narrow a band, if untrue.",
    ),
]
Outcome = Annotated[
    list[str] | None,
    _option(
        "--outcome",
        MODEL,
        "Declare what y is: 'binary' (all values at one of the bounds), 'count' or 'positive' (never negative) or 'score'; "
        "with several outcomes NAME=....",
    ),
]
Transform = Annotated[
    list[str] | None,
    _option(
        "--transform",
        MODEL,
        "Transform of y, applied after clamping to --y-bounds: 'log' (the curve is a geometric mean, effects are ratios), "
        "'log1p', 'sqrt'; with several outcomes NAME=....",
    ),
]
Weight = Annotated[
    str | None,
    _option(
        "--weight",
        MODEL,
        "What counts equally in the mean: 'subject' (default) or 'visit' (with --visit-cap), where those seen more often "
        "count more.",
    ),
]
VisitCap = Annotated[
    int | None,
    _option("--visit-cap", MODEL, "PUBLIC most visits for which a subject counts, with --weight visit."),
]
VisitTimes = Annotated[
    str | None, _option("--visit-times", MODEL, "PUBLIC times of scheduled visits within the domain: 0,6,12,24.")
]
Domain = Annotated[str | None, _option("--domain", PROMISE, "PUBLIC range of x: 46:63, or two dates.")]
YBounds = Annotated[
    list[str] | None,
    _option(
        "--y-bounds",
        PROMISE,
        "PUBLIC range of y: 0:500; values outside are clamped. With several outcomes: NAME=0:500.",
    ),
]
Epsilon = Annotated[float | None, _option("--epsilon", PROMISE, "Privacy loss that this study may spend.")]
Delta = Annotated[float | None, _option("--delta", PROMISE, "Far below one over the number of subjects, e.g. 1e-5.")]
Ledger = Annotated[
    str | None, _option("--ledger", PROMISE, "Ledger file or PostgreSQL URL (default: beside the data).")
]
Run = Annotated[
    str | None, _option("--run", PROMISE, "Name this study; the name of a finished one rebuilds its result, free.")
]
Report = Annotated[str | None, _option("--report", OUT, "Write the HTML report here.")]
Json = Annotated[str | None, _option("--json", OUT, "Write the result as JSON here; '-' is standard output.")]
Figure = Annotated[list[str] | None, _option("--figure", OUT, "Write a figure (.png, .svg, .pdf); may be repeated.")]
Overwrite = Annotated[bool | None, _option("--overwrite", OUT, "Replace files that exist.")]
Level = Annotated[float | None, _option("--level", OUT, "Level of the simultaneous band (default 0.95).")]
Title = Annotated[str | None, _option("--title", OUT, "Title of the report.")]
XLabel = Annotated[str | None, _option("--x-label", OUT, "Label of x with its unit.")]
YLabel = Annotated[str | None, _option("--y-label", OUT, "Label of y with its unit.")]
_DRY = "Print the settings, the price and the expected error; spend nothing."
Yes = Annotated[bool, typer.Option("--yes", help="Ask nothing: spend despite a large delta or doubtful bounds.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help=_DRY)]
