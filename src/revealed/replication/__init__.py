"""The paper's experiments, done again: every figure and number, ours beside the paper's.

Singh, Chopin and Whiteley (2013), Bayesian learning of noisy Markov decision processes, section 5.
`revealed reproduce` runs them.
"""
