package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// fold breaks a line that is longer than so many columns at blanks, and indents what follows. A command that the user
// is to type goes on behind a backslash. A word that is longer than a line stays whole, so that it can be copied.
func fold(line string, columns int) []string {
	if columns <= 0 || utf8.RuneCountInString(line) <= columns {
		return []string{line}
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	rest, end := line[indent:], ""
	if strings.HasPrefix(rest, "ndls ") {
		end = " \\"
	}
	var lines []string
	for before := indent; ; before = indent + 2 {
		room := max(columns-before-len(end), 1)
		if utf8.RuneCountInString(rest) <= max(columns-before, 1) {
			return append(lines, strings.Repeat(" ", before)+rest)
		}
		at, option := -1, -1 // the last blank that fits, or the first of all; the last one before an option
		for i, n := 0, 0; i < len(rest); n++ {
			if rest[i] == ' ' && i > 0 && (n <= room || at < 0) {
				if at = i; strings.HasPrefix(rest[i:], " --") {
					option = i
				}
			}
			if n > room && at >= 0 {
				break
			}
			_, size := utf8.DecodeRuneInString(rest[i:])
			i += size
		}
		if end != "" && option > 0 {
			at = option // an option and its value stay together
		}
		if at < 0 {
			return append(lines, strings.Repeat(" ", before)+rest)
		}
		lines = append(lines, strings.Repeat(" ", before)+strings.TrimRight(rest[:at], " ")+end)
		rest = strings.TrimLeft(rest[at:], " ")
	}
}

// folding is a writer to a terminal that folds lines and colours the first words of some. What stands behind the last
// newline comes with Flush.
type folding struct {
	w       io.Writer
	columns func() int
	line    []byte
	plain   bool
}

// newFolding returns a writer to a terminal of so many columns, without colours where the environment has NO_COLOR.
func newFolding(w io.Writer, columns func() int) *folding {
	return &folding{w: w, columns: columns, plain: os.Getenv("NO_COLOR") != ""}
}

// colours are the words at the beginning of a line that have a colour, and its number: green, yellow, red.
var colours = []struct {
	word   string
	number int
}{{"✓", 32}, {"warning:", 33}, {"error:", 31}, {"ndls:", 31}}

// coloured gives the first word of a line its colour.
func coloured(line string) string {
	for _, c := range colours {
		if rest, ok := strings.CutPrefix(line, c.word+" "); ok {
			return fmt.Sprintf("\x1b[%dm%s\x1b[0m %s", c.number, c.word, rest)
		}
	}
	return line
}

func (f *folding) Write(p []byte) (int, error) {
	f.line = append(f.line, p...)
	for {
		i := bytes.IndexByte(f.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		text := strings.Join(fold(string(f.line[:i]), f.columns()), "\n") + "\n"
		if !f.plain {
			text = coloured(text)
		}
		f.line = f.line[i+1:]
		if _, err := io.WriteString(f.w, text); err != nil {
			return 0, err
		}
	}
}

func (f *folding) Flush() error {
	_, err := f.w.Write(f.line)
	f.line = nil
	return err
}

// tableWriter aligns cells that end with tabs, in lines.
type tableWriter interface {
	io.Writer
	Flush() error
}

// newTable returns a table on w, with so many blanks between columns. Where w is a terminal the table fits it: long cells
// are cut in their middle, sentences in a last cell are folded, and columns that have no space stand below the others.
// Elsewhere all of it is written.
func newTable(w io.Writer, padding int, flags uint) tableWriter {
	width := columns(w)
	if width == nil {
		return tabwriter.NewWriter(w, 0, 0, padding, ' ', flags)
	}
	return &fittedTable{w: w, columns: width(), padding: padding, right: flags&tabwriter.AlignRight != 0}
}

// fittedTable is a table on a terminal.
type fittedTable struct {
	bytes.Buffer
	w                io.Writer
	columns, padding int
	right            bool
}

// Flush writes the table: lines without cells divide it into parts, of which each is aligned by itself.
func (t *fittedTable) Flush() error {
	var out strings.Builder
	var part [][]string
	for line := range strings.Lines(t.String()) {
		line = strings.TrimSuffix(line, "\n")
		if cells := strings.Split(line, "\t"); len(cells) > 1 {
			part = append(part, cells)
			continue
		}
		t.lay(&out, part)
		part = nil
		out.WriteString(line + "\n")
	}
	t.lay(&out, part)
	t.Reset()
	_, err := io.WriteString(t.w, out.String())
	return err
}

// leastCell is the least number of shown characters of a cell.
const leastCell = 14

// lay writes rows of cells within the columns of the terminal.
func (t *fittedTable) lay(out *strings.Builder, rows [][]string) {
	var widths []int
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for len(widths) > 0 && widths[len(widths)-1] == 0 {
		widths = widths[:len(widths)-1]
	}
	if len(widths) == 0 {
		return
	}
	if !t.right {
		for t.total(widths) > t.columns {
			widest := slices.Index(widths, slices.Max(widths))
			if widths[widest] <= leastCell {
				break
			}
			widths[widest]--
		}
	}
	groups := [][]int{{0}}
	for at := 1; at < len(widths); at++ {
		last := len(groups) - 1
		if side := append(groups[last][:len(groups[last]):len(groups[last])], at); len(groups[last]) == 1 ||
			t.total(pick(widths, side)) <= t.columns {
			groups[last] = side
		} else {
			groups = append(groups, []int{0, at})
		}
	}
	for i, shown := range groups {
		if i > 0 {
			out.WriteString("\n")
		}
		for _, cells := range rows {
			t.row(out, widths, shown, cells)
		}
	}
}

// pick returns some of the values.
func pick(values []int, which []int) (list []int) {
	for _, i := range which {
		list = append(list, values[i])
	}
	return list
}

// total returns the number of characters of a row of these columns.
func (t *fittedTable) total(widths []int) int {
	sum := t.padding * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	return sum
}

// row writes some cells of a row.
func (t *fittedTable) row(out *strings.Builder, widths, which []int, cells []string) {
	var line strings.Builder
	for n, i := range which {
		if i >= len(cells) {
			break
		}
		cell, width := cells[i], widths[i]
		last := n == len(which)-1 || i == len(cells)-1
		if last && !t.right {
			// A sentence may take what is left of the row.
			width = t.columns - utf8.RuneCountInString(line.String())
		}
		if last && !t.right && strings.Contains(cell, " ") && utf8.RuneCountInString(cell) > width {
			before := utf8.RuneCountInString(line.String())
			for k, text := range fold(cell, max(width-2, leastCell)) {
				if k > 0 {
					line.WriteString("\n" + strings.Repeat(" ", before))
				}
				line.WriteString(text)
			}
			break
		}
		cell = cut(cell, width)
		blanks := strings.Repeat(" ", max(width-utf8.RuneCountInString(cell), 0))
		gap := strings.Repeat(" ", t.padding)
		switch {
		case last && !t.right:
			line.WriteString(cell)
		case t.right:
			if n > 0 {
				line.WriteString(gap)
			}
			line.WriteString(blanks + cell)
		default:
			line.WriteString(cell + blanks + gap)
		}
	}
	out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// cut returns a text of so many characters at most, without its middle where it is longer: both ends of a URI or of a
// path tell more than the middle.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most || most < 1 {
		return text
	}
	head := (most - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(most-1-head):])
}

// Widths of the help: that of the terminal, within bounds. Beyond most, lines are tiring to read.
const leastHelp, mostHelp = 40, 100

// helpColumns is the width of the help on w: that of the terminal, or of a usual one where w is none.
func helpColumns(w io.Writer) int {
	if width := columns(w); width != nil {
		return min(max(width(), leastHelp), mostHelp)
	}
	return defaultColumns
}

// paragraphs returns a text, of the help or in Markdown, with lines of so many columns. Lines that follow each other are one paragraph, or
// one item of a list; headings, code, tables and lines that are indented stay as they are, as far as they fit.
func paragraphs(text string, columns int) string {
	var out strings.Builder
	head := ""
	var open []string
	end := func() {
		if len(open) > 0 {
			out.WriteString(strings.Join(hanging(head, len(head), strings.Join(open, " "), columns), "\n") + "\n")
		}
		head, open = "", nil
	}
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		fence := strings.HasPrefix(line, "```")
		code = code != fence
		indented := strings.HasPrefix(line, " ") && (head == "" || strings.HasPrefix(line, "    "))
		switch {
		case code || fence || indented || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") || isHeading(line) ||
			strings.TrimSpace(line) == "":
			end()
			out.WriteString(strings.Join(fold(line, columns), "\n") + "\n")
		case strings.HasPrefix(line, "- "):
			end()
			head, open = "- ", []string{line[2:]}
		default:
			open = append(open, strings.TrimSpace(line))
		}
	}
	end()
	return out.String()
}

// isHeading reports whether a line is a heading: capitals and spaces.
func isHeading(l string) bool {
	letters := 0
	for _, r := range l {
		switch {
		case unicode.IsUpper(r):
			letters++
		case r != ' ':
			return false
		}
	}
	return letters > 2 && !strings.HasPrefix(l, " ")
}

// hanging returns lines of which the first begins with a head, and the others are indented.
func hanging(head string, indent int, text string, columns int) (lines []string) {
	line := head
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines = append(lines, line)
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return append(lines, line)
}

// item writes a word and what it is, side by side.
func item(w io.Writer, word string, wordColumns int, text string, columns int) {
	indent := 2 + wordColumns + 1
	for _, l := range hanging(fmt.Sprintf("  %-*s ", wordColumns, word), indent, text, columns) {
		fmt.Fprintln(w, l)
	}
}
