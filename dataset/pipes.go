package dataset

import (
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// pipeKinds are the kinds of URI whose files may be pipes: those that name files one by one.
var pipeKinds = []string{"edges", "table", "npz", "mtx", "metis", "dimacs", "adjlist"}

// fileKeys are the keys of such a URI that name files.
var fileKeys = []string{"features", "labels", "splits", "nodes"}

// Pipe is a pipe that a URI names, or something else that can be read only once.
type Pipe struct {
	Path string
	// text is how the URI spells the path.
	text  string
	table bool
}

// Pipes lists the pipes that a URI names.
func Pipes(uri string) (pipes []Pipe) {
	eachFile(uri, func(kind, text string) string {
		path, err := graph.PathOf(text)
		if err == nil && source.IsPipe(path) && !slices.ContainsFunc(pipes, func(p Pipe) bool { return p.text == text }) {
			pipes = append(pipes, Pipe{Path: path, text: text, table: kind == "table"})
		}
		return text
	})
	return pipes
}

// End is the end of the name of a file with what was copied from a pipe: readers go by it.
func (p Pipe) End(c source.PipeCopy) string {
	ext := c.Ext
	if text := strings.TrimSuffix(ext, lastPacked(ext)); p.table && text == "" {
		return ".csv" + ext
	}
	return ext
}

// lastPacked is the last extension if it says how a file is packed.
func lastPacked(ext string) string {
	if i := strings.LastIndexByte(ext, '.'); i >= 0 && source.Packed(ext[i:]) {
		return ext[i:]
	}
	return ""
}

// WithCopies is a URI that names files in place of pipes.
func WithCopies(uri string, files map[Pipe]string) string {
	return eachFile(uri, func(_, text string) string {
		for p, file := range files {
			if p.text == text {
				return graph.EscapePath(file)
			}
		}
		return text
	})
}

// eachFile visits the files that a URI names, as it spells them, and puts what visit returns in
// their place.
func eachFile(uri string, visit func(kind, text string) string) string {
	kind, rest, ok := strings.Cut(uri, ":")
	if !ok || !slices.Contains(pipeKinds, kind) {
		return uri
	}
	visitList := func(text string) string {
		if kind != "table" {
			return visit(kind, text)
		}
		files := strings.Split(text, ",")
		for i, f := range files {
			files[i] = visit(kind, f)
		}
		return strings.Join(files, ",")
	}
	file, query, more := strings.Cut(rest, "?")
	out := kind + ":" + visitList(file)
	if !more {
		return out
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		key, value, _ := strings.Cut(p, "=")
		if !slices.Contains(fileKeys, key) || kind == "table" && key == "features" {
			continue
		}
		value, column, named := strings.Cut(value, "#")
		if value = visitList(value); named {
			value += "#" + column
		}
		params[i] = key + "=" + value
	}
	return out + "?" + strings.Join(params, "&")
}
