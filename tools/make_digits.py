"""Write examples/digits.csv.gz: which of 50 classifiers read which of 800 handwritten digits.

The images are those that scikit-learn ships (`sklearn.datasets.load_digits`): 1,797 images of 8 x 8 pixels, a
copy of the test set of the UCI ML hand-written digits data by E. Alpaydin and C. Kaynak. The classifiers
learn from the first 200 images only, and are tested on the last 800. An item is the
number of an image in the data set, from 0. A score is 1 if the classifier names the right digit, else 0.

scikit-learn is in the environment of `make test-hosts`, with an exact version:

    .venv-hosts/bin/python -m tools.make_digits    less than a minute

Other versions of scikit-learn, and other processors, may give a slightly different table.
"""

import csv
import gzip
import io
import warnings
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid, NeighborhoodComponentsAnalysis
from sklearn.neural_network import BernoulliRBM, MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

TARGET = Path(__file__).parent.parent / "examples" / "digits.csv.gz"
N_LEARNED, N_TESTED = 200, 800
SEED = {"random_state": 0}


def classifiers() -> dict[str, Any]:
    """Return all classifiers, by their names."""
    tree, knn, svm = DecisionTreeClassifier, KNeighborsClassifier, SVC
    return {
        "adaboost-50-stumps": AdaBoostClassifier(tree(max_depth=1), **SEED),
        "adaboost-50-trees-depth-4": AdaBoostClassifier(tree(max_depth=4), **SEED),
        "bagging-50-trees": BaggingClassifier(tree(), n_estimators=50, **SEED),
        "extra-trees-10": ExtraTreesClassifier(10, **SEED),
        "extra-trees-100": ExtraTreesClassifier(100, **SEED),
        "extra-trees-500": ExtraTreesClassifier(500, **SEED),
        "forest-10": RandomForestClassifier(10, **SEED),
        "forest-100": RandomForestClassifier(100, **SEED),
        "forest-500": RandomForestClassifier(500, **SEED),
        "gaussian-process-rbf-1": GaussianProcessClassifier(RBF(1.0), optimizer=None),
        "gaussian-process-rbf-2": GaussianProcessClassifier(RBF(2.0), optimizer=None),
        "gradient-boosting-50": GradientBoostingClassifier(n_estimators=50, **SEED),
        "hist-gradient-boosting": HistGradientBoostingClassifier(**SEED),
        "knn-1": knn(1),
        "knn-3": knn(3),
        "knn-5": knn(5),
        "knn-5-manhattan": knn(5, p=1),
        "knn-15": knn(15),
        "knn-50": knn(50),
        "lda": LinearDiscriminantAnalysis(),
        "lda-shrinkage": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "logistic-C0.01": LogisticRegression(C=0.01, max_iter=2000),
        "logistic-C1": LogisticRegression(C=1.0, max_iter=2000),
        "logistic-C100": LogisticRegression(C=100.0, max_iter=2000),
        "mlp-8": MLPClassifier((8,), max_iter=1000, **SEED),
        "mlp-32": MLPClassifier((32,), max_iter=1000, **SEED),
        "mlp-128": MLPClassifier((128,), max_iter=1000, **SEED),
        "mlp-64-64": MLPClassifier((64, 64), max_iter=1000, **SEED),
        "naive-bayes-bernoulli": BernoulliNB(binarize=0.5),
        "naive-bayes-complement": ComplementNB(),
        "naive-bayes-gaussian": GaussianNB(),
        "naive-bayes-multinomial": MultinomialNB(),
        "nca-knn-5": make_pipeline(NeighborhoodComponentsAnalysis(16, **SEED), knn(5)),
        "nearest-centroid": NearestCentroid(),
        "nystroem-linear-svm": make_pipeline(Nystroem(gamma=0.2, **SEED), LinearSVC(**SEED)),
        "pca-2-knn-5": make_pipeline(PCA(2, **SEED), knn(5)),
        "pca-16-knn-5": make_pipeline(PCA(16, **SEED), knn(5)),
        "pca-16-qda": make_pipeline(PCA(16, **SEED), QuadraticDiscriminantAnalysis(reg_param=0.1)),
        "perceptron": Perceptron(**SEED),
        "rbm-100-logistic": make_pipeline(
            BernoulliRBM(100, learning_rate=0.06, **SEED), LogisticRegression(max_iter=2000)
        ),
        "ridge": RidgeClassifier(),
        "sgd-hinge": SGDClassifier(**SEED),
        "svm-linear": svm(kernel="linear"),
        "svm-poly-2": svm(kernel="poly", degree=2),
        "svm-poly-3": svm(kernel="poly", degree=3),
        "svm-rbf-C0.1": svm(C=0.1),
        "svm-rbf-C1": svm(C=1.0),
        "svm-rbf-C10": svm(C=10.0),
        "tree": tree(**SEED),
        "tree-depth-5": tree(max_depth=5, **SEED),
    }


def table() -> str:
    """Train and test all classifiers, and return the table as CSV."""
    warnings.simplefilter("ignore")  # some would go on learning
    images, digits = load_digits(return_X_y=True)
    images = images / 16  # the largest value of a pixel
    scores = {
        name: classifier.fit(images[:N_LEARNED], digits[:N_LEARNED]).predict(images[-N_TESTED:])
        == digits[-N_TESTED:]
        for name, classifier in classifiers().items()
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", *scores])
    for item, *row in zip(range(len(images))[-N_TESTED:], *scores.values(), strict=True):
        writer.writerow([item, *map(int, row)])
    return text.getvalue()


def main() -> None:
    """Write the file."""
    TARGET.write_bytes(gzip.compress(table().encode(), mtime=0))


if __name__ == "__main__":
    main()
