package source

import (
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"ndls/dataset/graph"
)

// Encoding is how the characters of a text file are written as bytes. nil is UTF-8.
type Encoding struct {
	name  string
	form  encoding.Encoding
	wide  bool // a character has two bytes, one of which may be 0
	known bool // every byte stands for a character
}

// encodings lists the encodings whose names differ between programs. Others have the names that the
// WHATWG gives them.
var encodings = map[string]Encoding{
	"latin1": {form: charmap.ISO8859_1, known: true}, "iso88591": {form: charmap.ISO8859_1, known: true},
	"l1":      {form: charmap.ISO8859_1, known: true},
	"utf16":   {form: unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), wide: true},
	"utf16le": {form: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), wide: true},
	"utf16be": {form: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), wide: true},
	"ascii":   {}, "usascii": {}, "utf8": {}, "utf8sig": {},
}

// EncodingOf returns the encoding with a name, such as latin-1, windows-1252 or utf-16; nil is UTF-8.
func EncodingOf(name string) (*Encoding, error) {
	short := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	e, ok := encodings[short]
	if !ok {
		if rest, numbered := strings.CutPrefix(short, "cp125"); numbered {
			name = "windows-125" + rest
		}
		form, err := htmlindex.Get(name)
		if canonical, _ := htmlindex.Name(form); err != nil || canonical == "replacement" || canonical == "x-user-defined" {
			return nil, graph.BadURI("encoding=%s is unknown: write utf-8, latin-1, windows-1252, utf-16, gbk, shift_jis or another name of the list of the WHATWG", name)
		}
		e = Encoding{form: form}
	}
	if e.form == nil {
		return nil, nil
	}
	e.name = name
	return &e, nil
}
