"""The default sampler: a cycle of Hamiltonian, data-augmentation and independence moves."""
