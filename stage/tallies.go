package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"ndls/internal/seal"
	"ndls/train"
)

// Tallies count classes by themselves, so they grow with the number of classes, and all of them
// together with that of models. What they take is of the budget.

// tallyText bounds what a tally takes on the heap for each class while it is written or read as
// JSON: 72 bytes of the tally, and texts of 220 and of 440 bytes, in buffers that are half empty.
const tallyText = 1500

// tallyMemory is what so many tallies take, and one more on the heap that is written or read.
func tallyMemory(tallies, classes int) int64 {
	return train.TalliesBytes(tallies, classes) + tallyText*int64(classes)
}

// reserveTally takes memory of the budget for one tally that is written or read, until release is
// called.
func (env *Env) reserveTally() (release func(), err error) {
	bytes := tallyText * int64(len(env.Summary.Classes))
	if err := env.Budget.Reserve(bytes, "right predictions by class"); err != nil {
		return nil, err
	}
	return func() { env.Budget.Release(bytes) }, nil
}

// labelTallyPath is where the tallies of an interval are: how many labels of its nodes each run
// got right after label smoothing.
func labelTallyPath(interval int) string {
	return fmt.Sprintf("predictions/tally-%05d.json", interval)
}

// tallyList writes the tallies of all runs, run by run, as the JSON object {"runs": […]}.
type tallyList struct {
	w    io.Writer
	runs int
}

// add writes the tally of the next run.
func (l *tallyList) add(t train.Tally) error {
	before := ",\n    "
	if l.runs == 0 {
		before = "{\n  \"runs\": [\n    "
	}
	l.runs++
	text, err := json.MarshalIndent(t, "    ", "  ")
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	if _, err := io.WriteString(l.w, before); err != nil {
		return err
	}
	_, err = l.w.Write(text)
	return err
}

// end ends the list, which has a run at least.
func (l *tallyList) end() error {
	_, err := io.WriteString(l.w, "\n  ]\n}\n")
	return err
}

// readLabelTallies visits the tallies of an interval, run by run. There are as many as runs.
func (env *Env) readLabelTallies(ctx context.Context, interval, runs int, visit func(run int, t train.Tally)) error {
	path := labelTallyPath(interval)
	return readFile(ctx, env.Catalog, path, func(r io.Reader) error {
		d, run := json.NewDecoder(r), 0
		for range 3 { // what tallyList writes before the first run
			if _, err := d.Token(); err != nil {
				return noSense(path, err)
			}
		}
		for ; d.More(); run++ {
			var t train.Tally
			if err := d.Decode(&t); err != nil {
				return noSense(path, err)
			}
			if run < runs {
				visit(run, t)
			}
		}
		if run != runs {
			return seal.Corrupt(path, "it has %d runs of %d", run, runs)
		}
		_, err := io.Copy(io.Discard, r) // the checksum is compared at the end
		return err
	})
}
