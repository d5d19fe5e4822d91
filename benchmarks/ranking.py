"""The ranking perceptron beside the same algorithm in plain Python, in one process: sentences a second.

2,000 random sentences of 15 words and 10 tags. The output is found by Viterbi's algorithm among 10¹⁵ sequences, or
among 20 that are listed. The user's functions are the same in both programs; their own time is printed too.
"""

import statistics
import time
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np

from consilience import RankingPerceptron

N, LENGTH, TAGS, REPEATS = 2000, 15, [f"tag{t}" for t in range(10)], 5


def main():
    rng = np.random.default_rng(0)
    X, y = sentences(rng)
    listed = [(words, near(rng, tags)) for words, tags in zip(X, y, strict=True)]
    compare(
        "Viterbi",
        RankingPerceptron(features, decode=viterbi, average=True, max_iter=1, shuffle=False),
        X,
        y,
        lambda: by_hand(X, y, features, viterbi),
        lambda: use_up((features(w, t), viterbi(defaultdict(float), w)) for w, t in zip(X, y, strict=True)),
    )
    compare(
        "20 candidates",
        RankingPerceptron(listed_features, candidates=candidates_of, average=True, max_iter=1, shuffle=False),
        listed,
        y,
        lambda: by_hand(listed, y, listed_features, best_listed),
        lambda: use_up(listed_features(x, tags) for x in listed for tags in x[1]),
    )


def compare(title, model, X, y, plain, functions):
    model.fit(X[:10], y[:10])  # compiles
    ours, theirs, own = [], [], []
    for _ in range(REPEATS):
        ours.append(timed(lambda: model.fit(X, y)))
        started = time.perf_counter()
        weights, mistakes = plain()
        theirs.append(time.perf_counter() - started)
        own.append(timed(functions))
    # plain Python does not count ties that it breaks well as mistakes
    assert abs(mistakes - model.n_mistakes_) <= 0.05 * N, (mistakes, model.n_mistakes_)
    a, b, c = (statistics.median(times) for times in (ours, theirs, own))
    print(
        f"{title}: ours {N / a:,.0f} sentences/s, plain Python {N / b:,.0f} (ratio {b / a:.2f}); "
        f"the functions alone {N / c:,.0f}; {model.n_mistakes_} mistakes, {len(weights):,} features"
    )


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def use_up(calls):
    for _ in calls:
        pass


def sentences(rng):
    follow = rng.dirichlet(np.full(10, 0.3), size=10)
    words = [rng.permutation(3000)[:600] for _ in TAGS]
    X, y = [], []
    for _ in range(N):
        tags = [int(rng.integers(10))]
        while len(tags) < LENGTH:
            tags.append(int(rng.choice(10, p=follow[tags[-1]])))
        X.append(tuple(f"w{words[t][int(600 * rng.random() ** 2)]}" for t in tags))
        y.append(tuple(TAGS[t] for t in tags))
    return X, y


def near(rng, tags):
    """Twenty sequences: the true one, and others with one to three changed tags."""
    found = [tags]
    while len(found) < 20:
        other = list(tags)
        for place in rng.integers(LENGTH, size=int(rng.integers(1, 4))):
            other[place] = TAGS[int(rng.integers(10))]
        found += [tuple(other)] if tuple(other) not in found else []
    return sorted(found)


def features(words, tags):
    suffixes = [(word[-2:], tag, "ending") for word, tag in zip(words, tags, strict=True)]
    return Counter([*zip(words, tags, strict=True), *pairwise(("", *tags)), *suffixes])


def viterbi(weights, words):
    table = np.array([[weights[a, b] for b in TAGS] for a in TAGS])
    best, back = np.array([weights["", tag] for tag in TAGS]), []
    for i, word in enumerate(words):
        if i:
            totals = best[:, None] + table
            back.append(totals.argmax(axis=0))
            best = totals.max(axis=0)
        best = best + [weights[word, tag] + weights[word[-2:], tag, "ending"] for tag in TAGS]
    path = [int(best.argmax())]
    for before in reversed(back):
        path.append(int(before[path[-1]]))
    return tuple(TAGS[t] for t in reversed(path))


def candidates_of(x):
    return x[1]


def listed_features(x, tags):
    return features(x[0], tags)


def best_listed(weights, x):
    def score(tags):
        return sum(weights[name] * value for name, value in listed_features(x, tags).items())

    return max(x[1], key=score)


def by_hand(X, y, features, decode):
    """The averaged perceptron with dicts, as Collins (2002) and many programs do it."""
    weights, late, mistakes = defaultdict(float), defaultdict(float), 0
    for t, (x, truth) in enumerate(zip(X, y, strict=True), start=1):
        guess = decode(weights, x)
        if guess != truth:
            mistakes += 1
            for tags, sign in ((truth, 1.0), (guess, -1.0)):
                for name, value in features(x, tags).items():
                    weights[name] += sign * value
                    late[name] += sign * value * t
    return {name: weight - late[name] / len(X) for name, weight in weights.items()}, mistakes


if __name__ == "__main__":
    main()
