package models

import (
	"testing"

	"ndls/internal/control"
	"ndls/train"
)

// TestCurve keeps few of many epochs, the last among them.
func TestCurve(t *testing.T) {
	for _, epochs := range []int{1, 99, 100, 101, 1234} {
		h := train.History{Epochs: make([]train.Epoch, epochs)}
		for i := range h.Epochs {
			h.Epochs[i] = train.Epoch{TrainLoss: float64(i), ValidAccuracy: []float64{0.5, 0.25}[i%2]}
		}
		got := curve(h, train.Classify)
		if last := got[len(got)-1]; len(got) > drawnEpochs || last != (control.LearningPoint{Epoch: epochs, Loss: float64(epochs - 1), Valid: 0.5}) {
			t.Errorf("%d epochs: %d points, the last %+v", epochs, len(got), last)
		}
	}
}
