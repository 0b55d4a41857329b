// Package placement decides into which tasks the work of a stage is divided, and how workers share it.
//
// # Model
//
// A placement is a function of the shape of a stage ([stage.Shape]), the committed files, and the workers with their memory and measured
// rates. It reads no file, waits for nobody and keeps no state. The coordinator asks for it, and gives the tasks out.
//
// [Phases] divides a [stage.Matrix] into tasks of columns, then tasks of rows. [Step] divides the next step of [stage.Steps]. Both leave
// out what is committed. [stage.Whole] is one task.
//
// [Work.Share] decides whether groups of workers share the rows of a graph, and how large groups are ([Parallel]). A [Sharing] holds the
// tasks of one group; its columns are divided among all groups. Memory decides first, then seconds by package estimate.
//
// # Determinism
//
// The same arguments give the same tasks. Committed bytes do not depend on them.
package placement
