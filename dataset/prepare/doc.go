// Package prepare turns the columns of a dataset into features: it fills missing numbers, codes categories, and transforms numbers by
// their logarithm or their rank.
//
// # Model
//
// [Fit] reads the rows of the nodes and returns [Columns]: means, quantiles and the values of categories. [Columns.Read] applies these to
// rows, also to those of nodes that arrive later. A row has the columns of numbers of the dataset, then a column of 0 and 1 for each value
// or bucket of each category, then a column of masks for each column of numbers in which a number is missing: 1 where it is.
//
//	missing number  the mean of the transformed column, rounded to float32; 0 in a column without any number. With [Options].Neighbours the
//	                caller puts the mean of neighbours in its place
//	category        of up to [MostValues] values, a column for each, in order: whole numbers by value, others by their bytes. A missing or
//	                unknown value has zeros. Of more values, [Buckets] columns, of which a hash of the value chooses one
//	log             x becomes sign(x)·ln(1 + |x|)
//	quantile        x becomes Φ⁻¹ of its share: (left + right)/2, the shares of the values below x and of those up to x. Both are exact at
//	                [MostPoints] values spread evenly over the ranks, or at all values if there are no more, and linear between them.
//	                Shares end at 1e-7 and 1 − 1e-7
//
// A share of a column of N values differs from the exact one by at most 1/(MostPoints − 1) + 1/N, because it lies between two exact ones.
//
// # Memory
//
// For each goroutine 88 bytes and each of up to [MostColumns] columns of numbers, and the values of the categories. Quantiles take 8 KB for
// each column, and while they are found 256 KiB to 2 MiB for each column that is looked at in one reading, of which there are as many as
// fit half of the budget.
//
// # Algorithm
//
// One reading counts, adds and collects values. Three readings find quantiles, by counters of the upper 16, the next 8 and the last 8 bits
// of each number; they are repeated if not all columns fit in memory. One more adds transformed numbers if some are missing.
//
// # Determinism
//
// Columns do not depend on the order of the rows, on goroutines and on memory: sums are exact ([sum]), all else counts.
//
// # Not supported
//
// Rows that list what is not zero, except for log; more than [MostColumns] columns of numbers to fill or to rank.
package prepare
