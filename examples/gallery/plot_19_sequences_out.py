"""
Predict sequences of tags
=========================

There are 5¹² sequences of tags for twelve words. `RankingPerceptron` scores a sentence and its tags together: features
count words with their tags, and tags with the tags before them (Collins 2002). Viterbi's algorithm finds the best
sequence. So the neighbors decide where a word alone is ambiguous.
"""

# %%
# Sentences of ambiguous words
# ----------------------------
# Tags follow each other by a random table. Each tag has 40 of 100 words, so that most words have several tags.
from collections import Counter
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from consilience import RankingPerceptron

TAGS, rng = ["noun", "verb", "name", "link", "mark"], np.random.default_rng(0)
following, vocabulary = rng.dirichlet(np.full(5, 0.2), size=5), [rng.permutation(100)[:40] for _ in TAGS]
tags = np.zeros((900, 12), dtype=int)
for i in range(1, 12):
    tags[:, i] = [rng.choice(5, p=following[tag]) for tag in tags[:, i - 1]]
X, y = np.array([[f"w{rng.choice(vocabulary[t])}" for t in own] for own in tags]), np.array(TAGS)[tags]


def features(words, tags):
    return Counter([*zip(words, tags, strict=True), *pairwise(tags)])


def viterbi(weights, words):
    best, back = np.zeros(len(TAGS)), []  # of the sequences up to a word, by their last tag
    table = np.array([[weights[a, b] for b in TAGS] for a in TAGS])
    for word in words:
        totals = best[:, None] + table * bool(back)
        back.append(totals.argmax(axis=0))
        best = totals.max(axis=0) + [weights[word, tag] for tag in TAGS]
    path = [best.argmax()]
    for before in reversed(back[1:]):
        path.append(before[path[-1]])
    return [TAGS[t] for t in reversed(path)]


# %%
# Words alone, and sequences
# --------------------------
# The same perceptron tags each word by itself if a sample is a word. Ten passes; the last 500 sentences are the test.
sizes, shares = [25, 50, 100, 200, 400], {"each word alone": [], "sequences, final": [], "sequences, averaged": []}
for n in sizes:
    alone = RankingPerceptron(lambda word, tag: {(word, tag): 1.0}, average=True, random_state=0)
    found = [alone.fit(X[:n].ravel(), y[:n].ravel()).predict(X[400:].ravel()).reshape(500, 12)]
    for average in (False, True):
        model = RankingPerceptron(features, decode=viterbi, average=average, random_state=0).fit(X[:n], y[:n])
        found.append(np.array(model.predict(X[400:]).tolist()))
    for name, predicted in zip(shares, found, strict=True):
        shares[name].append(100 * np.mean(predicted == y[400:]))
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, line in zip(shares, ("s:", "^--", "o-"), strict=True):
    axis.plot(np.log2(sizes), shares[name], line, color="#b35900" if "alone" in name else "black", label=name)
axis.set_xticks(np.log2(sizes), sizes)
axis.set(xlabel="training sentences", ylabel="correct tags (%)", title="Neighbors decide ambiguous words")
axis.grid(color="0.9")
axis.legend()
plt.show()
