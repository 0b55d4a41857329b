// Package group says how the workers that share the rows of a column block work
// together. A worker that has all rows is a group of one, which needs no network.
//
// # Model
//
// The rows of a graph are cut into ranges of whole strips, one for each worker of a
// [Group], in ascending order. All workers make the same calls in the same order. A
// pass exposes the rows of the present hop, fetches those of the other workers, and
// ends with an all-gather of sums, after which no worker reads the exposed rows.
//
// [Solo] is the group of one worker. Package group/remote has groups over a network.
//
// # Determinism
//
// [Group.OrderedSum] adds in ascending order of row, whatever worker has a row, and
// so gives the bits that one worker with all rows gets. [Group.Exchange] moves values, and adds none.
//
// # Not supported
//
// Workers that join or leave a group while it works.
package group
