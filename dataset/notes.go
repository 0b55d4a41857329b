package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Note is a sentence about how a file was read, for the log of an import.
type Note struct {
	Text string
	// Ignored says that data was left out which the user may have meant to count,
	// such as edge weights: a warning.
	Ignored bool
}

// Notes says what was read as what, and what was left out, where a file leaves a
// choice. It is complete once ds is open.
func Notes(ds Dataset) []Note {
	if d, ok := ds.(interface{ said() []Note }); ok {
		return d.said()
	}
	return nil
}

func (fs *files) said() []Note { return fs.notes }

// note adds notes; those without text are none.
func (fs *files) note(notes ...Note) {
	for _, n := range notes {
		if n.Text != "" {
			fs.notes = append(fs.notes, n)
		}
	}
}

func noteOf(where, format string, args ...any) Note {
	return Note{Text: where + ": " + fmt.Sprintf(format, args...)}
}

func warningOf(where, format string, args ...any) Note {
	return Note{Text: where + ": " + fmt.Sprintf(format, args...), Ignored: true}
}

// unread is a note about the arrays of an archive that are not looked at. An array
// of weights is a warning.
func unread(name string, arrays []string) Note {
	if len(arrays) == 0 {
		return Note{}
	}
	n := noteOf(name, "%s not read", count(arrays, "array"))
	n.Ignored = slices.ContainsFunc(arrays, func(a string) bool { return strings.Contains(strings.ToLower(a), "weight") })
	return n
}

// count names a few things: "array a is", "arrays a and b are".
func count(names []string, what string) string {
	const most = 8
	shown := names[:min(len(names), most)]
	quoted := make([]string, len(shown))
	for i, name := range shown {
		quoted[i] = strconv.Quote(name)
	}
	switch more := len(names) - len(shown); {
	case more > 0:
		return fmt.Sprintf("%ss %s and %d more are", what, strings.Join(quoted, ", "), more)
	case len(names) == 1:
		return what + " " + quoted[0] + " is"
	}
	last := len(quoted) - 1
	return what + "s " + strings.Join(quoted[:last], ", ") + " and " + quoted[last] + " are"
}
