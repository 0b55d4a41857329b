// Package inorder works on batches on several threads at a time, and hands them on in the order in
// which they came.
//
// # Model
//
// The caller of a [Line] takes an empty batch ([Line.Next]), fills it and gives it back
// ([Line.Put]). One of the line's threads then calls work for it. When work is done with it and
// with all batches before it, use is called for it, by one thread at a time, and the batch is empty
// again. A line has a fixed number of batches, so that a caller that is faster than the threads
// waits for them.
//
// # Memory
//
// That of the batches, which the caller brings.
//
// # Determinism
//
// use sees the batches in the order of Put, whatever the threads. The error of a line is the error
// of the first failed batch in this order.
package inorder
