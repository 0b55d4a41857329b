package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// TestCheckpoints stops workers again and again in the middle of lsi, smooth and
// smooth-labels, each of which is done by others with other memory in the end: the
// bytes equal those of a run without interruption, and little is done twice.
func TestCheckpoints(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"exact":     func(*plan.Options) {},
		"every hop": func(p *plan.Options) { p.Tolerance = 0 },
		"float16":   func(p *plan.Options) { p.Precision = "float16" },
		"little disk, looser labels": func(p *plan.Options) {
			p.DropFeatures, p.Probabilities, p.Labels.Epsilon = true, plan.BestProbability, 0.02
		},
		"fastrp": func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Dimensions, p.Smooth.HopWeights = plan.FastRP, 40, "0,1"+strings.Repeat(",0", 40)+",1,1"
			p.Train.Epochs = 60
		},
		"correct":           func(p *plan.Options) { p.Labels.Rule = plan.CorrectSmooth },
		"correct, a number": func(p *plan.Options) { p.Labels.Rule, p.Labels.CorrectScale = plan.CorrectSmoothByNode, "1" },
		"nafs":              func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops = "nafs", 30 },
		"sign by node":      func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth = "sign", 30, plan.NodeDepth },
	} {
		opts, m := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small)
		opts.LSI.Epsilon, opts.LSI.Kmax, opts.Labels.Kmax = 0.01, 100, 50
		change(&opts)
		plain := storagetest.NewMem()
		// The narrowest blocks below make the most passes.
		var passes int
		narrow := m
		narrow.Resources.BlockColumns = 16
		for _, r := range stagetest.Run(t, plain, opts, narrow, registry.Always()...) {
			passes += r.Passes
		}
		store := storagetest.NewMem()
		tasks := tasksOf(m, opts, registry.Always()...)
		b := newBoss(t, store, tasks...)
		stops, made := 0, 0
		for stops < 50 {
			b.outcomes = nil
			done := len(tasks) - len(b.tasks)
			ctx, cancel := context.WithCancelCause(t.Context())
			saves := 0
			b.onCommit = func(c control.Change) {
				for _, e := range c.Added {
					if e.Kind == catalog.KindCheckpoint {
						if saves++; saves == 2 {
							cancel(errors.New("stop"))
						}
					}
				}
			}
			o := Options{Hello: control.Hello{Worker: "w"}, Resources: m.Resources, Saves: true, Patience: time.Minute}
			o.Resources.BlockColumns = []int{0, 16, 32, 16}[stops%4]
			err := Serve(ctx, b, storage.NewCounting(store), o)
			cancel(nil)
			for _, o := range b.outcomes {
				if o.Report != nil {
					made += o.Report.Passes
					done++
				}
			}
			if err == nil {
				break
			}
			stops++
			b.tasks = tasks[done:]
			b.fencing++
		}
		if stops < 3 || stops == 50 {
			t.Errorf("%s: %d stops", name, stops)
		}
		t.Logf("%s: %d stops; passes of the attempts that ended tasks: %d, %d without stops", name, stops, made, passes)
		if made >= passes {
			t.Errorf("%s: %d passes in the last attempts, %d without stops: nothing was gone on from", name, made, passes)
		}
		stagetest.Compare(t, name, stagetest.Sums(t, store), stagetest.Sums(t, plain))
	}
}
