"""He's thesis on stochastic functional descent, section 5.1.

paper         all experiments of the thesis
parameters    what the sample size and the schedule do
runs          its units of work
claims        what it claims
tables        its tables
"""
