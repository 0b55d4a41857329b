package features_test

import (
	"maps"
	"math"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/half"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// With --smoothed-precision float16 smoothed rows and kept hops equal those of float32, each value of
// a feature rounded once, whatever rows between hops are. K is the same. Without the option, rows are written
// as they are between hops.
func TestSmoothedPrecision(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"ndls":                   func(*plan.Options) {},
		"hops and label columns": func(p *plan.Options) { p.Smooth.KeepHops, p.Smooth.LabelColumns = "1,3", 2 },
		"sign":                   func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops = "sign", 2 },
	} {
		for _, precision := range []string{"float32", "float16"} {
			t.Run(name+", hops of "+precision, func(t *testing.T) {
				t.Parallel()
				written := func(smoothed string) storage.Store {
					opts, store := stagetest.SmallPlan(), storagetest.NewMem()
					change(&opts)
					opts.Precision, opts.Smooth.SmoothedPrecision = precision, smoothed
					stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), control.Partition, control.LSI, control.Smooth)
					return store
				}
				full, halves, same := written("float32"), written("float16"), written("")
				const features, width = 40, 44 // columns of small, and with those of its classes
				labels, values := strings.Contains(name, "label columns"), 0
				for _, kind := range []string{catalog.KindSmoothed, catalog.KindKeptHops} {
					want, got := stagetest.Rows(t, full, kind), stagetest.Rows(t, halves, kind)
					if len(got) != len(want) {
						t.Fatalf("%s: %d rows, want %d", kind, len(got), len(want))
					}
					for id, row := range want {
						for c, x := range row {
							values++
							// Values of label columns are put together of several, which are rounded.
							rounded, off := half.Float(half.FromFloat(x)), 0.0
							if labels && c%width >= features {
								off = math.Abs(float64(x))/256 + 1e-6
							}
							if d := math.Abs(float64(got[id][c] - rounded)); !(d <= off) {
								t.Fatalf("%s: node %d column %d is %v, %v rounded is %v", kind, id, c, got[id][c], x, rounded)
							}
						}
					}
				}
				if values == 0 {
					t.Error("nothing was compared")
				}
				alike := map[string]storage.Store{"float32": full, "float16": halves}[precision]
				stagetest.Compare(t, "without the option", stagetest.Sums(t, same), stagetest.Sums(t, alike))
				ofSmoothing := func(path, _ string) bool {
					return strings.HasPrefix(path, "smoothed/") || strings.HasPrefix(path, "hops/")
				}
				want, got := stagetest.Sums(t, full), stagetest.Sums(t, halves)
				maps.DeleteFunc(want, ofSmoothing)
				maps.DeleteFunc(got, ofSmoothing)
				stagetest.Compare(t, "before smoothing", got, want)
			})
		}
	}
}
