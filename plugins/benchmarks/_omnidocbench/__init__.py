"""OmniDocBench as its evaluator (end-to-end task, `quick_match`) measures: ground truth, predictions cut into blocks,
their matching, and the scores of one page.

The rules are those of github.com/opendatalab/OmniDocBench at v1.5 (December 2025), oddities included where they decide
a score: a benchmark is what its evaluator says. The one thing left out is its time limit: a page that takes the
official evaluator more than 30 s is matched more simply there, so its scores depend on the machine.
"""
