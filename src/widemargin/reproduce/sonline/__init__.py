"""Wu, Yuan, Liu, Zheng 2009: SOnline beside LaRank.

paper    Table 2 and Fig. 4
runs     its units of work
"""
