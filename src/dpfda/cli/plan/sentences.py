"""The answers of `dpfda plan` as text."""

from __future__ import annotations

from typing import Any

from dpfda.cli.terminal import Terminal

_MEANING = {
    "non-private sparse": "too few visits and subjects; privacy costs little",
    "private sparse": "privacy noise, made worse by few visits",
    "non-private dense": "too few subjects; neither visits nor budget are the bottleneck",
    "private dense": "privacy noise; more visits do not help",
}
_MODELS = {"none": "no privacy", "cdp": "central: all data pooled", "fdp": "federated: sites keep their data",
           "ldp": "local: every subject alone"}  # fmt: skip
_NAMES = {"n": "subjects", "m": "visits", "S": "sites", "epsilon": "budget"}


def print_answers(found: dict[str, Any], terminal: Terminal, *, units: str) -> None:
    """On stdout."""
    out = terminal.out
    study, theory, forecast = found["study"], found["theory"], found["forecast"]
    sites = f" at each of {study['S']} sites" if study["S"] > 1 else ""
    promise = f"epsilon = {study['epsilon']:.3g}, delta = {study['delta']:g}"
    out.print(f"[bold]{study['n']:,} subjects{sites}, {study['m']:g} visits each, {promise}[/bold]")
    if study["sites"]:
        out.print("(sites differ: sizes and budget above are those of equal sites that stand for them)", style="dim")
    out.print(
        f"\nForecast of the typical distance from the truth: [bold]{forecast['typical_distance']:.3g}[/bold] (unit: {units})"
    )
    parts = ", ".join(f"{name} {forecast[name] / forecast['total']:.0%}" for name in ("privacy", "sampling", "bias"))
    out.print(f"of the squared error: {parts}. A forecast with the default method, good to a factor of about 2.")
    if forecast["insufficient"]:
        out.print("[bold red]This budget is too small for so few subjects: expect a level, not a shape.[/bold red]")
    out.print(f"\nRegime in theory: [bold]{theory['dominant']}[/bold]: {_MEANING[theory['dominant']]}.")
    out.print(_exits(theory))
    out.print(_delta(theory["delta_condition"]))
    _print_doubling(found, out)
    _print_price(found, out)
    if "unequal" in found:
        _print_unequal(found["unequal"], out)
    if "target" in found:
        _print_target(found, out)


def _exits(theory: dict[str, Any]) -> str:
    if not theory["exits"]:
        return "No other term would take over by changing one size alone."
    near = min(theory["exits"], key=lambda way: max(way["factor"], 1 / way["factor"]))
    return (
        f"Nearest boundary: {_NAMES[near['variable']]} times {near['factor']:.3g}, where the {near['next_dominant']} term "
        "takes over (rates are up to constants and logarithms)."
    )


def _delta(condition: dict[str, Any]) -> str:
    """Whether the lower bound is proved at this delta."""
    where = "" if condition["site"] is None else f" at {condition['site']}, the site nearest to its limit,"
    proved = (
        f"The lower bound ({condition['source']}) is proved for epsilon below 1 and {condition['condition']}, up to a "
        f"constant:{where} delta up to about {condition['largest_delta']:.2g}"
    )
    if condition["holds"]:
        return f"{proved}. No method can do better than the rate at your delta ({condition['delta']:g})."
    yours = f"Your delta is {condition['delta']:g}"
    yours += "" if condition["epsilon_below_one"] else ", and an epsilon is not below 1"
    return (
        f"{proved}. {yours}: the promise, the rate and the forecast hold, but it is not proved there that nothing better is "
        "possible."
    )


def _table(*columns: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    return table


def _print_doubling(found: dict[str, Any], out: Any) -> None:
    elasticities = found["theory"]["elasticities"]
    table = _table("\nWhat helps most", "\nsquared error times", "\nby the rate")
    for row in found["doubling"]:
        table.add_row(row["change"], f"{row['error_times']:.2f}", f"{2 ** elasticities[row['variable']]:.2f}")
    out.print(table)


def _print_price(found: dict[str, Any], out: Any) -> None:
    price = found["price"]
    table = _table("\nThe price of privacy", "\nsquared error times", "\nby the rate")
    for name, words in _MODELS.items():
        forecast = price["by_forecast"].get(name)
        table.add_row(words, "-" if forecast is None else f"{forecast:.3g}", f"{price['by_rate'][name]:.3g}")
    out.print(table)


def _print_unequal(unequal: dict[str, Any], out: Any) -> None:
    table = _table("\nSite", "\nweight in the upper bound")
    for row in unequal["weights"]:
        table.add_row(row["site"], f"{row['weight']:.1%}")
    out.print(table)
    out.print(
        f"Rate for these sites as they are ({unequal['source']}): at most {unequal['upper']:.2g}, at least "
        f"{unequal['lower']:.2g}, up to constants and logarithms."
    )


def _print_target(found: dict[str, Any], out: Any) -> None:
    target, study = found["target"], found["study"]
    unequal = bool(study["sites"])
    out.print(f"\nFor a typical distance of {target['typical_distance']:g}:")
    if target["epsilon"] is None:
        out.print("  no budget is enough with these subjects and visits: sampling alone is larger")
    elif unequal:
        out.print(f"  the budget of every site times [bold]{target['epsilon_times']:.3g}[/bold], or")
    else:
        out.print(f"  epsilon = [bold]{target['epsilon']:.3g}[/bold] with {study['n']:,} subjects per site, or")
    if target["n"] is None:
        out.print("  no number of subjects is enough with these visits and basis")
    elif unequal:
        out.print(f"  the subjects of every site times [bold]{target['n_times']:.3g}[/bold]")
    else:
        out.print(f"  [bold]{target['n']:,}[/bold] subjects per site with epsilon = {study['epsilon']:.3g}")
