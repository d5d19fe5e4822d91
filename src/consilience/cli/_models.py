"""The commands about one model: fit, predict, evaluate and inspect."""

from pathlib import Path
from typing import Any

from . import _options as option
from ._app import app, form_of_files, given_command
from ._data import (
    check_outputs,
    labeled,
    load_model,
    read_class_weight,
    read_for_model,
    read_positive,
    read_preparation,
    read_weight_column,
    reading_options,
    settle_task,
    training_samples,
    views_of_model,
    warn_of_missing,
)
from ._estimators import describe, fit_arguments, fit_pipeline, make_estimator, needed_task
from ._output import how_to_use, say, show, show_external
from ._reading import tell_views


@app.command()
def fit(
    data: option.DataFiles,
    save_to: option.NewModel,
    estimator: option.EstimatorChoice = None,
    target: option.TargetColumn = None,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    libsvm_base: option.LibsvmBase = None,
    groups: option.GroupsColumn = None,
    weights: option.WeightsColumn = None,
    class_weight: option.ClassWeights = None,
    settings: option.Settings = None,
    task: option.TaskName = None,
    scale: option.ScaleFlag = None,
    prepare: option.Preparations = None,
    top_k: option.TopColumns = None,
    batch: option.BatchColumn = None,
    category: option.CategoryColumns = None,
    share: option.ShareFlag = False,
    json_out: option.JsonFlag = False,
) -> None:
    """Fit an estimator and write it to a model file.

    Without --estimator (-e), fits ConsensusClassifier or ConsensusRegressor, which need no parameters. Samples without
    a target are used as unlabeled samples.

    \b
    Examples:
      consilience fit patients.csv -y diagnosis --save model.cons
      consilience fit rna.parquet protein.parquet --id patient -y subtype --save model.cons
      consilience fit patients.csv -y diagnosis -e CoRegularizedSVC --set alpha=0.01 --save model.cons
    """
    from ..io import save, shareable

    check_outputs(save_to, inputs=data)
    preparation = read_preparation(prepare, batch, top_k)
    needed = needed_task(estimator) if estimator else None
    wanted = needed if needed == "regression" else task
    form = form_of_files(transpose, encoding, na, libsvm_base)
    reading = reading_options(views, target, id_column, groups, wanted, batch, weights, category) | form
    samples = training_samples(data, reading, batch)
    X, y = samples.X, samples.y
    if y is None:
        raise ValueError("Name the column of the class or target by --target (-y), or in the TOML file.")
    kind, told = settle_task(y, target, needed or wanted)
    model = make_estimator(estimator, settings, task=kind)
    read = tell_views(X, json_out, layout=views, task=told)
    arguments = fit_arguments(
        model, samples.groups, read_weight_column(samples, weights), read_class_weight(class_weight, y)
    )
    fitted = fit_pipeline(model, X, y, preparation, scale, arguments)
    fitted = shareable(fitted) if share else fitted
    save(fitted, save_to)
    summary = {**describe(fitted), "samples": len(X), "saved": str(save_to)}
    use = how_to_use(save_to, data, fitted, reading, batch)
    show({**summary, **read, "use": use.parts} if json_out else summary, json_out)
    if not json_out:
        say(use.text)


@app.command()
def predict(
    model_file: option.ModelFile,
    data: option.DataFiles,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    libsvm_base: option.LibsvmBase = None,
    out: option.OutputTable = None,
    proba: option.ProbaFlag = False,
    coverage: option.CoverageLevel = None,
    missing_columns: option.MissingColumnsOption = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Predict the samples of files.

    \b
    Examples:
      consilience predict model.cons new.csv
      consilience predict model.cons rna.parquet protein.parquet --id patient --proba --out predictions.csv
      consilience predict model.cons new.csv --coverage 0.9
    """
    from ..evaluation._stored_samples import StoredSamples
    from ..io.writing import csv_lines, is_standard_output, write_atomically
    from ._predictions import prediction_rows

    check_outputs(out, inputs=[model_file, *data])
    model = load_model(model_file, missing_columns)
    known = views_of_model(model, model_file)
    form = form_of_files(transpose, encoding, na, libsvm_base)
    samples, known = read_for_model(model, known, data, views=views, ids=id_column, **form)
    read = tell_views(samples.X, json_out, new=True)
    missing = warn_of_missing(known, samples.X)
    table = prediction_rows(model, samples.X, proba=proba, coverage=coverage, source=model_file)
    for sentence in StoredSamples(model, samples.X).other_units():
        say(sentence, err=True)
    if out is None:
        show({"predictions": table.nested, **missing, **read}, json_out, table.heads, table.rows)
        return
    heads = [id_column or "id", *table.heads[1:]]
    text = csv_lines([heads, *([row[head] for head in table.heads] for row in table.rows)])
    write_atomically(out, lambda file: file.write(text.encode()))
    if not is_standard_output(out):
        summary = {"predictions": len(table.rows), "written": str(out), **missing}
        show({**summary, **(read if json_out else {})}, json_out)


@app.command()
def evaluate(
    model_file: option.ModelFile,
    data: option.DataFiles,
    target: option.TargetColumn = None,
    views: option.ViewLayout = None,
    id_column: option.IdColumn = None,
    transpose: option.TransposeFlag = False,
    encoding: option.EncodingName = None,
    na: option.MissingCells = None,
    libsvm_base: option.LibsvmBase = None,
    missing_columns: option.MissingColumnsOption = None,
    positive: option.PositiveClass = None,
    report: option.ReportFile = None,
    json_out: option.JsonFlag = False,
) -> None:
    """Score a model on samples with known targets, such as an external cohort.

    Prints measures with 95% confidence intervals, and sensitivity and positive predictive value (PPV) of each class.
    --report adds ROC and calibration curves.

    \b
    Examples:
      consilience evaluate model.cons new.csv -y diagnosis
      consilience evaluate model.cons rna.parquet protein.parquet --id patient -y subtype --report external.html
    """
    from ..report import examine_external

    check_outputs(report, inputs=[model_file, *data])
    model = load_model(model_file, missing_columns)
    known = views_of_model(model, model_file)
    form = form_of_files(transpose, encoding, na, libsvm_base)
    samples, known = read_for_model(model, known, data, views=views, target=target, ids=id_column, **form)
    samples, left_out = labeled(samples, quiet=True)
    read = tell_views(samples.X, json_out, new=True)
    missing = warn_of_missing(known, samples.X)
    title = ", ".join(path.stem for path in data)
    counted = read_positive(positive, getattr(model, "classes_", ()))
    findings = examine_external(model, samples.X, samples.y, title=title, positive=counted)
    summary: dict[str, Any] = {"samples": len(samples.y), **({"left out": left_out} if left_out else {}), **missing}
    if report is not None:
        _write_external(report, findings, model_file, data, target)
        summary["report"] = str(report.absolute())
    show_external(findings.evaluation, {**summary, **read} if json_out else summary, json_out)


def _write_external(report: Path, findings: Any, model_file: Path, data: list[Path], target: str | None) -> None:
    """Write the report on an external cohort."""
    from ..report import Provenance, write_report

    source = Provenance(tuple(data), given_command(), model_file)
    write_report(report, findings, title=f"{target or 'A target'} from {findings.title}", provenance=source)


@app.command()
def inspect(model_file: option.ModelFile, json_out: option.JsonFlag = False) -> None:
    """Describe a model file or a checkpoint.

    \b
    Examples:
      consilience inspect model.cons
    """
    from ..io import load

    content = load(model_file)
    if isinstance(content, dict) and "model" in content:
        show({"checkpoint after": content["position"], **describe(content["model"])}, json_out)
    else:
        show(describe(content), json_out)
