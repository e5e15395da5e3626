"""What ``thresher train`` trains: one model, the lanes of ``--rule auto``, or an ensemble."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.cli.errors import UsageError
from thresher.cli.model_flags import ModelFlags, check_same, new_model, new_recipe
from thresher.cli.overwriting import check_folder, check_model
from thresher.cli.reading import with_initial_weights

if TYPE_CHECKING:
    from thresher.cli.reading import Reading
    from thresher.data.order import Order
    from thresher.lanes.bagging import Bagging
    from thresher.lanes.lanes import Lanes
    from thresher.learning.model import Model
    from thresher.learning.readout import Readout
    from thresher.learning.training_state import TrainingState

Say = Callable[[str], None]


class Learner(ABC):
    """Creates what is trained, and restores it from a checkpoint."""

    def __init__(self, flags: ModelFlags) -> None:
        self.flags = flags
        """without `--rule auto`, which only selects the learner"""

    def check_target(self, path: Path, beside: list[Path | None], inputs: list[str]) -> None:
        """Check that the result can be written, and other outputs `beside` it; OSError, UsageError."""
        check_model(path, beside, inputs)

    def files(self, path: Path) -> list[Path]:
        """The files among the targets, which must differ from those that are read."""
        return [path]

    @abstractmethod
    def check(self, reading: Reading, order: Order, passes: int) -> None:
        """UsageError for options that do not apply."""

    @abstractmethod
    def load(self, path: Path) -> tuple[Any, TrainingState]:
        """Load a checkpoint. UsageError if the options contradict it; `ModelFileError`."""

    @abstractmethod
    def new(self, options: dict[str, Any], initial: Readout | None, say: Say) -> Any:
        """A new learner, with the weights to start from, if any. UsageError."""

    @abstractmethod
    def example(self, learner: Any) -> Model:
        """A model to compile for."""

    @abstractmethod
    def before(self, learner: Any, example: Model) -> tuple[list[Any], list[Any]]:
        """What else is trained before the final model, and the parts that determine its code."""

    @abstractmethod
    def beside(self, say: Say | None) -> dict[str, Any]:
        """Further arguments for the Trainer, which calls `say` with progress."""

    @abstractmethod
    def figures(self, model: Model) -> dict[str, Any]:
        """Figures to report about the final model, beside those of every model."""


class One(Learner):
    """A single model."""

    def check(self, reading: Reading, order: Order, passes: int) -> None:
        """All do."""

    def load(self, path: Path) -> tuple[Model, TrainingState]:
        """The model."""
        from thresher.learning import checkpoint

        model, training_state = checkpoint.load(path)
        check_same(self.flags, model.recipe)
        return model, training_state

    def new(self, options: dict[str, Any], initial: Readout | None, say: Say) -> Model:
        """The model."""
        return with_initial_weights(new_model(options), initial)

    def example(self, learner: Model) -> Model:
        """The model."""
        return learner

    def before(self, learner: Any, example: Model) -> tuple[list[Any], list[Any]]:
        """None."""
        return [], []

    def beside(self, say: Say | None) -> dict[str, Any]:
        """None."""
        return {}

    def figures(self, model: Model) -> dict[str, Any]:
        """None."""
        return {}


class Auto(Learner):
    """Lanes with settings around the default rule, of which one wins."""

    def __init__(self, flags: ModelFlags) -> None:
        super().__init__(replace(flags, rule=None))
        self._given = [name for name in ("l1", "alpha") if getattr(flags, name) is not None]

    def check(self, reading: Reading, order: Order, passes: int) -> None:
        """Those that do not are found when the lanes are made."""

    def load(self, path: Path) -> tuple[Lanes | Model, TrainingState]:
        """The lanes, or the winner if it is already chosen."""
        from thresher.lanes import auto
        from thresher.learning.model import Model

        learner, training_state = auto.load(path)
        if not isinstance(learner, Model):
            check_same(self.flags, learner.models[0].recipe)
            return learner, training_state
        flags = self.flags
        check_same(replace(flags, l1=None, alpha=None), learner.recipe)
        options = {"l1": flags.l1, "alpha": flags.alpha, "rate": flags.rate}
        known = new_recipe({"loss": learner.recipe.loss, "outputs": learner.recipe.outputs, **options})
        if learner.recipe.rule not in [one.rule for one in auto.field(known, self._given)]:
            made = f"the checkpoint was made with --rule {learner.recipe.rule}"
            raise UsageError(f"{made}: give the same options")
        return learner, training_state

    def new(self, options: dict[str, Any], initial: Readout | None, say: Say) -> Lanes:
        """The lanes."""
        from thresher.lanes import auto

        if initial is not None:
            raise UsageError("--init works with one model only: give a --rule other than auto")
        try:
            return auto.start(new_recipe(options), say, self._given)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def example(self, learner: Lanes | Model) -> Model:
        """The winner, or a model like it."""
        from thresher.learning.model import Model

        return learner if isinstance(learner, Model) else Model(learner.models[0].recipe)

    def before(self, learner: Lanes | Model, example: Model) -> tuple[list[Any], list[Any]]:
        """The lanes."""
        from thresher.learning.model import Model

        return ([], []) if isinstance(learner, Model) else ([learner, example], learner.parts)

    def beside(self, say: Say | None) -> dict[str, Any]:
        """How to choose and announce the winner, and how to save the lanes."""
        from thresher.lanes import auto
        from thresher.learning.model import Model

        def successor(model: Any, over: bool) -> Any:
            found = auto.successor(model, over)
            if say and isinstance(found, Model) and found is not model:
                say(f"after {found.examples:,} examples: continuing with {found.recipe.rule}")
            return found

        return {"successor": successor, "save": auto.save}

    def figures(self, model: Model) -> dict[str, Any]:
        """The settings that won."""
        return {"rule": model.recipe.rule}


class Many(Learner):
    """An ensemble."""

    def __init__(self, flags: ModelFlags, spec: str) -> None:
        super().__init__(flags)
        self._spec = spec

    def check_target(self, path: Path, beside: list[Path | None], inputs: list[str]) -> None:
        """The target is a folder."""
        from thresher.learning.modelfolder import ENSEMBLE

        check_folder(ENSEMBLE, path, beside, inputs)

    def files(self, path: Path) -> list[Path]:
        """None: the folder may contain nothing else."""
        return []

    def check(self, reading: Reading, order: Order, passes: int) -> None:
        """Names are found for one model; in every pass, a row goes to the same models."""
        from thresher.lanes.validation import check_order

        if reading.names:
            raise UsageError(
                "--names works with one model only: use thresher name on a model of the ensemble"
            )
        try:
            check_order(order, passes, "go to different models")
        except ValueError as error:
            raise UsageError(str(error)) from error

    def load(self, path: Path) -> tuple[Bagging, TrainingState]:
        """The ensemble."""
        from thresher.lanes import bagging

        learner, training_state = bagging.load(path)
        check_same(self.flags, learner.recipe)
        if learner.bags.spec != self._spec:
            raise UsageError(f"the checkpoint was made with --ensemble {learner.bags.spec}")
        return learner, training_state

    def new(self, options: dict[str, Any], initial: Readout | None, say: Say) -> Bagging:
        """The ensemble; all its models start with the same weights."""
        from thresher.lanes.bagging import Bagging
        from thresher.lanes.bags import Bags

        recipe = new_model(options).recipe
        learner = Bagging(recipe, Bags.of(self._spec, recipe.seed))
        for model in learner.models:
            with_initial_weights(model, initial)
        return learner

    def example(self, learner: Bagging) -> Model:
        """A model like those of the ensemble."""
        from thresher.learning.model import Model

        return Model(learner.recipe)

    def before(self, learner: Any, example: Model) -> tuple[list[Any], list[Any]]:
        """None."""
        return [], []

    def beside(self, say: Say | None) -> dict[str, Any]:
        """How to save the ensemble."""
        from thresher.lanes import bagging

        return {"save": bagging.save}

    def figures(self, model: Any) -> dict[str, Any]:
        """What the ensemble consists of."""
        return {"ensemble": model.bags.spec}


def learner_of(flags: ModelFlags, ensemble: str | None) -> Learner:
    """The learner for these options; UsageError if they exclude each other."""
    from thresher.parts import AUTO

    if ensemble is not None:
        if flags.rule == AUTO:
            raise UsageError("--rule auto finds one model: give another --rule, or leave out --ensemble")
        return Many(flags, ensemble)
    return Auto(flags) if flags.rule == AUTO else One(flags)
