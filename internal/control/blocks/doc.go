// Package blocks moves rows of column blocks from the worker that owns them to
// workers that need them, over Arrow Flight, and guarantees that what arrives are
// the bytes that were sent, in order, or an error.
//
// # Model
//
// A [Ticket] names rows of a column block at a hop of a stage of a plan. The owner
// of rows is a [Source] behind [Serve]; who needs them asks with [Client.Fetch]. A
// request for a hop that the owner has not reached waits, so that the rows
// themselves are the barrier between hops; one for a hop that it has gone past
// fails with [ErrPast]. How often a hop may be asked for, and by whom, is the
// source's business.
//
// What fails tells what to do: [ErrRetry] is an owner that is gone, or damage on
// the way ([ErrCorrupt] as well), and the rest of the rows may be asked for again;
// [ErrPast], [ErrNotHeld] and [ErrTicket] will fail again; anything else is a
// refusal by the credentials, which are the caller's options. A host that vanishes
// without a word is noticed after a minute, also while a request waits.
//
// # Format
//
// DoGet with the ticket as JSON. The answer is an Arrow stream of one column,
// rows: fixed_size_list<float32 or float16>[columns], nothing nullable, in batches
// of less than 1 MiB; any Flight client reads it. The body of a batch is the rows
// as they lie in memory, little-endian, ended with zeros to a multiple of 64
// bytes. Its app_metadata are 16 bytes, little-endian: the number of the first row
// (8), the number of rows (4), and the CRC-32C of these 12 bytes and the rows (4).
//
// DoGet is the only call of Flight that is answered.
//
// # Memory
//
// The owner takes 2 MiB for each request that it is answering, one batch on its
// way and one behind it, and a few KiB for each that waits; rows are copied once,
// from the source's memory into the message. A fetch takes 6 MiB: 4 MiB that may
// be on their way, the batch that is put, and the one that it was received as.
// Requests are not limited in number: a limit could hold back the one that all
// others wait for.
//
// gRPC's flow control stops an owner whose fetcher is slow. Streams of one
// connection do not hold each other up.
//
// # Not supported
//
// Compression: rows are mantissas, which do not compress. Resuming a fetch: the
// caller asks for the rows that are missing.
package blocks
