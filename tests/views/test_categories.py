"""Categorical columns of frames: one-hot columns of their view, the same at fit and at prediction, or a sentence."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.model_selection import KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import consilience as cs
import strategies
from consilience import PerView, Views, as_views
from reference import one_hot

N = 24
RNG = np.random.default_rng(0)
IDS = [f"p{k}" for k in range(N)]
STAGES = ["III", "II", "I", "IV"]  # in an order that is not sorted, and with one that no sample has
STAGE = RNG.permutation(STAGES[:3] * (N // 3)).tolist()
SEX = RNG.permutation(["F", "M"] * (N // 2)).tolist()
AGE = RNG.normal(size=N)
GENES = pd.DataFrame(RNG.normal(size=(N, 3)), index=IDS, columns=list("uvw"))
Y = np.where(GENES["u"] + (np.array(STAGE) == "II") > 0.3, "yes", "no")
GAPS = [None if k % 5 == 0 else value for k, value in enumerate(STAGE)]


def clinical(stage=STAGE, sex=SEX, index=IDS):
    return pd.DataFrame({"age": AGE[: len(index)], "stage": stage, "sex": sex}, index=index)


def silently(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*arguments)


# -- reading
COLUMNS = {  # values, the categories that they become; None for one column of numbers
    "pandas strings": (pd.Series(STAGE), ["I", "II", "III"]),
    "pandas objects": (pd.Series(GAPS, dtype=object), ["I", "II", "III"]),
    "pandas string type": (pd.Series(GAPS, dtype="string"), ["I", "II", "III"]),
    "pandas category": (pd.Series(pd.Categorical(GAPS)), ["I", "II", "III"]),
    "pandas declared": (pd.Series(pd.Categorical(GAPS, categories=STAGES)), STAGES),
    "pandas ordered": (pd.Series(pd.Categorical(STAGE, categories=STAGES, ordered=True)), STAGES),
    "pandas, no value": (pd.Series(pd.Categorical([None] * N, categories=STAGES)), STAGES),
    "polars strings": (pl.Series(GAPS), ["I", "II", "III"]),
    "polars categories": (pl.Series(GAPS, dtype=pl.Categorical), ["I", "II", "III"]),
    "polars enum": (pl.Series(GAPS, dtype=pl.Enum(STAGES)), STAGES),
    "pandas booleans": (pd.Series([True, False] * (N // 2)), None),
    "pandas nullable booleans": (pd.Series([True, None] * (N // 2), dtype="boolean"), None),
    "pandas objects that are booleans": (pd.Series([True, None] * (N // 2), dtype=object), None),
    "pandas nullable integers": (pd.Series([1, None] * (N // 2), dtype="Int64"), None),
    "polars booleans": (pl.Series([True, None] * (N // 2)), None),
    "polars integers": (pl.Series([1, None] * (N // 2)), None),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_become_numbers_by_their_type(case):
    values, levels = COLUMNS[case]
    frame = (pl.DataFrame if isinstance(values, pl.Series) else pd.DataFrame)({"age": AGE, "stage": values})
    X = Views(clinical=frame)
    plain = [None if value is None or value is pd.NA or value != value else value for value in values.to_list()]
    if levels is None:
        assert X.feature_names == {"clinical": ("age", "stage")}
        assert X.categories == {}
        expected = np.array([[np.nan if value is None else float(value)] for value in plain])
    else:
        assert X.feature_names == {"clinical": ("age", *(f"stage={level}" for level in levels))}
        assert X.categories == {"clinical": {"stage": tuple(levels)}}
        expected = one_hot(plain, levels)
    np.testing.assert_array_equal(X["clinical"], np.column_stack([AGE, expected]))


def test_one_hot_columns_are_those_of_scikit_learn():
    frame = clinical()
    X = Views(clinical=frame)
    encoder = OneHotEncoder(sparse_output=False).fit(frame[["stage", "sex"]])
    np.testing.assert_array_equal(X["clinical"][:, 1:], encoder.transform(frame[["stage", "sex"]]))


def test_categories_may_be_numbers_booleans_and_intervals():
    grades = pd.Categorical([1, 2, 10, None] * (N // 4))
    assert Views(c=clinical(grades)).categories["c"]["stage"] == ("1", "2", "10")
    gaps = pd.Series([1.0, 2.0, None] * (N // 3)).astype("category")  # missing values make floats of integers
    assert Views(c=clinical(gaps.array)).categories["c"]["stage"] == ("1", "2")
    assert Views(c=clinical(pd.Categorical([True, False] * (N // 2)))).categories["c"]["stage"] == ("False", "True")
    ages = Views(c=clinical(pd.cut(AGE, [-9, 0, 9])))
    assert ages.categories["c"]["stage"] == ("(-9, 0]", "(0, 9]")
    np.testing.assert_array_equal(ages["c"][:, 2], AGE > 0)


def test_very_many_declared_categories_are_those_found():
    codes = pd.Categorical(STAGE, categories=[*(f"code{k}" for k in range(60)), *STAGES])
    assert Views(c=clinical(codes)).categories["c"]["stage"] == ("III", "II", "I")


def test_one_column_alone_is_text_unless_its_type_says_otherwise():
    text = Views(stage=clinical()[["stage"]])
    assert (text.kind("stage"), text.categories) == ("objects", {})
    declared = Views(stage=clinical(pd.Categorical(STAGE))[["stage"]])
    assert declared.kind("stage") == "dense"
    assert declared.categories == {"stage": {"stage": ("I", "II", "III")}}


REFUSED = {
    "text": ([f"note {k}" for k in range(N)], "column 'stage' has 24 different strings in 24 samples"),
    "dates": (pd.date_range("2020", periods=N), "column 'stage' has dates or times"),
    "dates as categories": (pd.Categorical(pd.date_range("2020", periods=N)), "column 'stage' has dates or times"),
    "periods": (pd.period_range("2020", periods=N, freq="D"), "column 'stage' has dates or times"),
    "numbers as text": (["1.5", "n.d.", "2"] * (N // 3), "column 'stage' has numbers, and 8 cells that cannot be read"),
    "lists": ([["a"]] * N, "column 'stage' holds list values, which are neither numbers nor categories"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_columns_are_refused_with_a_sentence(case):
    values, message = REFUSED[case]
    with pytest.raises(ValueError) as error:
        Views(clinical=clinical().assign(stage=values))
    assert f"View 'clinical': {message}" in str(error.value)


def test_names_of_samples_are_no_categories_even_if_their_type_says_so():
    ids = [f"patient {k}" for k in range(120)]
    frame = pd.DataFrame({"age": np.arange(120.0), "id": pd.Categorical(ids)})
    with pytest.raises(
        ValueError, match=r"column 'id' has 120 different categories in 120 samples .* give it as their"
    ):
        Views(clinical=frame)
    hospitals = frame.assign(id=pd.Categorical([f"hospital {k % 60}" for k in range(120)]))
    assert len(Views(clinical=hospitals).categories["clinical"]["id"]) == 60
    with pytest.raises(ValueError, match="has dates or times"):
        Views(period=pd.DataFrame({"q": pd.period_range("2020", periods=N, freq="D")}))


# -- operations on Views
def test_categories_travel_with_views():
    X = Views(clinical=clinical(), genes=GENES)
    levels = {"stage": ("I", "II", "III"), "sex": ("F", "M")}
    same = [
        X[[3, 1]], X[:4], X[["clinical"]], Views(X), Views(X, more=np.ones((N, 1))), as_views(X),
        Views(clinical=clinical()) | Views(genes=GENES), X.align(["genes", "clinical"]), Views.concat([X[:3], X[3:]]),
        PerView({"genes": "standardize"}).fit_transform(X), train_test_split(X, random_state=0)[0],
    ]  # fmt: skip
    for case in same:
        assert case.categories == {"clinical": levels}
    assert X.renamed({"clinical": "c"}).categories == {"c": levels}
    assert X[["genes"]].categories == {}
    scaled = PerView("standardize").fit_transform(X)  # no 0 and 1 any more, but the names stay
    assert scaled.categories == {}
    assert scaled.feature_names == X.feature_names
    mixed = RNG.permutation(N)
    paired = Views(genes=GENES, clinical=clinical().iloc[mixed])
    np.testing.assert_array_equal(paired["clinical"], X["clinical"])


def test_parts_with_other_categories_are_stacked():
    order = np.argsort(STAGE, kind="stable")
    frame = clinical(GAPS).iloc[order]
    parts = [Views(clinical=part) for part in (frame[16:], frame[:8], frame[8:16])]
    X = Views.concat(parts)
    assert set(X.categories["clinical"]["stage"]) == {"I", "II", "III"}
    whole = Views(clinical=pd.concat([frame[16:], frame[:8], frame[8:16]]))
    columns = [X.feature_names["clinical"].index(name) for name in whole.feature_names["clinical"]]
    np.testing.assert_array_equal(X["clinical"][:, columns], whole["clinical"])
    empty = frame[:2].assign(stage=pd.Series([None, None], index=frame.index[:2], dtype=object))
    assert np.isnan(Views.concat([whole, Views(clinical=empty)])["clinical"][-2:, 1:4]).all()
    with pytest.raises(ValueError, match="View 'clinical' has other columns in different parts: stage=I, stage=II"):
        Views.concat([whole, Views(clinical=frame[["age", "sex"]])])


# -- prediction
def test_new_samples_are_encoded_by_the_categories_at_fit():
    model = cs.CoRegularizedRidgeClassifier().fit({"clinical": clinical(), "genes": GENES}, Y)
    expected = model.decision_function({"clinical": clinical(), "genes": GENES})
    for k in (0, 7, 15):  # one sample has one stage and one sex
        new = {"clinical": clinical().iloc[[k]], "genes": GENES.iloc[[k]]}
        for form in (new, Views(new), pd.concat(new.values(), axis=1)):
            np.testing.assert_allclose(silently(model.decision_function, form), expected[[k]])
    for values in (STAGE, pd.Categorical(STAGE, categories=STAGES), pd.array(STAGE, dtype="string")):
        new = {"clinical": clinical(values), "genes": GENES}
        np.testing.assert_allclose(silently(model.decision_function, new), expected)
    table = pl.DataFrame({"stage": STAGE, "sex": SEX, "age": AGE, **{name: GENES[name].to_numpy() for name in "wuv"}})
    np.testing.assert_allclose(silently(model.decision_function, table), expected)


def test_an_unknown_category_is_none_of_the_known_ones():
    X = {"clinical": clinical(), "genes": GENES}
    model = cs.CoRegularizedRidgeClassifier("linear").fit(X, Y)
    new = clinical([*STAGE[:20], "IV", "IV", "IV", "V"])
    message = "View 'clinical': 3 samples have the category 'stage=IV', which no training sample had; it counts as none"
    with pytest.warns(UserWarning, match=message) as told:
        found = model.decision_function({"clinical": new, "genes": GENES})
    assert len(told) == 2
    assert "1 sample has the category 'stage=V'" in str(told[1].message)
    matrix = np.column_stack([AGE, one_hot([*STAGE[:20], *"????"], ["I", "II", "III"]), one_hot(SEX, ["F", "M"])])
    plain = cs.CoRegularizedRidgeClassifier("linear").fit({**X, "clinical": Views(X)["clinical"]}, Y)
    np.testing.assert_allclose(found, plain.decision_function({"clinical": matrix, "genes": GENES}))


def test_a_declared_category_that_no_training_sample_had_is_told():
    X = {"clinical": clinical(pd.Categorical(STAGE, categories=STAGES)), "genes": GENES}
    model = cs.CoRegularizedRidgeClassifier().fit(X, Y)
    silently(model.predict, X)
    new = clinical(pd.Categorical(["IV", *STAGE[1:]], categories=STAGES))
    with pytest.warns(UserWarning, match="1 sample has the category 'stage=IV', which no training sample had; its col"):
        model.predict({"clinical": new, "genes": GENES})
    named = pytest.warns(UserWarning, match="View 'clinical' has no column names")
    with named, pytest.warns(UserWarning, match="1 sample has the category 'stage=IV', which no training sample had"):
        model.predict({"clinical": sp.csr_array(Views(clinical=new)["clinical"]), "genes": GENES})


def test_missing_values_are_missing_in_all_columns_of_their_category():
    fitted = PerView("passthrough").fit(Views(clinical=clinical()))
    for values, forms in (
        ([None, "II"], (lambda frame: frame, Views)),  # two stages have no column in the new samples
        ([None, None], (lambda frame: frame, Views)),  # the stage has no category at all
        ([None, "V"], (lambda frame: frame,)),
    ):
        for form in forms:
            new = pd.DataFrame({"age": AGE[:2], "stage": values, "sex": ["M", "M"]}).astype({"stage": object})
            with warnings.catch_warnings():
                warnings.filterwarnings("error" if values[1] != "V" else "ignore")
                found = fitted.transform(form({"clinical": new}))
            expected = np.column_stack([AGE[:2], one_hot(values, ["I", "II", "III"]), [0, 0], [1, 1]])
            np.testing.assert_array_equal(found["clinical"], expected)
            assert found.categories == {"clinical": {"stage": ("I", "II", "III"), "sex": ("F", "M")}}


def test_few_new_samples_may_all_differ():
    hospitals = [f"hospital {k % 12}" for k in range(N)]
    model = cs.CoRegularizedRidgeClassifier().fit({"clinical": clinical(hospitals)}, Y)
    new = clinical(hospitals)[:12]
    expected = model.decision_function({"clinical": clinical(hospitals)})[:12]
    np.testing.assert_allclose(silently(model.decision_function, {"clinical": new}), expected)
    np.testing.assert_allclose(silently(model.decision_function, new), expected)
    with pytest.raises(ValueError, match="has 12 different strings in 12 samples"):  # nobody says that these are some
        Views(clinical=new)


def test_a_category_may_be_the_only_column():
    declared = clinical(pd.Categorical(STAGE))[["stage"]]
    model = cs.CoRegularizedRidgeClassifier().fit({"stage": declared, "genes": GENES}, Y)
    expected = model.decision_function({"stage": declared, "genes": GENES})
    strings = {"stage": clinical()[["stage"]], "genes": GENES}
    np.testing.assert_allclose(silently(model.decision_function, strings), expected)
    np.testing.assert_allclose(silently(model.decision_function, Views(strings)), expected)


def test_codes_of_categories_may_be_plain_numbers_at_prediction():
    codes = [1, 2, 10] * (N // 3)
    model = cs.CoRegularizedRidgeClassifier().fit({"clinical": clinical(pd.Categorical(codes))}, Y)
    expected = model.decision_function({"clinical": clinical(pd.Categorical(codes))})
    np.testing.assert_allclose(silently(model.decision_function, {"clinical": clinical(codes)}), expected)
    with pytest.raises(ValueError) as error:
        model.predict({"clinical": clinical([7] * N)})
    assert "column 'stage' has numbers (7), but had the categories '1', '2', '10' when" in str(error.value)
    numbers = cs.CoRegularizedRidgeClassifier(missing_columns="fill").fit({"clinical": clinical(codes)}, Y)
    with pytest.raises(ValueError, match=r"column 'stage' has categories \(I, II, III\), but had numbers when"):
        numbers.predict({"clinical": clinical()})


def test_a_column_that_is_not_there_is_a_missing_column():
    model = cs.CoRegularizedRidgeClassifier().fit({"clinical": clinical()}, Y)
    with pytest.raises(
        ValueError, match=r"View 'clinical' has no column 'stage', which .* \(3 of 6 columns are missin"
    ):
        model.predict({"clinical": clinical()[["age", "sex"]]})
    model.missing_columns = "fill"
    with pytest.warns(UserWarning, match=r"View 'clinical' lacks 3 of 6 columns \(stage\); they are filled with the"):
        model.predict({"clinical": clinical()[["age", "sex"]]})


def test_columns_that_look_like_categories_are_columns():
    """A number column named as a category of another column is refused where it is not there, and not zero."""
    frame = clinical().assign(**{"stage=max": AGE})
    model = cs.CoRegularizedRidgeClassifier().fit({"clinical": frame}, Y)
    with pytest.raises(ValueError, match="View 'clinical' has no column 'stage=max'"):
        model.predict({"clinical": clinical()})
    with pytest.raises(ValueError, match="View 'clinical' would have two columns named 'stage=II'"):
        Views(clinical=clinical().assign(**{"stage=II": AGE}))
    odd = clinical().rename(columns={"stage": "stage=new"}).replace({"II": "I=I"})
    model = cs.CoRegularizedRidgeClassifier().fit({"clinical": odd}, Y)
    np.testing.assert_allclose(model.decision_function(odd[:5]), model.decision_function({"clinical": odd})[:5])


def test_encoded_frames_come_back_from_a_wide_table():
    X = Views(clinical=clinical(), genes=GENES)
    model = cs.CoRegularizedRidgeClassifier().fit(X, Y)
    wide = X.to_frame()
    np.testing.assert_allclose(model.decision_function(as_views(wide, "prefix")), model.decision_function(X))
    part = as_views(wide.drop(columns=["clinical__stage=I"]), "prefix")  # the zeros of the others tell the stage
    zeros = as_views(wide.assign(**{"clinical__stage=I": 0.0}), "prefix")
    np.testing.assert_allclose(silently(model.decision_function, part), model.decision_function(zeros))


# -- tools
@pytest.mark.parametrize("values", [STAGE, pd.Categorical(STAGE, categories=STAGES)], ids=["strings", "declared"])
def test_wide_frames_are_divided_by_prefix_and_split_by_scikit_learn(values):
    wide = pd.concat([clinical(values).add_prefix("clinical__"), GENES.add_prefix("genes__")], axis=1)
    names = as_views(wide, "prefix").feature_names["clinical"]
    assert {"clinical__age", "clinical__stage=II", "clinical__sex=F"} < set(names)
    train, test, y_train, _ = train_test_split(wide, Y, random_state=1)
    model = cs.CoRegularizedRidgeClassifier(views="prefix").fit(train, y_train)
    X, (known, new) = as_views(wide, "prefix"), ([IDS.index(name) for name in part.index] for part in (train, test))
    whole = cs.CoRegularizedRidgeClassifier().fit(X[known], y_train)
    np.testing.assert_allclose(silently(model.decision_function, test), whole.decision_function(X[new]))
    chosen = as_views(wide, {"clinical": [name for name in wide if name.startswith("clinical")], "genes": [3, 4, 5]})
    assert chosen == X


def test_a_category_of_one_fold_only():
    """The fold with the category is predicted by a model that does not know it, with a warning."""
    stage = ["rare"] * 4 + STAGE[4:]
    folds = KFold(6)  # the first fold has all samples of the category
    wide = pd.concat([clinical(stage).add_prefix("clinical__"), GENES.add_prefix("genes__")], axis=1)
    model = make_pipeline(PerView(["standardize"], views="prefix"), cs.CoRegularizedRidgeClassifier())
    with pytest.warns(
        UserWarning, match="4 samples have the category 'clinical__stage=rare', which no training sample"
    ):
        scores = cross_val_score(model, wide, Y, cv=folds)
    assert np.isfinite(scores).all()
    with pytest.warns(
        UserWarning, match="4 samples have the category 'clinical__stage=rare', which no training sample"
    ):
        cross_val_score(cs.CoRegularizedRidgeClassifier(), as_views(wide, "prefix"), Y, cv=folds)


@pytest.mark.parametrize("model", [
    cs.CoRegularizedRidgeClassifier(), cs.EarlyFusion(cs.CoRegularizedRidgeClassifier()), cs.OnlinePerceptron(),
    make_pipeline(PerView("standardize"), cs.CoRegularizedRidgeClassifier()), cs.ConsensusClassifier(),
], ids=["batch", "fusion", "online", "pipeline", "consensus"])  # fmt: skip
def test_models_keep_their_categories_in_files(model, tmp_path):
    X = Views(clinical=clinical(), genes=GENES)
    model.fit(X, Y)
    cs.save(model, tmp_path / "model.cs")
    loaded = cs.load(tmp_path / "model.cs")
    one = {"clinical": clinical()[4:5], "genes": GENES[4:5]}
    assert silently(loaded.predict, one) == silently(model.predict, one) == model.predict(X)[4]
    with pytest.warns(UserWarning, match="1 sample has the category 'stage=V', which no training sample had"):
        loaded.predict({**one, "clinical": clinical(["V"], ["F"], IDS[4:5])})


def test_a_stream_knows_the_categories_of_its_first_samples_or_type():
    parts = np.argsort(STAGE, kind="stable").reshape(3, -1)
    declared = clinical(pd.Categorical(STAGE, categories=STAGES))
    model, whole = cs.OnlinePerceptron(shuffle=False), cs.OnlinePerceptron(shuffle=False)
    for rows in parts:
        silently(lambda own: model.partial_fit({"c": declared.iloc[own]}, Y[own], classes=["no", "yes"]), rows)
    whole.partial_fit({"c": declared.iloc[parts.ravel()]}, Y[parts.ravel()], classes=["no", "yes"])
    np.testing.assert_allclose(model.decision_function({"c": declared}), whole.decision_function({"c": declared}))


def test_missing_values_of_categories_are_refused_or_filled_as_others():
    frame = clinical(GAPS)
    with pytest.raises(ValueError, match="View 'clinical'"):
        cs.CoRegularizedRidgeClassifier().fit({"clinical": frame}, Y)
    model = make_pipeline(PerView("impute"), cs.CoRegularizedRidgeClassifier()).fit(Views(clinical=frame), Y)
    assert len(silently(model.predict, {"clinical": frame[:1]})) == 1
    assert len(silently(cs.ConsensusClassifier().fit({"clinical": frame}, Y).predict, {"clinical": frame[:1]})) == 1


@settings(max_examples=60, deadline=None)
@given(strategies.categories(2, 6), strategies.categories(1, 5), strategies.flags)
def test_any_new_samples_are_encoded_as_the_naive_way_does(train, new, contained):
    column = pd.Series(train, dtype=object)
    transform = PerView("passthrough").fit({"v": pd.DataFrame({"n": np.zeros(len(train)), "s": column})})
    frame = pd.DataFrame({"s": pd.Series(new, dtype=object), "n": np.ones(len(new))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = transform.transform(Views(v=frame) if contained else {"v": frame})["v"]
    known = sorted({value for value in train if value})
    np.testing.assert_array_equal(found, np.column_stack([np.ones(len(new)), one_hot(new, known)]))
