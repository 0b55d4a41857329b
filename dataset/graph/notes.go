package graph

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

func NoteOf(where, format string, args ...any) Note {
	return Note{Text: where + ": " + fmt.Sprintf(format, args...)}
}

func WarningOf(where, format string, args ...any) Note {
	return Note{Text: where + ": " + fmt.Sprintf(format, args...), Ignored: true}
}

// Unread is a note about the arrays of an archive that are not looked at. An array
// of weights is a warning.
func Unread(name string, arrays []string) Note {
	if len(arrays) == 0 {
		return Note{}
	}
	n := NoteOf(name, "%s not read", Count(arrays, "array"))
	n.Ignored = slices.ContainsFunc(arrays, func(a string) bool { return strings.Contains(strings.ToLower(a), "weight") })
	return n
}

// Count names a few things: "array a is", "arrays a and b are".
func Count(names []string, what string) string {
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
