// Package storage is the one seam through which run directories are read and
// written, and guarantees that a file is seen whole, durable and under its name,
// or not at all.
//
// # Model
//
// A [Store] holds files by name. [Store.Create] starts an attempt, which has no
// name that a reader could meet; [Writer.Commit] makes its bytes durable and
// publishes them in one atomic step. Files are never changed, only replaced.
// [Store.CreateNew] is for files that must not be replaced, such as the records
// of a journal: of many attempts at one name, on any machine, one commits and
// the others get [ErrExist].
//
// [Local] is a folder: an attempt is name.<16 hex digits>.tmp beside the file,
// and commit is fsync, rename, fsync of the folder. Where the file must be new,
// [vfs.PublishNew] stands in place of the rename, which would replace. [Bucket] is a
// prefix of a bucket of S3: an attempt is an upload, which the server publishes at its end, under the condition
// If-None-Match if the file must be new. [Counting] counts the bytes
// that pass. [Cached] keeps whole files of a remote store in a local folder: those
// that are opened with [OpenDigest], by which a catalogue says which bytes it expects, so that a copy is
// used without a question to the store. [OpenURI] opens a folder or a bucket.
// Package storagetest has the contract as tests, a store in memory, and one that fails an operation.
//
// # Algorithm
//
// A request to S3 is sent again after 503 and other 5xx, 429, broken connections
// and replies that end too soon, up to 14 times with random pauses whose bound
// doubles from 50 ms to 20 s: a minute or so. The client alone
// decides. What it cannot see, a body that breaks off after its head, the reader
// resumes with a range request under If-Match, so that a file that is replaced
// meanwhile gives an error and never a mixture. Refused credentials and missing
// buckets fail at once.
//
// Each upload names its attempt in the object's metadata. When a commit fails,
// the writer looks at what is there: if it is its own attempt, the server had
// done it and the reply was lost. Thus a repeated conditional write does not take
// its own file for another's, even when two attempts have the same bytes.
//
// A copy of Cached is the file N.ndls-copy and the note N.ndls-copy.json, written
// last, with the store, name, size and SHA-256. Copies that nobody
// has open are dropped, the longest unused first, until a new one fits.
//
// # Memory
//
// A Local writer holds two direct-I/O buffers and two hash buffers, about 2.5
// MiB; a reader what package direct says.
//
// A Bucket writer holds as many bytes as were written, up to [UploadMemory]: the
// part on its way and the part being filled, of 5 MiB each. As
// S3 takes 10 000 parts, a file has at most 48.8 GiB. A reader holds nothing
// between reads.
//
// A download of Cached holds three direct-I/O buffers and three hash buffers,
// about 3 MiB, and one note of about 300 bytes for each copy.
//
// # Not supported
//
// Changing files in place, links, and names that leave the store. The attempts
// of a bucket cannot be listed; uploads that a killed process leaves there are
// invisible, and a lifecycle rule of the bucket should end them.
package storage
