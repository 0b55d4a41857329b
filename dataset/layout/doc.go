// Package layout has what the readers of published layouts have in common. Each kind of
// URI is a package below it.
//
// # Model
//
// A reader opens the files of a dataset, checks what can be known before the edges are
// read, and fills a [Graph] with a source for each stream. The graph opens the streams.
package layout
