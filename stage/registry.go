package stage

// All lists the stages in the order of a run; a new stage is one line.
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
