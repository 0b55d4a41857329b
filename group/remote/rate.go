package remote

import (
	"context"

	"ndls/internal/control/blocks"
)

const (
	// rateStage is the stage of tickets for rows that serve to measure the network.
	rateStage = "rate"
	ratePlan  = "sha256:rate"
	// rateRows is the number of rows of the measured panel: 4 MiB.
	rateRows = 1 << 16
)

// RateTicket is for rows that every worker gives out, whatever group it is in: zeros, by which the
// network to it can be measured.
func RateTicket() blocks.Ticket {
	return blocks.Ticket{Plan: ratePlan, Stage: rateStage, Columns: 16, Precision: "float32", Rows: rateRows}
}

// sendZeros answers a RateTicket.
func sendZeros(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	if t.Row != 0 || t.Rows > rateRows || t.RowBytes() > 64 {
		return blocks.ErrNotHeld
	}
	piece := make([]byte, pieceBytes/64*t.RowBytes())
	for at := int64(0); at < t.Rows; {
		n := min(t.Rows-at, int64(len(piece)/t.RowBytes()))
		if err := send(at, piece[:n*int64(t.RowBytes())]); err != nil {
			return err
		}
		if at += n; ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
