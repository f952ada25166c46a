"""scikit-learn's convention for parameters, without its import, which takes longer than a fit.

Estimators can be cloned and put into pipelines. Searches and cross-validation are refused: their scores read raw curves that
were held out, so that what they choose and report is not private, and every fold would spend.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, NoReturn, Self

from dpfda.errors import InvalidInput

NO_SCORES = (
    "a search or cross-validation cannot be private here: its scores read raw curves that were held out; choose "
    "parameters from public facts, or compare them with forecast(n=..., m=...), which reads no data."
)


def refuse_searches() -> None:
    """Raise if scikit-learn's model selection is the caller, before anything is spent."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if str(frame.f_globals.get("__name__", "")).startswith("sklearn.model_selection."):
            raise InvalidInput(NO_SCORES)


class Parameters:
    """The arguments of `__init__`, kept as attributes of the same names."""

    @classmethod
    def _parameter_defaults(cls) -> dict[str, Any]:
        arguments = inspect.signature(cls).parameters.values()
        return {argument.name: argument.default for argument in arguments}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` is there for scikit-learn, no parameter is an estimator."""
        return {name: getattr(self, name) for name in sorted(self._parameter_defaults())}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self._parameter_defaults():
                raise InvalidInput(
                    f"{name} is not a parameter of {type(self).__name__}; choose from {', '.join(self.get_params())}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._parameter_defaults()
        written = {name: repr(getattr(self, name)) for name in defaults}
        changed = [f"{name}={written[name]}" for name, default in defaults.items() if written[name] != repr(default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def score(self) -> NoReturn:
        """Refused, also when scikit-learn only asks whether there is one."""
        raise InvalidInput(NO_SCORES)

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        refuse_searches()

        return BaseEstimator.__sklearn_tags__(self)


class _NotFittedError(ValueError, AttributeError):
    """What scikit-learn's error is, where scikit-learn is not installed."""


def check_is_fitted(estimator: object, attribute: str) -> None:
    """Raise scikit-learn's `NotFittedError`, or one like it, unless the attribute is there."""
    if not hasattr(estimator, attribute):
        raise _choose_error()(f"This {type(estimator).__name__} is not fitted yet; call fit first.")


def _choose_error() -> type[ValueError]:
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return _NotFittedError
    found: type[ValueError] = NotFittedError
    return found
