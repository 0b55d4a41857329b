package measures

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/seal"
	"ndls/stage"
	"ndls/train"
)

// TallyBytes estimates the size of the tallies: the labels that each model got right, by class, split and interval.
func TallyBytes(s *estimate.Sheet) int64 {
	const class = 240 // in a file, as text
	files := (s.Nodes-1)/s.Interval(s.Nodes) + 1
	return files * int64(stage.LabelRuns(s.Plan)) * int64(s.Classes) * class
}

// Tallies count each class, so their size grows with the number of classes and of models. Their memory belongs to the budget
// ([train.Tallies]). They are written and read one class at a time.

// TallyPath returns the path of the tallies of an interval, which count the labels that each run got right.
func TallyPath(interval int) string { return fmt.Sprintf("model/tally-%05d.json", interval) }

// LabelTallyPath returns the path of the tallies after label smoothing.
func LabelTallyPath(interval int) string {
	return fmt.Sprintf("predictions/tally-%05d.json", interval)
}

// tallyList writes the tallies of all runs, run by run, as the JSON object {"runs": […]}.
type tallyList struct {
	w    io.Writer
	runs int
}

// add writes the tally of the next run, with its breakdown unless that is nil, and its loss unless that is 0.
func (l *tallyList) add(t *train.Tally, b *Breakdown, loss float64) error {
	before := ",\n    "
	if l.runs == 0 {
		before = "{\n  \"runs\": [\n    "
	}
	l.runs++
	if _, err := io.WriteString(l.w, before); err != nil {
		return err
	}
	return writeTally(l.w, t, b, loss, "    ")
}

// end ends the list, which has at least one run.
func (l *tallyList) end() error {
	_, err := io.WriteString(l.w, "\n  ]\n}\n")
	return err
}

// WriteTallies adds a file of tallies to a batch. more returns the breakdown of a tally, or nil, and its loss, or 0.
func WriteTallies(ctx context.Context, files *catalog.Batch, e catalog.Entry, tallies []train.Tally,
	more func(i int) (*Breakdown, float64),
) error {
	return files.Write(ctx, e.Counting(1), func(f *catalog.File) error {
		list := tallyList{w: f}
		for i := range tallies {
			b, loss := more(i)
			if err := list.add(&tallies[i], b, loss); err != nil {
				return err
			}
		}
		return list.end()
	})
}

// writeTally writes a tally as json.MarshalIndent does with this prefix, one class at a time. On lines of their own follow the breakdown,
// unless it is nil, and the sum of the losses of validation nodes, unless it is 0.
func writeTally(w io.Writer, t *train.Tally, b *Breakdown, loss float64, prefix string) error {
	out := bufio.NewWriter(w)
	field, split, class := prefix+"  ", prefix+"    ", prefix+"      "
	text := func(prefix string, v any) {
		b, _ := json.MarshalIndent(v, prefix, "  ") // numbers alone
		_, _ = out.Write(b)                         // Flush returns the error
	}
	put := func(parts ...string) {
		for _, x := range parts {
			_, _ = out.WriteString(x)
		}
	}
	put("{\n", field, `"right": `)
	text(field, t.Right)
	put(",\n", field, `"rows": `)
	text(field, t.Rows)
	put(",\n", field, `"classes": `)
	before := "["
	for _, classes := range t.Classes {
		put(before, "\n", split)
		before = ","
		if len(classes) == 0 {
			text(split, classes)
			continue
		}
		first := "["
		for _, c := range classes {
			put(first, "\n", class)
			first = ","
			text(class, c)
		}
		put("\n", split, "]")
	}
	put("\n", field, "]")
	if b != nil {
		put(",\n", field, `"breakdown": `)
		line, _ := json.Marshal(b) // numbers alone
		_, _ = out.Write(line)
	}
	if loss != 0 {
		put(",\n", field, `"valid_loss": `)
		text(field, loss)
	}
	put("\n", prefix, "}")
	return out.Flush()
}

// readTally reads what writeTally wrote, with at most this number of classes, and adds the breakdown to sum, unless sum is nil. It returns
// the loss.
func readTally(d *json.Decoder, classes int, t *train.Tally, sum *Breakdown) (loss float64, err error) {
	t.Reset()
	if err := next(d, json.Delim('{')); err != nil {
		return 0, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return 0, err
		}
		switch name {
		case "right":
			err = d.Decode(&t.Right)
		case "rows":
			err = d.Decode(&t.Rows)
		case "classes":
			err = readClasses(d, classes, t)
		case "breakdown":
			err = readBreakdown(d, sum)
		case "valid_loss":
			err = d.Decode(&loss)
		default:
			err = fmt.Errorf("a tally has no field %v", name)
		}
		if err != nil {
			return 0, err
		}
	}
	return loss, next(d, json.Delim('}'))
}

// readClasses reads the counts by class, split by split.
func readClasses(d *json.Decoder, classes int, t *train.Tally) error {
	if err := next(d, json.Delim('[')); err != nil {
		return err
	}
	for split := 0; d.More(); split++ {
		token, err := d.Token()
		switch {
		case err != nil:
			return err
		case token == nil: // the split has no rows
			continue
		case token != json.Delim('[') || split == len(t.Classes):
			return fmt.Errorf("got %v in place of the classes of split %d", token, split)
		}
		for class := 0; d.More(); class++ {
			if class == classes {
				return fmt.Errorf("more than %d classes", classes)
			}
			if err := d.Decode(t.Class(split, class)); err != nil {
				return err
			}
		}
		if err := next(d, json.Delim(']')); err != nil {
			return err
		}
	}
	return next(d, json.Delim(']'))
}

// next reads a token and checks that it is want.
func next(d *json.Decoder, want json.Token) error {
	token, err := d.Token()
	if err == nil && token != want {
		err = fmt.Errorf("got %v, want %v", token, want)
	}
	return err
}

// readTallies visits the first most tallies of a file, run by run; each is in t during the call. It adds breakdowns to sum and returns the
// number of tallies.
func readTallies(ctx context.Context, env *stage.Env, path string, most int, t *train.Tally, sum *Breakdown,
	visit func(run int, loss float64),
) (run int, err error) {
	err = stage.ReadFile(ctx, env.Catalog, path, func(r io.Reader) error {
		d := json.NewDecoder(r)
		for range 3 { // written by tallyList before the first run
			if _, err := d.Token(); err != nil {
				return stage.NoSense(path, err)
			}
		}
		for ; d.More(); run++ {
			loss, err := readTally(d, len(env.Summary.Classes), t, sum)
			if err != nil {
				return stage.NoSense(path, err)
			}
			if run < most {
				visit(run, loss)
			}
		}
		_, err := io.Copy(io.Discard, r) // the checksum is checked at the end
		return err
	})
	return run, err
}

// Candidate holds the measures, on the validation nodes, of a set that may be written.
type Candidate struct {
	Valid float64 `json:"valid"`
	// Loss is the mean negative log-likelihood, or 0 if only best classes are stored.
	Loss float64 `json:"loss"`
}

// Better reports whether a is preferred to b, which comes before it.
func (a Candidate) Better(b Candidate) bool {
	return a.Valid > b.Valid || a.Valid == b.Valid && a.Loss < b.Loss
}

// tallySums holds the sums of the tallies of all intervals, and of the losses of validation nodes.
type tallySums struct {
	*train.Tallies
	Losses []float64
	// Sets is the number of sets in the files.
	Sets      int
	Breakdown Breakdown
}

// SumTallies adds up the tallies of all intervals. Each file has this number of sets, or one fewer. Losses are added in order of interval.
func SumTallies(ctx context.Context, env *stage.Env, kind string, sets int) (t *tallySums, err error) {
	t = &tallySums{Losses: make([]float64, sets), Sets: sets}
	if t.Tallies, err = train.NewTallies(env.Budget, sets, len(env.Summary.Classes)); err != nil {
		return nil, err
	}
	one, err := train.NewTallies(env.Budget, 1, len(env.Summary.Classes))
	if err != nil {
		t.Free()
		return nil, err
	}
	defer one.Free()
	for _, e := range env.Catalog.Entries(kind) {
		if e.Interval == catalog.NotApplicable {
			t.Free()
			return nil, fmt.Errorf("%s counts all rows at once, as earlier versions did; run `ndls predict --resume=false` first: %w", e.Path, seal.ErrVersion)
		}
		n, err := readTallies(ctx, env, e.Path, sets, &one.Of[0], &t.Breakdown, func(set int, loss float64) {
			t.Of[set].Merge(one.Of[0])
			t.Losses[set] += loss
		})
		if err == nil && n != sets && n != stage.LabelRuns(env.Plan) {
			err = seal.Corrupt(e.Path, "it has %d models of %d", n, sets)
		}
		if err != nil {
			t.Free()
			return nil, err
		}
		t.Sets = min(t.Sets, n)
	}
	return t, nil
}
