package stage

// All is the registry of stages, in the order in which a run takes them: a new stage is
// one line.
var All = []Stage{
	partitionStage{},
	degreesStage{},
	lsiStage{},
	spectrumStage{},
	smoothStage{},
	trainStage{},
	predictStage{},
	labelDepthStage{},
	smoothLabelsStage{},
	evaluateStage{},
}
