package parquet

import (
	"bufio"
	"encoding/binary"
	"io"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/mem"
)

const (
	magic     = "PAR1"
	encrypted = "PARE" // in place of magic where the footer is encrypted
	// maxFooter bounds the footer, which is read into memory.
	maxFooter = 256 << 20
	// maxBuffers bounds the buffers between the file and its columns, minBuffer is the smallest.
	maxBuffers = 16 << 20
	minBuffer  = 16 << 10
)

// File is an open Parquet file.
type File struct {
	name   string
	src    *source.Source
	fields []field
	leaves int
	groups []group
	rows   int64
}

// Open reads the footer of a file.
func Open(src *source.Source) (*File, error) {
	if src.Unpack != nil {
		return nil, graph.BadData(src.Name, "is a packed Parquet file: unpack it, Parquet is compressed inside")
	}
	size := src.End - src.Off
	if size == 0 {
		return nil, graph.BadData(src.Name, "is empty (0 bytes): write it again, or remove it")
	}
	no := func(what string) error {
		return graph.BadData(src.Name, "%s: it is damaged or no Parquet file, write it again", what)
	}
	var tail [8]byte
	if size < int64(len(magic)+len(tail)) {
		return nil, no("has " + mem.Bytes(size).String())
	}
	if _, err := src.File.ReadAt(tail[:], src.End-int64(len(tail))); err != nil {
		return nil, graph.Damaged(src.Name, err)
	}
	switch string(tail[4:]) {
	case magic:
	case encrypted:
		return nil, graph.BadData(src.Name, "is encrypted: write it without encryption")
	default:
		return nil, no("does not end as a Parquet file does")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:4]))
	switch {
	case n > size-int64(len(magic)+len(tail)):
		return nil, no("its footer is longer than the file")
	case n > maxFooter:
		return nil, graph.BadData(src.Name, "has a footer of %s: write larger row groups, or fewer columns", mem.Bytes(n))
	}
	footer := make([]byte, n)
	if _, err := src.File.ReadAt(footer, src.End-int64(len(tail))-n); err != nil {
		return nil, graph.Damaged(src.Name, err)
	}
	m, ok := readMeta(footer)
	if !ok || len(m.elements) == 0 {
		return nil, no("its footer is damaged")
	}
	f := &File{name: src.Name, src: src, groups: m.groups}
	root, leaves, err := tree(m.elements)
	if err != nil {
		return nil, no(err.Error())
	}
	f.fields, f.leaves = root.fields(), len(leaves)
	rows := int64(0)
	for i := range f.groups {
		g := &f.groups[i]
		if g.first = rows; g.rows < 0 || g.rows > 1<<40 || len(g.chunks) != f.leaves {
			return nil, no("its row groups do not fit its schema")
		}
		rows += g.rows
	}
	f.rows = rows // some writers of old state another number for the file
	return f, nil
}

// Columns lists the columns: those of the schema first, then those inside of structs.
func (f *File) Columns() []columnar.Column {
	all := make([]columnar.Column, len(f.fields))
	for i, c := range f.fields {
		all[i] = c.Column
	}
	return all
}

// Rows is the number of rows.
func (f *File) Rows() int64 { return f.rows }

// Units is the number of row groups.
func (f *File) Units() int { return len(f.groups) }

// Unit tells the first row of a row group, and how many it has.
func (f *File) Unit(i int) (first, rows int64) { return f.groups[i].first, f.groups[i].rows }

// Check refuses a column that is not read as it is stored.
func (f *File) Check(column int) error {
	for _, g := range f.groups {
		for _, l := range f.fields[column].leaves {
			if err := f.check(&f.fields[column], l, &g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *File) check(c *field, l *node, g *group) error {
	k := &g.chunks[l.leaf]
	codec := ""
	if k.codec >= 0 && k.codec < len(unpackers) {
		codec = unpackers[k.codec].name
	}
	switch {
	case k.encrypted:
		return graph.BadData(f.name, "column %q is encrypted: write it without encryption", c.Name)
	case k.away:
		return graph.BadData(f.name, "column %q is in another file: write the table as one", c.Name)
	case !k.known || k.physical != l.physical || k.values < 0 || k.size < 0 || k.data < 0:
		return graph.BadData(f.name, "what is said of column %q is damaged: write the file again", c.Name)
	case codec == "":
		return graph.BadData(f.name, "column %q is compressed as number %d, which is not read: write the file with zstd or snappy (in pyarrow, compression='zstd')", c.Name, k.codec)
	case unpackers[k.codec].unpack == nil:
		return graph.BadData(f.name, "column %q is compressed as %s, which is not read: write the file with zstd or snappy (in pyarrow, compression='zstd')", c.Name, codec)
	case l.repetition == 0 && k.values != g.rows:
		return graph.BadData(f.name, "column %q has %d values in a row group of %d rows: the file is damaged, write it again", c.Name, k.values, g.rows)
	}
	return nil
}

// pages opens the pages of a leaf in a row group.
func (f *File) pages(c *field, l *node, g *group, s *shared) (*pages, error) {
	if err := f.check(c, l, g); err != nil {
		return nil, err
	}
	k := &g.chunks[l.leaf]
	start, length := k.data, f.src.End-f.src.Off
	if k.dictionary > 0 && k.dictionary < start {
		start = k.dictionary
	}
	if start > length-k.size {
		return nil, graph.BadData(f.name, "column %q is said to lie outside of the file: it is damaged, write it again", c.Name)
	}
	end := min(start+k.size+dictionaryHead, length)
	p := &pages{left: end - start, codec: k.codec, shared: s}
	p.in = bufio.NewReaderSize(io.NewSectionReader(f.src.File, f.src.Off+start, end-start), int(min(s.buffer, max(end-start, 1<<10))))
	if p.dict.size = l.length; l.physical != fixedArrays {
		p.dict.size = sizes[:byteArrays][min(l.physical, byteArrays-1)]
	}
	if l.physical == byteArrays {
		p.dict.size = 0
	}
	return p, nil
}

// pageBytes is the size of a page, and of a dictionary, that writers do not exceed unless they are told to; but for DuckDB.
const pageBytes = 1 << 20

// Memory implements columnar.File: a buffer, a dictionary, a page and 16 KiB of levels for each leaf, and a page as it is stored. It
// believes that pages have at most 1 MiB, or as much as the one that pageSize finds.
func (f *File) Memory(columns []int) (most int64) {
	buffer, page := bufferOf(columns), f.pageSize(columns)
	for _, g := range f.groups {
		held, stored := int64(0), int64(0)
		for _, i := range columns {
			for _, l := range f.fields[i].leaves {
				k := g.chunks[l.leaf]
				held += min(buffer, k.size) + min(k.unpacked, page+pageBytes) + 2*batch*8
				stored = max(stored, min(k.size, page))
			}
		}
		most = max(most, held+stored)
	}
	return most
}

// pageSize returns the bytes of the first page of data in the longest chunk of some columns, at least pageBytes: DuckDB writes chunks of up
// to 100 MB as one page. A damaged page is reported where its rows are read.
func (f *File) pageSize(columns []int) int64 {
	var longest chunk
	for _, g := range f.groups {
		for _, i := range columns {
			for _, l := range f.fields[i].leaves {
				if k := g.chunks[l.leaf]; k.unpacked > longest.unpacked {
					longest = k
				}
			}
		}
	}
	if longest.unpacked <= 2*pageBytes {
		return pageBytes
	}
	p := &pages{left: longest.size, in: bufio.NewReaderSize(io.NewSectionReader(f.src.File, f.src.Off+longest.data, longest.size), minBuffer)}
	h, err := p.head()
	if err != nil {
		return pageBytes
	}
	return max(pageBytes, min(int64(h.size), maxPage))
}

// bufferOf returns the size of the buffer between the file and each column.
func bufferOf(columns []int) int64 {
	return max(minBuffer, min(source.BufferSize, maxBuffers/int64(max(len(columns), 1))))
}

// Read reads columns of a row group. widest bounds the length of lists.
func (f *File) Read(unit int, columns []int, widest int) (columnar.Reader, error) {
	g := &f.groups[unit]
	r := &reader{f: f, left: g.rows, shared: shared{buffer: bufferOf(columns)}}
	for _, i := range columns {
		c := &f.fields[i]
		if c.Type.Kind == columnar.Other {
			return nil, graph.BadData(f.name, "column %q is of type %s, which is not read", c.Name, c.Type.Name)
		}
		read := columnReader{field: c}
		for _, l := range c.leaves {
			leaf, err := f.leaf(c, l, g, widest, &r.shared)
			if err != nil {
				return nil, err
			}
			read.leaves = append(read.leaves, leaf)
		}
		r.columns = append(r.columns, read)
	}
	return r, nil
}
