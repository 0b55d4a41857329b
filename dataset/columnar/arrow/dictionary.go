package arrow

import (
	"fmt"

	"ndls/dataset/columnar"
)

// maxDictionary bounds the values of a dictionary, which are held in memory.
const maxDictionary = 4 << 20

// load reads the values of a dictionary: those of the last batch that replaces it, and of the
// batches that add to it. Of a stream those count that come before a record batch.
func (f *File) load(n *node, dictionaries int) (*columnar.Values, error) {
	if !f.isStream {
		dictionaries = len(f.dictionaries)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if l, ok := f.loaded[n.dictionary]; ok && l.of == dictionaries {
		return l.values, nil
	}
	var parts []block
	for i, b := range f.dictionaries[:dictionaries] {
		if f.ids[i] != n.dictionary {
			continue
		}
		t, err := f.message(b, dictionaryMessage)
		if err != nil {
			return nil, err
		}
		if t.i8(2) == 0 { // it is no addition
			parts = nil
		}
		parts = append(parts, b)
	}
	v := &columnar.Values{}
	total := int64(0)
	for _, b := range parts {
		t, err := f.message(b, dictionaryMessage)
		if err != nil {
			return nil, err
		}
		inner, ok := t.inner(1)
		if !ok {
			return nil, errMessage
		}
		l, err := lay(inner, b, f.version)
		if err != nil {
			return nil, err
		}
		p := l.place(n, true)
		if inner.of.bad {
			return nil, errLayout
		}
		if total += p.rows; total > maxDictionary {
			return nil, fmt.Errorf("a dictionary has more than %d values: write the column without one", maxDictionary)
		}
		r := &reader{f: f, opener: &opener{f: f, codec: l.codec}}
		if _, err := r.opener.prepare([]*placed{p}); err != nil {
			return nil, err
		}
		values, err := r.leaf(p, nil, 0)
		if err == nil {
			err = values.next(int(p.rows), v)
		}
		_ = r.Close()
		if err != nil {
			return nil, fmt.Errorf("a dictionary: %w", err)
		}
	}
	if f.loaded == nil {
		f.loaded = map[int64]dictionary{}
	}
	f.loaded[n.dictionary] = dictionary{dictionaries, v}
	return v, nil
}

// dictionary is one that was read.
type dictionary struct {
	of     int
	values *columnar.Values
}
