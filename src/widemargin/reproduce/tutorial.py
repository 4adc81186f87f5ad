EXPERIMENTS: tuple = ()
