"""The papers, with the addresses of those that have a lasting one."""

from __future__ import annotations

import re

_PAPERS = {
    r"Langford, Li and Zhang": "Langford, Li and Zhang, *Sparse Online Learning via Truncated Gradient*, "
    "NIPS 2008; longer in [JMLR 10 (2009), pages 777 to 801](https://www.jmlr.org/papers/v10/langford09a.html)",
    r"Oiwa, Matsushima and Nakagawa": "Oiwa, Matsushima and Nakagawa, *Frequency-aware Truncated Methods for "
    "Sparse Online Learning*, ECML PKDD 2011",
    r"Singer \(MLSS 2012\)|Singer, .*\(MLSS 2012\)": "Singer, *Efficient Algorithms for Learning Sparse "
    "Models from High Dimensional Data*, lecture at the Machine Learning Summer School (MLSS) 2012",
    r"Duchi, Shalev-Shwartz, Singer and Chandra": "Duchi, Shalev-Shwartz, Singer and Chandra, *Efficient "
    "Projections onto the l1-Ball for Learning in High Dimensions*, ICML 2008",
    r"Duchi and Singer \(JMLR 2009\)": "Duchi and Singer, *Efficient Online and Batch Learning Using "
    "Forward Backward Splitting*, [JMLR 10 (2009), pages 2899 to 2934](https://www.jmlr.org/papers/v10/duchi09a.html)",
    r"\*Boosting with structural sparsity\*": "Duchi and Singer, *Boosting with Structural Sparsity*, "
    "ICML 2009",
    r"Duchi, Hazan and Singer": "Duchi, Hazan and Singer, *Adaptive Subgradient Methods for Online Learning "
    "and Stochastic Optimization*, [JMLR 12 (2011), pages 2121 to 2159]"
    "(https://www.jmlr.org/papers/v12/duchi11a.html)",
    r"Reid, ": "Reid, *Stochastic Gradient Descent in Clojure*, article on his website, 2009",
    r"Bottou, ": "Bottou, *sgd*, version 2.0, program with its README, 2011",
    r"Daumé, ": "Daumé, *A Course in Machine Learning*, book, 2012",
    r"Weinberger et al\.": "Weinberger, Dasgupta, Langford, Smola and Attenberg, *Feature Hashing for Large "
    "Scale Multitask Learning*, ICML 2009; [arXiv:0902.2206](https://arxiv.org/abs/0902.2206)",
}
"""what the source of a page says, and the paper in full"""


def cited(source: str) -> list[str]:
    """The papers that the source of a page names: authors, title, where and when."""
    return [paper for named, paper in _PAPERS.items() if re.search(named, source)]
