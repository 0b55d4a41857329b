// Package catalog lists what is committed in a run directory. A file exists when
// the catalogue names it: its bytes are durable and hashed by then.
//
// # Model
//
// An [Entry] says what a file is: the stage that wrote it, its kind, its rows, columns
// and hop, and the SHA-256 of its bytes. No meaning is parsed from names of files.
// One process at a time, the owner, changes the catalogue ([Open]). Others hold views
// ([NewView]), whose changes the owner makes. A view is brought up to date by what has changed
// since it was last ([Catalog.Since], [Catalog.Update]).
//
// # Memory
//
// About 300 bytes an entry, and for the owner twice that: changes that views may ask for have
// no more entries than the catalogue, or a thousand. A run has some files for each interval of
// rows and panel of columns.
package catalog
