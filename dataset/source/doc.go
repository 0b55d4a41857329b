// Package source reads the files of a dataset front to back, past the page cache, and
// unpacks them on the way.
//
// # Model
//
// [Files] holds the open files of a dataset, and what there is to say of them. A
// [Source] is a sequence of bytes that can be read any number of times: a file, or a
// member of a zip archive. [Text] reads it as UTF-8: it decodes other encodings, refuses bytes
// that are no text, and ends lines with LF. [Lines] cuts a text into lines and fields, [Records]
// into the records of CSV. [Form] has what a URI says of text. A file that cannot be text, or is
// in a form of graphs that is not read, is refused by its first bytes, with what to do. [CopyPipe]
// copies what can be read only once to a file.
//
// # Memory
//
// A stream holds a few buffers of up to 1 MiB. A line, and a record with quotes, has at most 16 MiB. Decompression
// holds the window that the format needs, at most 8 MiB for zstd.
package source
