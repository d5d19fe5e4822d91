"""Make the two files of 20 Newsgroups (by date) from its posts: word counts, and presence of words and word pairs.

python benchmarks/data/news20.py FOLDER --out DATA

FOLDER has the folders 20news-bydate-train and 20news-bydate-test of http://qwone.com/~jason/20Newsgroups
(20news-bydate.tar.gz). Each has a folder for each group, with a file for each post, whose name is a number. Other files
are ignored. It takes about a minute.

A post is decoded as Latin-1 and lower-cased; tokens are runs of two or more word characters. Rows: training part, then
test part, by group, then by number. Columns fall by the number of posts that have them. Ties of words are alphabetical.
Ties of words and pairs keep the order of first appearance, where a post's words precede its pairs.

The known files were made from a copy with tabs instead of line breaks, which gives the same tokens. The digests are
equal if all posts have the tokens of that copy. Copies differ: another one has small edits in 73 posts. The training
part of the original has 130,107 words, as the known file has.

Terms: none stated; public Usenet posts, research use with citation (Lang 1995).
"""

import re
from itertools import pairwise

import numpy as np
from _common import find_files, run

TOKEN = re.compile(r"\b\w\w+\b")
POSITIVE = ("comp.", "misc.", "sci.")  # groups of the class +1; the others are -1


def read_posts(folder):
    """Return part, group, number and tokens of each post in the order of rows."""
    found = find_files(folder, r"20news-bydate-(train|test)/([^/]+)/(\d+)$")
    posts = sorted((match[1] == "test", match[2], int(match[3]), path) for match, path in found)
    return [(*post[:3], TOKEN.findall(post[3].read_text(encoding="latin-1").lower())) for post in posts]


def labels(posts):
    names, y = np.unique([group for _, group, _, _ in posts], return_inverse=True)
    positive = np.array([group.startswith(POSITIVE) for _, group, _, _ in posts])
    test = np.array([part for part, *_ in posts])
    return {
        "y": y.astype(np.int8),
        "target_names": names,
        "y_binary": np.where(positive, 1, -1).astype(np.int8),
        "file_id": np.array([number for _, _, number, _ in posts], dtype=np.int32),
        "train_idx": np.flatnonzero(~test).astype(np.int32),
        "test_idx": np.flatnonzero(test).astype(np.int32),
    }


def count(rows, numbers):
    """Return the CSR parts of counts of features, with columns by falling document frequency; ties keep `numbers`."""
    starts, places, values = [0], [], []
    for row in rows:
        found, times = np.unique([numbers[feature] for feature in row], return_counts=True)
        places.append(found.astype(np.int64))
        values.append(times)
        starts.append(starts[-1] + len(found))
    frequency = np.bincount(np.concatenate(places), minlength=len(numbers))
    order = np.argsort(-frequency, kind="stable")
    new_place = np.empty(len(order), dtype=np.int32)
    new_place[order] = np.arange(len(order))
    sorting = [np.argsort(new_place[found]) for found in places]
    return {
        "X_data": np.concatenate([times[k] for times, k in zip(values, sorting, strict=True)]).astype(np.uint16),
        "X_indices": np.concatenate([new_place[found][k] for found, k in zip(places, sorting, strict=True)]),
        "X_indptr": np.array(starts, dtype=np.int32),
        "X_shape": np.array([len(starts) - 1, len(numbers)], dtype=np.int64),
    }, order


def words_and_pairs(tokens):
    return tokens + [f"{first} {second}" for first, second in pairwise(tokens)]


def build(folder):
    posts = read_posts(folder)
    texts = [tokens for *_, tokens in posts]
    words = sorted({token for tokens in texts for token in tokens})
    counts, order = count(texts, {word: k for k, word in enumerate(words)})
    vocabulary = "\n".join(words[k] for k in order).encode()
    numbers = {}
    for tokens in texts:
        for feature in words_and_pairs(tokens):
            numbers.setdefault(feature, len(numbers))
    presence, _ = count(map(words_and_pairs, texts), numbers)
    del presence["X_data"]  # presence: all ones
    made = labels(posts)
    return {
        "news20_bydate_unigram_counts.npz": counts
        | {"vocabulary_utf8": np.frombuffer(vocabulary, dtype=np.uint8)}
        | made,
        "news20_bydate_binary_1_2gram.npz": presence | made,
    }


if __name__ == "__main__":
    raise SystemExit(run(__doc__, build, {"folder": "folder with 20news-bydate-train and 20news-bydate-test"}))
