// Package plan has the options that decide the bytes of a run directory, and the table that says what is known of each.
//
// # Model
//
// [Options] holds the values: the same options and the same dataset give the same bytes. [Table] has a row for each option that a user can
// give: its name, help, default and range, which words it accepts, beside which others it decides nothing, and whether a search may try it.
// Flags, environment, help, completion, checks, canonical form, warnings and the space of a search are read from the table.
//
// # Adding an option
//
// An option is a field of [Options], with its name in JSON, and a row of [Table]. A stage that reads it lists it among its own options, so
// that run directories made with another value are told apart.
//
// # Forms
//
// [Options.Set] and [Options.Get] use the text of flags. [Options.Canonical] gives options with the same meaning the same form.
// [Options.Hash] is the SHA-256 of the JSON.
package plan
