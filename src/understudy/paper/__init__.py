"""The paper's experiments, done again: every figure and every number, ours beside the paper's (section 5).

Singh, Chopin and Whiteley, Bayesian learning of noisy Markov decision processes. `understudy reproduce` is the door.
"""
