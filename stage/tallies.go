package stage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"ndls/train"
)

// Tallies count each class, so their size grows with the number of classes and of models. Their memory belongs to the budget
// ([train.Tallies]). They are written and read one class at a time.

// tallyPath returns the path of the tallies of an interval, which count the labels that each run got right.
func tallyPath(interval int) string { return fmt.Sprintf("model/tally-%05d.json", interval) }

// labelTallyPath returns the path of the tallies after label smoothing.
func labelTallyPath(interval int) string {
	return fmt.Sprintf("predictions/tally-%05d.json", interval)
}

// tallyList writes the tallies of all runs, run by run, as the JSON object {"runs": […]}.
type tallyList struct {
	w    io.Writer
	runs int
}

// add writes the tally of the next run, with its breakdown unless that is nil, and its loss unless that is 0.
func (l *tallyList) add(t *train.Tally, b *breakdown, loss float64) error {
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

// writeTally writes a tally as json.MarshalIndent does with this prefix, one class at a time. On lines of their own follow the breakdown,
// unless it is nil, and the sum of the losses of validation nodes, unless it is 0.
func writeTally(w io.Writer, t *train.Tally, b *breakdown, loss float64, prefix string) error {
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
func readTally(d *json.Decoder, classes int, t *train.Tally, sum *breakdown) (loss float64, err error) {
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
func (env *Env) readTallies(ctx context.Context, path string, most int, t *train.Tally, sum *breakdown,
	visit func(run int, loss float64),
) (run int, err error) {
	err = readFile(ctx, env.Catalog, path, func(r io.Reader) error {
		d := json.NewDecoder(r)
		for range 3 { // written by tallyList before the first run
			if _, err := d.Token(); err != nil {
				return noSense(path, err)
			}
		}
		for ; d.More(); run++ {
			loss, err := readTally(d, len(env.Summary.Classes), t, sum)
			if err != nil {
				return noSense(path, err)
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
