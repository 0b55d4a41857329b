package evaluate

import (
	"strings"
	"testing"

	"ndls/plan"
	"ndls/stage/models"
)

// TestUnderfitted warns if most models were best near the end of their training, and training
// ended because its epochs did.
func TestUnderfitted(t *testing.T) {
	p := plan.Default()
	p.Train.Epochs = 100
	run := func(epochs, best int) models.Trained {
		return models.Trained{Epochs: epochs, BestEpoch: best, Valid: 0.5}
	}
	for name, c := range map[string]struct {
		runs []models.Trained
		want string
	}{
		"rising":        {[]models.Trained{run(100, 99), run(100, 85), run(100, 20)}, "2 of 3 models were best on the validation nodes in the last 20 % of their 100 epochs"},
		"one":           {[]models.Trained{run(100, 99)}, "the model was best on the validation nodes in the last 20 % of its 100 epochs, so more training may make it better"},
		"half":          {[]models.Trained{run(100, 99), run(100, 20)}, ""},
		"patience":      {[]models.Trained{run(90, 85), run(95, 90)}, ""},
		"no validation": {[]models.Trained{{Epochs: 100, BestEpoch: 100}}, ""},
	} {
		got := strings.Join(underfitted(p, c.runs), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
