package registry

import (
	"errors"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/seal"
	"ndls/stage"
)

// Verb returns the command that executes s.
func Verb(s control.Stage) string {
	switch s {
	case control.Predict:
		return string(control.Train)
	case control.LabelDepth:
		return string(control.SmoothLabels)
	}
	return string(s)
}

// explained marks an error whose message says already how to make its file again.
type explained struct{ error }

func (e *explained) Unwrap() error { return e.error }

// Explain adds to an error about a damaged file of a run directory the stage that wrote the file and the commands that make it again. It
// returns other errors unchanged.
func Explain(err error, cat *catalog.Catalog) error {
	var (
		damage *seal.Damage
		done   *explained
	)
	if !errors.As(err, &damage) || errors.As(err, &done) {
		return err
	}
	i := slices.IndexFunc(cat.All(), func(e catalog.Entry) bool { return e.Path == damage.Name })
	if i < 0 {
		return err
	}
	e := cat.All()[i]
	return &explained{failure.As(err, fmt.Errorf("%w; %s", err, remedy(cat, e)))}
}

// remedy says which stage wrote a file and how to make it again.
func remedy(cat *catalog.Catalog, e catalog.Entry) string {
	by, run := control.Stage(e.Stage), cat.Store().URI()
	again := "ndls " + Verb(by)
	switch {
	case (e.Kind == catalog.KindHops || e.Kind == catalog.KindReversedHops) && stage.HasShards(cat):
		return "remove it and repeat the command, which makes it again from the edge shard"
	case by == control.Partition:
		again += " --dataset URI"
	}
	return fmt.Sprintf("%s wrote it: %s --run %s --resume=false makes it again, and ndls run --run %s what follows; ndls verify --run %s finds other damage",
		by, again, run, run, run)
}
