package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ndls/dataset/graph"
)

// maxToken is the longest string or number of a JSON file.
const maxToken = 1 << 20

// JSON reads a JSON file token by token. It holds one token in memory.
type JSON struct {
	src *Source
	ctx context.Context
	st  *Text
	dec *json.Decoder
	// done says that NextID has reached the end.
	done bool
	// marked is the length of a byte order mark before the text.
	marked int64
}

// OpenJSON opens a file.
func OpenJSON(ctx context.Context, src *Source) (*JSON, error) {
	st, err := src.OpenText(ctx, 0)
	if err != nil {
		return nil, err
	}
	j := &JSON{src: src, ctx: ctx, st: st}
	j.dec = json.NewDecoder(&tokenLimit{j: j})
	j.dec.UseNumber()
	return j, nil
}

// tokenLimit refuses a file whose next token does not end.
type tokenLimit struct {
	j    *JSON
	read int64
}

func (l *tokenLimit) Read(p []byte) (int, error) {
	if l.j.dec != nil && l.read-l.j.dec.InputOffset() > maxToken {
		return 0, l.j.Bad("a string or number of more than %d bytes: is this the file that is meant?", maxToken)
	}
	n, err := l.j.st.Read(p[:min(len(p), 64<<10)])
	if text := WithoutMark(p[:n]); l.read == 0 && len(text) < n {
		l.j.marked = int64(n - len(text))
		n = copy(p, text)
	}
	l.read += int64(n)
	return n, err
}

// Close closes the file.
func (j *JSON) Close() error { return j.st.Close() }

// Position names the place that was read last.
func (j *JSON) Position() string {
	at := j.marked + j.dec.InputOffset()
	return fmt.Sprintf("%s line %d byte %d", j.src.Name, 1+j.src.countLines(j.ctx, at), at)
}

// Bad is an error about the place that was read last.
func (j *JSON) Bad(format string, args ...any) error {
	return graph.BadData(j.Position(), format, args...)
}

// Token returns the next token: a json.Delim, string, json.Number, bool or nil.
func (j *JSON) Token() (json.Token, error) {
	t, err := j.next()
	if err == io.EOF {
		return nil, j.endsEarly()
	}
	return t, err
}

// next returns the next token, and io.EOF where the file ends.
func (j *JSON) next() (json.Token, error) {
	t, err := j.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, j.endsEarly()
	case errors.As(err, &syntax):
		return nil, j.Bad("%v: it is no JSON file, or damaged; fetch it again", err)
	}
	return t, err
}

func (j *JSON) endsEarly() error {
	return j.Bad("the file ends too early: it is truncated, fetch it again")
}

// Expect reads a delimiter.
func (j *JSON) Expect(want json.Delim, what string) error {
	t, err := j.Token()
	if err == nil && t != want {
		err = j.Bad("found %v where %s is needed (%v)", t, what, want)
	}
	return err
}

// More reports whether another entry follows in the object or list.
func (j *JSON) More() bool { return j.dec.More() }

// Key reads the next key of an object.
func (j *JSON) Key() (string, error) {
	t, err := j.Token()
	if err != nil {
		return "", err
	}
	key, ok := t.(string)
	if !ok {
		return "", j.Bad("found %v where a key is needed", t)
	}
	return key, nil
}

// NextID reads the next key of an object, which is the id of a node. At the end of the object, behind which nothing may
// follow, it returns io.EOF.
func (j *JSON) NextID(limit *graph.IDLimit) (uint32, error) {
	if j.done {
		return 0, io.EOF
	}
	if !j.More() {
		j.done = true
		err := j.Expect('}', "the end of the object")
		if err == nil {
			err = j.Finish()
		}
		return 0, cmp.Or(err, io.EOF)
	}
	key, err := j.Key()
	if err != nil {
		return 0, err
	}
	id, problem := limit.Parse([]byte(key))
	if problem != "" {
		return 0, j.Bad("%s", problem)
	}
	return id, nil
}

// Finish checks that nothing follows.
func (j *JSON) Finish() error {
	t, err := j.next()
	if err == io.EOF {
		return nil
	}
	if err == nil {
		err = j.Bad("found %v behind the end: fetch the file again", t)
	}
	return err
}
