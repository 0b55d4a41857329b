package table

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"ndls/dataset/graph"
)

// doubts counts ids that may be none: words that programs write for a missing value, and the names of the columns of
// ids in files of text, the first line of which may be a row. It is for ids that are text.
type doubts struct {
	first   [256]bool // first bytes of the words
	longest int
	words   map[string]*doubt
}

type doubt struct {
	n     atomic.Int64
	title string // the file in which the word is the name of a column, "" for a missing value
}

// newDoubts lists the words for the columns of ids.
func newDoubts(columns []idColumn, missing func(word []byte) bool) *doubts {
	d := &doubts{words: map[string]*doubt{}}
	add := func(word, title string) {
		if word == "" || d.words[word] != nil {
			return
		}
		d.words[word] = &doubt{title: title}
		d.first[word[0]] = true
		d.longest = max(d.longest, len(word))
	}
	for _, word := range graph.MissingWords() {
		if !missing([]byte(word)) {
			add(word, "")
		}
	}
	for _, c := range columns {
		for _, f := range c.t.files {
			if text, ok := f.rows.(*csvFile); ok && text.headed {
				if at := find(text.titles(), c.name); at >= 0 {
					add(text.header[at], f.name)
				}
			}
		}
	}
	return d
}

// see counts a key.
func (d *doubts) see(key []byte) {
	if len(key) > d.longest || !d.first[key[0]] {
		return
	}
	if w := d.words[string(key)]; w != nil {
		w.n.Add(1)
	}
}

// list says what was found.
func (d *doubts) list() (found []string) {
	for _, word := range slices.Sorted(maps.Keys(d.words)) {
		w := d.words[word]
		switch n := w.n.Load(); {
		case n == 0:
		case w.title != "":
			found = append(found, fmt.Sprintf("%q is the name of a column of %s, and an id as well: if the first line of the file is a row, write header=false in the URI", word, filepath.Base(w.title)))
		default:
			found = append(found, fmt.Sprintf("%s %q, one node: if it stands for a missing value, missing=%s in the URI refuses such rows, and names the first one", ids(n), word, strings.ReplaceAll(graph.EscapePath(word), ",", "%2C")))
		}
	}
	return found
}

func ids(n int64) string {
	if n == 1 {
		return "1 id is"
	}
	return fmt.Sprintf("%d ids are", n)
}
