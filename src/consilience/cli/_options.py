"""Arguments and options of the commands, with their help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


class Tasks(StrEnum):
    """Kinds of prediction."""

    classification = "classification"
    regression = "regression"


class MissingColumns(StrEnum):
    """What to do with a view that lacks columns of the model."""

    refuse = "raise"
    fill = "fill"


class OnErrors(StrEnum):
    """What to do with rows that cannot be read or learned."""

    stop = "stop"
    skip = "skip"


class OnDrifts(StrEnum):
    """What to do about a drift."""

    tell = "tell"
    forget = "forget"
    restart = "restart"
    lower_view = "lower_view"


class InputFormats(StrEnum):
    """Formats of standard input."""

    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"


DataFiles = Annotated[list[Path], Argument(help="One file of samples, or one file per view matched by --id.")]
StreamSource = Annotated[str, Argument(help="A file of samples, or a folder of Parquet files; '-' is standard input.")]
ModelFile = Annotated[Path, Argument(help="A model file.")]
TargetColumn = Annotated[
    str | None, Option("--target", "-y", help="Column of the class or target; a TOML file may name it too.")
]
ViewLayout = Annotated[
    str | None,
    Option(
        "--views",
        help="'prefix' (audio__mfcc1 belongs to audio), or a TOML file with columns by view in [views]; those of "
        "libsvm files by numbers, '0:50'.",
    ),
]
IdColumn = Annotated[str | None, Option("--id", help="Column of the sample names.")]
TransposeFlag = Annotated[
    bool, Option("--transpose", help="Samples are columns, as in a file of genes by samples; the header names them.")
]
EncodingName = Annotated[
    str | None, Option("--encoding", help="Encoding of text files, such as cp1252 or latin-1. Default: UTF-8.")
]
MissingCells = Annotated[
    list[str] | None, Option("--na", help="A cell to read as missing, such as 'n.d.'; may be repeated.")
]
LibsvmBase = Annotated[
    int | None,
    Option(
        "--libsvm-base",
        min=0,
        max=1,
        help="Number of the first column of libsvm files, 0 or 1. Default: 0 if any row has a column 0.",
    ),
]
ObjectColumns = Annotated[
    list[str] | None,
    Option(
        "--objects",
        help="A column of lists or maps to keep as it is, such as ids, whatever the first rows look like; may be "
        "repeated.",
    ),
]
GroupsColumn = Annotated[
    str | None, Option("--groups", help="Column of groups, such as patients; folds keep groups together.")
]
MissingColumnsOption = Annotated[
    MissingColumns | None,
    Option(
        "--missing-columns", help="If a view lacks columns of the model: refuse it, or fill them with training means."
    ),
]
ShareFlag = Annotated[
    bool, Option("--share", help="Write the model without training samples; only for models of column weights.")
]
JsonFlag = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
NumberOfJobs = Annotated[int, Option("--jobs", "-j", help="Number of processes; -1 uses all cores.")]
PositiveClass = Annotated[
    str | None,
    Option(
        "--positive", help="Of two classes, the one that scores and curves are of. Default: the second one, sorted."
    ),
]
ReportFile = Annotated[Path | None, Option("--report", help="Write a report, one HTML file.")]
SavedModel = Annotated[Path | None, Option("--save", help="Model file to write.")]
SavedBest = Annotated[Path | None, Option("--save", help="Write the best model, fitted on all samples.")]
EstimatorName = Annotated[
    str, Option("--estimator", "-e", help="Name of the estimator; `consilience estimators` lists them.")
]
EstimatorChoice = Annotated[
    str | None,
    Option(
        "--estimator",
        "-e",
        help="Name of the estimator; `consilience estimators` lists them. Default: ConsensusClassifier or "
        "ConsensusRegressor, which need no parameters.",
    ),
]
EstimatorNames = Annotated[
    list[str] | None, Option("--estimator", "-e", help="Compare only this estimator; may be repeated.")
]
Preparations = Annotated[
    list[str] | None,
    Option(
        "--prepare",
        metavar="[VIEW=]RECIPE",
        help="Prepare all views, or one, inside the folds: standardize, impute, log, quantile, variance:K, top_k:K or "
        "drop; may be repeated, in order.",
    ),
]
TopColumns = Annotated[
    int | None,
    Option("--top-k", min=1, help="Keep the K columns of each view most associated with the target, as the last step."),
]
BatchColumn = Annotated[
    str | None, Option("--batch", help="Column of batches, such as plates; their effects are removed after --prepare.")
]
CategoryColumns = Annotated[
    list[str] | None,
    Option("--category", help="A column of integers that are codes of categories, such as a stage; may be repeated."),
]
Settings = Annotated[list[str] | None, Option("--set", help="A parameter of the estimator, as name=value.")]
TaskName = Annotated[
    Tasks | None,
    Option(
        "--task",
        help="Default: regression if any target value is not an integer. Integers of many different values need it.",
    ),
]
ScoringNames = Annotated[
    list[str] | None,
    Option(
        "--scoring",
        help="Scorers of scikit-learn, such as roc_auc; may be repeated, or separated by commas. The first one ranks. "
        "Default: accuracy or r2.",
    ),
]
ScaleFlag = Annotated[
    bool | None,
    Option(
        "--scale/--no-scale",
        help="Scale dense views and regression targets, and fill gaps in views with means. The default estimator does "
        "so by itself.",
    ),
]
NumberOfRepeats = Annotated[int, Option("--repeats", min=1, help="Repeat the outer folds with other random splits.")]
BaselinesFlag = Annotated[
    bool | None,
    Option(
        "--baselines/--no-baselines",
        help="Compare with each view alone, the most frequent class or the mean, a random forest and boosted trees. "
        "Default: yes, unless --estimator (-e) is given.",
    ),
]
AllFlag = Annotated[bool, Option("--all", help="Compare every estimator that suits the data; takes longer.")]
ClassWeights = Annotated[
    list[str] | None,
    Option(
        "--class-weight", help="'balanced', or CLASS=NUMBER, which may be repeated. Default: all classes count alike."
    ),
]
WeightsColumn = Annotated[str | None, Option("--weights", help="Column of sample weights, numbers of at least 0.")]
BoardTable = Annotated[Path | None, Option("--csv", help="Write the leaderboard to a CSV file.")]
ProbaFlag = Annotated[bool, Option("--proba", help="Add a column of probabilities for each class.")]
CoverageLevel = Annotated[
    float | None,
    Option(
        "--coverage",
        help="Add sets of classes, as a column in_set_CLASS for each, or intervals for regression, that contain the "
        "truth with this probability, such as 0.9.",
    ),
]
OutputTable = Annotated[
    Path | None, Option("--out", help="CSV file, device or pipe for the predictions. Default: print them.")
]
StreamEstimator = Annotated[
    str | None,
    Option(
        "--estimator",
        "-e",
        help="Name of the online estimator; `consilience estimators` lists them. Default: PassiveAggressive, for "
        "regression PassiveAggressiveRegressor with standardized targets, both with average=recent.",
    ),
]
GoOnWith = Annotated[Path | None, Option("--model", help="Model file to go on with, in place of a new estimator.")]
StreamScale = Annotated[
    bool,
    Option("--scale/--no-scale", help="Scale dense views by running means and deviations, and fill gaps with means."),
]
StreamTask = Annotated[Tasks, Option("--task", help="What the target is.")]
OnError = Annotated[
    OnErrors, Option("--on-error", help="Stop at a row that cannot be read or learned, or skip and count it.")
]
QuarantineFile = Annotated[
    Path | None, Option("--quarantine", help="JSON lines of the rows that --on-error skip leaves out, with the errors.")
]
PredictionsFile = Annotated[
    Path | None,
    Option("--predictions", help="Write each prediction as it is made: CSV, or JSON lines for .jsonl and .ndjson."),
]
LogFile = Annotated[
    str | None, Option("--log", help="File for a JSON line every --log-every rows; '-' is standard error.")
]
RowsBetween = Annotated[int, Option("--log-every", min=1, help="Rows between the lines of --log.")]
MeasureNames = Annotated[
    list[str] | None,
    Option(
        "--measures",
        help="Measures such as f1, log_loss, roc_auc, mae or r2; may be repeated, or separated by commas. Default: "
        "error, balanced accuracy and log loss; for regression MAE, RMSE and R2.",
    ),
]
MostPending = Annotated[int, Option("--max-pending", min=1, help="Samples that may wait for their label, with --id.")]
WindowSize = Annotated[int, Option("--window", min=1, help="Samples in a window of the measures.")]
ByViewFlag = Annotated[bool, Option("--by-view", help="Tell how often each view is right; takes time.")]
DriftFlag = Annotated[bool, Option("--drift", help="Look for drift of the error, and with --by-view of each view.")]
OnDrift = Annotated[
    OnDrifts,
    Option("--on-drift", help="What to do about a drift: tell, forget half, restart, or lower the view's weights."),
]
CheckpointFile = Annotated[Path | None, Option(help="File to write every --every samples, at the end and on Ctrl-C.")]
SamplesBetween = Annotated[int, Option(min=1, help="Samples between checkpoints.")]
ResumeFlag = Annotated[
    bool, Option(help="Continue from the checkpoint. Rows of a file that were learned are skipped; a pipe goes on.")
]
ResumedFile = Annotated[
    Path | None,
    Option(
        "--resume",
        help="File that keeps each finished fold: the same command with the same file continues a comparison that was "
        "stopped or killed.",
    ),
]
NumberOfFolds = Annotated[int, Option("--cv", min=2, help="Number of outer folds.")]
Seed = Annotated[int, Option(min=0, help="Seed of the folds.")]
DemoReport = Annotated[Path, Option("--report", help="HTML file to write.")]
NewModel = Annotated[Path, Option("--save", help="Model file to write.")]
InputFormat = Annotated[InputFormats, Option("--format", help="Format of standard input.")]
DebugFlag = Annotated[bool, Option("--debug", help="Show the traceback of an error; allowed anywhere in a command.")]
