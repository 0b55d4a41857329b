package blocks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"ndls/internal/control"
)

const (
	// maxTicket is the longest ticket in bytes; tickets encoded here have less than 400.
	maxTicket = 4096
	// maxName is the longest name of a plan or stage. In JSON a byte of it becomes at most six.
	maxName = 256
	// maxColumns is far above any column block that fits memory.
	maxColumns = 1 << 16
	// maxRows is the number of node ids.
	maxRows = 1 << 32
	// maxHop is the largest hop that a plan can ask for.
	maxHop = 1<<15 - 1
)

// ErrTicket reports an invalid ticket.
var ErrTicket = errors.New("bad ticket")

// Ticket names rows [Row, Row+Rows) of a column block at a hop.
type Ticket struct {
	// Plan is plan.Options.Hash: another plan has other rows.
	Plan  string        `json:"plan"`
	Stage control.Stage `json:"stage"`
	// First is the first panel (16 columns) of the block, Columns its width.
	First   int `json:"first"`
	Columns int `json:"columns"`
	// Precision is "float32" or "float16".
	Precision string `json:"precision"`
	Hop       int    `json:"hop"`
	Row       int64  `json:"row"`
	Rows      int64  `json:"rows"`
}

// RowBytes returns the size of a row.
func (t Ticket) RowBytes() int {
	if t.Precision == "float16" {
		return 2 * t.Columns
	}
	return 4 * t.Columns
}

// String names the rows in messages.
func (t Ticket) String() string {
	return fmt.Sprintf("rows %d to %d of %s, hop %d, %d columns from panel %d",
		t.Row, t.Row+t.Rows, t.Stage, t.Hop, t.Columns, t.First)
}

// Validate checks ranges. Its error wraps [ErrTicket].
func (t Ticket) Validate() error {
	wrong := ""
	switch {
	case len(t.Plan) > maxName || len(t.Stage) > maxName:
		wrong = fmt.Sprintf("names of %d bytes", max(len(t.Plan), len(t.Stage)))
	case !utf8.ValidString(t.Plan) || !utf8.ValidString(string(t.Stage)):
		wrong = "a name that is no UTF-8"
	case t.Plan == "":
		wrong = "no plan"
	case t.Stage == "":
		wrong = "no stage"
	case t.Precision != "float32" && t.Precision != "float16":
		wrong = fmt.Sprintf("precision %q is neither float32 nor float16", t.Precision)
	case t.First < 0:
		wrong = fmt.Sprintf("panel %d", t.First)
	case t.Columns < 1 || t.Columns > maxColumns:
		wrong = fmt.Sprintf("%d columns", t.Columns)
	case t.Hop < 0 || t.Hop > maxHop:
		wrong = fmt.Sprintf("hop %d", t.Hop)
	case t.Row < 0 || t.Rows < 1 || t.Row > maxRows || t.Rows > maxRows-t.Row:
		wrong = fmt.Sprintf("%d rows from %d", t.Rows, t.Row)
	default:
		return nil
	}
	return fmt.Errorf("blocks: %s: %w", wrong, ErrTicket)
}

// Encode returns the ticket as JSON.
func (t Ticket) Encode() []byte {
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("blocks: a ticket holds only numbers and strings: %v", err))
	}
	return text
}

// ParseTicket reads what Encode wrote. An error wraps [ErrTicket].
func ParseTicket(text []byte) (Ticket, error) {
	if len(text) > maxTicket {
		return Ticket{}, fmt.Errorf("blocks: a ticket of %d bytes: %w", len(text), ErrTicket)
	}
	// The decoder would replace bytes that are not UTF-8 by other characters.
	if !utf8.Valid(text) {
		return Ticket{}, fmt.Errorf("blocks: a ticket that is no UTF-8: %w", ErrTicket)
	}
	var t Ticket
	d := json.NewDecoder(bytes.NewReader(text))
	// An unknown field asks for something that this program would ignore.
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Ticket{}, fmt.Errorf("blocks: %w: %w", err, ErrTicket)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Ticket{}, fmt.Errorf("blocks: text after the ticket: %w", ErrTicket)
	}
	return t, t.Validate()
}
