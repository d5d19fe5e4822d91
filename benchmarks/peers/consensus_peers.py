"""Other programs that benchmarks/consensus.py compares with, on Gram matrices. Does not use consilience.

himalaya 0.4.11 needs NumPy only. EasyMKL of MKLpy 0.6 needs torch and cvxopt. Install both anywhere and name the folder
in PYTHONPATH: pip install --no-deps --target FOLDER himalaya==0.4.11 MKLpy==0.6 cvxopt==1.3.3
"""

import importlib.util

import numpy as np


def there(*modules):
    return all(importlib.util.find_spec(module) is not None for module in modules)


HIMALAYA = there("himalaya")
EASYMKL = there("MKLpy", "torch", "cvxopt")


def himalaya_ridge(K, Y, folds, n_iter, alphas):
    """Return MultipleKernelRidgeCV on Gram matrices K, with its random search."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    settings = {"n_iter": n_iter, "alphas": alphas, "progress_bar": False}
    model = MultipleKernelRidgeCV(
        "precomputed", solver="random_search", solver_params=settings, cv=folds, random_state=0
    )
    model.fit(K, Y)
    return model


def easy_mkl(K, y, lam, C):
    """Return EasyMKL with a support vector machine, one class against the others."""
    import torch
    from MKLpy.algorithms import EasyMKL
    from sklearn.svm import SVC

    return EasyMKL(learner=SVC(C=C), lam=lam).fit([torch.tensor(k) for k in K], torch.tensor(y))


def easy_mkl_scores(model, K, n_classes):
    """Return decision values, one column per class."""
    import torch

    found = model.decision_function([torch.tensor(k) for k in K])
    if n_classes == 2:
        return np.column_stack([-np.asarray(found), np.asarray(found)])
    scores = {int(c): np.asarray(values) for c, values in found.items()}
    lowest = min(values.min() for values in scores.values())
    absent = np.full(len(next(iter(scores.values()))), lowest)  # of classes that the training samples lack
    return np.column_stack([scores.get(c, absent) for c in range(n_classes)])
