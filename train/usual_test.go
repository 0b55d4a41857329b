package train

// usual returns the options that a run has unless it is told others, with seed 0.
func usual() Options {
	return Options{
		Hidden: 64, Layers: 2, Dropout: 0.4, InputDropout: 0.4, LR: 0.01, WeightDecay: 5e-4, Schedule: Constant,
		Epochs: 500, Patience: 200, BatchSize: 4096, Runs: 10,
	}
}
