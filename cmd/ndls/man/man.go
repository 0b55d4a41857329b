// Package man writes manual pages in the macros of man(7).
//
// # Model
//
// A [Page] holds the help of a command, in parts. Descriptions are text in which lines that begin
// with spaces stay as they are, a line of capitals is a heading, and all else is filled.
//
// # Determinism
//
// The same page gives the same bytes; no page has a date.
package man

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Page is a manual page.
type Page struct {
	// Name is the name of the page, such as ndls-run, Section its section, Title its purpose in a
	// line, Source the program and its version.
	Name    string
	Section int
	Title   string
	Source  string
	// Synopsis is the usage line, "" for a page without one.
	Synopsis    string
	Description string
	// Commands are those below this one, in sections.
	Commands []Part
	// Groups are the options, in parts with headings.
	Groups   []Group
	Examples string
	// Parts are sections behind the options.
	Parts []Part
	// SeeAlso are pages, such as ndls(1).
	SeeAlso []string
}

// Item is a word and what it means.
type Item struct{ Word, Text string }

// Group is some options under a heading.
type Group struct {
	Heading string
	Options []Option
}

// Option is an option of a command line.
type Option struct {
	Name string
	// Value stands for its value, "" for one that has none.
	Value string
	Text  string
}

// Part is a section: text, or a list.
type Part struct {
	Heading string
	Text    string
	Items   []Item
}

// Write writes the page.
func (p Page) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %d \"\" \"%s\" \"Manual of ndls\"\n.ad l\n", escape(strings.ToUpper(p.Name)), p.Section, escape(p.Source))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(p.Name), escape(p.Title))
	if p.Synopsis != "" {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fR\n", escape(p.Synopsis))
	}
	b.WriteString(".SH DESCRIPTION\n")
	text(&b, p.Description)
	for _, part := range p.Commands {
		items(&b, part.Heading, part.Items)
	}
	if p.Examples != "" {
		b.WriteString(".SH EXAMPLES\n")
		text(&b, p.Examples)
	}
	if len(p.Groups) > 0 {
		b.WriteString(".SH OPTIONS\n")
	}
	for _, g := range p.Groups {
		if g.Heading != "" {
			fmt.Fprintf(&b, ".SS %s\n", escape(g.Heading))
		}
		for _, o := range g.Options {
			fmt.Fprintf(&b, ".TP\n\\fB\\-\\-%s\\fR", escape(o.Name))
			if o.Value != "" {
				fmt.Fprintf(&b, " \\fI%s\\fR", escape(o.Value))
			}
			fmt.Fprintf(&b, "\n%s\n", line(o.Text))
		}
	}
	for _, s := range p.Parts {
		if s.Text != "" {
			fmt.Fprintf(&b, ".SH %s\n", escape(s.Heading))
			text(&b, s.Text)
		}
		items(&b, s.Heading, s.Items)
	}
	if len(p.SeeAlso) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", escape(strings.Join(p.SeeAlso, ", ")))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// items writes a list as a section.
func items(b *strings.Builder, heading string, list []Item) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", escape(heading))
	for _, x := range list {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", escape(x.Word), line(x.Text))
	}
}

// text writes paragraphs, headings, and lines that stay as they are.
func text(b *strings.Builder, s string) {
	asIs, begun := false, false // begun: something stands in the section or behind the heading
	stop := func() {
		if asIs {
			b.WriteString(".fi\n")
		}
		asIs = false
	}
	gap := false
	for _, l := range strings.Split(strings.Trim(s, "\n"), "\n") {
		switch {
		case strings.TrimSpace(l) == "":
			gap = true
			continue
		case IsHeading(l):
			stop()
			fmt.Fprintf(b, ".SS %s\n", escape(l))
			gap, begun = false, false
			continue
		case strings.HasPrefix(l, " ") || strings.HasPrefix(l, "\t"):
			if !asIs {
				if begun {
					b.WriteString(".PP\n")
				}
				b.WriteString(".nf\n")
				asIs = true
			} else if gap {
				b.WriteString(".sp\n")
			}
		default:
			stop()
			if gap && begun {
				b.WriteString(".PP\n")
			}
		}
		b.WriteString(line(l) + "\n")
		gap, begun = false, true
	}
	stop()
}

// IsHeading reports whether a line is a heading: capitals and spaces.
func IsHeading(l string) bool {
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

// escape writes text that stands in the middle of a line.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ").Replace(s)
}

// line writes text that begins a line: a dot or an apostrophe there would be a request.
func line(s string) string {
	s = escape(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}
