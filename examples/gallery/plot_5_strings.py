"""
Strings and numbers
===================

A view need not be a table. Here every sample is a dish with a name, a string, and three numbers. A string kernel
compares the names: it counts common subsequences and prefers those with few gaps. Its Gram matrix becomes a precomputed
view, which cross-validation splits like any other.
"""

# %%
# The views
# ---------
# The numbers are grams of sugar, fat and salt in a portion, made up for this example. The kernel is normalized, so that
# long names are not more similar than short ones.
import matplotlib.pyplot as plt
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from consilience import LateFusion, Views
from consilience.kernels import Subsequence, normalize

sweet = {
    "apple cake": (25, 12, 0.3), "apple pie": (22, 14, 0.4), "carrot cake": (28, 17, 0.5), "cheesecake": (24, 22, 0.5),
    "cherry pie": (26, 13, 0.3), "lemon tart": (30, 15, 0.2), "plum cake": (23, 11, 0.3), "plum tart": (24, 12, 0.2),
}  # fmt: skip
savoury = {
    "bean soup": (4, 5, 1.9), "carrot soup": (8, 6, 1.6), "cheese salad": (3, 24, 1.4), "lentil stew": (5, 7, 1.8),
    "onion soup": (7, 9, 2.1), "potato salad": (5, 15, 1.5), "potato stew": (4, 8, 1.7), "tomato soup": (9, 5, 1.5),
}  # fmt: skip
dishes = sweet | savoury
names, y = list(dishes), ["sweet"] * len(sweet) + ["savoury"] * len(savoury)

kernel = normalize(Subsequence(length=3, decay=0.6))
X = Views(name=kernel(names), content=list(dishes.values()), precomputed="name")
print(X)

# %%
# Late fusion: a support vector machine on the Gram matrix of the names, another on the scaled numbers.
by_view = {"name": SVC(kernel="precomputed"), "content": make_pipeline(StandardScaler(), SVC())}
folds = StratifiedKFold(4, shuffle=True, random_state=0)
for chosen in (["name"], ["content"], ["name", "content"]):
    model = LateFusion({view: by_view[view] for view in chosen})
    print(f"{' and '.join(chosen)}: {cross_val_score(model, X[chosen], y, cv=folds).mean():.2f}")

# %%
# Similarity of the names
# -----------------------
figure, axis = plt.subplots(figsize=(7, 6), layout="constrained")
image = axis.imshow(X["name"], cmap="Greys", vmin=0, vmax=1)
axis.set_xticks(range(len(names)), names, rotation=90)
axis.set_yticks(range(len(names)), names)
axis.axhline(len(sweet) - 0.5, color="black", lw=1)
axis.axvline(len(sweet) - 0.5, color="black", lw=1)
axis.set_title("Names of dishes by a subsequence kernel")
figure.colorbar(image, label="similarity", shrink=0.8)
plt.show()
